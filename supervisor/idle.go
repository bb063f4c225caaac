package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"greatminds/runstore"
)

// idleTimeout is the reason of a run whose agent said nothing for longer than its binding allows.
const idleTimeout = "idle_timeout"

// errIdle is why such a turn was cancelled.
var errIdle = errors.New("the agent said nothing for too long")

// silence measures how long an agent has said nothing during its prompt turn. Time in which the
// agent waits for somebody else does not count: for the answer to a question of its, or for the
// run's configured command. All times are monotonic; no clock that is set changes them.
type silence struct {
	mu    sync.Mutex
	limit time.Duration
	spoke func() time.Time // when the agent last said something, zero for never
	since time.Time        // when the silence began, unless the agent spoke later; zero before the turn
	waits int              // what the agent waits for now
	was   time.Duration    // how long it had been silent when the first of that began
	from  time.Time        // when that was
	// over holds a notice that the agent waits for nothing any more.
	over chan struct{}
}

// begin is the beginning of the turn.
func (s *silence) begin(limit time.Duration, spoke func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.limit, s.spoke, s.since, s.over = limit, spoke, now, make(chan struct{}, 1)
	s.was, s.from = 0, now
}

// wait notes that the agent waits for somebody else until done is called.
func (s *silence) wait() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits++; s.waits == 1 && !s.since.IsZero() {
		s.was, s.from = s.lasted(), time.Now()
	}
	return sync.OnceFunc(s.waited)
}

func (s *silence) waited() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits--; s.waits > 0 || s.since.IsZero() {
		return
	}
	now := time.Now()
	if s.since = now.Add(-s.was); s.spoke().After(s.from) {
		s.since = now // it spoke meanwhile
	}
	select {
	case s.over <- struct{}{}:
	default: // a notice is already there
	}
}

// lasted is how long the agent has been silent, what it waited for left out; s.mu is held.
func (s *silence) lasted() time.Duration {
	from := s.since
	if last := s.spoke(); last.After(from) {
		from = last
	}
	return time.Since(from)
}

// left is how much longer the agent may be silent; waits tells that nothing is counted now.
func (s *silence) left() (span time.Duration, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits > 0 {
		return 0, true
	}
	return s.limit - s.lasted(), false
}

// broken waits until the agent has been silent for its limit, and is false where ctx ends before.
// It looks when the limit may be reached, and not at every word.
func (s *silence) broken(ctx context.Context) bool {
	timer := time.NewTimer(s.limit)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-s.over:
		case <-timer.C:
		}
		left, waits := s.left()
		switch {
		case waits: // the end of that is noticed
		case left <= 0:
			return true
		default:
			timer.Reset(left)
		}
	}
}

// idled ends a run whose agent was silent for too long. What the agent was at is not known, so that
// only a person has it tried again.
func (e *execution) idled(cause error) ending {
	limit := *e.binding.IdleTimeoutSeconds
	spoke, said := e.session.Stats().LastActivity, "it has said nothing in this turn"
	last := map[string]any{"idle_seconds": limit, "last_activity_at": nil}
	if !spoke.IsZero() {
		last["last_activity_at"] = runstore.Epoch(spoke)
		said = "its last word came at " + spoke.UTC().Format(time.RFC3339)
	}
	e.outcome.idle = last
	e.outcome.errorType = "IdleTimeout"
	e.outcome.what = fmt.Sprintf("the agent said nothing for %d s, which is idle_timeout_seconds of binding %s; %s", limit, e.binding.ID, said)
	return ending{runstore.Failed, idleTimeout, cause}
}

// atCommand notes that a run waits for its configured command until done is called.
func (d *Daemon) atCommand(id runstore.RunID) (done func()) {
	d.mu.Lock()
	e := d.live[id]
	d.mu.Unlock()
	if e == nil {
		return func() {}
	}
	return e.silence.wait()
}
