package results_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"greatminds/internal/refusal"
	"greatminds/runstore"
)

// E-215
func TestConflictHandsTheTaskBack(t *testing.T) {
	l := newLab(t)
	l.review()
	l.write("a.txt", "theirs\n")
	head := l.commit(l.root, "later")
	branch := l.git(l.root, "rev-parse", "task/0001-sample")
	if err := l.apply(); err != nil {
		t.Fatal(err)
	}
	d := l.result().Details
	if l.result().Status != "applied" || path.Dir(d.Destination) != "feature_dev" || string(d.Extra["merge_conflict"]) != `["a.txt"]` {
		t.Errorf("result %s %+v", l.result().Status, d)
	}
	if l.queues() != "feature_dev" || l.git(l.root, "rev-parse", "main") != head || l.git(l.root, "rev-parse", "task/0001-sample") != branch {
		t.Errorf("task in %s, main %s", l.queues(), l.git(l.root, "rev-parse", "main"))
	}
	if got := l.git(l.root, "status", "--porcelain") + l.read("a.txt") + l.read(".worktrees/0001-sample/a.txt"); got != "theirs\nours\n" {
		t.Errorf("files: %q", got)
	}
	task, err := l.tree.ReadCurrent(taskID)
	if err != nil {
		t.Fatal(err)
	}
	if b := task.Latest("review"); b.Text("outcome") != "changes_requested" || !strings.Contains(b.Text("notes"), "a.txt") {
		t.Errorf("review block %+v", b)
	}
	if lines := l.lines(); len(lines) != 1 || lines[0].To != "feature_dev" {
		t.Errorf("journal %+v", lines)
	}
}

// What stands in a merge's way holds the receipt with nothing moved, and clears by itself; where
// it is a user's checkout the receipt needs a person. The operator may also give the decision up.
func TestObstacleHoldsTheResult(t *testing.T) {
	cases := []struct {
		name         string
		spoil, clear func(l *lab)
		code         refusal.Code
		word         string
		status       string
	}{
		{"overlap", func(l *lab) { l.write("a.txt", "mine\n"); l.write("new.txt", "mine\n") },
			func(l *lab) {
				l.git(l.root, "checkout", "-q", "a.txt")
				l.gone("new.txt")
			}, refusal.CodeCheckoutOverlap, "a.txt, new.txt", "needs_recovery"},
		{"untracked", func(l *lab) { l.write("new.txt", "mine\n") }, func(l *lab) { l.gone("new.txt") }, refusal.CodeCheckoutOverlap, "new.txt", "needs_recovery"},
		{"merge under way", func(l *lab) { l.write(".git/MERGE_HEAD", strings.Repeat("0", 40)+"\n") },
			func(l *lab) { l.gone(".git/MERGE_HEAD") }, refusal.CodeMergeBusy, "a merge", "needs_recovery"},
		{"index lock", func(l *lab) { l.write(".git/index.lock", "") }, func(l *lab) { l.gone(".git/index.lock") }, refusal.CodeGitIndexLocked, "index.lock", "needs_recovery"},
		{"hook", func(l *lab) {
			l.write(".git/hooks/pre-merge-commit", "#!/bin/sh\necho frozen >&2\nexit 1\n")
			if err := os.Chmod(filepath.Join(l.root, ".git/hooks/pre-merge-commit"), 0o755); err != nil {
				l.t.Fatal(err)
			}
		}, func(l *lab) { l.gone(".git/hooks/pre-merge-commit") }, refusal.CodeHookFailed, "frozen", "received"},
		{"worktree gone", func(l *lab) { l.moveWorktree(l.worktree(), l.root+".away") },
			func(l *lab) { l.moveWorktree(l.root+".away", l.worktree()) }, refusal.CodeMergeBranchMissing, "adds nothing", "received"},
		{"no default branch", func(l *lab) { l.git(l.root, "branch", "-m", "main", "trunk") },
			func(l *lab) { l.git(l.root, "branch", "-m", "trunk", "main") }, refusal.CodeDefaultBranchMissing, "main", "received"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.review()
			c.spoil(l)
			before := l.state()
			for range 2 {
				again, err := l.applier.Apply(l.ctx(), resultID)
				wantCode(t, err, c.code, c.word)
				if !again.After(l.now) {
					t.Errorf("again at %v, want later than %v", again, l.now)
				}
			}
			h := l.result().Hold()
			if l.result().Status != c.status || h == nil || h.Code != string(c.code) || !strings.Contains(h.What, c.word) || h.Remedy == "" {
				t.Fatalf("result %s, hold %+v", l.result().Status, h)
			}
			if after := l.state(); after != before {
				t.Errorf("something changed:\n%s\nbefore:\n%s", after, before)
			}
			if v := l.result().Validation; v.Attempts != 1 {
				t.Errorf("%d measured validations, want 1", v.Attempts)
			}
			c.clear(l)
			if err := l.apply(); err != nil {
				t.Fatal(err)
			}
			l.wantVerified()
			if h := l.result().Hold(); h != nil {
				t.Errorf("still held: %+v", h)
			}
		})
	}
	t.Run("repaired", func(t *testing.T) {
		l := newLab(t)
		l.review()
		l.write("a.txt", "mine\n")
		wantCode(t, l.apply(), refusal.CodeCheckoutOverlap)
		_, err := l.applier.Repair(l.ctx(), string(resultID))
		wantCode(t, err, refusal.CodeCheckoutOverlap, "a.txt")
		if got := l.result(); got.Status != "needs_recovery" || got.Hold() == nil {
			t.Errorf("result %s, hold %+v", got.Status, got.Hold())
		}
		l.git(l.root, "checkout", "-q", "a.txt")
		if _, err := l.applier.Repair(l.ctx(), string(resultID)); err != nil {
			t.Fatal(err)
		}
		l.wantVerified()
	})
	t.Run("given up", func(t *testing.T) {
		l := newLab(t)
		l.review()
		l.write("a.txt", "mine\n")
		wantCode(t, l.apply(), refusal.CodeCheckoutOverlap)
		before := l.state()
		if _, err := l.applier.Abandon(l.ctx(), string(resultID), "not now"); err != nil {
			t.Fatal(err)
		}
		if got := l.result(); got.Status != "abandoned" || !strings.Contains(got.Details.Error, "not now") || got.Hold() != nil {
			t.Errorf("result %s %+v", got.Status, got.Details)
		}
		if l.state() != before {
			t.Error("giving up changed something")
		}
	})
}

