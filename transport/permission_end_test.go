package transport_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"greatminds/transport"
)

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
	t.Parallel()
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
	t.Parallel()
	p := newPeer(t)
	h, _ := handler("ok")
	p.options.Handler = h
	s := p.session()
	p.ask("1")
	if got := p.answer("1"); got != "cancelled" || s.Stats().Unasked != 1 {
		t.Errorf("got %s, %+v", got, s.Stats())
	}
}

// Hazard 4: a panic in the handler ends nothing; the turn is not reported as processed.
func TestPanickingHandler(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
