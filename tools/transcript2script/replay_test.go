package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"greatminds/transport"
)

// client does what the recording client did, with our transport.
type client struct {
	t       *testing.T
	process *process
	plan    plan
	session *transport.Session

	mu       sync.Mutex
	changed  chan struct{}
	updates  int
	asked    int // permission requests of the turn
	answered int // of those, answered with an option
	turn     turn
}

func (c *client) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// until waits until a condition on the counters holds.
func (c *client) until(ctx context.Context, what string, holds func() bool) bool {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		c.mu.Lock()
		ok, changed := holds(), c.changed
		c.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		case <-limit.C:
			c.t.Errorf("%s did not come: %d updates, %d asked, %d answered", what, c.updates, c.asked, c.answered)
			return false
		}
	}
}

// Update counts.
func (c *client) Update(transport.Update) error {
	c.change(func() { c.updates++ })
	return nil
}

// Permission answers as the recording client did: with the same option, or not until the turn is
// cancelled.
func (c *client) Permission(ctx context.Context, _ transport.PermissionRequest) transport.PermissionAnswer {
	choice := ""
	c.change(func() {
		if c.asked < len(c.turn.Choices) {
			choice = c.turn.Choices[c.asked]
		}
		c.asked++
	})
	if choice == "" {
		<-ctx.Done()
		return transport.PermissionAnswer{}
	}
	return transport.PermissionAnswer{OptionID: choice, Delivered: func(bool) { c.change(func() { c.answered++ }) }}
}

// prompt plays one turn.
func (c *client) prompt(want turn) {
	c.change(func() { c.asked, c.answered, c.turn = 0, 0, want })
	c.until(context.Background(), "what stands before the prompt", func() bool { return c.updates >= want.Before })
	ctx, stop := context.WithCancel(context.Background())
	var canceller sync.WaitGroup
	var mark *os.File
	if at := want.Cancel; at != nil {
		mark = c.process.mark(c.t, at.Mark)
		canceller.Go(func() {
			if _, err := mark.Read(make([]byte, 1)); err != nil {
				c.t.Errorf("the script's mark %s: %v", at.Mark, err)
			}
			if c.until(ctx, "what stands before the cancel", func() bool {
				return c.updates >= at.Updates && c.asked >= at.Asked && c.answered >= at.Answered
			}) {
				if err := c.session.Cancel(context.Background()); err != nil {
					c.t.Errorf("cancel: %v", err)
				}
			}
		})
	}
	limited, done := context.WithTimeout(ctx, patience)
	got, err := c.session.Prompt(limited, strings.ReplaceAll(want.Prompt, "$CWD", c.process.folder))
	done()
	stop()
	if want.Cancel != nil {
		// The mark is never reached where the turn has ended before its cancel.
		_ = mark.SetReadDeadline(time.Now())
	}
	canceller.Wait()
	c.judge(want, got, err)
}

// judge compares how a turn ended with how the recorded one did.
func (c *client) judge(want turn, got transport.Turn, err error) {
	c.t.Helper()
	if reached := endOfTurn(got, err); reached.String() != want.End.String() {
		c.t.Errorf("the turn %.40q ended with %s (%v), the recorded one with %s", want.Prompt, reached, err, want.End)
	}
	if got.Updates != want.Updates {
		c.t.Errorf("the turn %.40q had %d updates, the recorded one %d", want.Prompt, got.Updates, want.Updates)
	}
	cancelled := kindOf(err) == transport.Cancelled
	if cancelled != (want.Cancel != nil) {
		c.t.Errorf("the turn %.40q: %v, the recorded one was cancelled: %v", want.Prompt, err, want.Cancel != nil)
	}
}

func endOfTurn(got transport.Turn, err error) end {
	var e *transport.Error
	if errors.As(err, &e) && e.Code != nil {
		return end{Code: e.Code}
	}
	return end{Stop: got.StopReason}
}

