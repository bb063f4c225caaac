package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"runtime"
	"testing"

	"greatminds/transport"
)

// reopening starts a handshake that goes as far as the request for the saved session s1.
func (p *peer) reopening(agent, method string) (<-chan opened, message) {
	p.t.Helper()
	p.options.LoadSession = "s1"
	done := p.open(context.Background())
	p.reply(p.expect("initialize"), agent)
	return done, p.expect(method)
}

// Replayed history is activity, and no turn's: it is counted apart, is no first activity of a prompt
// and leaves the room for tool observations to the turn. E-248
func TestReplayIsCountedApart(t *testing.T) {
	t.Parallel()
	for method, c := range map[string]struct {
		agent string
		phase transport.Phase
	}{"session/load": {plainAgent, transport.PhaseLoad}, "session/resume": {onlyResumes, transport.PhaseResume}} {
		t.Run(method, func(t *testing.T) {
			p := newPeer(t)
			h := &recorder{}
			stages := make(chan transport.Stage, 10)
			p.options.Handler, p.options.Observe = h, func(s transport.Stage) { stages <- s }
			done, m := p.reopening(c.agent, method)
			for i := range 100 {
				p.update(fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"old%d","title":"t","kind":"edit","status":"completed"}`, i))
			}
			for range 600 {
				p.say("old")
			}
			p.reply(m, `{}`)
			s := p.wait(done).s
			turn := prompt(context.Background(), s, "go")
			m = p.expect("session/prompt")
			p.say("new")
			p.update(`{"sessionUpdate":"tool_call","toolCallId":"now","title":"t","kind":"read"}`)
			p.reply(m, `{"stopReason":"end_turn"}`)
			got := receive(t, turn)
			st := s.Stats()
			if got.Updates != 2 || got.TextBytes != 3 || st.Replayed != 700 || st.PromptUpdates != 2 || st.Updates != 702 ||
				!st.PrePromptActivity || st.LateUpdates != 0 {
				t.Errorf("got turn %+v, stats %+v", got, st)
			}
			if len(st.Tools) != 1 || st.Tools[0].Phase != transport.PhasePrompt || st.ToolsTruncated {
				t.Errorf("got tools %+v, truncated %v", st.Tools, st.ToolsTruncated)
			}
			for i, u := range h.all()[:700] {
				if !u.Replayed || u.Phase != c.phase {
					t.Fatalf("update %d: %+v", i, u)
				}
			}
			want := []transport.Stage{transport.StageProtocolReady, transport.StageFirstActivity, transport.StageSessionReady,
				transport.StageFirstPromptActivity}
			for _, w := range want {
				if stage := receive(t, stages); stage != w {
					t.Errorf("got stage %s, want %s", stage, w)
				}
			}
		})
	}
}

// What comes behind the answer to a load is no replay, and no turn's either.
func TestUpdatesBehindALoad(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	handled := make(chan struct{}, 2)
	p.options.Handler = &recorder{each: func(transport.Update) error { handled <- struct{}{}; return nil }}
	done, m := p.reopening(plainAgent, "session/load")
	p.write(fmt.Sprintf(chunk+"\n", "old") + fmt.Sprintf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n", m.ID) +
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}` + "\n")
	s := p.wait(done).s
	receive(t, handled)
	receive(t, handled)
	turn := prompt(context.Background(), s, "go")
	p.reply(p.expect("session/prompt"), `{"stopReason":"end_turn"}`)
	if got := receive(t, turn); got.Updates != 0 || got.err != nil {
		t.Errorf("got %+v", got)
	}
	if st := s.Stats(); st.Updates != 2 || st.Replayed != 1 || st.PromptUpdates != 0 {
		t.Errorf("got %+v", st)
	}
}

// Another session's history is not taken for this one's.
func TestReplayOfAnotherSession(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	h := &recorder{}
	p.options.Handler = h
	done, m := p.reopening(plainAgent, "session/load")
	p.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s2","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}`)
	p.reply(m, `{}`)
	st := p.wait(done).s.Stats()
	if len(h.all()) != 0 || st.Foreign != 1 || st.Replayed != 0 {
		t.Errorf("got %d updates, %+v", len(h.all()), st)
	}
}

// A long history is handled whole, before the session is ready, and is held nowhere.
func TestLongReplay(t *testing.T) {
	updates := int64(100_000)
	if raceDetector {
		updates = 10_000 // it only makes them slow
	}
	p := newPeer(t)
	var handled int64
	var most uint64
	p.options.Handler = &recorder{each: func(transport.Update) error {
		if handled++; handled%(updates/4) == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
		return nil
	}, forget: true}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	done, m := p.reopening(plainAgent, "session/load")
	w := bufio.NewWriterSize(p.stdout, 1<<16)
	line := fmt.Sprintf(chunk+"\n", "a line of an answer that was given long ago")
	for range updates {
		if _, err := w.WriteString(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	p.reply(m, `{}`)
	s := p.wait(done).s
	if st := s.Stats(); handled != updates || st.Replayed != updates || st.PromptUpdates != 0 {
		t.Errorf("got %d handled, %+v", handled, st)
	}
	if grown := int64(most) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("the heap grew by %d bytes while %d updates were replayed", grown, updates)
	}
}
