package transport_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/transport"
)

const closes = `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"close":{}}}}`

// closing makes the handshake with an agent that offers session/close.
func (p *peer) closing(agent string) *transport.Session {
	p.t.Helper()
	if p.options.DrainTimeout == 0 {
		p.options.DrainTimeout = patience // for what is written last
	}
	done := p.open(context.Background())
	p.reply(p.expect("initialize"), agent)
	p.reply(p.expect("session/new"), `{"sessionId":"s1"}`)
	got := p.wait(done)
	if got.err != nil {
		p.t.Fatal(got.err)
	}
	return got.s
}

// inputClosed calls CloseInput beside the test.
func inputClosed(s *transport.Session) <-chan error {
	done := make(chan error, 1)
	go func() { done <- s.CloseInput(context.Background()) }()
	return done
}

func (p *peer) wantEndOfInput() {
	p.t.Helper()
	if line, err := p.lines.ReadString('\n'); err == nil {
		p.t.Errorf("got %q, want the end of input", line)
	}
}

// The session is closed before the input is, once, and what the agent says meanwhile is no turn's.
func TestSessionClose(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	h := &recorder{}
	p.options.Handler, p.options.CloseTimeout = h, patience
	s := p.closing(closes)
	turn := prompt(context.Background(), s, "go")
	p.reply(p.expect("session/prompt"), `{"stopReason":"end_turn"}`)
	ends(t, receive(t, turn), "end_turn")
	done := make(chan struct{})
	go func() { defer close(done); s.CloseSession(context.Background()) }()
	m := p.expect("session/close")
	if got, want := string(m.Params), `{"sessionId":"s1"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	p.say("bye")
	p.send(`{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{}}`)
	if m := p.next(); string(m.ID) != "9" || m.Error == nil || m.Error.Code != -32601 {
		t.Errorf("got %s", m.raw)
	}
	p.reply(m, `{}`)
	receive(t, done)
	if _, err := s.Prompt(context.Background(), "again"); err == nil {
		t.Error("a closed session took a prompt")
	}
	if err := receive(t, inputClosed(s)); err != nil {
		t.Fatal(err)
	}
	p.wantEndOfInput()
	if st := s.Stats(); st.CloseFailed || st.LateUpdates != 1 || st.PromptUpdates != 0 || len(h.all()) != 1 ||
		h.all()[0].Phase != transport.PhaseClose {
		t.Errorf("got %+v, %+v", st, h.all())
	}
}

// Where it is not offered nothing is sent.
func TestSessionCloseIsNotSent(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]string{
		"not offered": `{"protocolVersion":1}`,
		"null":        `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"close":null}}}`,
		"false":       `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"close":false}}}`,
		"no object":   `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":[]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			s := p.closing(agent)
			if err := receive(t, inputClosed(s)); err != nil {
				t.Fatal(err)
			}
			p.wantEndOfInput()
			if s.Stats().CloseFailed {
				t.Error("counted as failed")
			}
		})
	}
	t.Run("after a failed handshake", func(t *testing.T) {
		handshake(t, func(o *transport.Options) { o.Mode = "ask" }, step{"initialize", closes}, step{"session/new", `{"sessionId":"s1"}`})
	})
	t.Run("with no session", func(t *testing.T) {
		p := newPeer(t)
		p.options.InitializeOnly = true
		done := p.open(context.Background())
		p.reply(p.expect("initialize"), closes)
		if err := receive(t, inputClosed(p.wait(done).s)); err != nil {
			t.Fatal(err)
		}
		p.wantEndOfInput()
	})
	t.Run("while the answer of a turn is awaited", func(t *testing.T) {
		p := newPeer(t)
		p.options.CancelGrace = time.Millisecond
		s := p.closing(closes)
		ctx, cancel := context.WithCancel(context.Background())
		turn := prompt(ctx, s, "go")
		p.expect("session/prompt")
		cancel()
		wantKind(t, receive(t, turn).err, transport.Cancelled, transport.PhasePrompt)
		p.expect("session/cancel")
		if err := receive(t, inputClosed(s)); err != nil {
			t.Fatal(err)
		}
		p.wantEndOfInput()
	})
	t.Run("after a failed transport", func(t *testing.T) {
		p := newPeer(t)
		s := p.closing(closes)
		p.stdout.Close()
		<-s.Done()
		<-inputClosed(s)
		p.wantEndOfInput()
	})
}

// Nothing depends on the answer: the input is closed all the same, soon.
func TestSessionCloseThatFails(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(p *peer, m message){
		"refused":      func(p *peer, m message) { p.refuse(m, -32601, "no") },
		"of no form":   func(p *peer, m message) { p.send(`{"jsonrpc":"2.0","id":%s}`, m.ID) },
		"never":        func(p *peer, m message) {},
		"with the end": func(p *peer, m message) { p.stdout.Close(); p.stderr.Close(); p.end() },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			if p.options.CloseTimeout = patience; name == "never" {
				p.options.CloseTimeout = 500 * time.Millisecond
			}
			s := p.closing(closes)
			done := inputClosed(s)
			answer(p, p.expect("session/close"))
			receive(t, done) // an error where the agent is gone
			p.wantEndOfInput()
			if !s.Stats().CloseFailed {
				t.Error("not counted")
			}
		})
	}
	t.Run("cut short by its context", func(t *testing.T) {
		p := newPeer(t)
		s := p.closing(closes)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); s.CloseSession(ctx) }()
		p.expect("session/close")
		cancel()
		receive(t, done)
		if !s.Stats().CloseFailed {
			t.Error("not counted")
		}
	})
}

// An agent that does not read is not asked.
func TestSessionCloseOfAnAgentThatDoesNotRead(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	heard := make(chan struct{}, 1)
	p.options.DrainTimeout = 50 * time.Millisecond
	p.options.Handler = &recorder{each: func(transport.Update) error { heard <- struct{}{}; return nil }}
	s := p.closing(closes)
	if _, err := unix.FcntlInt(p.stdin.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
		t.Fatal(err)
	}
	for i := range 60 { // the answers are more than the pipe takes
		p.send(`{"jsonrpc":"2.0","id":"%d%s","method":"fs/read_text_file"}`, i, strings.Repeat("x", 900))
	}
	p.say("that was all")
	receive(t, heard)
	brief, end := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer end()
	if err := s.CloseInput(brief); err == nil {
		t.Error("the input of an agent that does not read was closed in order")
	}
	if s.Stats().CloseFailed {
		t.Error("it was asked")
	}
}
