package transport

import (
	"bytes"
	"encoding/json"
	"strconv"
	"testing"
	"unicode/utf8"
)

// FuzzSplitter: a line is taken apart as encoding/json would take it, every byte is accounted for, and
// what stands behind a message does not change it.
func FuzzSplitter(f *testing.F) {
	for _, l := range seeds(f) {
		f.Add(l)
		f.Add(append(append([]byte{'['}, l...), ']'))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if bytes.Count(b, []byte("[")) >= maxDepth || bytes.Count(b, []byte("{")) >= maxDepth {
			return
		}
		messages, garbage := splitAll(t, b)
		whole := bytes.Trim(b, " \t\r\n")
		switch valid := json.Valid(b); {
		case len(whole) == 0:
			if messages+garbage != 0 {
				t.Fatalf("%q: %d messages and %d lots of garbage in nothing", b, messages, garbage)
			}
		case valid && whole[0] == '{':
			if messages != 1 || garbage != 0 {
				t.Fatalf("%q: %d messages, %d lots of garbage", b, messages, garbage)
			}
			twice, none := splitAll(t, append(append(bytes.Clone(b), ' '), b...))
			if twice != 2 || none != 0 {
				t.Fatalf("%q twice: %d messages, %d lots of garbage", b, twice, none)
			}
			if one, rest := splitAll(t, append(bytes.Clone(b), "oops"...)); one != 1 || rest != 1 {
				t.Fatalf("%q with an end: %d messages, %d lots of garbage", b, one, rest)
			}
		case valid && whole[0] == '[':
			var batch []json.RawMessage
			if err := json.Unmarshal(b, &batch); err != nil {
				t.Fatal(err)
			}
			objects := 0
			for _, e := range batch {
				if e[0] == '{' {
					objects++
				}
			}
			if messages != objects || garbage != len(batch)-objects {
				t.Fatalf("%q: %d messages, %d lots of garbage, want %d of %d", b, messages, garbage, objects, len(batch))
			}
		case valid:
			if messages != 0 || garbage != 1 {
				t.Fatalf("%q: %d messages, %d lots of garbage", b, messages, garbage)
			}
		}
	})
}

// splitAll counts what stands in a line, and checks that each unit lies behind the one before.
func splitAll(t *testing.T, b []byte) (messages, garbage int) {
	t.Helper()
	s, at := splitter{b: b}, 0
	for {
		env, what := s.next()
		if what == unitEnd {
			if s.i < len(bytes.TrimRight(b, " \t\r\n")) {
				t.Fatalf("%q: %d bytes are left", b, len(b)-s.i)
			}
			return messages, garbage
		}
		if s.batch == nil {
			if s.i <= at || s.i > len(b) || s.size <= 0 || s.i-s.size < at {
				t.Fatalf("%q: a unit of %d bytes up to %d behind one up to %d", b, s.size, s.i, at)
			}
			at = s.i
		}
		if what == unitGarbage {
			garbage++
			continue
		}
		messages++
		for _, raw := range [][]byte{env.version, env.id, env.method, env.params, env.result, env.fault} {
			if raw != nil && !json.Valid(raw) {
				t.Fatalf("%q: member %q", b, raw)
			}
		}
	}
}

// FuzzEnvelope: the members of a message are those that encoding/json finds, what it is taken for
// follows from them alone, and ids and errors come out bounded and whole.
func FuzzEnvelope(f *testing.F) {
	for _, l := range seeds(f) {
		f.Add(l)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		env, end := readEnvelope(b, 0)
		if end < 0 {
			if json.Valid(b) && len(b) > 0 && b[0] == '{' && bytes.Count(b, []byte("[")) < maxDepth && bytes.Count(b, []byte("{")) < maxDepth {
				t.Fatalf("%q is an object", b)
			}
			return
		}
		if !json.Valid(b[:end]) {
			t.Fatalf("%q is no JSON", b[:end])
		}
		what := env.classify()
		switch usable := validID(env.id); {
		case what == classNotification && (!isNull(env.id) || !isString(env.method)),
			what == classRequest && (!usable || !isString(env.method) || env.repeated),
			what == classReply && !usable, what == classBadRequest && (!usable || env.method == nil):
			t.Fatalf("%q is taken for %d", b, what)
		}
		more, _ := readEnvelope(append(bytes.Clone(b[:end-1]), comma(b[:end])+`"_meta":{"id":[]}}`...), 0)
		if got := more.classify(); got != what {
			t.Fatalf("%q is taken for %d, with metadata for %d", b, what, got)
		}
		if number, ok := replyNumber(env.id); ok {
			if again, ok := replyNumber([]byte(strconv.FormatUint(number, 10))); !ok || again != number {
				t.Fatalf("%q: id %d becomes %d", b, number, again)
			}
		}
		if env.fault != nil {
			e := readFault(env.fault)
			if len(e.message) > maxFaultMessage || !utf8.ValidString(e.message) || len(e.data) > maxFaultData || e.data != nil && !json.Valid(e.data) {
				t.Fatalf("%q: %+v", b, e)
			}
		}
		compareMembers(t, b[:end], env)
	})
}

// comma is what stands between an object's last member and a further one.
func comma(object []byte) string {
	if inner := bytes.Trim(object[1:len(object)-1], " \t\r\n"); len(inner) == 0 {
		return ""
	}
	return ","
}

// compareMembers holds an envelope against what encoding/json finds. Names with escapes are no
// names of ours.
func compareMembers(t *testing.T, object []byte, env envelope) {
	t.Helper()
	var all map[string]json.RawMessage
	if env.repeated || bytes.ContainsRune(object, '\\') || json.Unmarshal(object, &all) != nil {
		return
	}
	for name, got := range map[string][]byte{"jsonrpc": env.version, "id": env.id, "method": env.method, "params": env.params,
		"result": env.result, "error": env.fault} {
		if want := all[name]; !bytes.Equal(got, want) {
			t.Fatalf("%q: %s is %q, want %q", object, name, got, want)
		}
	}
}
