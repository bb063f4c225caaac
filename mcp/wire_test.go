package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

const opening = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// session writes lines by hand and reads answers.
type session struct {
	*server
	answers *bufio.Scanner
}

func byHand(t *testing.T) *session {
	t.Helper()
	s := serve(t, t.Context(), &daemon{})
	out := &session{server: s, answers: bufio.NewScanner(s.out)}
	out.answers.Buffer(nil, 32<<20)
	return out
}

// ask sends one line and returns the one answer to it.
func (s *session) ask(t *testing.T, line string) (answer struct {
	ID     json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}) {
	t.Helper()
	go func() { _, _ = io.WriteString(s.in, line+"\n") }() // its failure shows in the answer
	if !s.answers.Scan() {
		t.Fatalf("no answer to %.80s", line)
	}
	if err := json.Unmarshal(s.answers.Bytes(), &answer); err != nil {
		t.Fatalf("%s: %v", s.answers.Bytes(), err)
	}
	return answer
}

// Nothing that a client writes ends the server: it answers, and goes on.
func TestTheServerOutlivesWhatIsNoMessage(t *testing.T) {
	s := byHand(t)
	if a := s.ask(t, opening); a.Error != nil {
		t.Fatal(a.Error)
	}
	huge := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"submit","arguments":{"x":"` + strings.Repeat("y", 9<<20) + `"}}}`
	large := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"submit","arguments":{"x":"` + strings.Repeat("y", 2<<20) + `"}}}`
	for i, c := range []struct{ line, want string }{
		{"not json", "-32700"}, {"{", "-32700"}, {`{"jsonrpc":"2.0","id":7,"method":"ping"} more`, "-32700"}, {"\x00\xff", "-32700"},
		{`[{"jsonrpc":"2.0","id":7,"method":"ping"}]`, "-32600"}, {"[]", "-32600"}, {"null", "-32600"}, {`"x"`, "-32600"}, {"5", "-32600"}, {"{}", "-32600"},
		{`{"jsonrpc":"1.0","id":7,"method":"ping"}`, "-32600"}, {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, "-32600"}, {`{"jsonrpc":"2.0","id":7,"method":5}`, "-32600"},
		{huge, "8388608 bytes at most"},
		{`{"jsonrpc":"2.0","id":7,"method":"nothing"}`, "-32601"}, {`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, "error"},
		{`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":5}`, "error"}, {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"none"}}`, "unknown tool"},
		{`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":5}}`, "error"},
		{`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"contract","arguments":[]}}`, "usage"},
		{`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"contract","arguments":{"schema":true,"schema":false}}}`, "usage"},
		{large, "submit takes 65536"},
		{`{"jsonrpc":"2.0","id":"7","method":"initialize"}`, "error"},
	} {
		a := s.ask(t, c.line)
		got := string(a.Result)
		if a.Error != nil {
			got = fmt.Sprintf("error %d %s", a.Error.Code, a.Error.Message)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%.60s: got %.300s, want %s", c.line, got, c.want)
		}
		// Lines that ask for nothing get no answer, and do not stand in the way of the next.
		quiet := "\n  \r\n" + `{"jsonrpc":"2.0","method":"notifications/none"}` + "\n" + `{"jsonrpc":"2.0","id":99,"result":{}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled"}` + "\n"
		if a := s.ask(t, quiet+fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, 1000+i)); string(a.ID) != fmt.Sprint(1000+i) || a.Error != nil {
			t.Fatalf("after %.60s: got %s %v", c.line, a.ID, a.Error)
		}
	}
}

// A last line without its end counts, and the end of input ends the server without a complaint.
func TestTheServerEndsAtTheEndOfItsInput(t *testing.T) {
	for _, rest := range []string{"", opening, opening + "\n" + `{"jsonrpc":"2.0","id":2,"method":"pi`} {
		s := byHand(t)
		go func() { _, _ = io.Copy(io.Discard, s.out) }()
		if _, err := io.WriteString(s.in, rest); err != nil {
			t.Fatal(err)
		}
		if err := s.in.Close(); err != nil {
			t.Fatal(err)
		}
		if <-s.ended; s.err != nil {
			t.Errorf("after %.40q it ended with %v", rest, s.err)
		}
	}
}

// Any damage to messages that are otherwise good leaves a server that answers.
func TestDamagedMessagesEndNothing(t *testing.T) {
	s := byHand(t)
	if a := s.ask(t, opening); a.Error != nil {
		t.Fatal(a.Error)
	}
	good := []string{`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"command","arguments":{"command_id":"unit","wait_seconds":0},"_meta":{"progressToken":1}}}`,
		`{"jsonrpc":"2.0","id":6,"method":"tools/list","params":{"cursor":""}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`,
		`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"submit","arguments":{"decision":"no_change","payload":{}}}}`, opening,
		`{"jsonrpc":"2.0","id":9,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`}
	random := rand.New(rand.NewPCG(1, 2))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 3000 {
			line := []byte(good[random.IntN(len(good))])
			for range random.IntN(4) {
				at := random.IntN(len(line))
				switch random.IntN(3) {
				case 0:
					line[at] = `{}[]",:0x5n`[random.IntN(11)]
				case 1:
					line = append(line[:at], line[min(len(line), at+1+random.IntN(9)):]...)
				default:
					line = append(line[:at:at], append([]byte(`{"id":[`), line[at:]...)...)
				}
				if len(line) == 0 {
					break
				}
			}
			if _, err := s.in.Write(append(line, '\n')); err != nil {
				t.Errorf("the server takes no more: %v", err)
				return
			}
		}
		_, _ = io.WriteString(s.in, `{"jsonrpc":"2.0","id":"last","method":"ping"}`+"\n") // its failure shows in the answer
	}()
	last := false
	for !last && s.answers.Scan() {
		last = strings.Contains(s.answers.Text(), `"id":"last"`)
	}
	if <-done; !last {
		t.Fatalf("the server stopped answering: %v", s.answers.Err())
	}
}
