package results_test

import (
	"context"
	"errors"
	"testing"

	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// approved is a task with work in its worktree, in feature_review, without any run.
func (l *lab) approved() *tasks.Task {
	l.t.Helper()
	l.review()
	task, err := l.tree.ReadCurrent(taskID)
	if err != nil {
		l.t.Fatal(err)
	}
	return task
}

func (l *lab) openOperations() []*runstore.Operation { return l.store.View().OpenOperations() }

func TestOperatorsMergeIsOnRecord(t *testing.T) {
	l := newLab(t)
	task := l.approved()
	if err := l.applier.Worktree(l.ctx(), task, tasks.WorktreeMerge); err != nil {
		t.Fatal(err)
	}
	if l.merges() != "1" || l.read("a.txt") != "ours\n" || len(l.openOperations()) != 0 {
		t.Errorf("%s merges, %d open operations", l.merges(), len(l.openOperations()))
	}
	if err := l.applier.Worktree(l.ctx(), task, tasks.WorktreeMerge); err != nil || l.merges() != "1" {
		t.Errorf("again: %v, %s merges", err, l.merges())
	}
	if err := l.applier.Worktree(l.ctx(), task, tasks.WorktreeRemove); err != nil {
		t.Fatal(err)
	}
	if got := l.git(l.root, "for-each-ref", "--format=%(refname)"); got != "refs/heads/main" {
		t.Errorf("refs: %s", got)
	}
}

func TestOperatorsMergeIsRefusedWithNothingMoved(t *testing.T) {
	l := newLab(t)
	task := l.approved()
	before := l.state()
	l.write("a.txt", "mine\n")
	wantCode(t, l.applier.Worktree(l.ctx(), task, tasks.WorktreeMerge), refusal.CodeCheckoutOverlap, "a.txt")
	l.git(l.root, "checkout", "-q", "a.txt")
	if l.state() != before || len(l.openOperations()) != 0 {
		t.Error("something changed")
	}
	l.write("a.txt", "theirs\n")
	l.commit(l.root, "later")
	wantCode(t, l.applier.Worktree(l.ctx(), task, tasks.WorktreeMerge), refusal.CodeMergeConflict, "a.txt")
}

func TestOperatorsMergeStoppedAnywhereIsFinishedAtTheNextStart(t *testing.T) {
	for step, merges := range map[string]string{"apply.merge": "1", "git.keep-overlay": "1", "git.read-tree": "1", "git.update-ref": "1"} {
		t.Run("before "+step, func(t *testing.T) {
			l := newLab(t)
			task := l.approved()
			if err := l.store.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			if err := l.tryOpen(named(step)); err != nil {
				t.Fatal(err)
			}
			if err := l.applier.Worktree(l.ctx(), task, tasks.WorktreeMerge); !errors.Is(err, faultdisk.ErrCrashed) {
				t.Fatal(err)
			}
			l.reopen()
			if n := len(l.openOperations()); n != 1 {
				t.Fatalf("%d open operations, want 1", n)
			}
			if err := l.applier.Recover(l.ctx()); err != nil {
				t.Fatal(err)
			}
			if l.merges() != merges || len(l.openOperations()) != 0 || l.git(l.root, "status", "--porcelain") != "" {
				t.Errorf("%s merges, %d open operations", l.merges(), len(l.openOperations()))
			}
		})
	}
}

// E-218
func TestOperatorsUncertainMergeHasBothWaysOut(t *testing.T) {
	start := func(t *testing.T) (*lab, string) {
		l := newLab(t)
		task := l.approved()
		if err := l.store.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := l.tryOpen(named("git.read-tree")); err != nil {
			t.Fatal(err)
		}
		if err := l.applier.Worktree(l.ctx(), task, tasks.WorktreeMerge); !errors.Is(err, faultdisk.ErrCrashed) {
			t.Fatal(err)
		}
		l.reopen()
		l.write("new.txt", "new\n")
		l.write("a.txt", "mine\n")
		if err := l.applier.Recover(l.ctx()); err != nil {
			t.Fatal(err)
		}
		open := l.openOperations()
		if len(open) != 1 || open[0].Status != "needs_recovery" {
			t.Fatalf("operations %+v", open)
		}
		return l, string(open[0].ID)
	}
	t.Run("repair", func(t *testing.T) {
		l, id := start(t)
		_, err := l.applier.Repair(l.ctx(), id)
		wantCode(t, err, refusal.CodeCheckoutUncertain, "a.txt")
		_, err = l.applier.Abandon(l.ctx(), id, "no")
		wantCode(t, err, refusal.CodeOperationBegun)
		l.write("a.txt", "one\n")
		if _, err := l.applier.Repair(l.ctx(), id); err != nil || l.merges() != "1" {
			t.Errorf("%v, %s merges", err, l.merges())
		}
	})
	t.Run("abandon", func(t *testing.T) {
		l, id := start(t)
		l.gone("new.txt")
		l.write("a.txt", "one\n")
		if _, err := l.applier.Abandon(l.ctx(), id, "not wanted"); err != nil {
			t.Fatal(err)
		}
		if len(l.openOperations()) != 0 || l.merges() != "0" {
			t.Error("not given up")
		}
		_, err := l.applier.Repair(l.ctx(), id)
		wantCode(t, err, refusal.CodeResultSettled)
	})
}

func TestGatherSeesTheTasksWorktree(t *testing.T) {
	l := newLab(t)
	task := l.approved()
	f := tasks.Facts{}
	if err := l.applier.Gather(l.ctx(), task, tasks.FactNeeds{Files: []string{"a.txt", "k.txt", "none"}, Fingerprint: true}, &f); err != nil {
		t.Fatal(err)
	}
	if !f.InWorktree || f.Workspace != l.worktree() || !f.Files["a.txt"].Changed || f.Files["k.txt"].Changed || f.Files["none"].Changed || len(f.Fingerprint) != 32 {
		t.Errorf("facts %+v", f)
	}
}
