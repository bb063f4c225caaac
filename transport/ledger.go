package transport

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// credits is how many updates may be with the SDK at once. Its queue holds 1024 and closes
// the connection when one more comes; with credits it can never fill, and an agent that is
// faster than its updates are handled is slowed down by its own pipe.
const credits = 512

var (
	errStuck  = errors.New("updates are not being handled")
	errClosed = errors.New("connection closed")
)

// ledger counts what went to the SDK and came back, and lets the reader wait for it.
type ledger struct {
	// passed and handled count updates, answered and returned the replies to our calls.
	passed, handled, answered, returned atomic.Int64
	waiting                             atomic.Int32

	mu     sync.Mutex
	cond   *sync.Cond
	closed bool
}

func newLedger() *ledger {
	l := &ledger{}
	l.cond = sync.NewCond(&l.mu)
	return l
}

// pass takes one credit for an update, waiting at most bound without progress.
func (l *ledger) pass(bound time.Duration) error {
	if l.passed.Load()-l.handled.Load() >= credits {
		// Half, so that reader and handler do not wake each other for every update.
		err := l.wait(bound, func() bool { return l.passed.Load()-l.handled.Load() <= credits/2 })
		if err != nil {
			return err
		}
	}
	l.passed.Add(1)
	return nil
}

// settled waits until every update passed so far was handled.
func (l *ledger) settled(bound time.Duration) error {
	return l.wait(bound, func() bool { return l.handled.Load() >= l.passed.Load() })
}

// delivered waits until every update was handled and every answer has reached its caller.
func (l *ledger) delivered(bound time.Duration) error {
	return l.wait(bound, func() bool {
		return l.handled.Load() >= l.passed.Load() && l.returned.Load() >= l.answered.Load()
	})
}

// step adds one to a counter and wakes the waiters.
func (l *ledger) step(counter *atomic.Int64) {
	counter.Add(1)
	if l.waiting.Load() > 0 {
		l.mu.Lock()
		l.cond.Broadcast()
		l.mu.Unlock()
	}
}

// close ends every wait.
func (l *ledger) close() {
	l.mu.Lock()
	l.closed = true
	l.cond.Broadcast()
	l.mu.Unlock()
}

// wait returns when ok holds, errStuck after bound without one more update handled, or
// errClosed.
func (l *ledger) wait(bound time.Duration, ok func() bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	if ok() {
		return nil
	}
	stuck, seen := false, l.handled.Load()
	var timer *time.Timer
	timer = time.AfterFunc(bound, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if now := l.handled.Load(); now != seen {
			seen = now
			timer.Reset(bound)
			return
		}
		stuck = true
		l.cond.Broadcast()
	})
	defer timer.Stop()
	for !ok() {
		switch {
		case l.closed:
			return errClosed
		case stuck:
			return errStuck
		}
		l.cond.Wait()
	}
	return nil
}

// emptied waits until every update that went to the SDK has come out of it, also after the
// ledger was closed.
func (l *ledger) emptied() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	for l.handled.Load() < l.passed.Load() {
		l.cond.Wait()
	}
}
