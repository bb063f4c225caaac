package supervisor

import (
	"fmt"
	"testing"
	"time"

	"greatminds/runstore"
)

// E-200
func TestAnIdleDaemonRests(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	for i := 2; i <= 200; i++ {
		h.task("feature_blocked", fmt.Sprintf("%04d-parked", i))
	}
	h.start()
	h.inState(runstore.Completed)
	h.rests(t, 3*time.Second)
}

// rests fails where the daemon does anything while nothing happens.
func (h *house) rests(t *testing.T, span time.Duration) {
	t.Helper()
	h.pass(500 * time.Millisecond) // what the last change set off
	looks, steps := h.looks.Load(), len(h.disk.Steps())
	h.pass(span)
	if n := h.looks.Load() - looks; n > 20 {
		t.Errorf("the clock was read %d times in %v of rest", n, span)
	}
	if n := len(h.disk.Steps()) - steps; n > 0 {
		t.Errorf("%d durable steps in %v of rest, the last %+v", n, span, h.disk.Steps()[steps:][0])
	}
}
