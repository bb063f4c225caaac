package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"greatminds/internal/refusal"
	"greatminds/transport"
)

func TestPromptOnTheWire(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	h := &recorder{}
	p.options.Handler = h
	s := p.session()
	text := "héllo <b>&\u2028 \"x\"\n" + strings.Repeat("long ", 60000)
	done := prompt(context.Background(), s, text)
	m := p.expect("session/prompt")
	var params struct {
		SessionID string `json:"sessionId"`
		Prompt    []struct{ Type, Text string }
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		t.Fatal(err)
	}
	if params.SessionID != "s1" || len(params.Prompt) != 1 || params.Prompt[0].Type != "text" || params.Prompt[0].Text != text {
		t.Errorf("got %.100s", m.Params)
	}
	p.say("one ")
	p.say("two")
	p.reply(m, `{"stopReason":"end_turn","usage":{"inputTokens":3}}`)
	got := receive(t, done)
	ends(t, got, "end_turn")
	if h.texts() != "one two" || got.Chunks != 2 || got.TextBytes != 7 || !got.Known || got.Tokens.Input.Value != 3 || got.CancelSent {
		t.Errorf("got %+v, %q", got.Turn, h.texts())
	}
}

// Hazard 22: a context that has ended sends nothing.
func TestPromptThatIsNotSent(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s := p.session()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.Prompt(ctx, "x")
	wantKind(t, err, transport.Cancelled, transport.PhasePrompt)
	_, err = s.Prompt(context.Background(), "bad \xff")
	wantKind(t, err, transport.Configuration, transport.PhasePrompt)
	if err := s.Cancel(context.Background()); err != nil {
		t.Errorf("without a turn: %v", err)
	}
	done := prompt(context.Background(), s, "first")
	p.reply(p.expect("session/prompt"), `{"stopReason":"end_turn"}`) // the first thing on the wire
	ends(t, receive(t, done), "end_turn")
}

// Hazards 22, 23: the stop reason is waited for, whatever it is, and kept.
func TestCancelledTurns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deadline bool
		answer   string
		kind     transport.Kind
		stop     string
	}{
		"cancelled":                 {false, `"result":{"stopReason":"cancelled"}`, transport.Cancelled, "cancelled"},
		"answered with end_turn":    {false, `"result":{"stopReason":"end_turn"}`, transport.Cancelled, "end_turn"},
		"answered with an error":    {false, `"error":{"code":-32800,"message":"x"}`, transport.Cancelled, ""},
		"deadline, then cancelled":  {true, `"result":{"stopReason":"cancelled"}`, transport.Timeout, "cancelled"},
		"deadline, then never ends": {true, "", transport.Timeout, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			p.options.CancelGrace = patience
			if c.answer == "" {
				p.options.CancelGrace = 20 * time.Millisecond
			}
			s := p.session()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if c.deadline {
				b := newBudget()
				ctx, cancel = b, b.pass
			}
			done := prompt(ctx, s, "go")
			m := p.expect("session/prompt")
			cancel()
			k := p.expect("session/cancel")
			if string(k.Params) != `{"sessionId":"s1"}` || k.ID != nil {
				t.Errorf("got %s", k.raw)
			}
			if c.answer != "" {
				p.say("last")
				p.send(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, c.answer)
			}
			got := receive(t, done)
			wantKind(t, got.err, c.kind, transport.PhasePrompt)
			if got.StopReason != c.stop || !got.CancelSent || c.answer != "" && got.Updates != 1 {
				t.Errorf("got %+v", got)
			}
			if c.answer != "" {
				return
			}
			// The late answer is evidence, and no answer to another prompt.
			if _, err := s.Prompt(context.Background(), "too early"); !errors.Is(err, transport.ErrBusy) {
				t.Errorf("got %v", err)
			}
			p.reply(m, `{"stopReason":"refusal"}`)
			p.stdout.Close()
			<-s.Done()
			if got := s.Stats().LateStopReason; got != "refusal" {
				t.Errorf("got late stop reason %q", got)
			}
		})
	}
}

func TestCancelIsSentOnce(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s, m, done := p.turn(context.Background())
	for range 3 {
		if err := s.Cancel(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	p.expect("session/cancel")
	p.reply(m, `{"stopReason":"cancelled"}`)
	wantKind(t, receive(t, done).err, transport.Cancelled, transport.PhasePrompt)
	again := prompt(context.Background(), s, "again")
	p.reply(p.expect("session/prompt"), `{"stopReason":"end_turn"}`)
	ends(t, receive(t, again), "end_turn")
}

func TestOneTurnAtATime(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s, m, done := p.turn(context.Background())
	if _, err := s.Prompt(context.Background(), "x"); !errors.Is(err, transport.ErrBusy) {
		t.Errorf("got %v", err)
	}
	p.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, done), "end_turn")
}

// E-025: also in the middle of a run.
func TestLoginAskedForByAPrompt(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	_, m, done := p.turn(context.Background())
	p.refuse(m, -32000, "log in at https://example.invalid")
	e := wantKind(t, receive(t, done).err, transport.AuthRequired, transport.PhasePrompt)
	if strings.Contains(e.Error(), "example") || e.Message == "" {
		t.Errorf("got %q: the agent's words belong into Message alone", e.Error())
	}
}

// Every kind has a listed code and a remedy.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, kind := range []transport.Kind{transport.Transport, transport.Timeout, transport.AuthRequired, transport.Protocol,
		transport.Configuration, transport.Cancelled, transport.SessionUnavailable} {
		e := &transport.Error{Kind: kind, Phase: transport.PhaseNew, What: "x", Message: "secret"}
		r := e.Refusal()
		if _, listed := refusal.Lookup(r.Code); !listed || r.Remedy == "" || !errors.Is(r, e) || strings.Contains(r.Error(), "secret") {
			t.Errorf("%s: got %+v", kind, r)
		}
	}
}
