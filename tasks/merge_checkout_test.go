package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"greatminds/internal/refusal"
	"greatminds/tasks"
)

func TestMergeLeavesTheUsersCheckoutAlone(t *testing.T) {
	cases := []struct {
		name    string
		arrange func(l *lab)
		check   func(l *lab, m tasks.MergePlan)
	}{
		{"on another branch, dirty", func(l *lab) {
			l.run(l.root, "switch", "-q", "-c", "wip")
			l.write("a.txt", "mine\n")
			l.write("new/n.txt", "mine too\n")
		}, func(l *lab, m tasks.MergePlan) {
			if got := l.read(l.root, "a.txt") + l.read(l.root, "new/n.txt"); got != "mine\nmine too\n" {
				l.t.Errorf("the user's files: %q", got)
			}
			if got := l.run(l.root, "symbolic-ref", "--short", "HEAD"); got != "wip" {
				l.t.Errorf("switched to %s", got)
			}
			l.wantMerged(m, "")
		}},
		{"detached at the branch's commit", func(l *lab) { l.run(l.root, "switch", "-q", "--detach", "main") },
			func(l *lab, m tasks.MergePlan) {
				if got := l.run(l.root, "rev-parse", "HEAD"); got != m.Old || l.read(l.root, "a.txt") != "one\n" {
					l.t.Errorf("HEAD moved to %s", got)
				}
				l.wantMerged(m, "")
			}},
		{"dirty in other files", func(l *lab) {
			l.write("keep.txt", "mine\n")
			l.write("untracked.txt", "mine\n")
			l.write("ignored.txt", "mine\n")
			l.write("staged.txt", "staged\n")
			l.run(l.root, "add", "staged.txt")
		}, func(l *lab, m tasks.MergePlan) {
			if got := l.run(l.root, "status", "--porcelain"); got != " M keep.txt\nA  staged.txt\n?? untracked.txt" {
				l.t.Errorf("status: %s", got)
			}
			if got := l.read(l.root, "keep.txt") + l.read(l.root, "untracked.txt") + l.read(l.root, "ignored.txt"); got != "mine\nmine\nmine\n" {
				l.t.Errorf("the user's files: %q", got)
			}
			l.wantMerged(m, l.root)
		}},
		{"touched file", func(l *lab) {
			later := time.Now().Add(-time.Hour)
			if err := os.Chtimes(filepath.Join(l.root, "a.txt"), later, later); err != nil {
				l.t.Fatal(err)
			}
		}, func(l *lab, m tasks.MergePlan) { l.wantMerged(m, l.root) }},
		{"in a second worktree", func(l *lab) {
			l.run(l.root, "switch", "-q", "-c", "wip")
			l.run(l.root, "worktree", "add", "-q", filepath.Join(filepath.Dir(l.root), "second"), "main")
		}, func(l *lab, m tasks.MergePlan) {
			second := filepath.Join(filepath.Dir(l.root), "second")
			l.wantMerged(m, second)
			if got := l.run(second, "status", "--porcelain"); got != "" {
				l.t.Errorf("second worktree: %s", got)
			}
			if got := l.read(l.root, "a.txt"); got != "one\n" {
				l.t.Errorf("the other branch's checkout holds %q", got)
			}
		}},
		{"twice checked out", func(l *lab) {
			l.run(l.root, "worktree", "add", "-q", "--force", filepath.Join(filepath.Dir(l.root), "second"), "main")
		}, func(l *lab, m tasks.MergePlan) {
			l.wantMerged(m, l.root)
			l.wantMerged(m, filepath.Join(filepath.Dir(l.root), "second"))
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, "main")
			l.workTree()
			c.arrange(l)
			m, err := l.merge()
			if err != nil {
				t.Fatal(err)
			}
			c.check(l, m)
		})
	}
}

