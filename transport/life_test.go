package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"greatminds/transport"
)

// Hazard 3: whatever stands before the end of file counts, every time; an answer that came
// is never lost, with or without its newline, and every update before it is handled first.
// E-668
func TestLastWords(t *testing.T) {
	t.Parallel()
	for _, updates := range []int{0, 1, 20, 700} {
		rounds := 3
		if updates > 100 && raceDetector {
			rounds = 1 // it makes them slow
		}
		for _, answer := range []string{`"result":{"stopReason":"end_turn"}`, `"error":{"code":-32603,"message":"x"}`} {
			for _, newline := range []string{"\n", ""} {
				t.Run(fmt.Sprintf("%d updates, %.8s, newline %q", updates, answer, newline), func(t *testing.T) {
					for range rounds {
						p := newPeer(t)
						h := &recorder{}
						p.options.Handler = h
						s := p.session()
						done := prompt(context.Background(), s, "go")
						m := p.expect("session/prompt")
						var b strings.Builder
						for range updates {
							fmt.Fprintf(&b, chunk+"\n", "x")
						}
						fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":%s,%s}%s`, m.ID, answer, newline)
						p.write(b.String())
						p.stdout.Close()
						p.end()
						got := receive(t, done)
						if strings.HasPrefix(answer, `"result"`) {
							ends(t, got, "end_turn")
						} else {
							wantKind(t, got.err, transport.Protocol, transport.PhasePrompt)
						}
						if got.Updates != updates || len(h.all()) != updates {
							t.Fatalf("got %d updates, %d handled, want %d", got.Updates, len(h.all()), updates)
						}
					}
				})
			}
		}
	}
}

// Words without an answer are handled before the turn fails.
func TestUpdatesBeforeADeath(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	h := &recorder{}
	p.options.Handler = h
	s, _, done := p.turn(context.Background())
	for range 300 {
		p.say("x")
	}
	p.write(`{"jsonrpc":"2.0","id":2,"res`)
	p.stdout.Close()
	got := receive(t, done)
	wantKind(t, got.err, transport.Transport, transport.PhasePrompt)
	if got.Updates != 300 || len(h.all()) != 300 || s.Stats().GarbageLines != 1 {
		t.Fatalf("got %+v, %d handled", got, len(h.all()))
	}
	if _, err := s.Prompt(context.Background(), "again"); kindOf(err) != transport.Transport {
		t.Errorf("got %v", err)
	}
}

// Hazard 21: the agent has ended, and a descendant holds its pipes: what it said counts, and
// nothing is waited for.
func TestDescendantHoldsThePipes(t *testing.T) {
	t.Parallel()
	t.Run("the answer stands in the pipe", func(t *testing.T) {
		p := newPeer(t)
		_, m, done := p.turn(context.Background())
		p.end()
		p.reply(m, `{"stopReason":"end_turn"}`) // no end of file ever comes
		got := receive(t, done)
		if got.err != nil && kindOf(got.err) != transport.Transport {
			t.Fatalf("got %+v", got)
		}
	})
	t.Run("written before the end", func(t *testing.T) {
		p := newPeer(t)
		h := &recorder{}
		p.options.Handler = h
		_, m, done := p.turn(context.Background())
		for range 600 {
			p.say("x")
		}
		p.reply(m, `{"stopReason":"end_turn"}`)
		p.end()
		ends(t, receive(t, done), "end_turn")
		if len(h.all()) != 600 {
			t.Errorf("got %d updates", len(h.all()))
		}
	})
	t.Run("no answer", func(t *testing.T) {
		p := newPeer(t)
		s, _, done := p.turn(context.Background())
		p.end()
		e := wantKind(t, receive(t, done).err, transport.Transport, transport.PhasePrompt)
		if !strings.Contains(e.What, "ended") || !errors.Is(s.Err(), s.Err()) || s.Err() == nil {
			t.Errorf("got %q, %v", e.What, s.Err())
		}
		<-s.Done()
	})
	t.Run("the descendant writes without end", func(t *testing.T) {
		p := newPeer(t)
		_, _, done := p.turn(context.Background())
		var writing sync.WaitGroup
		writing.Go(func() {
			for {
				if _, err := p.stdout.WriteString(fmt.Sprintf(chunk+"\n", "x")); err != nil {
					return
				}
			}
		})
		p.end()
		wantKind(t, receive(t, done).err, transport.Transport, transport.PhasePrompt)
		writing.Wait()
	})
}

