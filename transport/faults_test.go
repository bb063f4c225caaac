package transport_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"greatminds/transport"
)

// E-660: whatever goes wrong in a request of the handshake, its phase stands in the failure, and
// nothing more is sent.
func TestFaultsInEveryPhaseOfTheHandshake(t *testing.T) {
	t.Parallel()
	faults := []struct {
		name  string
		play  func(p *peer, m message)
		kind  transport.Kind
		onOld transport.Kind // where the request is for a saved session, kind when empty
		// unsaid: the agent has refused nothing.
		unsaid bool
	}{
		{"the process ends", func(p *peer, m message) { p.stdout.Close(); p.end() }, transport.Transport, "", false},
		{"only its output ends", func(p *peer, m message) { p.stdout.Close() }, transport.Transport, "", false},
		{"only the process ends", func(p *peer, m message) { p.end() }, transport.Transport, "", false},
		{"half an answer", func(p *peer, m message) {
			p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"resu`, m.ID))
			p.stdout.Close()
			p.end()
		}, transport.Transport, "", false},
		{"an error", func(p *peer, m message) { p.refuse(m, -32603, "no") }, transport.Protocol, transport.SessionUnavailable, false},
		{"method not found", func(p *peer, m message) { p.refuse(m, -32601, "no") }, transport.Protocol, transport.SessionUnavailable, false},
		{"a status for a code", func(p *peer, m message) { p.refuse(m, 500, "no") }, transport.Protocol, transport.SessionUnavailable, false},
		{"an error that is none", func(p *peer, m message) {
			p.send(`{"jsonrpc":"2.0","id":%s,"error":"no"}`, m.ID)
		}, transport.Protocol, transport.SessionUnavailable, false},
		{"no result and no error", func(p *peer, m message) { p.send(`{"jsonrpc":"2.0","id":%s}`, m.ID) }, transport.Protocol, transport.SessionUnavailable, true},
		{"two results", func(p *peer, m message) {
			p.send(`{"jsonrpc":"2.0","id":%s,"result":{},"result":{"sessionId":"s1"}}`, m.ID)
		}, transport.Protocol, transport.SessionUnavailable, true},
		{"an answer over the limit", func(p *peer, m message) {
			p.send(`{"jsonrpc":"2.0","id":%s,"result":{"x":"%s"}}`, m.ID, strings.Repeat("x", 8<<10))
		}, transport.Protocol, transport.SessionUnavailable, true},
		{"a login", func(p *peer, m message) { p.refuse(m, -32000, "log in") }, transport.AuthRequired, "", false},
		{"garbage without an end", func(p *peer, m message) {
			line := strings.Repeat("x\n", 500)
			for range 30 {
				if _, err := p.stdout.WriteString(line); err != nil {
					return // the client has had enough
				}
			}
		}, transport.Protocol, "", true},
	}
	for _, c := range hangs {
		for _, f := range faults {
			t.Run(c.name+", "+f.name, func(t *testing.T) {
				t.Parallel()
				p := newPeer(t)
				p.options.MaxLine = 4 << 10
				if c.change != nil {
					c.change(&p.options)
				}
				done := p.open(context.Background())
				for _, s := range c.steps {
					if m := p.expect(s.method); s.result != "" {
						p.reply(m, s.result)
					} else {
						f.play(p, m)
					}
				}
				kind := f.kind
				if old := c.phase == transport.PhaseLoad || c.phase == transport.PhaseResume; old && f.onOld != "" {
					kind = f.onOld
				}
				if c.phase == transport.PhaseConfigure && kind == transport.Protocol && !f.unsaid {
					kind = transport.Configuration
				}
				wantKind(t, p.wait(done).err, kind, c.phase)
				p.wantEndOfInput()
			})
		}
	}
}

