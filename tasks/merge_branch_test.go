package tasks_test

import (
	"errors"
	"testing"

	"greatminds/internal/refusal"
	"greatminds/tasks"
)

func TestBranchThatMovedIsNotMerged(t *testing.T) {
	later := func(l *lab, m tasks.MergePlan) string {
		id := l.run(l.root, "commit-tree", "-p", m.Old, "-m", "later", m.Old+"^{tree}")
		l.run(l.root, "update-ref", "refs/heads/main", id)
		return id
	}
	t.Run("before anything", func(t *testing.T) {
		l := newLab(t, "main")
		l.workTree()
		m := l.mustCompute()
		id := later(l, m)
		if _, err := m.CheckCheckouts(l.ctx()); !errors.Is(err, tasks.ErrBranchMoved) {
			t.Errorf("got %v, want ErrBranchMoved", err)
		}
		if err := m.Perform(l.ctx(), false); !errors.Is(err, tasks.ErrBranchMoved) || l.head("main") != id || l.read(l.root, "a.txt") != "one\n" {
			t.Errorf("got %v", err)
		}
	})
	for _, state := range []string{"followed", "half", "half with a file gone"} {
		t.Run("checkout "+state, func(t *testing.T) {
			l := newLab(t, "main")
			l.workTree()
			l.write("keep.txt", "mine\n")
			m := l.mustCompute()
			switch state {
			case "followed":
				l.run(l.root, "read-tree", "-m", "-u", m.Old, m.Commit)
			case "half":
				l.cutShort("dir/b.txt", "new/n.txt", "a.txt")
			default:
				l.cutShort("dir/b.txt", "-a.txt")
			}
			id := later(l, m)
			if err := m.Perform(l.ctx(), true); !errors.Is(err, tasks.ErrBranchMoved) {
				t.Fatalf("got %v, want ErrBranchMoved", err)
			}
			if got := l.head("main"); got != id {
				t.Errorf("main moved from %s to %s", id, got)
			}
			if got := l.run(l.root, "status", "--porcelain"); got != " M keep.txt" {
				t.Errorf("not taken back: %s", got)
			}
			if got := l.read(l.root, "a.txt") + l.read(l.root, "dir/b.txt") + l.read(l.root, "keep.txt"); got != "one\ntwo\nmine\n" {
				t.Errorf("contents %q", got)
			}
			m, err := l.merge()
			if err != nil || m.Old != id {
				t.Fatalf("the merge on top of %s: got one on %s, %v", id, m.Old, err)
			}
			l.wantMerged(m, l.root)
		})
	}
	t.Run("somebody committed the followed checkout", func(t *testing.T) {
		l := newLab(t, "main")
		l.workTree()
		m := l.mustCompute()
		l.run(l.root, "read-tree", "-m", "-u", m.Old, m.Commit)
		l.run(l.root, "commit", "-q", "-m", "swallowed")
		wantCode(t, m.Perform(l.ctx(), true), refusal.CodeCheckoutUncertain, "main")
		if got := l.read(l.root, "a.txt"); got != "ours\n" {
			t.Errorf("a.txt %q, want it left", got)
		}
	})
}

func TestBranchThatCannotBeWrittenIsTakenBack(t *testing.T) {
	l := newLab(t, "main")
	l.workTree()
	before := l.picture(l.root)
	m := l.mustCompute()
	l.write(".git/refs/heads/main.lock", "")
	wantCode(t, m.Perform(l.ctx(), false), refusal.CodeGitLocked, "main.lock")
	if begun, err := m.Begun(l.ctx()); err != nil || begun {
		t.Errorf("begun: %v %v, want false", begun, err)
	}
	l.gone(".git/refs/heads/main.lock")
	l.run(l.root, "update-ref", m.TaskBranch, m.TaskOld)
	if after := l.picture(l.root); after != before {
		t.Errorf("something changed:\n%s\nbefore:\n%s", after, before)
	}
}