// Hazard 5, C015: an agent that does not read holds up neither the turn's budget nor Cancel.
func TestAgentThatStopsReading(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 2<<20) // twice what the pipe holds
	t.Run("the budget counts while writing", func(t *testing.T) {
		p := newPeer(t)
		p.options.CancelGrace = 20 * time.Millisecond
		s := p.session()
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_, err := s.Prompt(ctx, large)
		wantKind(t, err, transport.Timeout, transport.PhasePrompt)
	})
	t.Run("Cancel returns at once", func(t *testing.T) {
		p := newPeer(t)
		p.options.CancelGrace = 20 * time.Millisecond
		s := p.session()
		done := prompt(context.Background(), s, large)
		first := make([]byte, 1) // the prompt is on its way
		if _, err := p.stdin.Read(first); err != nil {
			t.Fatal(err)
		}
		if err := s.Cancel(context.Background()); err != nil {
			t.Fatal(err)
		}
		got := receive(t, done)
		wantKind(t, got.err, transport.Cancelled, transport.PhasePrompt)
		if !got.CancelSent {
			t.Error("no cancel was queued")
		}
	})
	t.Run("without a budget the writer's limit holds", func(t *testing.T) {
		p := newPeer(t)
		p.options.WriteTimeout = 500 * time.Millisecond
		s := p.session()
		_, err := s.Prompt(context.Background(), large)
		e := wantKind(t, err, transport.Timeout, transport.PhasePrompt)
		if !strings.Contains(e.What, "did not read") {
			t.Errorf("got %q", e.What)
		}
	})
	t.Run("a slow reader is none of these", func(t *testing.T) {
		p := newPeer(t)
		s := p.session()
		done := prompt(context.Background(), s, large)
		p.reply(p.expect("session/prompt"), `{"stopReason":"end_turn"}`)
		ends(t, receive(t, done), "end_turn")
	})
	t.Run("and one that asks on without reading the refusals", func(t *testing.T) {
		p := newPeer(t)
		p.options.WriteTimeout = 500 * time.Millisecond
		_, _, done := p.turn(context.Background())
		line := `{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 900) + `","method":"fs/x"}` + "\n"
		for range 20000 {
			if _, err := p.stdout.WriteString(line); err != nil {
				break
			}
		}
		wantKind(t, receive(t, done).err, transport.Timeout, transport.PhasePrompt)
	})
}

// Hazard 20: standard input closed, standard output open.
func TestAgentClosesItsInput(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s := p.session()
	p.stdin.Close()
	_, err := s.Prompt(context.Background(), "go")
	e := wantKind(t, err, transport.Transport, transport.PhasePrompt)
	if !strings.Contains(e.Error(), "standard input") && !strings.Contains(e.Error(), "pipe") {
		t.Errorf("got %v", e)
	}
}

// The last bytes of standard error are kept, all of it is read, and no line of it is ever
// waited for.
func TestStandardError(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s := p.session()
	done := prompt(context.Background(), s, "go")
	m := p.expect("session/prompt")
	line := []byte(strings.Repeat("noise ", 1000) + "\n")
	for range 1000 {
		if _, err := p.stderr.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	last := []byte("\x1b[31mpanic: last words\xff")
	if _, err := p.stderr.Write(last); err != nil {
		t.Fatal(err)
	}
	p.reply(m, `{"stopReason":"end_turn"}`)
	ends(t, receive(t, done), "end_turn")
	p.end()
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	tail := s.StderrTail()
	if len(tail) != transport.MaxStderrTail || !bytes.HasSuffix(tail, last) {
		t.Errorf("got %d bytes, ending %q", len(tail), tail[len(tail)-30:])
	}
	if got, want := s.Stats().StderrBytes, int64(1000*len(line)+len(last)); got != want {
		t.Errorf("got %d bytes in all, want %d", got, want)
	}
}

// Hazard 2: any burst passes, in order, while the handler is slower than the agent.
func TestBurst(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	const n = 5000
	next := 0
	p.options.Handler = &recorder{each: func(u transport.Update) error {
		if u.Text != fmt.Sprint(next) {
			return fmt.Errorf("got %q, want %d", u.Text, next)
		}
		if next++; next%64 == 0 {
			runtime.Gosched()
		}
		return nil
	}}
	_, m, done := p.turn(context.Background())
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, chunk+"\n", fmt.Sprint(i))
	}
	p.write(b.String())
	p.reply(m, `{"stopReason":"end_turn"}`)
	got := receive(t, done)
	ends(t, got, "end_turn")
	if got.Updates != n {
		t.Errorf("got %d updates, want %d", got.Updates, n)
	}
}