// What an agent says of itself can have any form; only the version has to be right.
func TestOddIntroductions(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		`{"protocolVersion":1}`, `{"protocolVersion":1e0}`, `{"protocolVersion":1,"agentCapabilities":null}`,
		`{"protocolVersion":1,"agentCapabilities":[]}`, `{"protocolVersion":1,"agentCapabilities":"all"}`,
		`{"protocolVersion":1,"authMethods":null}`, `{"protocolVersion":1,"authMethods":{}}`, `{"protocolVersion":1,"authMethods":[null,7,{},{"id":7}]}`,
		`{"protocolVersion":1,"agentInfo":"x"}`, `{"protocolVersion":1,"agentInfo":{"name":7,"version":null}}`,
		`{"protocolVersion":1,"agentInfo":{"name":"\ud800"}}`, `{"_meta":{"x":[1]},"protocolVersion":1,"more":true}`,
	} {
		got, _ := handshake(t, nil, step{"initialize", answer}, step{"session/new", `{"sessionId":"s1"}`})
		if got.err != nil || got.s.ID() != "s1" {
			t.Errorf("%s: %v", answer, got.err)
		}
	}
	long := strings.Repeat("é", 1000)
	got, _ := handshake(t, nil, step{"initialize", `{"protocolVersion":1,"agentInfo":{"name":"` + long + `","version":"` + long + `"}}`},
		step{"session/new", `{"sessionId":"s1"}`})
	if n := got.s.Negotiated(); len(n.AgentName) != 256 || len(n.AgentVersion) != 256 {
		t.Errorf("kept %d and %d bytes", len(n.AgentName), len(n.AgentVersion))
	}
}

// Noise before, between and behind the answers of a handshake costs nothing, and an answer that
// comes early or twice is none.
func TestNoiseInTheHandshake(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	done := p.open(context.Background())
	noise := "Loading model...\n\n\x1b[2Jready\n" +
		`{"jsonrpc":"2.0","id":2,"result":{"sessionId":"early"}}` + "\n" + // of a request that was not sent yet
		`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}` + "\n" +
		`{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}` + "\n"
	p.write(noise)
	if _, err := p.stderr.Write(make([]byte, 2<<20)); err != nil { // more than a pipe holds
		t.Fatal(err)
	}
	m := p.expect("initialize")
	p.reply(m, plainAgent)
	p.reply(m, `{"protocolVersion":2}`)
	m = p.expect("session/new")
	p.send(`{"jsonrpc":"2.0","method":"_auth/status_update","params":{"sessionId":"s1"}}`)
	p.update(`{"sessionUpdate":"usage_update","used":1,"size":2}`) // before the session has a name
	p.reply(m, `{"sessionId":"s1"}`)
	p.reply(m, `{"sessionId":"s2"}`)
	s := p.wait(done).s
	if s.ID() != "s1" {
		t.Fatalf("got session %q", s.ID())
	}
	turn := prompt(context.Background(), s, "go")
	p.reply(p.expect("session/prompt"), `{"stopReason":"max_tokens"}`)
	ends(t, receive(t, turn), "max_tokens")
	if st := s.Stats(); st.GarbageLines != 2 || st.StrayReplies != 5 || st.Extensions != 1 || st.Updates != 1 || st.PromptUpdates != 0 {
		t.Errorf("got %+v", st)
	}
}

// Bytes arrive as they may: one at a time, in the middle of a character, of an escape, of a newline pair.
func TestMessagesInPieces(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 3, 7, 4096} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			p := newPeer(t)
			h := &recorder{}
			p.options.Handler = h
			_, m, done := p.turn(context.Background())
			text := strings.Replace(fmt.Sprintf(chunk, "TEXT"), "TEXT", `é\u00e9 \ud83d\ude00 😀 \u2028 `+"\u2028"+`\"\\`, 1) + "\r\n" + fmt.Sprintf(chunk, "two") + "\n" +
				fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, m.ID) + "\n"
			for len(text) > 0 {
				n := min(size, len(text))
				p.write(text[:n])
				text = text[n:]
			}
			ends(t, receive(t, done), "end_turn")
			if got, want := h.texts(), "éé 😀 😀 \u2028 \u2028\"\\two"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Requests that are not offered get their error in every state of the session, and what is under