// Whatever stands in the merge's way is named, nothing moves, and once it is out of the way the
// same merge goes through.
func TestOverlapHoldsAndClears(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(l *lab)
		clear func(l *lab)
		files []string
		// ours says that what is in the way could be our own half: a resumed merge finishes it.
		ours bool
	}{
		{"changed", func(l *lab) { l.write("a.txt", "mine\n") }, func(l *lab) { l.run(l.root, "stash", "-q") }, []string{"a.txt"}, false},
		{"staged", func(l *lab) { l.write("a.txt", "mine\n"); l.run(l.root, "add", "a.txt") },
			func(l *lab) { l.run(l.root, "reset", "-q", "--hard") }, []string{"a.txt"}, false},
		{"staged as the merge has it", func(l *lab) { l.write("a.txt", "ours\n"); l.run(l.root, "add", "a.txt") },
			func(l *lab) { l.run(l.root, "reset", "-q", "--hard") }, []string{"a.txt"}, true},
		{"deleted", func(l *lab) { l.gone("a.txt") }, func(l *lab) { l.run(l.root, "checkout", "-q", "a.txt") }, []string{"a.txt"}, true},
		{"mode", func(l *lab) { l.chmod("a.txt", 0o755) }, func(l *lab) { l.chmod("a.txt", 0o644) }, []string{"a.txt"}, false},
		{"untracked", func(l *lab) { l.write("new/n.txt", "mine\n") }, func(l *lab) { l.gone("new/n.txt") }, []string{"new/n.txt"}, false},
		{"untracked with the merge's contents", func(l *lab) { l.write("new/n.txt", "new\n") }, func(l *lab) { l.gone("new/n.txt") }, []string{"new/n.txt"}, true},
		{"ignored", func(l *lab) {
			l.commit(filepath.Join(l.root, ".worktrees/0001-sample"), "work")
			l.write(".git/info/exclude", "new/\n")
			l.write("new/n.txt", "mine\n")
		}, func(l *lab) { l.gone("new/n.txt") }, []string{"new/n.txt"}, false},
		{"file where a folder comes", func(l *lab) { l.write("new", "mine\n") }, func(l *lab) { l.gone("new") }, []string{"new"}, false},
		{"folder where a file comes", func(l *lab) { l.write("new/n.txt/deep", "mine\n") }, func(l *lab) { l.gone("new/n.txt") }, []string{"new/n.txt/deep"}, false},
		{"link where a folder comes", func(l *lab) {
			if err := os.Symlink(l.home, filepath.Join(l.root, "new")); err != nil {
				l.t.Fatal(err)
			}
		}, func(l *lab) { l.gone("new") }, []string{"new"}, false},
		{"hidden from the index", func(l *lab) { l.run(l.root, "update-index", "--assume-unchanged", "a.txt"); l.write("a.txt", "mine\n") },
			func(l *lab) {
				l.run(l.root, "update-index", "--no-assume-unchanged", "a.txt")
				l.run(l.root, "checkout", "-q", "a.txt")
			}, []string{"a.txt"}, false},
		{"several", func(l *lab) {
			l.write("a.txt", "mine\n")
			l.write("new/n.txt", "mine\n")
			l.write("dir/b.txt", "mine\n")
		}, func(l *lab) { l.run(l.root, "stash", "-q", "-u") }, []string{"a.txt", "dir/b.txt", "new/n.txt"}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, "main")
			l.workTree()
			c.spoil(l)
			before := l.picture(l.root)
			m := l.mustCompute()
			overlaps, err := m.CheckCheckouts(l.ctx())
			if err != nil {
				t.Fatal(err)
			}
			if len(overlaps) != 1 || strings.Join(overlaps[0].Files, " ") != strings.Join(c.files, " ") {
				t.Fatalf("got %+v, want %v", overlaps, c.files)
			}
			wantCode(t, tasks.OverlapRefusal(m.Branch, overlaps), refusal.CodeCheckoutOverlap, append(c.files, l.root)...)
			// Even one that is asked to go on regardless, as when the file came a moment later.
			wantCode(t, m.Perform(l.ctx(), false), refusal.CodeCheckoutOverlap, c.files...)
			if !c.ours {
				wantCode(t, m.Perform(l.ctx(), true), refusal.CodeCheckoutOverlap, c.files...)
			}
			l.run(l.root, "update-ref", m.TaskBranch, m.TaskOld)
			if after := l.picture(l.root); after != before {
				t.Errorf("something changed:\n%s\nbefore:\n%s", after, before)
			}
			c.clear(l)
			if _, err := l.merge(); err != nil {
				t.Fatalf("after clearing: %v", err)
			}
			l.wantMerged(m, l.root)
		})
	}
}

