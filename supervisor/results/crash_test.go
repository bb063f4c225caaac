package results_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
)

// template keeps a copy of a project, so that each attempt starts from the same bytes at the
// same place (git's worktrees know each other by absolute paths).
type template struct {
	l    *lab
	kept string
}

func newTemplate(l *lab) template {
	l.t.Helper()
	if err := l.store.Close(context.Background()); err != nil {
		l.t.Fatal(err)
	}
	m := template{l, filepath.Join(l.top, "kept")}
	m.copy(l.root, m.kept)
	return m
}

func (m template) copy(from, to string) {
	m.l.t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		m.l.t.Fatalf("cp: %v %s", err, out)
	}
}

// restore puts the project back and opens it over a disk with the given faults.
func (m template) restore(faults ...faultdisk.Fault) error {
	m.l.t.Helper()
	if err := os.RemoveAll(m.l.root); err != nil {
		m.l.t.Fatal(err)
	}
	m.copy(m.kept, m.l.root)
	return m.l.tryOpen(faults...)
}

// E-201 E-203
func TestApplicationStoppedAnywhereEndsOnce(t *testing.T) {
	l := newLab(t)
	l.review()
	m := newTemplate(l)
	for n := 1; ; n++ {
		l.t = t
		err := m.restore(faultdisk.CrashAt(n))
		if err == nil {
			err = l.applier.Recover(l.ctx())
		}
		if err == nil {
			err = l.apply()
		}
		crashed := l.fault.Crashed()
		if crashed != (err != nil) || crashed && !errors.Is(err, faultdisk.ErrCrashed) {
			t.Fatalf("step %d: crashed %v, but the answer is %v", n, crashed, err)
		}
		l.restart(t, n)
		if l.wantVerified(); t.Failed() {
			t.Fatalf("stopped before step %d of %v", n, last(l.fault.Steps()))
		}
		if !crashed {
			t.Logf("%d steps", n-1)
			return
		}
	}
}

func last(steps []durable.Step) any {
	if len(steps) == 0 {
		return "none"
	}
	return steps[len(steps)-1]
}

// restart is what a daemon does at its start: recovery first, then what was received.
func (l *lab) restart(t *testing.T, n int) {
	t.Helper()
	l.reopen()
	if err := l.applier.Recover(l.ctx()); err != nil {
		t.Fatalf("step %d: recover: %v", n, err)
	}
	if err := l.apply(); err != nil {
		t.Fatalf("step %d: apply after the restart: %v", n, err)
	}
}