// way goes on. C053
func TestRequestsThatAreNotOfferedInEveryState(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output",
		"elicitation/create", "craft/drainMidTurnQueue", "_vendor/x", "session/list", "mcp/connect"} {
		t.Run(method, func(t *testing.T) {
			p := newPeer(t)
			refused := func(id string) {
				t.Helper()
				p.send(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{"sessionId":"s1","path":"/etc/hostname","command":"true"}}`, id, method)
				if got := p.answer(id); got != "error -32601" {
					t.Errorf("%s: got %s", id, got)
				}
			}
			p.options.LoadSession = "s1"
			done := p.open(context.Background())
			m := p.expect("initialize")
			refused(`"before initialize is answered"`)
			p.reply(m, plainAgent)
			m = p.expect("session/load")
			p.say("old")
			refused("0")
			p.say("old")
			p.reply(m, `{}`)
			s := p.wait(done).s
			refused(`"between turns"`)
			turn := prompt(context.Background(), s, "go")
			m = p.expect("session/prompt")
			refused(`"in a turn"`)
			p.reply(m, `{"stopReason":"end_turn"}`)
			ends(t, receive(t, turn), "end_turn")
			refused("-1.5e3")
			if st := s.Stats(); st.Rejected != 5 || st.Replayed != 2 || st.PromptUpdates != 0 {
				t.Errorf("got %+v", st)
			}
		})
	}
}

// A permission request outside of a turn is nobody's question.
func TestQuestionsInEveryOtherState(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	h, _ := handler("ok")
	p.options.Handler = h
	done, m := p.reopening(plainAgent, "session/load")
	p.ask("1")
	if got := p.answer("1"); got != "cancelled" {
		t.Errorf("while loading: got %s", got)
	}
	p.reply(m, `{}`)
	s := p.wait(done).s
	p.ask("2")
	if got := p.answer("2"); got != "cancelled" {
		t.Errorf("before a turn: got %s", got)
	}
	turn := prompt(context.Background(), s, "go")
	m = p.expect("session/prompt")
	p.question("3", `"sessionId":"s9","toolCall":{"toolCallId":"t1"},"options":`+offered)
	if got := p.answer("3"); got != "cancelled" {
		t.Errorf("of another session: got %s", got)
	}
	p.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, turn), "end_turn")
	if st := s.Stats(); st.Unasked != 3 || st.Permissions != 0 {
		t.Errorf("got %+v", st)
	}
}

// However a cancel and the turn's end cross, the caller learns that it cancelled, the agent is asked
// once, and what it said is kept.
func TestCancelCrossesTheEndOfTheTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play func(p *peer, m message)
		stop string
	}{
		"an answer, at once":    {func(p *peer, m message) { p.reply(m, `{"stopReason":"cancelled"}`) }, "cancelled"},
		"end_turn":              {func(p *peer, m message) { p.reply(m, `{"stopReason":"end_turn"}`) }, "end_turn"},
		"a reason nobody knows": {func(p *peer, m message) { p.reply(m, `{"stopReason":"aborted"}`) }, "aborted"},
		"two answers": {func(p *peer, m message) {
			p.reply(m, `{"stopReason":"cancelled"}`)
			p.reply(m, `{"stopReason":"end_turn"}`)
		}, "cancelled"},
		"the error of a cancelled request": {func(p *peer, m message) { p.refuse(m, -32800, "cancelled") }, ""},
		"an answer without a reason":       {func(p *peer, m message) { p.reply(m, `{}`) }, ""},
		"the agent's end":                  {func(p *peer, m message) { p.stdout.Close(); p.end() }, ""},
		"the end of its output":            {func(p *peer, m message) { p.stdout.Close() }, ""},
		"a question first": {func(p *peer, m message) {
			p.ask("7")
			if got := p.answer("7"); got != "cancelled" {
				p.t.Errorf("a question behind the cancel: got %s", got)
			}
			p.reply(m, `{"stopReason":"cancelled"}`)
		}, "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			h, _ := handler("ok")
			p.options.Handler, p.options.CancelGrace = h, patience
			s, m, done := p.turn(context.Background())
			p.say("before")
			if err := s.Cancel(context.Background()); err != nil {
				t.Fatal(err)
			}
			p.expect("session/cancel")
			c.play(p, m)
			got := receive(t, done)
			wantKind(t, got.err, transport.Cancelled, transport.PhasePrompt)
			if got.StopReason != c.stop || !got.CancelSent || got.Updates != 1 {
				t.Errorf("got %+v", got.Turn)
			}
		})
	}
}

// A cancel that comes after the turn's answer cancels nothing, and sends nothing.
func TestCancelAfterTheAnswer(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s, m, done := p.turn(context.Background())
	p.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, done), "end_turn")
	if err := s.Cancel(context.Background()); err != nil {
		t.Fatal(err)
	}
	again := prompt(context.Background(), s, "again")
	p.reply(p.expect("session/prompt"), `{"stopReason":"end_turn"}`) // the next thing on the wire
	ends(t, receive(t, again), "end_turn")
}

// How a turn ends is told as it is: an answer counts as one whatever it says, and an end without
// one is a failure of the connection.
func TestEndsOfTurns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play  func(p *peer, m message)
		kind  transport.Kind
		stop  string
		known bool
	}{
		"at once, with nothing said": {func(p *peer, m message) { p.reply(m, `{"stopReason":"end_turn"}`) }, "", "end_turn", true},
		"refusal":                    {func(p *peer, m message) { p.reply(m, `{"stopReason":"refusal"}`) }, "", "refusal", true},
		"max_turn_requests":          {func(p *peer, m message) { p.reply(m, `{"stopReason":"max_turn_requests"}`) }, "", "max_turn_requests", true},
		"cancelled, unasked":         {func(p *peer, m message) { p.reply(m, `{"stopReason":"cancelled"}`) }, "", "cancelled", true},
		"a reason nobody knows":      {func(p *peer, m message) { p.reply(m, `{"stopReason":"tired"}`) }, "", "tired", false},
		"a very long reason": {func(p *peer, m message) {
			p.reply(m, `{"stopReason":"`+strings.Repeat("x", 1000)+`"}`)
		}, "", strings.Repeat("x", 128), false},
		"an error": {func(p *peer, m message) { p.refuse(m, -32603, "no") }, transport.Protocol, "", false},
		"an exit":  {func(p *peer, m message) { p.say("x"); p.stdout.Close(); p.end() }, transport.Transport, "", false},
		"its own id as text": {func(p *peer, m message) {
			p.send(`{"jsonrpc":"2.0","id":"%s","result":{"stopReason":"end_turn"}}`, m.ID)
		}, "", "end_turn", true},
		"the answer of an earlier process first": {func(p *peer, m message) {
			p.send(`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"refusal"}}`)
			p.send(`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"refusal"}}`)
			p.reply(m, `{"stopReason":"end_turn"}`)
		}, "", "end_turn", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			_, m, done := p.turn(context.Background())
			c.play(p, m)
			got := receive(t, done)
			if kindOf(got.err) != c.kind || got.StopReason != c.stop || got.Known != c.known {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A notice of withdrawal that names no open question is nothing; one that does ends the question,
// however its id is written, and the turn goes on.
func TestWithdrawnQuestions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ id, notice string }{
		"0":                {"0", `{"requestId":0}`},
		"text":             {`"5d1c"`, `{"requestId":"5d1c"}`},
		"with metadata":    {"3", `{"_meta":{"x":1},"requestId":3}`},
		"as a fraction":    {"3", `{"requestId":3.0}`},
		"text with escape": {`"\u0071"`, `{"requestId":"q"}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			h, _, release := held(true)
			defer close(release)
			p.options.Handler = h
			s, m, done := p.turn(context.Background())
			p.ask(c.id)
			for _, none := range []string{`{}`, `null`, `[]`, `7`, `{"requestId":null}`, `{"requestId":{}}`, `{"requestId":77}`, `{"requestId":"77"}`, `{"id":3}`} {
				p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":%s}`, none)
			}
			p.send(`{"jsonrpc":"2.0","method":"$/cancel_request"}`)
			p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":%s}`, c.notice)
			// The protocol lets the answer be an error of code -32800 or a valid one; cancelled is
			// one that every agent understands.
			m2 := p.next()
			if m2.Error != nil || !strings.Contains(string(m2.Result), `"cancelled"`) {
				t.Errorf("got %s", m2.raw)
			}
			p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":%s}`, c.notice) // once more, for nothing
			p.reply(m, `{"stopReason":"end_turn"}`)
			ends(t, receive(t, done), "end_turn")
			if st := s.Stats(); st.Permissions != 1 || st.Extensions != 0 {
				t.Errorf("got %+v", st)
			}
		})
	}
}

