package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"greatminds/internal/durable"
	"greatminds/runstore"
)

// E-638: whoever does not get the lease changes no limit; whoever has it puts the contract's in
// force, and tells so once.
// E-640: pruning belongs to the commits that bring events; a daemon that has pruned rests like any
// other.
func TestTheEventLimitComesIntoForceUnderTheLease(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`, root: "max_runtime_events: 100\n"})
	dir := h.o.Project.StoreDir()
	must(t, os.MkdirAll(dir, 0o700))
	lock, err := durable.TryLock(filepath.Join(dir, "supervisor.lock"), "1\n")
	must(t, err)
	var held *durable.Held
	if _, err := open(t.Context(), h.o, ""); !errors.As(err, &held) {
		t.Fatalf("got %v, want the lease to be held", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "state.json")); !os.IsNotExist(err) {
		t.Fatalf("something was written without the lease: %v", err)
	}
	must(t, lock.Unlock())

	h.start()
	v := h.until("the limit is in force", func(v *runstore.View) bool { return v.EventRetention().MaxEvents == 100 })
	configured := 0
	for _, e := range v.Events(0, 100) {
		if e.Kind == "event_retention_configured" {
			configured++
		}
	}
	if configured != 1 {
		t.Errorf("the limit was told %d times", configured)
	}
	must(t, h.d.store.Update(t.Context(), func(tx *runstore.Tx) error {
		for range 150 {
			tx.Emit("tick", "", nil)
		}
		return nil
	}))
	if r := h.d.store.View().EventRetention(); r.DiscardedCount < 50 {
		t.Fatalf("got %+v, want events to be pruned", r)
	}
	h.rests(t, 2*time.Second)
	if h.said("level=ERROR") {
		t.Error("the daemon complains")
	}
	if n := len(h.d.store.View().Runs()); n != 0 {
		t.Errorf("pruning took %d runs", n)
	}
}
