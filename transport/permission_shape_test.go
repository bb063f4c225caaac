package transport_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"greatminds/transport"
)

// What is asked is checked before anybody sees it.
func TestQuestionsThatAreRefused(t *testing.T) {
	t.Parallel()
	big := `"` + strings.Repeat("x", transport.MaxPermissionBytes) + `"`
	call := `"toolCall":{"toolCallId":"t1"}`
	for name, c := range map[string]struct{ members, want string }{
		"no options":                {`"sessionId":"s1",` + call + `,"options":[]`, "error -32602"},
		"options absent":            {`"sessionId":"s1",` + call, "error -32602"},
		"options that are no array": {`"sessionId":"s1",` + call + `,"options":{}`, "error -32602"},
		"two options of one id": {`"sessionId":"s1",` + call + `,"options":[{"optionId":"a","kind":"allow_once"},{"optionId":"a","kind":"reject_once"}]`,
			"error -32602"},
		"an empty option id":     {`"sessionId":"s1",` + call + `,"options":[{"optionId":"","kind":"allow_once"}]`, "error -32602"},
		"an option that is none": {`"sessionId":"s1",` + call + `,"options":[7]`, "error -32602"},
		"too many options":       {`"sessionId":"s1",` + call + `,"options":[` + manyOptions(33) + `]`, "error -32602"},
		"no tool call":           {`"sessionId":"s1","options":` + offered, "error -32602"},
		"no tool call id":        {`"sessionId":"s1","toolCall":{},"options":` + offered, "error -32602"},
		"no session":             {call + `,"options":` + offered, "error -32602"},
		"a member twice":         {`"sessionId":"s1",` + call + `,"options":` + offered + `,"toolCall":{"toolCallId":"t2"}`, "error -32602"},
		"a member twice, deep down and escaped": {`"sessionId":"s1","toolCall":{"toolCallId":"t1","rawInput":{"cmd":"ls","c\u006dd":"rm"}},"options":` + offered,
			"error -32602"},
		"over the size limit": {`"sessionId":"s1","toolCall":{"toolCallId":"t1","rawInput":` + big + `},"options":` + offered, "error -32602"},
		// C040: of no concern to the operator, and no reason to end the turn.
		"another session": {`"sessionId":"s2",` + call + `,"options":` + offered, "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			h, _ := handler("ok")
			p.options.Handler = h
			s, m, done := p.turn(context.Background())
			p.question("\"q\"", c.members)
			if got := p.answer(`"q"`); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			p.reply(m, `{"stopReason":"end_turn"}`)
			ends(t, receive(t, done), "end_turn")
			if got := s.Stats(); got.Permissions != 0 || got.Rejected+got.Unasked != 1 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func manyOptions(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"optionId":"o%d","name":"","kind":"allow_once"}`, i))
	}
	return strings.Join(list, ",")
}

// A question just within the limit is asked whole; all that is shown comes from the request,
// and where it leaves out something, from the updates before it.
func TestWhatTheHandlerIsAsked(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	asked := make(chan transport.PermissionRequest, 3)
	p.options.Handler = &recorder{answer: func(_ context.Context, r transport.PermissionRequest) transport.PermissionAnswer {
		asked <- r
		return transport.PermissionAnswer{OptionID: "ok"}
	}}
	_, m, done := p.turn(context.Background())
	pad := strings.Repeat("x", transport.MaxPermissionBytes-1000)
	p.question("1", `"sessionId":"s1","toolCall":{"toolCallId":"t0","title":"big","rawInput":"`+pad+`"},"options":`+offered)
	if got := p.answer("1"); got != "ok" {
		t.Fatalf("got %s", got)
	}
	if r := receive(t, asked); r.Title != "big" || len(r.ToolCall) < len(pad) || len(r.Options) != 4 {
		t.Fatalf("got title %q, %d bytes, %d options", r.Title, len(r.ToolCall), len(r.Options))
	}
	p.update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"write a","kind":"edit","status":"pending","locations":[{"path":"/w/a"}],"_meta":{"x":1}}`)
	p.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress","title":null,"rawInput":{"p":1}}`)
	p.question("2", `"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"write b","kind":null},"options":`+offered)
	p.answer("2")
	r := receive(t, asked)
	if want := `{"toolCallId":"t1","title":"write b","kind":"edit","status":"in_progress","locations":[{"path":"/w/a"}],"rawInput":{"p":1}}`; string(r.ToolCall) != want {
		t.Errorf("got %s, want %s", r.ToolCall, want)
	}
	if r.ToolKind != "edit" || r.Title != "write b" || r.Status != "in_progress" || r.ToolCallID != "t1" || r.SessionID != "s1" {
		t.Errorf("got %+v", r)
	}
	for i, want := range []bool{false, true, true, false} {
		if r.Options[i].Selectable != want {
			t.Errorf("option %+v: want selectable %v", r.Options[i], want)
		}
	}
	// What does not fit beside the rest is refused, not left out.
	p.update(`{"sessionUpdate":"tool_call","toolCallId":"t2","title":"big","content":"` + strings.Repeat("y", transport.MaxPermissionBytes) + `"}`)
	p.question("3", `"sessionId":"s1","toolCall":{"toolCallId":"t2"},"options":`+offered)
	if got := p.answer("3"); got != "error -32602" {
		t.Errorf("got %s, want a refusal", got)
	}
	p.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, done), "end_turn")
}

// E-067
func TestTheLargestQuestionIsAskedAndALargerOneRefused(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{transport.MaxPermissionBytes: "ok", transport.MaxPermissionBytes + 1: "error -32602"} {
		p := newPeer(t)
		asked := 0
		p.options.Handler = &recorder{answer: func(context.Context, transport.PermissionRequest) transport.PermissionAnswer {
			asked++
			return transport.PermissionAnswer{OptionID: "ok"}
		}}
		_, m, done := p.turn(context.Background())
		head, tail := `"sessionId":"s1","toolCall":{"toolCallId":"t1","rawInput":"`, `"},"options":`+offered
		p.question("1", head+strings.Repeat("x", size-len("{}")-len(head)-len(tail))+tail)
		if got := p.answer("1"); got != want {
			t.Errorf("a question of %d bytes was answered %s, want %s", size, got, want)
		}
		p.reply(m, `{"stopReason":"end_turn"}`)
		ends(t, receive(t, done), "end_turn")
		if (asked == 1) != (want == "ok") {
			t.Errorf("a question of %d bytes was put to the handler %d times", size, asked)
		}
	}
	if transport.MaxPermissionBytes != 262144 {
		t.Errorf("the limit is %d bytes", transport.MaxPermissionBytes)
	}
}