// The agent's input stays unread while it writes: neither side may wait for the other.
func TestNeitherSideReads(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.options.Handler = newCounting()
	s := p.session()
	done := prompt(context.Background(), s, strings.Repeat("x", 2<<20)) // more than its pipe holds
	first := make([]byte, 1)
	if _, err := p.stdin.Read(first); err != nil {
		t.Fatal(err)
	}
	for range 2000 { // far more than ours holds
		p.say(strings.Repeat("y", 1000))
	}
	line, err := p.lines.ReadString('\n')
	if err != nil || !strings.Contains(line, "session/prompt") {
		t.Fatalf("got %.80q %v", line, err)
	}
	p.send(`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`)
	got := receive(t, done)
	ends(t, got, "end_turn")
	if got.Updates != 2000 {
		t.Errorf("got %d updates", got.Updates)
	}
}

// A slow start is no fault while each answer comes within its limit.
func TestSlowAnswersWithinTheLimit(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.options.RequestTimeout = 10 * time.Second
	done := p.open(context.Background())
	answer := func(m message, text string) {
		for i := range len(text) { // one byte at a time
			p.write(text[i : i+1])
		}
	}
	m := p.expect("initialize")
	answer(m, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, plainAgent))
	m = p.expect("session/new")
	answer(m, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s1"}}`+"\n", m.ID))
	if got := p.wait(done); got.err != nil {
		t.Fatal(got.err)
	}
}
