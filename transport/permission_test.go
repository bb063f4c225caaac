package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"greatminds/transport"
)

const offered = `[{"optionId":"always","name":"A","kind":"allow_always"},{"optionId":"ok","name":"O","kind":"allow_once"},` +
	`{"optionId":"no","name":"N","kind":"reject_once"},{"optionId":"odd","name":"X","kind":"allow_persistent"}]`

// question is one permission request of the agent, id and all.
func (p *peer) question(id, members string) {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":{%s}}`, id, members)
}

func (p *peer) ask(id string) {
	p.t.Helper()
	p.question(id, `"sessionId":"s1","toolCall":{"toolCallId":"t1"},"options":`+offered)
}

// answer reads the client's answer to a question: an option id, "cancelled", or "error CODE".
func (p *peer) answer(id string) string {
	p.t.Helper()
	m := p.next()
	if string(m.ID) != id || m.Method != "" {
		p.t.Fatalf("got %s, want the answer to %s", m.raw, id)
	}
	if m.Error != nil {
		return fmt.Sprintf("error %d", m.Error.Code)
	}
	var r struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		p.t.Fatal(err)
	}
	if r.Outcome.Outcome == "selected" {
		return r.Outcome.OptionID
	}
	return r.Outcome.Outcome
}

// turn opens a session and a turn.
func (p *peer) turn(ctx context.Context) (*transport.Session, message, <-chan turned) {
	p.t.Helper()
	s := p.session()
	done := prompt(ctx, s, "go")
	return s, p.expect("session/prompt"), done
}

// handler answers every question with one option and tells whether that was delivered.
func handler(option string) (*recorder, <-chan bool) {
	delivered := make(chan bool, 8)
	return &recorder{answer: func(context.Context, transport.PermissionRequest) transport.PermissionAnswer {
		return transport.PermissionAnswer{OptionID: option, Delivered: func(ok bool) { delivered <- ok }}
	}}, delivered
}

// E-228
func TestOnlyOfferedOneTimeOptionsReachTheAgent(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]string{
		"ok": "ok", "no": "no", "always": "cancelled", "odd": "cancelled", "invented": "cancelled", "": "cancelled", "OK": "cancelled",
	} {
		t.Run("option "+option, func(t *testing.T) {
			p := newPeer(t)
			h, delivered := handler(option)
			p.options.Handler = h
			s, m, done := p.turn(context.Background())
			p.ask("0")
			if got := p.answer("0"); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if got := receive(t, delivered); got != (option == want) {
				t.Errorf("got delivered %v", got)
			}
			p.reply(m, `{"stopReason":"end_turn"}`)
			ends(t, receive(t, done), "end_turn")
			if got := s.Stats().Permissions; got != 1 {
				t.Errorf("got %d questions, want 1", got)
			}
		})
	}
}

// E-229
func TestWithoutHandlerTheNeedForInputIsReported(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s, m, done := p.turn(context.Background())
	p.ask("0")
	if got := p.answer("0"); got != "cancelled" {
		t.Errorf("got %s", got)
	}
	p.reply(m, `{"stopReason":"end_turn"}`)
	got := receive(t, done)
	ends(t, got, "end_turn")
	if got.InputNeeded != 1 || s.Stats().InputNeeded != 1 {
		t.Errorf("got %d in the turn, %d in all", got.InputNeeded, s.Stats().InputNeeded)
	}
}

// Hazard 25: the 33rd open request is refused at once, and the others are not harmed.
func TestOpenRequestsAreBounded(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	release := make(chan struct{})
	p.options.Handler = &recorder{answer: func(context.Context, transport.PermissionRequest) transport.PermissionAnswer {
		<-release
		return transport.PermissionAnswer{OptionID: "ok"}
	}}
	_, m, done := p.turn(context.Background())
	for i := range transport.MaxOpenRequests + 3 {
		p.ask(fmt.Sprint(i))
	}
	for i := range 3 {
		if got := p.answer(fmt.Sprint(transport.MaxOpenRequests + i)); got != "error -32005" {
			t.Errorf("got %s", got)
		}
	}
	close(release)
	open := map[string]bool{}
	for range transport.MaxOpenRequests {
		r := p.next()
		if open[string(r.ID)] || !strings.Contains(string(r.Result), `"ok"`) {
			t.Errorf("got %s", r.raw)
		}
		open[string(r.ID)] = true
	}
	p.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, done), "end_turn")
}