func (l *lab) gone(name string) {
	l.t.Helper()
	if err := os.RemoveAll(filepath.Join(l.root, filepath.FromSlash(name))); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) chmod(name string, mode os.FileMode) {
	l.t.Helper()
	if err := os.Chmod(filepath.Join(l.root, name), mode); err != nil {
		l.t.Fatal(err)
	}
}

func TestCheckoutThatCannotFollowIsNamed(t *testing.T) {
	mark := func(name, text string) func(l *lab) {
		return func(l *lab) { l.write(".git/"+name, text) }
	}
	cases := []struct {
		name  string
		spoil func(l *lab)
		code  refusal.Code
		words []string
	}{
		{"index lock", mark("index.lock", ""), refusal.CodeGitIndexLocked, []string{".git/index.lock"}},
		{"merge", mark("MERGE_HEAD", strings.Repeat("0", 40)+"\n"), refusal.CodeMergeBusy, []string{"a merge"}},
		{"cherry-pick", mark("CHERRY_PICK_HEAD", "x"), refusal.CodeMergeBusy, []string{"a cherry-pick"}},
		{"revert", mark("REVERT_HEAD", "x"), refusal.CodeMergeBusy, []string{"a revert"}},
		{"bisect", func(l *lab) { l.run(l.root, "bisect", "start") }, refusal.CodeMergeBusy, []string{"a bisect"}},
		{"rebase of the branch elsewhere", func(l *lab) {
			l.run(l.root, "switch", "-q", "--detach")
			l.write(".git/rebase-merge/head-name", "refs/heads/main\n")
		}, refusal.CodeMergeBusy, []string{"a rebase", "main"}},
		{"checkout on a missing disk", func(l *lab) {
			second := filepath.Join(filepath.Dir(l.root), "second")
			l.run(l.root, "switch", "-q", "-c", "wip")
			l.run(l.root, "worktree", "add", "-q", "--lock", second, "main")
			if err := os.RemoveAll(second); err != nil {
				l.t.Fatal(err)
			}
		}, refusal.CodeMergeBusy, []string{"second"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, "main")
			l.workTree()
			c.spoil(l)
			m := l.mustCompute()
			before := l.run(l.root, "for-each-ref") + l.read(l.root, "a.txt")
			_, err := m.CheckCheckouts(l.ctx())
			wantCode(t, err, c.code, c.words...)
			wantCode(t, m.Perform(l.ctx(), false), c.code, c.words...)
			l.run(l.root, "update-ref", m.TaskBranch, m.TaskOld)
			if after := l.run(l.root, "for-each-ref") + l.read(l.root, "a.txt"); after != before {
				t.Errorf("something changed:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
	t.Run("lock stays", func(t *testing.T) {
		l := newLab(t, "main")
		l.workTree()
		l.write(".git/index.lock", "")
		m := l.mustCompute()
		if _, err := m.CheckCheckouts(l.ctx()); err == nil {
			t.Fatal("no refusal")
		}
		if err := os.Remove(filepath.Join(l.root, ".git/index.lock")); err != nil {
			t.Fatalf("the lock was removed: %v", err)
		}
		if _, err := l.merge(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPathsThatChangeKind(t *testing.T) {
	l := newLab(t, "main")
	path := l.worktree()
	if err := os.RemoveAll(filepath.Join(path, "dir")); err != nil {
		t.Fatal(err)
	}
	l.writeIn(path, "dir", "a file now\n")
	if err := os.Remove(filepath.Join(path, "keep.txt")); err != nil {
		t.Fatal(err)
	}
	l.writeIn(path, "keep.txt/deep/f", "a folder now\n")
	if err := os.Remove(filepath.Join(path, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("dir", filepath.Join(path, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.merge(); err != nil {
		t.Fatal(err)
	}
	link, err := os.Readlink(filepath.Join(l.root, "a.txt"))
	if got := l.read(l.root, "dir") + l.read(l.root, "keep.txt/deep/f") + link; got != "a file now\na folder now\ndir" {
		t.Errorf("got %q %v", got, err)
	}
	if got := l.run(l.root, "status", "--porcelain"); got != "" {
		t.Errorf("status: %s", got)
	}
}

// cutShort puts a checkout into the state of a killed read-tree: index old, files in between.
// Of the paths a.txt (changed), dir/b.txt (deleted), new/n.txt (added) those named have moved.
func (l *lab) cutShort(moved ...string) {
	l.t.Helper()
	for _, name := range moved {
		switch name {
		case "a.txt":
			l.write("a.txt", "ours\n")
		case "-a.txt":
			l.gone("a.txt")
		case "dir/b.txt":
			l.gone("dir")
		case "new/n.txt":
			l.write("new/n.txt", "new\n")
		}
	}
}

func TestCheckoutCutShortIsFinished(t *testing.T) {
	for _, moved := range [][]string{
		nil, {"dir/b.txt"}, {"dir/b.txt", "-a.txt"}, {"dir/b.txt", "a.txt"}, {"new/n.txt"}, {"a.txt", "dir/b.txt", "new/n.txt"},
	} {
		t.Run(strings.Join(moved, " "), func(t *testing.T) {
			l := newLab(t, "main")
			l.workTree()
			l.write("keep.txt", "mine\n")
			m := l.mustCompute()
			l.cutShort(moved...)
			if err := m.Perform(l.ctx(), true); err != nil {
				t.Fatal(err)
			}
			l.wantMerged(m, l.root)
			if got := l.run(l.root, "status", "--porcelain"); got != " M keep.txt" || l.read(l.root, "keep.txt") != "mine\n" {
				t.Errorf("status %q", got)
			}
		})
	}
	t.Run("with a lock left", func(t *testing.T) {
		l := newLab(t, "main")
		l.workTree()
		m := l.mustCompute()
		l.cutShort("a.txt")
		l.write(".git/index.lock", "")
		wantCode(t, m.Perform(l.ctx(), true), refusal.CodeGitIndexLocked, "index.lock")
		l.gone(".git/index.lock")
		if err := m.Perform(l.ctx(), true); err != nil {
			t.Fatal(err)
		}
		l.wantMerged(m, l.root)
	})
	t.Run("after the index was written", func(t *testing.T) {
		l := newLab(t, "main")
		l.workTree()
		m := l.mustCompute()
		l.run(l.root, "read-tree", "-m", "-u", m.Old, m.Commit)
		l.write("a.txt", "edited since\n")
		if err := m.Perform(l.ctx(), true); err != nil {
			t.Fatal(err)
		}
		if got := l.head("main"); got != m.Commit || l.read(l.root, "a.txt") != "edited since\n" {
			t.Errorf("main at %s, a.txt %q", got, l.read(l.root, "a.txt"))
		}
	})
}

func TestCheckoutCutShortWithForeignContentsIsLeftToAPerson(t *testing.T) {
	l := newLab(t, "main")
	l.workTree()
	m := l.mustCompute()
	l.cutShort("dir/b.txt", "new/n.txt")
	l.write("a.txt", "mine\n")
	wantCode(t, m.Perform(l.ctx(), true), refusal.CodeCheckoutUncertain, "a.txt", l.root)
	if got := l.read(l.root, "a.txt") + l.read(l.root, "new/n.txt"); got != "mine\nnew\n" {
		t.Errorf("contents %q, want both kept", got)
	}
	if got := l.head("main"); got != m.Old {
		t.Errorf("main moved to %s", got)
	}
	if begun, err := m.Begun(l.ctx()); err != nil || !begun {
		t.Errorf("begun: %v %v, want true", begun, err)
	}
	l.write("a.txt", "one\n")
	if err := m.Perform(l.ctx(), true); err != nil {
		t.Fatal(err)
	}
	l.wantMerged(m, l.root)
}

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
			if err == nil || m.Old != id {
				t.Logf("merge on top: %v", err)
			}
			if err != nil {
				t.Fatal(err)
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

// Git is stopped while a slow filter of the user's runs in the middle of its checkout: it leaves
// no lock and no process, and the same merge is finished later.
func TestCheckoutStoppedInASlowFilterIsFinished(t *testing.T) {
	l := newLab(t, "main")
	l.git.Run = nil // the keeper is what ends git and the filter
	ready, never := filepath.Join(l.home, "ready"), filepath.Join(l.home, "never")
	for _, fifo := range []string{ready, never} {
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.run(l.root, "config", "filter.slow.clean", "cat")
	l.run(l.root, "config", "filter.slow.smudge", "cat")
	l.write(".gitattributes", "*.slow filter=slow\n")
	l.commit(l.root, "filter")
	path := l.workTree()
	l.writeIn(path, "z.slow", "slow\n")
	m := l.mustCompute()
	l.run(l.root, "config", "filter.slow.smudge", "echo up > "+ready+"; cat "+never)
	ctx, cancel := context.WithCancel(l.ctx())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- m.Perform(ctx, false) }()
	if _, err := os.ReadFile(ready); err != nil { // returns once the filter has said so
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want it cancelled", err)
	}
	if got := l.read(l.root, "a.txt") + l.head("main"); got != "ours\n"+m.Old {
		t.Fatalf("stopped at %q, want the checkout half done", got)
	}
	if begun, err := m.Begun(l.ctx()); err != nil || !begun {
		t.Errorf("begun: %v %v, want true", begun, err)
	}
	l.run(l.root, "config", "filter.slow.smudge", "cat")
	if err := m.Perform(l.ctx(), true); err != nil {
		t.Fatal(err)
	}
	l.wantMerged(m, l.root)
	if got := l.run(l.root, "status", "--porcelain") + l.read(l.root, "z.slow"); got != "slow\n" {
		t.Errorf("got %q", got)
	}
}

// Whatever a user has in the checkout, a merge either changes nothing or goes through beside it.
func TestMergeBesideAnyEdits(t *testing.T) {
	held, merged := 0, 0
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(7, seed))
		l := newLab(t, "main")
		for i := range 6 {
			l.write(fmt.Sprintf("f%d.txt", i), "base\n")
		}
		l.commit(l.root, "files")
		path := l.worktree()
		scramble(l, r, path, "theirs")
		if l.run(path, "status", "--porcelain") == "" {
			continue
		}
		mine := scramble(l, r, l.root, "mine")
		before := l.picture(l.root)
		m, err := l.merge()
		if err != nil {
			if r, ok := refusal.Find(err); !ok || r.Code != refusal.CodeCheckoutOverlap {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if after := l.picture(l.root); after != before {
				t.Fatalf("seed %d: a held merge changed something:\n%s\nbefore:\n%s", seed, after, before)
			}
			held++
			continue
		}
		merged++
		for name, text := range mine {
			if got := l.read(l.root, name); got != text && text != "" || text == "" && !strings.HasPrefix(got, "(") {
				t.Errorf("seed %d: %s holds %q, the user left %q", seed, name, got, text)
			}
		}
		for _, name := range strings.Fields(l.run(l.root, "diff", "--name-only", m.Old, m.Commit)) {
			want, showErr := l.try(l.root, "show", m.Commit+":"+name)
			if got := strings.TrimRight(l.read(l.root, name), "\n"); showErr == nil && got != want {
				t.Errorf("seed %d: %s holds %q, the merge has %q", seed, name, got, want)
			}
		}
	}
	if held < 3 || merged < 3 {
		t.Errorf("%d held and %d merged say little", held, merged)
	}
}

// scramble changes, adds and deletes a few files and returns what it left, "" for a deleted one.
func scramble(l *lab, r *rand.Rand, dir, text string) map[string]string {
	left := map[string]string{}
	for range 1 + r.IntN(2) {
		name := fmt.Sprintf("f%d.txt", r.IntN(8)) // f6 and f7 do not exist yet
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil && r.IntN(3) == 0 {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				l.t.Fatal(err)
			}
			left[name] = ""
			continue
		}
		left[name] = text + "\n"
		l.writeIn(dir, name, text+"\n")
		if r.IntN(2) == 0 {
			l.run(dir, "add", name)
		}
	}
	return left
}
