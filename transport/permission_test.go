package transport_test

import (
	"context"
	"encoding/json"
	"errors"
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

// What is asked is checked before anybody sees it.
func TestQuestionsThatAreRefused(t *testing.T) {
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

// E-229
func TestWithoutHandlerTheNeedForInputIsReported(t *testing.T) {
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

// held is a handler that holds every question until its context ends, or forever.
func held(deaf bool) (*recorder, <-chan bool, chan struct{}) {
	delivered, release := make(chan bool, 64), make(chan struct{})
	h := &recorder{answer: func(ctx context.Context, _ transport.PermissionRequest) transport.PermissionAnswer {
		if deaf {
			<-release
		} else {
			<-ctx.Done()
		}
		return transport.PermissionAnswer{OptionID: "ok", Delivered: func(ok bool) { delivered <- ok }}
	}}
	return h, delivered, release
}

// E-228: whatever ends the question, the answer is cancelled, once, and a late one never goes
// out; a handler that does not listen holds up nobody.
func TestQuestionsThatEndUnanswered(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		for name, c := range map[string]struct {
			end  func(p *peer, s *transport.Session, m message, cancel func())
			wire []string
			kind transport.Kind
			stop string
		}{
			"the turn ends": {func(p *peer, s *transport.Session, m message, _ func()) {
				p.reply(m, `{"stopReason":"end_turn"}`)
			}, []string{"answer"}, "", "end_turn"},
			"the owner cancels": {func(p *peer, s *transport.Session, m message, _ func()) {
				if err := s.Cancel(context.Background()); err != nil {
					p.t.Error(err)
				}
			}, []string{"session/cancel", "answer"}, transport.Cancelled, "cancelled"},
			"the budget ends": {func(p *peer, s *transport.Session, m message, cancel func()) { cancel() },
				[]string{"session/cancel", "answer"}, transport.Cancelled, "cancelled"},
			"the agent withdraws it": {func(p *peer, s *transport.Session, m message, _ func()) {
				p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"q"}}`)
			}, []string{"answer", "finish"}, "", "end_turn"},
			"the agent uses its id again": {func(p *peer, s *transport.Session, m message, _ func()) {
				p.ask(`"q"`)
			}, []string{"either", "either", "finish"}, "", "end_turn"},
		} {
			t.Run(fmt.Sprintf("%s, deaf %v", name, deaf), func(t *testing.T) {
				p := newPeer(t)
				h, delivered, release := held(deaf)
				defer close(release)
				p.options.Handler, p.options.CancelGrace = h, patience
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				asked, causes := make(chan struct{}, 4), make(chan error, 1)
				inner := h.answer
				h.answer = func(ctx context.Context, r transport.PermissionRequest) transport.PermissionAnswer {
					asked <- struct{}{}
					answer := inner(ctx, r)
					<-ctx.Done()
					select {
					case causes <- context.Cause(ctx):
					default: // of a second question
					}
					return answer
				}
				s, m, done := p.turn(ctx)
				p.ask(`"q"`)
				receive(t, asked)
				c.end(p, s, m, cancel)
				for _, want := range c.wire {
					switch want {
					case "answer":
						if got := p.answer(`"q"`); got != "cancelled" {
							t.Errorf("got %s, want cancelled", got)
						}
					case "either":
						if got := p.answer(`"q"`); got != "cancelled" && got != "error -32600" {
							t.Errorf("got %s, want cancelled or an error", got)
						}
					case "finish":
						p.reply(m, `{"stopReason":"end_turn"}`)
					default:
						p.expect(want)
						p.reply(m, `{"stopReason":"cancelled"}`)
					}
				}
				got := receive(t, done)
				if kindOf(got.err) != c.kind || got.StopReason != c.stop {
					t.Errorf("got %+v, want kind %q and %q", got, c.kind, c.stop)
				}
				if deaf {
					return
				}
				if receive(t, delivered) {
					t.Error("an answer was taken for delivered")
				}
				withdrawn := name == "the agent withdraws it" || name == "the agent uses its id again"
				if cause := receive(t, causes); errors.Is(cause, transport.ErrWithdrawn) != withdrawn {
					t.Errorf("the question's context ended with %v", cause)
				}
			})
		}
	}
}

// A question outside of a turn belongs to nobody.
func TestQuestionOutsideOfATurn(t *testing.T) {
	p := newPeer(t)
	h, _ := handler("ok")
	p.options.Handler = h
	s := p.session()
	p.ask("1")
	if got := p.answer("1"); got != "cancelled" || s.Stats().Unasked != 1 {
		t.Errorf("got %s, %+v", got, s.Stats())
	}
}

// Hazard 25: the 33rd open request is refused at once, and the others are not harmed.
func TestOpenRequestsAreBounded(t *testing.T) {
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

// E-227: what is not offered is refused by name, always, in any number, and the turn goes on.
func TestRequestsThatAreNotOffered(t *testing.T) {
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

// Hazard 4: a panic in the handler ends nothing; the turn is not reported as processed.
func TestPanickingHandler(t *testing.T) {
	p := newPeer(t)
	p.options.Handler = &recorder{
		each:   func(transport.Update) error { panic("update") },
		answer: func(context.Context, transport.PermissionRequest) transport.PermissionAnswer { panic("question") },
	}
	s, m, done := p.turn(context.Background())
	p.say("a")
	p.ask("1")
	if got := p.answer("1"); got != "cancelled" {
		t.Errorf("got %s", got)
	}
	p.say("b")
	p.reply(m, `{"stopReason":"end_turn"}`)
	got := receive(t, done)
	wantKind(t, got.err, transport.Protocol, transport.PhasePrompt)
	if got.StopReason != "end_turn" || got.Updates != 2 || s.Stats().Panics != 3 {
		t.Errorf("got %+v, %d panics", got, s.Stats().Panics)
	}
}

// The deadline of a question is the turn's.
func TestQuestionEndsWithTheBudget(t *testing.T) {
	p := newPeer(t)
	h, delivered, release := held(false)
	defer close(release)
	asked, inner := make(chan struct{}), h.answer
	h.answer = func(ctx context.Context, r transport.PermissionRequest) transport.PermissionAnswer {
		close(asked)
		return inner(ctx, r)
	}
	p.options.Handler, p.options.CancelGrace = h, patience
	ctx := newBudget()
	_, m, done := p.turn(ctx)
	p.ask("1")
	receive(t, asked)
	ctx.pass()
	p.expect("session/cancel")
	if got := p.answer("1"); got != "cancelled" || receive(t, delivered) {
		t.Errorf("got %s", got)
	}
	p.reply(m, `{"stopReason":"cancelled"}`)
	got := receive(t, done)
	wantKind(t, got.err, transport.Timeout, transport.PhasePrompt)
	if got.StopReason != "cancelled" || !got.CancelSent {
		t.Errorf("got %+v", got)
	}
}

// The answer to a question of one turn never stands behind the prompt of the next.
func TestQuestionIsAnsweredBeforeTheNextPrompt(t *testing.T) {
	p := newPeer(t)
	asked := make(chan struct{})
	p.options.Handler = &recorder{answer: func(ctx context.Context, _ transport.PermissionRequest) transport.PermissionAnswer {
		asked <- struct{}{}
		<-ctx.Done()
		return transport.PermissionAnswer{}
	}}
	s, m, done := p.turn(context.Background())
	for i := range 200 {
		id := fmt.Sprint(i)
		p.ask(id)
		receive(t, asked)
		p.reply(m, `{"stopReason":"end_turn"}`)
		ends(t, receive(t, done), "end_turn")
		done = prompt(context.Background(), s, "next")
		if got := p.answer(id); got != "cancelled" {
			t.Fatalf("got %s", got)
		}
		m = p.expect("session/prompt")
	}
	p.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, done), "end_turn")
}
