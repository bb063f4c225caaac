package tasks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"greatminds/internal/refusal"
	"greatminds/tasks"
)

func planBlock(base string) tasks.Block {
	return tasks.Block{Kind: "plan", By: "ARCHITECT-PLANNER", Fields: tasks.Fields{{Key: "base_commit", Value: base}}}
}

// E-027
func TestPrepareMakesTheTasksOwnWorktree(t *testing.T) {
	for _, kind := range []string{"feature", "bugfix", "ops", "docs", "release"} {
		t.Run(kind, func(t *testing.T) {
			l := newLab(t, "main")
			ws, err := l.prepareFor(l.task(kind), ".")
			if err != nil {
				t.Fatal(err)
			}
			want := tasks.Workspace{Kind: tasks.TaskWorktree, Path: filepath.Join(l.root, ".worktrees/0001-sample"),
				Head: l.head("main"), Branch: "task/0001-sample", CommonDir: filepath.Join(l.root, ".git")}
			if ws != want {
				t.Errorf("got %+v, want %+v", ws, want)
			}
			if got := l.read(ws.Path, "dir/b.txt"); got != "two\n" {
				t.Errorf("the worktree holds %q", got)
			}
			if got := l.run(ws.Path, "status", "--porcelain"); got != "" {
				t.Errorf("the new worktree is not clean: %s", got)
			}
			if got := l.run(l.root, "symbolic-ref", "--short", "HEAD"); got != "main" {
				t.Errorf("the main checkout is on %s", got)
			}
			again, err := l.prepareFor(l.task(kind), ".")
			if err != nil || again != want {
				t.Errorf("second time: got %+v %v, want the same", again, err)
			}
		})
	}
}

func TestNewWorktreeStartsAtTheLatestPlansBase(t *testing.T) {
	l := newLab(t, "trunk")
	old := l.head("trunk")
	l.write("a.txt", "later\n")
	l.commit(l.root, "later")
	ws, err := l.prepareFor(l.task("feature", planBlock("no-such-commit"), planBlock(old)), ".")
	if err != nil || ws.Head != old {
		t.Fatalf("got %+v %v, want head %s", ws, err, old)
	}
	l.id = "0002-other"
	_, err = l.prepareFor(l.task("feature", planBlock(old), planBlock("no-such-commit")), ".")
	wantCode(t, err, refusal.CodeBaseCommitUnknown, "no-such-commit", "0002-other")
	_, err = l.prepareFor(l.task("feature", planBlock("--help")), ".")
	wantCode(t, err, refusal.CodeBaseCommitUnknown, "--help")
	l.policy.DefaultBranch = "main"
	_, err = l.prepareFor(l.task("feature"), ".")
	wantCode(t, err, refusal.CodeDefaultBranchMissing, "main")
}

func TestLeftOverBranchIsUsedAsItStands(t *testing.T) {
	l := newLab(t, "main")
	l.run(l.root, "branch", "task/0001-sample")
	kept := l.run(l.root, "commit-tree", "-p", "main", "-m", "kept", "main^{tree}")
	l.run(l.root, "update-ref", "refs/heads/task/0001-sample", kept)
	ws, err := l.prepare()
	if err != nil || ws.Head != kept {
		t.Fatalf("got %+v %v, want head %s", ws, err, kept)
	}
}

func TestWorktreeWhoseFolderIsGoneIsMadeAgain(t *testing.T) {
	l := newLab(t, "main")
	path := l.worktree()
	l.writeIn(path, "a.txt", "work\n")
	head := l.commit(path, "work")
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	ws, err := l.prepare()
	if err != nil || ws.Head != head || l.read(path, "a.txt") != "work\n" {
		t.Fatalf("got %+v %v, want the branch's commit %s", ws, err, head)
	}
}

