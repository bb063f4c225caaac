package transport

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// seeds are lines of real agents and lines that nobody should write.
func seeds(f *testing.F) [][]byte {
	f.Helper()
	var lines [][]byte
	files, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if file.IsDir() {
			continue
		}
		raw, err := os.ReadFile("testdata/" + file.Name())
		if err != nil {
			f.Fatal(err)
		}
		for l := range strings.Lines(string(raw)) {
			if strings.HasPrefix(l, "< ") {
				lines = append(lines, []byte(l[2:]))
			}
		}
	}
	for _, l := range []string{
		`[{"jsonrpc":"2.0","id":1,"result":{}},{"method":"x"},[],7]`, `{"id":1.0,"result":null}{"id":"1","error":"x"}`,
		"\xef\xbb\xbf{}", `{"id":1,"id":2,"result":{}}`, `{"a":"\u12"}`, "[[[[", `{"a":1,}`, "nul", `-01`, `1e`, `"\x"`,
		`{"error":{"code":-32000.0,"message":7,"data":[1]},"id":"\ud800"}`,
	} {
		lines = append(lines, []byte(l))
	}
	return lines
}

// FuzzValue: what the scanner takes is exactly what encoding/json takes, but for depth.
func FuzzValue(f *testing.F) {
	for _, l := range seeds(f) {
		f.Add(l)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		from := skipSpace(b, 0)
		end := skipValue(b, from, 0)
		ours := end >= 0 && skipSpace(b, end) == len(b)
		if ours != json.Valid(b) && bytes.Count(b, []byte("[")) < maxDepth && bytes.Count(b, []byte("{")) < maxDepth {
			t.Fatalf("%q: we say %v, encoding/json %v", b, ours, !ours)
		}
		if ours {
			repeats(b[from:end])
			if s := text(b[from:end]); !utf8.ValidString(s) {
				t.Fatalf("%q gives text %q", b, s)
			}
		}
	})
}

