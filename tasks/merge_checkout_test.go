package tasks_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
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
