package results_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/refusal"
	"greatminds/runstore"
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
	opened := false
	// What the store does while it opens is proven where it is made. A stop before a sync leaves
	// the same files as one after it.
	counts := func(s durable.Step) bool { return opened && s.Op != durable.OpSync && s.Op != durable.OpSyncDir }
	for n := 1; ; n++ {
		opened = false
		err := m.restore(faultdisk.On(counts, faultdisk.CrashAt(n)))
		opened = true
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

// A disk that fails once, at any step outside the store, leaves something that a repair finishes.
func TestDiskErrorAnywhereCanBeRepaired(t *testing.T) {
	l := newLab(t)
	l.review()
	m := newTemplate(l)
	outside := func(s durable.Step) bool { return !strings.Contains(s.Path, ".runtime") }
	for n := 1; ; n++ {
		if err := m.restore(faultdisk.On(outside, faultdisk.FailAt(n, syscall.EIO))); err != nil {
			t.Fatal(err)
		}
		err := l.apply()
		if !l.fault.Reached() {
			l.wantVerified()
			t.Logf("%d steps", n-1)
			return
		}
		if left := l.result().Status; err == nil && left != "applied" {
			t.Fatalf("step %d: no error, but the result is %s", n, left)
		}
		if got := l.queues(); got != "feature_review" && got != "verified" {
			t.Fatalf("step %d: the task stands in %q", n, got)
		}
		l.reopen()
		if err := l.applier.Recover(l.ctx()); err != nil {
			t.Fatalf("step %d: recover: %v", n, err)
		}
		if l.result().Status == "needs_recovery" {
			if _, err := l.applier.Repair(l.ctx(), string(resultID)); err != nil {
				t.Fatalf("step %d: repair: %v", n, err)
			}
		} else if err := l.apply(); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		if l.wantVerified(); t.Failed() {
			t.Fatalf("a disk error at step %d", n)
		}
	}
}

// named stops before the first step of a name.
func named(name string) faultdisk.Fault {
	return faultdisk.On(func(s durable.Step) bool { return s.Name == name }, faultdisk.CrashAt(1))
}

// stopped brings an approved task to a stop before a step of its application.
func stopped(t *testing.T, step string) *lab {
	t.Helper()
	l := newLab(t)
	l.review()
	if err := l.store.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := l.tryOpen(named(step)); err != nil {
		t.Fatal(err)
	}
	if err := l.apply(); !errors.Is(err, faultdisk.ErrCrashed) || !l.fault.Reached() {
		t.Fatalf("got %v, want a stop before %s", err, step)
	}
	l.reopen()
	return l
}

// E-202 E-218
func TestForeignEditInBetweenIsLeftToAPerson(t *testing.T) {
	for step, queue := range map[string]string{"apply.merge": "feature_review", "apply.write": "feature_review",
		"apply.move": "feature_review", "apply.journal": "verified"} {
		t.Run("before "+step, func(t *testing.T) {
			l := stopped(t, step)
			ours := l.read(l.taskFile(queue))
			mine := ours + "# by hand\n"
			l.write(l.taskFile(queue), mine)
			merges := l.merges()
			if err := l.applier.Recover(l.ctx()); err != nil {
				t.Fatal(err)
			}
			got := l.result()
			if got.Status != "needs_recovery" || l.queues() != queue || l.read(l.taskFile(queue)) != mine || l.merges() != merges || len(l.lines()) != 0 {
				t.Fatalf("result %s, task in %s, %s merges, %d lines: %s", got.Status, l.queues(), l.merges(), len(l.lines()), got.Details.Error)
			}
			if o := l.store.View().Operation(runstore.OperationID(resultID)); !strings.Contains(o.After, "approved") {
				t.Error("the planned contents are lost")
			}
			for name, want := range map[string]string{"repair": `"greatminds run repair --operation run1-result"`, "abandon": `"greatminds run repair --operation run1-result --abandon --reason TEXT"`} {
				if string(got.Details.Extra[name]) != want {
					t.Errorf("%s: %s", name, got.Details.Extra[name])
				}
			}
			_, err := l.applier.Repair(l.ctx(), string(resultID))
			wantCode(t, err, refusal.CodeResultRecovery, "0001-sample.yaml", "run repair --operation run1-result")
			if l.read(l.taskFile(queue)) != mine || l.merges() != merges {
				t.Error("a repair in vain changed something")
			}
			l.write(l.taskFile(queue), ours)
			if _, err := l.applier.Repair(l.ctx(), string(resultID)); err != nil {
				t.Fatal(err)
			}
			l.wantVerified()
		})
	}
}

// E-218
func TestOperationIsGivenUpOnlyBeforeItHasGoneTooFar(t *testing.T) {
	for step, far := range map[string]bool{"git.keep-overlay": false, "git.read-tree": false, "git.update-ref": true, "apply.write": true, "apply.journal": true} {
		t.Run("before "+step, func(t *testing.T) {
			l := stopped(t, step)
			l.write(l.taskFile("feature_review"), "# by hand\n")
			if err := l.applier.Recover(l.ctx()); err != nil {
				t.Fatal(err)
			}
			if got := l.result().Status; got != "needs_recovery" {
				t.Fatalf("result %s", got)
			}
			_, err := l.applier.Abandon(l.ctx(), string(resultID), "  ")
			wantCode(t, err, refusal.CodeUsage, "--reason")
			_, err = l.applier.Abandon(l.ctx(), string(resultID), "wrong task")
			if far {
				wantCode(t, err, refusal.CodeOperationBegun, "run repair --operation")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			o := l.store.View().Operation(runstore.OperationID(resultID))
			if got := l.result(); got.Status != "abandoned" || !strings.Contains(got.Details.Error, "wrong task") || o.Phase != "abandoned" || o.Resolution != "wrong task" {
				t.Errorf("result %s %+v, operation %s %s", got.Status, got.Details, o.Phase, o.Resolution)
			}
			if l.merges() != "0" || l.read(l.taskFile("feature_review")) != "# by hand\n" {
				t.Error("giving up changed something")
			}
			_, err = l.applier.Repair(l.ctx(), string(resultID))
			wantCode(t, err, refusal.CodeResultSettled, "abandoned")
		})
	}
	t.Run("old bytes are put back", func(t *testing.T) {
		l := newLab(t)
		l.put("feature_dev", planBlock)
		before := l.read(l.taskFile("feature_dev"))
		l.decide(decided{"DEVELOPER", l.root, "blocked", `{"reason":"waits","dependencies":["verified/0002-other.yaml"],"resume_to":"feature_dev"}`})
		if err := l.store.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := l.tryOpen(named("apply.move")); err != nil {
			t.Fatal(err)
		}
		if err := l.apply(); !errors.Is(err, faultdisk.ErrCrashed) {
			t.Fatal(err)
		}
		l.reopen()
		l.write(l.taskFile("feature_blocked"), "# somebody else's\n")
		if err := l.applier.Recover(l.ctx()); err != nil {
			t.Fatal(err)
		}
		if _, err := l.applier.Abandon(l.ctx(), string(resultID), "no"); err != nil {
			t.Fatal(err)
		}
		if l.read(l.taskFile("feature_dev")) != before || l.read(l.taskFile("feature_blocked")) != "# somebody else's\n" {
			t.Errorf("feature_dev holds %q", l.read(l.taskFile("feature_dev")))
		}
	})
}

// E-214 E-202
func TestUncertainMergeIsNeverTriedAgain(t *testing.T) {
	l := stopped(t, "git.read-tree")
	// A checkout cut short: one file is new already, and in another somebody has begun to write.
	l.write("new.txt", "new\n")
	l.write("a.txt", "mine\n")
	for range 2 {
		if err := l.applier.Recover(l.ctx()); err != nil {
			t.Fatal(err)
		}
		l.reopen()
	}
	got := l.result()
	if got.Status != "needs_recovery" || l.merges() != "0" || l.queues() != "feature_review" {
		t.Fatalf("result %s, %s merges, task in %s", got.Status, l.merges(), l.queues())
	}
	if !strings.Contains(got.Details.Error, "a.txt") || l.read("a.txt")+l.read("new.txt") != "mine\nnew\n" {
		t.Errorf("error %q, files %q", got.Details.Error, l.read("a.txt")+l.read("new.txt"))
	}
	wantCode(t, l.apply(), refusal.CodeResultRecovery)
	_, err := l.applier.Abandon(l.ctx(), string(resultID), "no")
	wantCode(t, err, refusal.CodeOperationBegun)
	l.write("a.txt", "one\n")
	if _, err := l.applier.Repair(l.ctx(), string(resultID)); err != nil {
		t.Fatal(err)
	}
	l.wantVerified()
}

// E-203
func TestMergeThatFinishedBeforeTheStopIsNotMadeAgain(t *testing.T) {
	l := stopped(t, "apply.write")
	merge := l.git(l.root, "rev-parse", "main")
	l.write("k.txt", "later work\n")
	l.git(l.root, "commit", "-q", "-am", "later")
	if err := l.applier.Recover(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if l.result().Status != "applied" || l.merges() != "1" || l.git(l.root, "rev-parse", "main^") != merge {
		t.Errorf("result %s, %s merges", l.result().Status, l.merges())
	}
}

// Evidence that went stale while the daemon was down, before anything was touched, rejects.
func TestRecoveryChecksTheEvidenceAgain(t *testing.T) {
	l := newLab(t)
	l.put("feature_dev", planBlock)
	l.git(l.root, "worktree", "add", "-q", "-b", "task/0001-sample", l.worktree(), "main")
	l.writeIn(l.worktree(), "a.txt", "ours\n")
	l.decide(decided{"DEVELOPER", l.worktree(), "handoff", `{"to_queue":"feature_test","artifacts":["a.txt"],"blocks":[{"kind":"implementation","base_commit":"x","files":["a.txt"],"ready_for_test":true}]}`})
	if err := l.store.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := l.tryOpen(named("apply.write")); err != nil {
		t.Fatal(err)
	}
	if err := l.apply(); !errors.Is(err, faultdisk.ErrCrashed) {
		t.Fatal(err)
	}
	l.reopen()
	l.writeIn(l.worktree(), "a.txt", "other\n")
	before := l.state()
	if err := l.applier.Recover(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if got := l.result(); got.Status != "rejected" || !strings.Contains(got.Details.Error, "a.txt") || l.state() != before {
		t.Errorf("result %s %+v", got.Status, got.Details)
	}
	if o := l.store.View().Operation(runstore.OperationID(resultID)); o.Open() {
		t.Error("the operation is still open")
	}
}