// sdkMessage is how the SDK decodes a line.
type sdkMessage struct {
	JSONRPC string           `json:"jsonrpc"`
	ID      *json.RawMessage `json:"id,omitempty"`
	Method  string           `json:"method,omitempty"`
	Params  json.RawMessage  `json:"params,omitempty"`
	Result  json.RawMessage  `json:"result,omitempty"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	} `json:"error,omitempty"`
}

// FuzzGuard: whatever the agent writes, the SDK is handed whole lines that it can decode, of
// the few kinds that are let through, and nothing is lost uncounted.
func FuzzGuard(f *testing.F) {
	for _, l := range seeds(f) {
		f.Add(l, false)
		f.Add(append(append([]byte("x\n"), l...), l...), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, slow bool) {
		c := &conn{ledger: newLedger(), questions: newQuestions(), dead: make(chan struct{}), o: Options{SettleTimeout: 1}}
		defer c.ledger.close()
		c.out = &outbound{changed: make(chan struct{})}
		c.call = &call{id: 1, sent: true, answered: make(chan struct{})}
		var r io.Reader = bytes.NewReader(b)
		if slow {
			r = iotest.OneByteReader(r)
		}
		in := &inbound{c: c, src: newSource(r, 1<<10), part: 3}
		for {
			if in.advance() != nil {
				return // the end, or a bound
			}
			line := bytes.Join(in.parts[:], nil)
			in.part = 3
			var m sdkMessage
			if bytes.Count(line, []byte("\n")) != 1 || line[len(line)-1] != '\n' {
				t.Fatalf("%q became %q, which is not one line", b, line)
			}
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatalf("%q became %q, which the SDK cannot decode: %v", b, line, err)
			}
			switch {
			case m.Method == "session/update" && m.ID == nil:
				c.ledger.step(&c.ledger.handled)
			case m.Method == "$/cancel_request" && m.ID == nil:
			case m.Method == "session/request_permission" && m.ID != nil:
				c.questions.answered(*m.ID)
			case m.Method == "" && m.ID != nil && string(*m.ID) == "1" && (m.Error == nil) != (m.Result == nil):
				c.ledger.step(&c.ledger.returned)
			default:
				t.Fatalf("%q became %q", b, line)
			}
			c.out.queue, c.out.bytes = nil, 0
		}
	})
}

// FuzzUpdate: decoding never fails, and is known only with what its kind must have.
func FuzzUpdate(f *testing.F) {
	for _, l := range seeds(f) {
		env, end := readEnvelope(l, 0)
		if end > 0 && env.params != nil {
			f.Add([]byte(env.params))
		}
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		u := decodeUpdate(params)
		if u.Known && (!json.Valid(u.Raw) || u.Kind == "") || !u.Known && (u.Raw != nil || u.Text != "" || len(u.SHA256) != 64) {
			t.Fatalf("%q: %+v", params, u)
		}
		for _, s := range []string{u.Kind, u.Text, u.Title, u.ToolCallID, u.SessionID} {
			if !utf8.ValidString(s) {
				t.Fatalf("%q: %q is not text", params, s)
			}
		}
		if again := decodeUpdate(bytes.Clone(params)); !reflect.DeepEqual(again, u) {
			t.Fatalf("%q: decoded once to %+v, once to %+v", params, u, again)
		}
		if len(u.Kind) > maxWord || len(u.ToolCallID) > maxID || len(u.Status) > maxWord || len(u.MessageID) > maxID || u.Bytes > len(params) {
			t.Fatalf("%q: out of bounds: %+v", params, u)
		}
		if u.Known {
			checkKnown(t, params, u)
		}
		book := newToolbook()
		book.note("t", false, params)
		if full, _ := book.complete("t", []byte(`{"toolCallId":"t"}`)); !json.Valid(full) {
			t.Fatalf("%q: completed to %q", params, full)
		}
	})
}

// checkKnown holds a known update against what encoding/json finds in its object.
func checkKnown(t *testing.T, params []byte, u Update) {
	t.Helper()
	var sent struct {
		Update json.RawMessage `json:"update"`
	}
	var update map[string]any
	if bytes.ContainsRune(params, '\\') || json.Unmarshal(params, &sent) != nil || !json.Valid(params) || json.Unmarshal(u.Raw, &update) != nil {
		return // names with escapes are no names of ours
	}
	kind, _ := update["sessionUpdate"].(string)
	if cut(strings.ToValidUTF8(kind, "\uFFFD"), maxWord) != u.Kind {
		t.Fatalf("%q: kind %q, want %q", params, u.Kind, kind)
	}
	switch u.Kind {
	case "tool_call", "tool_call_update":
		if id, _ := update["toolCallId"].(string); id == "" || u.ToolCallID == "" {
			t.Fatalf("%q: a tool call without its id", params)
		}
	case "agent_message_chunk", "agent_thought_chunk", "user_message_chunk":
		content, ok := update["content"].(map[string]any)
		if !ok || u.ContentType == "text" && content["text"] != u.Text && utf8.Valid(params) {
			t.Fatalf("%q: text %q, want %v", params, u.Text, content["text"])
		}
	case "usage_update":
		if u.Usage == nil || u.Usage.Used.Reading == Reported && u.Usage.Used.Value < 0 {
			t.Fatalf("%q: usage %+v", params, u.Usage)
		}
	}
}

// FuzzPermission: what is put to the operator is valid, small, and unambiguous.
func FuzzPermission(f *testing.F) {
	for _, l := range seeds(f) {
		env, end := readEnvelope(l, 0)
		if end > 0 && string(env.method) == `"session/request_permission"` {
			f.Add([]byte(env.params))
		}
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		r, why := readPermission(params)
		if why != "" {
			return
		}
		if !json.Valid(r.ToolCall) || r.ToolCallID == "" || r.SessionID == "" || len(r.Options) == 0 || repeats(params) {
			t.Fatalf("%q: %+v", params, r)
		}
		ids := map[string]bool{}
		for _, o := range r.Options {
			if ids[o.ID] || o.ID == "" || o.Selectable != (o.Kind == "allow_once" || o.Kind == "reject_once") {
				t.Fatalf("%q: %+v", params, r.Options)
			}
			ids[o.ID] = true
		}
	})
}

// FuzzSource: lines are what splitting says, whole or cut, however the bytes arrive.
func FuzzSource(f *testing.F) {
	f.Add([]byte("a\n\nb"), false)
	f.Add(bytes.Repeat([]byte("x"), 70<<10), false)
	f.Add(append(bytes.Repeat([]byte("x"), 65536), '\n', 'y'), true)
	f.Fuzz(func(t *testing.T, b []byte, slow bool) {
		const limit = 100
		var r io.Reader = bytes.NewReader(b)
		if slow {
			r = iotest.HalfReader(r)
		}
		s := newSource(r, limit)
		want := bytes.Split(b, []byte("\n"))
		if last := len(want) - 1; len(want[last]) == 0 {
			want = want[:last]
		}
		for _, w := range want {
			l, err := s.next()
			if err != nil || l.size != int64(len(w)) {
				t.Fatalf("got %d bytes %v, want %d", l.size, err, len(w))
			}
			if len(w) <= limit && (!bytes.Equal(l.b, w) || l.last != nil) {
				t.Fatalf("got %q, want %q", l.b, w)
			}
			if len(w) > limit && (!bytes.HasPrefix(w, l.b) || len(l.b) != limit || len(l.last) == 0 || !bytes.HasSuffix(w, l.last)) {
				t.Fatalf("a line of %d bytes: got %d, end %q", len(w), len(l.b), l.last)
			}
		}
		if l, err := s.next(); err != io.EOF {
			t.Fatalf("got %q %v, want the end", l.b, err)
		}
	})
}
