package supervisor

import (
	"sync"
	"time"

	"greatminds/runstore"
)

// maxEnds bounds the ends that are remembered. Of a run that was forgotten, or that ended before
// this process began, it is only known that it ended before then.
const maxEnds = 4096

// ends remembers by the monotonic clock when runs of this process ended, so that a wall clock that
// is set back makes no backoff longer than it was meant to be.
type ends struct {
	began time.Time // of the process

	mu    sync.Mutex
	at    map[runstore.RunID]time.Time // zero while the run goes on
	order []runstore.RunID
}

// begin notes that a run goes on, before anybody can see its end.
func (e *ends) begin(id runstore.RunID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at == nil {
		e.at = map[runstore.RunID]time.Time{}
	}
	e.at[id] = time.Time{}
	e.order = append(e.order, id)
	if len(e.order) > maxEnds {
		delete(e.at, e.order[0])
		e.order = e.order[1:]
	}
}

// end notes that a run has ended.
func (e *ends) end(id runstore.RunID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.at[id]; known {
		e.at[id] = time.Now()
	}
}

// waited is for how long at least a run has been over; 0 for one that ends in this moment.
func (e *ends) waited(id runstore.RunID) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, known := e.at[id]
	switch {
	case !known:
		return time.Since(e.began)
	case at.IsZero():
		return 0
	}
	return time.Since(at)
}