// An agent that asks and takes back, over and over, is refused after a while: each question stays on
// record, and nobody could have answered it. The turn goes on, and the next one may ask again.
func TestWithdrawnQuestionsAreBounded(t *testing.T) {
	const limit = 100
	p := newPeer(t)
	p.options.Handler = &recorder{answer: func(ctx context.Context, _ transport.PermissionRequest) transport.PermissionAnswer {
		<-ctx.Done()
		return transport.PermissionAnswer{}
	}}
	takeBack := func(id string) string {
		p.ask(id)
		p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%s}}`, id)
		return p.answer(id)
	}
	s, m, done := p.turn(context.Background())
	for i := range limit {
		if got := takeBack(fmt.Sprint(i)); got != "cancelled" {
			t.Fatalf("%d: got %s", i, got)
		}
	}
	for range 2 {
		if got := takeBack("1000"); got != "error -32005" {
			t.Errorf("after %d: got %s", limit, got)
		}
	}
	if got := s.Stats(); got.Permissions != limit || got.Rejected != 2 {
		t.Errorf("got %+v", got)
	}
	p.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, done), "end_turn")
	again := prompt(context.Background(), s, "again")
	m = p.expect("session/prompt")
	if got := takeBack("1"); got != "cancelled" {
		t.Errorf("in the next turn: got %s", got)
	}
	p.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, again), "end_turn")
}

// E-227: what is not offered is refused by name, always, in any number, and the turn goes on.
func TestRequestsThatAreNotOffered(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s, m, done := p.turn(context.Background())
	methods := []string{"fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/kill", "terminal/output",
		"terminal/release", "terminal/wait_for_exit", "elicitation/create", "mcp/message", "craft/drainMidTurnQueue", "_vendor/x",
		"session/update", "session/prompt", "$/cancel_request", ""}
	for i, method := range methods {
		p.send(`{"jsonrpc":"2.0","id":"r%d","method":%q,"params":{"path":"/etc/hostname"}}`, i, method)
		if got := p.answer(fmt.Sprintf(`"r%d"`, i)); got != "error -32601" {
			t.Errorf("%s: got %s", method, got)
		}
	}
	for i := range 100 {
		p.send(`{"jsonrpc":"2.0","id":%d,"method":"fs/read_text_file"}`, i)
	}
	for i := range 100 {
		if got := p.answer(fmt.Sprint(i)); got != "error -32601" {
			t.Errorf("got %s", got)
		}
	}
	p.send(`{"jsonrpc":"2.0","id":5,"method":7}`)
	if got := p.answer("5"); got != "error -32600" {
		t.Errorf("a method that is no text: got %s", got)
	}
	p.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, done), "end_turn")
	if got := s.Stats().Rejected; got != int64(len(methods)+101) {
		t.Errorf("got %d rejected", got)
	}
}

// Hazard 18: a question is put only after everything said before it was handled.
func TestQuestionWaitsForEarlierUpdates(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	gate, entered := make(chan struct{}), make(chan struct{}, 1)
	var handled atomic.Bool
	early := make(chan bool, 1)
	p.options.Handler = &recorder{
		each: func(transport.Update) error {
			entered <- struct{}{}
			<-gate
			handled.Store(true)
			return nil
		},
		answer: func(context.Context, transport.PermissionRequest) transport.PermissionAnswer {
			early <- !handled.Load()
			return transport.PermissionAnswer{OptionID: "ok"}
		},
	}
	_, m, done := p.turn(context.Background())
	p.update(`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"x"}`)
	p.ask("1")
	receive(t, entered)
	close(gate)
	if receive(t, early) {
		t.Error("asked before the update was handled")
	}
	p.answer("1")
	p.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, done), "end_turn")
}