func kindOf(err error) transport.Kind {
	var e *transport.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// play plays one conversation with our transport.
func play(t *testing.T, script string, want plan) {
	p, o := launch(t, script)
	c := &client{t: t, process: p, plan: want, changed: make(chan struct{})}
	o.Handler, o.AuthMethod, o.Mode, o.LoadSession = c, want.Auth, want.Mode, want.Load
	o.RequestTimeout, o.CancelGrace = patience, patience
	if want.Open.String() == "no answer" {
		o.RequestTimeout = time.Second
	}
	for _, turn := range want.Turns {
		if turn.Cancel != nil && turn.End.String() == "no answer" {
			o.CancelGrace = 200 * time.Millisecond
		}
	}
	s, err := transport.Open(context.Background(), o)
	if s == nil {
		t.Fatal(err)
	}
	c.session = s
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	defer func() {
		if err := s.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	opened := end{Stop: "ok"}
	if err != nil {
		opened = endOfTurn(transport.Turn{}, err)
	}
	if opened.String() != want.Open.String() {
		t.Fatalf("opening ended with %s (%v), the recorded one with %s", opened, err, want.Open)
	}
	for _, turn := range want.Turns {
		c.prompt(turn)
	}
	if err == nil {
		c.ending(ctx)
	}
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	stats := s.Stats()
	// Updates of another session are counted, and kept from the handler.
	if int(stats.Updates) != want.Updates {
		t.Errorf("%d updates, recorded %d", stats.Updates, want.Updates)
	}
	if int(stats.Permissions) != want.Permissions || stats.Unasked != 0 || stats.InvalidAnswers != 0 {
		t.Errorf("%d permission requests (%d not in a turn, %d answers refused), recorded %d", stats.Permissions, stats.Unasked, stats.InvalidAnswers, want.Permissions)
	}
	if stats.GarbageLines != 0 || stats.Gaps != 0 || stats.Unknown != 0 {
		t.Errorf("%d lines of garbage, %d gaps, %d unknown updates", stats.GarbageLines, stats.Gaps, stats.Unknown)
	}
}

// ending closes the agent's input where the recording client did, and sees the process behave as then.
func (c *client) ending(ctx context.Context) {
	all := func(n int) func() bool { return func() bool { return int(c.session.Stats().Updates) >= n } }
	if !c.plan.Killed {
		c.until(ctx, "the updates before the end of input", all(c.plan.InputAt))
		if err := c.session.CloseInput(ctx); err != nil {
			c.t.Errorf("close input: %v", err)
		}
		c.until(ctx, "the last updates", all(c.plan.Updates))
	}
	if c.plan.Hangs {
		return
	}
	select {
	case <-c.process.ended:
	case <-ctx.Done():
		c.t.Error("the agent did not end")
	}
}

// transcript is one of fixtures/transcripts.
type transcript struct {
	file  string
	lines []line
	one   *converted
}

// corpus reads all of them, once for all tests.
var corpus = sync.OnceValues(func() ([]transcript, error) {
	files, err := filepath.Glob(filepath.Join("..", "..", "fixtures", "transcripts", "*.ndjson"))
	if err != nil {
		return nil, err
	}
	var out []transcript
	for _, file := range files {
		one, lines, err := loadFile(file)
		if err != nil {
			return nil, err
		}
		out = append(out, transcript{file, lines, one})
	}
	return out, nil
})

func recorded(t *testing.T) []transcript {
	t.Helper()
	all, err := corpus()
	if err != nil || len(all) < 150 {
		t.Fatalf("found %d transcripts, %v", len(all), err)
	}
	return all
}

// What real agents once said, said again through a pipe, comes to the same end in our client: stop
// reasons, error codes, updates and permission requests, and the answers that the agent was given.
func TestReplay(t *testing.T) {
	for _, r := range recorded(t) {
		for i, c := range r.one.Conversations {
			t.Run(fmt.Sprintf("%s#%d", r.one.Name, i+1), func(t *testing.T) {
				t.Parallel()
				state := t.TempDir()
				path := filepath.Join(state, "agent-script.json")
				only := &converted{Conversations: []conversation{c}}
				if err := os.WriteFile(path, script(only), 0o600); err != nil {
					t.Fatal(err)
				}
				play(t, path, c.Plan)
				traced(t, state)
			})
		}
	}
}
