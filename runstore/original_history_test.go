package runstore

import (
	"context"
	"testing"

	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/refusal"
)

// A take-over that was interrupted while finished work left for the history is made again.
func TestACrashWhileATakeOverRollsOverLosesNothing(t *testing.T) {
	rolled := 0
	for n := 1; ; n++ {
		dir := leftByOriginal(t, "pruned")
		fd := faultdisk.New(faultdisk.CrashAt(n))
		o := options(dir, fd)
		o.EagerHistory = true
		s, err := Open(context.Background(), o)
		if err == nil {
			err = s.Close(context.Background())
		}
		if segments, _ := historyFiles(t, dir); len(segments) > 0 {
			rolled++
		}
		if !fd.Reached() {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		for range 2 {
			s = openStore(t, options(dir, nil))
			if got := s.View().Totals()[Completed]; got != 6 || s.View().TakenOver() == nil {
				t.Fatalf("crash at step %d: %d runs, want 6", n, got)
			}
			if err := s.View().CheckHistory(); err != nil {
				t.Fatalf("crash at step %d: %v", n, err)
			}
			closeStore(t, s)
		}
	}
	if rolled < 5 {
		t.Errorf("%d of the crashes came after something had left, want several", rolled)
	}
}

// A state.json of the original that stands beside our history without a take-over has come over ours.
func TestTheOriginalsStoreOverAHistoryIsRefused(t *testing.T) {
	dir, _, _ := past(t, 4)
	theirs := readText(t, leftByOriginal(t, "pruned")+"/state.json")
	writeText(t, dir+"/state.json", theirs)
	before, _ := historyFiles(t, dir)
	_, err := Open(context.Background(), options(dir, nil))
	refused(t, err, refusal.CodeStoreMalformed)
	if after, _ := historyFiles(t, dir); len(after) != len(before) || readText(t, dir+"/state.json") != theirs {
		t.Error("something was changed")
	}
}
