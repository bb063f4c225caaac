package main

import "sync"

// ledger is what the project acknowledged, by the exit status of the calls that asked for it. It is
// kept apart from everything that the project itself writes down.
type ledger struct {
	mu sync.Mutex
	// titles are the titles of all tasks that were asked for, also where the call was cut short.
	titles []string
	// filed maps the ids of acknowledged tasks to their titles.
	filed map[string]string
	// planned are the tasks whose plan was acknowledged.
	planned map[string]bool
	// asked are the permission requests that somebody began to answer, with their runs; answered
	// those whose answer was acknowledged, with the option.
	asked, answered map[string]string
	// retried and cancelled are runs, resolved are command requests.
	retried, cancelled, resolved map[string]bool
	// paused is what was last acknowledged; nil where a call was cut short since.
	paused *bool
}

func newLedger() *ledger {
	no := false
	return &ledger{filed: map[string]string{}, planned: map[string]bool{}, asked: map[string]string{}, answered: map[string]string{},
		retried: map[string]bool{}, cancelled: map[string]bool{}, resolved: map[string]bool{}, paused: &no}
}

// with changes or reads the ledger alone.
func (l *ledger) with(f func(*ledger)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}