// E-669: a stuck handler holds up the turn no longer than the bound, however much is behind.
func TestStuckHandler(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"few updates": 2, "more than there are credits": 2000} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			p.options.SettleTimeout = 50 * time.Millisecond
			release := make(chan struct{})
			defer close(release)
			p.options.Handler = &recorder{each: func(transport.Update) error { <-release; return nil }}
			_, m, done := p.turn(context.Background())
			var b strings.Builder
			for range n {
				fmt.Fprintf(&b, chunk+"\n", "x")
			}
			fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`+"\n", m.ID)
			// The client may have given up before all is written.
			if _, err := p.stdout.WriteString(b.String()); err != nil && n < 1000 {
				t.Fatal(err)
			}
			e := wantKind(t, receive(t, done).err, transport.Protocol, transport.PhasePrompt)
			if !errors.Is(e, transport.ErrObservation) {
				t.Errorf("got %v", e)
			}
		})
	}
}

// E-670: a turn whose observations could not be recorded is no success.
func TestUnrecordedObservation(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	full := errors.New("disk full")
	failing := true
	p.options.Handler = &recorder{each: func(transport.Update) error {
		if failing {
			failing = false
			return full
		}
		return nil
	}}
	_, m, done := p.turn(context.Background())
	p.say("a")
	p.say("b")
	p.reply(m, `{"stopReason":"end_turn"}`)
	got := receive(t, done)
	e := wantKind(t, got.err, transport.Protocol, transport.PhasePrompt)
	if !errors.Is(e, full) || !errors.Is(e, transport.ErrObservation) || got.StopReason != "end_turn" || got.Updates != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestCloseWithAnOpenTurn(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	h, delivered := handler("ok")
	inner := h.answer
	asked := make(chan struct{})
	h.answer = func(ctx context.Context, r transport.PermissionRequest) transport.PermissionAnswer {
		close(asked)
		<-ctx.Done()
		return inner(ctx, r)
	}
	p.options.Handler = h
	s, _, done := p.turn(context.Background())
	p.ask("1")
	receive(t, asked)
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, done); kindOf(got.err) != transport.Cancelled || receive(t, delivered) {
		t.Errorf("got %+v", got)
	}
	if got := p.answer("1"); got != "cancelled" {
		t.Errorf("got %s", got)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if _, err := s.Prompt(context.Background(), "x"); err == nil {
		t.Error("a closed session took a prompt")
	}
	if err := s.Cancel(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := p.lines.ReadString('\n'); err == nil {
		t.Error("the agent's standard input is still open")
	}
}

// The ladder begins with the end of input; the agent's last words then are still heard.
func TestCloseInput(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	h := &recorder{}
	p.options.Handler = h
	s := p.session()
	if err := s.CloseInput(context.Background()); err != nil {
		t.Fatal(err)
	}
	if line, err := p.lines.ReadString('\n'); err == nil {
		t.Fatalf("got %q, want the end of input", line)
	}
	p.say("bye")
	p.stdout.Close()
	p.end()
	<-s.Done()
	if h.texts() != "bye" {
		t.Errorf("got %q", h.texts())
	}
}

// A handler that never returns is an error of Close, which still ends in time.
func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	release, asked := make(chan struct{}), make(chan struct{})
	defer close(release)
	p.options.Handler = &recorder{answer: func(context.Context, transport.PermissionRequest) transport.PermissionAnswer {
		close(asked)
		<-release
		return transport.PermissionAnswer{}
	}}
	s, _, _ := p.turn(context.Background())
	p.ask("1")
	receive(t, asked)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); err == nil {
		t.Error("want an error")
	}
}

// Files that take no deadlines would make every bound a wish.
func TestFilesWithoutDeadlines(t *testing.T) {
	t.Parallel()
	plain, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	p := newPeer(t)
	p.options.Stdin = plain
	_, err = transport.Open(context.Background(), p.options)
	wantKind(t, err, transport.Transport, transport.PhasePreflight)
}