func (l *lab) gone(name string) {
	l.t.Helper()
	if err := os.Remove(filepath.Join(l.root, name)); err != nil {
		l.t.Fatal(err)
	}
}

// The work goes to the branch, the leftovers stay for the person who made them.
func TestWorktreeThatChangedAfterTheMergeIsKept(t *testing.T) {
	l := newLab(t)
	l.review()
	l.write(".git/hooks/commit-msg", "#!/bin/sh\necho late > late.txt\n")
	if err := os.Chmod(filepath.Join(l.root, ".git/hooks/commit-msg"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := l.apply(); err != nil {
		t.Fatal(err)
	}
	d := l.result().Details
	if l.result().Status != "applied" || path.Dir(d.Destination) != "verified" || !strings.Contains(string(d.Extra["worktree_kept"]), "late.txt") {
		t.Errorf("result %s %+v", l.result().Status, d)
	}
	if l.read(".worktrees/0001-sample/late.txt") != "late\n" || l.merges() != "1" {
		t.Error("the late file is gone, or nothing was merged")
	}
}

// Two tasks approved at once: two merges, one on top of the other.
func TestTwoMergesDoNotTakeTheBranchFromEachOther(t *testing.T) {
	l := newLab(t)
	l.review()
	second := l.second()
	var wait sync.WaitGroup
	errs := make([]error, 2)
	for i, id := range []runstore.ResultID{resultID, second} {
		wait.Add(1)
		go func() {
			defer wait.Done()
			_, errs[i] = l.applier.Apply(l.ctx(), id)
		}()
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if got := l.merges(); got != "2" {
		t.Errorf("%s merges, want 2", got)
	}
	if got := l.read("a.txt") + l.read("b.txt"); got != "ours\nsecond\n" {
		t.Errorf("the checkout holds %q", got)
	}
	if got := l.git(l.root, "status", "--porcelain"); got != "" {
		t.Errorf("status: %s", got)
	}
}

// What comes into the way after the intent was recorded, with nothing moved yet, holds too.
func TestObstacleAfterTheIntentHoldsTheApplication(t *testing.T) {
	l := stopped(t, "apply.merge")
	l.write("a.txt", "mine\n")
	if err := l.applier.Recover(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if got := l.result(); got.Status != "needs_recovery" || got.Hold() == nil || got.Hold().Code != string(refusal.CodeCheckoutOverlap) {
		t.Fatalf("result %s, hold %+v", got.Status, got.Hold())
	}
	if l.read("a.txt") != "mine\n" || l.merges() != "0" || l.queues() != "feature_review" {
		t.Error("something moved")
	}
	l.git(l.root, "checkout", "-q", "a.txt")
	if _, err := l.applier.Repair(l.ctx(), string(resultID)); err != nil {
		t.Fatal(err)
	}
	l.wantVerified()
}

// A hold that lasts writes nothing at each look, and once its cause is gone the application goes
// on from its record, without a person and whoever looks: this process or the next.
func TestAHeldApplicationGoesOnFromItsRecord(t *testing.T) {
	l := stopped(t, "apply.merge")
	l.write("a.txt", "mine\n")
	if err := l.applier.Recover(l.ctx()); err != nil {
		t.Fatal(err)
	}
	before := l.store.View().Sequence()
	for range 3 {
		wantCode(t, l.apply(), refusal.CodeCheckoutOverlap, "a.txt")
	}
	if _, err := l.applier.Repair(l.ctx(), string(resultID)); err == nil {
		t.Error("a repair with the file still in the way succeeded")
	}
	if got := l.store.View().Sequence(); got != before {
		t.Errorf("the hold wrote %d events", got-before)
	}
	l.reopen()
	if err := l.applier.Recover(l.ctx()); err != nil {
		t.Fatal(err)
	}
	l.git(l.root, "checkout", "-q", "a.txt")
	if err := l.apply(); err != nil {
		t.Fatal(err)
	}
	l.wantVerified()
}

// What was only held and is uncertain by now is left to a person, who is told so.
func TestAHeldApplicationThatSomebodyBeganIsUncertain(t *testing.T) {
	l := stopped(t, "apply.merge")
	l.write("a.txt", "mine\n")
	if err := l.applier.Recover(l.ctx()); err != nil {
		t.Fatal(err)
	}
	l.git(l.root, "checkout", "-q", "a.txt")
	l.write(l.taskFile("feature_review"), "somebody else's\n")
	wantCode(t, l.apply(), refusal.CodeResultRecovery)
	got := l.result()
	if got.Status != "needs_recovery" || got.Hold() != nil || got.Details == nil || len(got.Details.Extra["repair"]) == 0 {
		t.Errorf("result %s, hold %+v, details %+v", got.Status, got.Hold(), got.Details)
	}
	if l.merges() != "0" {
		t.Error("it was merged")
	}
}

// A branch that went on between the intent and the merge is merged into as it is by then.
func TestBranchThatWentOnAfterTheIntentIsMergedInto(t *testing.T) {
	l := stopped(t, "git.read-tree")
	l.write("k.txt", "later\n")
	later := l.commit(l.root, "later")
	if err := l.applier.Recover(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if l.result().Status != "applied" || l.merges() != "1" || l.git(l.root, "rev-parse", "main^1") != later {
		t.Fatalf("result %s, %s merges: %s", l.result().Status, l.merges(), l.git(l.root, "log", "--oneline", "--graph", "main"))
	}
	if got := l.read("a.txt") + l.read("k.txt") + l.git(l.root, "status", "--porcelain"); got != "ours\nlater\n" {
		t.Errorf("the checkout holds %q", got)
	}
	if lines := l.lines(); len(lines) != 1 {
		t.Errorf("journal %+v", lines)
	}
}

// A conflict that came up while the daemon was down hands the task back, although the merge was
// on record already.
func TestConflictAfterTheIntentHandsTheTaskBack(t *testing.T) {
	l := stopped(t, "git.read-tree")
	l.write("a.txt", "theirs\n")
	l.commit(l.root, "later")
	if err := l.applier.Recover(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if d := l.result().Details; l.result().Status != "applied" || path.Dir(d.Destination) != "feature_dev" || l.queues() != "feature_dev" || l.merges() != "0" {
		t.Errorf("result %s %+v", l.result().Status, d)
	}
	if l.read("a.txt") != "theirs\n" || len(l.lines()) != 1 {
		t.Error("the checkout was touched, or the journal has another number of lines")
	}
}

// moveWorktree moves the task's worktree, whose work is not committed, out of git's sight and back.
func (l *lab) moveWorktree(from, to string) {
	l.t.Helper()
	if err := os.Rename(from, to); err != nil {
		l.t.Fatal(err)
	}
}