// E-029
func TestUnusableWorktreeIsRefusedByName(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(l *lab, path string)
		code  refusal.Code
		words []string
	}{
		{"folder without git", func(l *lab, path string) { l.writeIn(path, "apps/x", "keep\n") },
			refusal.CodeWorktreeWithoutGit, []string{".worktrees/0001-sample"}},
		{"repository of its own", func(l *lab, path string) {
			l.run(l.root, "init", "-q", "-b", "task/0001-sample", path)
			l.commit(path, "alien")
		}, refusal.CodeWorktreeForeign, []string{".worktrees/0001-sample"}},
		{"worktree of another repository", func(l *lab, path string) {
			other := filepath.Join(filepath.Dir(l.root), "other")
			l.run(l.home, "init", "-q", "-b", "main", other)
			l.commit(other, "alien")
			l.run(other, "worktree", "add", "-q", "-b", "task/0001-sample", path)
		}, refusal.CodeWorktreeForeign, []string{"other/.git", ".worktrees/0001-sample"}},
		{"worktree of a repository that is gone", func(l *lab, path string) {
			l.writeIn(path, ".git", "gitdir: /nonexistent/x/.git/worktrees/1\n")
		}, refusal.CodeWorktreeForeign, []string{".worktrees/0001-sample"}},
		{"other branch", func(l *lab, path string) { l.run(l.root, "worktree", "add", "-q", "-b", "else", path) },
			refusal.CodeWorktreeBranch, []string{"else", "task/0001-sample"}},
		{"detached", func(l *lab, path string) { l.run(l.root, "worktree", "add", "-q", "--detach", path) },
			refusal.CodeWorktreeBranch, []string{"detached", "task/0001-sample"}},
		{"file", func(l *lab, path string) { l.writeIn(filepath.Dir(path), "0001-sample", "x") },
			refusal.CodeWorktreePath, []string{".worktrees/0001-sample"}},
		{"symbolic link", func(l *lab, path string) {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				l.t.Fatal(err)
			}
			if err := os.Symlink(l.root, path); err != nil {
				l.t.Fatal(err)
			}
		}, refusal.CodeWorktreePath, []string{".worktrees/0001-sample"}},
		{"branch checked out elsewhere", func(l *lab, path string) { l.run(l.root, "switch", "-q", "-c", "task/0001-sample") },
			refusal.CodeBranchCheckedOut, []string{"task/0001-sample", "project"}},
		{"locked and gone", func(l *lab, path string) {
			l.worktree()
			l.run(l.root, "worktree", "lock", "--reason", "on a stick", path)
			if err := os.RemoveAll(path); err != nil {
				l.t.Fatal(err)
			}
		}, refusal.CodeWorktreeLocked, []string{"on a stick"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, "main")
			path := tasks.WorktreePath(l.project, l.policy, l.id)
			c.spoil(l, path)
			before := l.picture(l.root)
			_, err := l.prepare()
			wantCode(t, err, c.code, c.words...)
			if after := l.picture(l.root); after != before {
				t.Errorf("something changed:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

func TestFolderWithoutRepositoryIsRefused(t *testing.T) {
	l := newLab(t, "main")
	l.project.Root = l.home
	_, err := l.prepare()
	wantCode(t, err, refusal.CodeNotARepository, l.home)
}

// A lock in the worktree is named; reading works beside it, and it is left alone.
func TestIndexLockInWorktreeIsNamedAndKept(t *testing.T) {
	l := newLab(t, "main")
	l.worktree()
	lock := filepath.Join(l.root, ".git/worktrees/0001-sample/index.lock")
	l.writeIn(filepath.Dir(lock), "index.lock", "")
	ws, err := l.prepare()
	if err != nil || ws.Locked != lock {
		t.Fatalf("got %+v %v, want the lock %s named", ws, err, lock)
	}
	_, err = l.compute()
	wantCode(t, err, refusal.CodeGitIndexLocked, lock)
	if _, err := os.Lstat(lock); err != nil {
		t.Errorf("the lock is gone: %v", err)
	}
}

// E-028
func TestExplicitWorkspaceMustLieInsideTheWorktree(t *testing.T) {
	l := newLab(t, "main")
	tree := l.worktree()
	outside := filepath.Join(filepath.Dir(l.root), "outside")
	if err := os.MkdirAll(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(tree, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(tree+"-beside", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"dir", outside, ".worktrees/0001-sample/../../dir", ".worktrees/0001-sample/link", ".worktrees/0001-sample-beside"} {
		_, err := l.prepareFor(l.task("feature"), path)
		wantCode(t, err, refusal.CodeWorkspaceOutside, path, "0001-sample")
	}
	_, err := l.prepareFor(l.task("feature"), "no/such")
	wantCode(t, err, refusal.CodeWorkspaceMissing, "no/such")
	for path, want := range map[string]string{".worktrees/0001-sample": tree, "./.worktrees/0001-sample/dir": filepath.Join(tree, "dir"), tree + "/dir": filepath.Join(tree, "dir"), "./": tree} {
		ws, err := l.prepareFor(l.task("feature"), path)
		if err != nil || ws.Path != want {
			t.Errorf("%q: got %q %v, want %q", path, ws.Path, err, want)
		}
	}
}

// E-030
func TestOtherKindsWorkInTheConfiguredFolder(t *testing.T) {
	l := newLab(t, "main")
	ws, err := l.prepareFor(l.task("research"), "dir")
	want := tasks.Workspace{Kind: tasks.BindingWorkspace, Path: filepath.Join(l.root, "dir"), Head: l.head("main"), Branch: "main", CommonDir: filepath.Join(l.root, ".git")}
	if err != nil || ws != want {
		t.Errorf("got %+v %v, want %+v", ws, err, want)
	}
	ws, err = l.prepareFor(l.task("research"), l.home)
	if want := (tasks.Workspace{Kind: tasks.BindingWorkspace, Path: l.home}); err != nil || ws != want {
		t.Errorf("outside git: got %+v %v, want %+v", ws, err, want)
	}
	if _, err := os.Lstat(filepath.Join(l.root, ".worktrees")); !os.IsNotExist(err) {
		t.Errorf("a worktree was made: %v", err)
	}
}

func TestCheckoutHookIsRunAndBounded(t *testing.T) {
	t.Run("runs", func(t *testing.T) {
		l := newLab(t, "main")
		l.hook("post-checkout", `echo "$1 $2 $3" > ran.txt`)
		path := l.worktree()
		head := l.head("main")
		if got, want := l.read(path, "ran.txt"), strings.Repeat("0", len(head))+" "+head+" 1\n"; got != want {
			t.Errorf("the hook got %q, want %q", got, want)
		}
	})
	t.Run("fails", func(t *testing.T) {
		l := newLab(t, "main")
		l.hook("post-checkout", "echo no gems today >&2; exit 3")
		_, err := l.prepare()
		wantCode(t, err, refusal.CodeHookFailed, "post-checkout", "no gems today")
	})
	t.Run("hangs", func(t *testing.T) {
		l := newLab(t, "main")
		l.hook("post-checkout", "sleep 600 & wait")
		l.git.Run = nil // the keeper ends the hook and what it started
		l.git.Limit = 2 * time.Second
		_, err := l.prepare()
		wantCode(t, err, refusal.CodeGitTimeout, "post-checkout")
	})
}

// A checkout cut short is finished when nothing foreign stands in the folder, else named.
func TestFirstCheckoutCutShort(t *testing.T) {
	half := func(t *testing.T) (*lab, string) {
		l := newLab(t, "main")
		path := tasks.WorktreePath(l.project, l.policy, l.id)
		l.run(l.root, "worktree", "add", "-q", "--no-checkout", "-b", "task/0001-sample", path)
		l.writeIn(path, "a.txt", "one\n")
		return l, path
	}
	t.Run("own contents", func(t *testing.T) {
		l, path := half(t)
		if _, err := l.prepare(); err != nil {
			t.Fatal(err)
		}
		if got := l.run(path, "status", "--porcelain"); got != "" {
			t.Errorf("not clean: %s", got)
		}
	})
	t.Run("foreign contents", func(t *testing.T) {
		l, path := half(t)
		l.writeIn(path, "a.txt", "mine\n")
		_, err := l.prepare()
		wantCode(t, err, refusal.CodeWorktreeUnfinished, "a.txt")
		if got := l.read(path, "a.txt"); got != "mine\n" {
			t.Errorf("a.txt is %q", got)
		}
	})
	t.Run("in the middle of a file", func(t *testing.T) {
		for _, begun := range []string{"", "o", "one"} {
			l, path := half(t)
			l.writeIn(path, "a.txt", begun)
			if _, err := l.prepare(); err != nil {
				t.Fatalf("%q: %v", begun, err)
			}
			if got := l.read(path, "a.txt"); got != "one\n" || l.run(path, "status", "--porcelain") != "" {
				t.Errorf("after %q a.txt is %q", begun, got)
			}
		}
	})
	t.Run("before it had a branch", func(t *testing.T) {
		for _, mine := range []bool{false, true} {
			l, path := half(t)
			if err := os.Remove(filepath.Join(path, "a.txt")); err != nil {
				t.Fatal(err)
			}
			entry := filepath.Join(l.root, ".git/worktrees/0001-sample")
			l.writeIn(entry, "locked", "initializing\n")
			l.writeIn(entry, "HEAD", strings.Repeat("0", 40)+"\n")
			if mine {
				l.writeIn(path, "mine.txt", "mine\n")
				_, err := l.prepare()
				if err == nil || l.read(path, "mine.txt") != "mine\n" {
					t.Errorf("somebody's file in it: %v", err)
				}
				continue
			}
			if ws, err := l.prepare(); err != nil || ws.Branch != "task/0001-sample" || l.read(path, "a.txt") != "one\n" {
				t.Errorf("%+v %v", ws, err)
			}
			if out := l.run(l.root, "fsck"); strings.Contains(out, "error") {
				t.Error(out)
			}
		}
	})
	t.Run("git's own lock left", func(t *testing.T) {
		l, path := half(t)
		l.writeIn(filepath.Join(l.root, ".git/worktrees/0001-sample"), "locked", "initializing\n")
		if _, err := l.prepare(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.remove(""); err != nil {
			t.Errorf("remove: %v", err)
		}
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("still there: %v", err)
		}
	})
	t.Run("entry without a folder", func(t *testing.T) {
		for _, empty := range []bool{false, true} {
			l, path := half(t)
			l.writeIn(filepath.Join(l.root, ".git/worktrees/0001-sample"), "locked", "initializing\n")
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if empty {
				if err := os.Mkdir(path, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if ws, err := l.prepare(); err != nil || ws.Branch != "task/0001-sample" || l.read(path, "a.txt") != "one\n" {
				t.Errorf("empty folder %v: %+v %v", empty, ws, err)
			}
		}
	})
	t.Run("lock left", func(t *testing.T) {
		l, _ := half(t)
		lock := filepath.Join(l.root, ".git/worktrees/0001-sample/index.lock")
		l.writeIn(filepath.Dir(lock), "index.lock", "")
		_, err := l.prepare()
		wantCode(t, err, refusal.CodeWorktreeUnfinished, lock)
		if err := os.Remove(lock); err != nil {
			t.Fatalf("the lock was removed: %v", err)
		}
		if _, err := l.prepare(); err != nil {
			t.Fatal(err)
		}
	})
}

func (l *lab) remove(merged string) (tasks.Removed, error) {
	return tasks.RemoveWorktree(l.ctx(), tasks.RemoveRequest{Git: l.git, Project: l.project, Policy: l.policy, Task: l.id, Merged: merged})
}

func TestRemoveTakesWorktreeAndBranch(t *testing.T) {
	l := newLab(t, "main")
	path := l.worktree()
	l.writeIn(path, "ignored.txt", "a build product\n")
	l.writeIn(path, "cache/ro/file", "x")
	if err := os.Chmod(filepath.Join(path, "cache/ro"), 0o555); err != nil {
		t.Fatal(err)
	}
	head := l.head("task/0001-sample")
	removed, err := l.remove("")
	if err != nil || removed != (tasks.Removed{Branch: "task/0001-sample", Head: head}) {
		t.Fatalf("got %+v %v", removed, err)
	}
	if left, err := os.ReadDir(filepath.Join(l.root, ".worktrees")); err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
	if refs := l.run(l.root, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("refs: %s", refs)
	}
	if list := l.run(l.root, "worktree", "list"); strings.Contains(list, "0001") {
		t.Errorf("git still lists %s", list)
	}
	if again, err := l.remove(""); err != nil || again != (tasks.Removed{}) {
		t.Errorf("again: %+v %v", again, err)
	}
}

func TestRemoveKeepsWhatIsNotInTheMerge(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(l *lab, path string)
		code  refusal.Code
		words []string
	}{
		{"edited since", func(l *lab, path string) { l.writeIn(path, "dir/b.txt", "late\n") }, refusal.CodeWorktreeChanged, []string{"dir/b.txt"}},
		{"new file since", func(l *lab, path string) { l.writeIn(path, "late.txt", "late\n") }, refusal.CodeWorktreeChanged, []string{"late.txt"}},
		{"locked", func(l *lab, path string) { l.run(l.root, "worktree", "lock", path) }, refusal.CodeWorktreeLocked, nil},
		{"other branch", func(l *lab, path string) { l.run(path, "switch", "-q", "-c", "else") }, refusal.CodeWorktreeBranch, []string{"else"}},
		{"repository inside", func(l *lab, path string) { l.run(path, "init", "-q", "sub"); l.commit(filepath.Join(path, "sub"), "x") },
			refusal.CodeMergeNested, []string{"sub"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, "main")
			path := l.worktree()
			merged := l.head("task/0001-sample")
			c.spoil(l, path)
			_, err := l.remove(merged)
			wantCode(t, err, c.code, c.words...)
			if _, err := os.Stat(filepath.Join(path, ".git")); err != nil {
				t.Errorf("the worktree is gone: %v", err)
			}
			if got := l.head("task/0001-sample"); got != merged {
				t.Errorf("the branch moved to %s", got)
			}
		})
	}
}

func TestOldGitIsRefusedByName(t *testing.T) {
	l := newLab(t, "main")
	l.git.Run = nil // it looks the program up in the given PATH
	bin := filepath.Join(l.home, "bin")
	l.executable(filepath.Join(bin, "git"), "#!/bin/sh\necho git version 2.37.9.windows\n")
	l.git.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + l.home}
	_, err := l.prepare()
	wantCode(t, err, refusal.CodeGitTooOld, "2.37.9")
	l.git.Env = []string{"PATH=" + filepath.Join(l.home, "none"), "HOME=" + l.home}
	_, err = l.prepare()
	wantCode(t, err, refusal.CodeGitMissing)
}

// A worktree that was removed by hand is not taken for a git that is not installed.
func TestMissingFolderIsNoMissingGit(t *testing.T) {
	l := newLab(t, "main")
	gone := filepath.Join(l.home, "gone")
	_, err := l.git.FileEvidence(l.ctx(), gone, "", []string{"a.txt"})
	wantCode(t, err, refusal.CodeGitFailed, gone, "no such folder")
}
