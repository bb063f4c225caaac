package transport_test

import (
	"context"
	"strings"
	"testing"

	"greatminds/transport"
)

// What updates have said is held to the same as what a request says itself: the operator could be shown one
// of two members and the agent mean the other.
func TestATwofoldToolCallIsNotAsked(t *testing.T) {
	t.Parallel()
	for name, update := range map[string]string{
		"deep in the input":   `{"sessionUpdate":"tool_call","toolCallId":"t1","title":"x","kind":"execute","rawInput":{"command":"rm -rf /","command":"ls"}}`,
		"in a location":       `{"sessionUpdate":"tool_call","toolCallId":"t1","title":"x","kind":"edit","locations":[{"path":"/etc/passwd","path":"a"}]}`,
		"the input itself":    `{"sessionUpdate":"tool_call_update","toolCallId":"t1","rawInput":{"command":"rm -rf /"},"rawInput":{"command":"ls"}}`,
		"under two spellings": `{"sessionUpdate":"tool_call","toolCallId":"t1","title":"x","kind":"read"}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			asked := make(chan string, 1)
			p.options.Handler = &recorder{answer: func(_ context.Context, r transport.PermissionRequest) transport.PermissionAnswer {
				asked <- string(r.ToolCall)
				return transport.PermissionAnswer{OptionID: "ok"}
			}}
			_, m, done := p.turn(context.Background())
			p.update(update)
			call := `{"toolCallId":"t1"}`
			if name == "under two spellings" {
				call = `{"toolCallId":"t1","k\u0069nd":"execute"}`
			}
			p.question("1", `"sessionId":"s1","toolCall":`+call+`,"options":`+offered)
			got := p.answer("1")
			if got == "ok" {
				if shown := receive(t, asked); name != "the input itself" || strings.Contains(shown, "command") {
					t.Errorf("asked for %s", shown)
				}
			} else if got != "error -32602" {
				t.Errorf("got %s", got)
			}
			p.reply(m, `{"stopReason":"end_turn"}`)
			ends(t, receive(t, done), "end_turn")
		})
	}
}

// A tool call that begins under the id of another one, of this turn or of a replayed one, takes over nothing
// of it: a question would tell of files that it does not touch.
func TestANewToolCallTakesOverNothing(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	asked := make(chan transport.PermissionRequest, 1)
	p.options.Handler = &recorder{answer: func(_ context.Context, r transport.PermissionRequest) transport.PermissionAnswer {
		asked <- r
		return transport.PermissionAnswer{OptionID: "ok"}
	}}
	_, m, done := p.turn(context.Background())
	p.update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"old","kind":"read","status":"pending","locations":[{"path":"a.txt"}],"rawInput":{"path":"a.txt"}}`)
	p.update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"new","kind":"edit"}`)
	p.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress"}`)
	p.ask("1")
	p.answer("1")
	if r, want := receive(t, asked), `{"toolCallId":"t1","title":"new","kind":"edit","status":"in_progress"}`; string(r.ToolCall) != want {
		t.Errorf("got %s, want %s", r.ToolCall, want)
	}
	p.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, done), "end_turn")
}
