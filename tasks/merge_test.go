package tasks_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"greatminds/internal/refusal"
	"greatminds/tasks"
)

// workTree prepares the task's worktree with a change, an addition and a deletion, uncommitted.
func (l *lab) workTree() string {
	l.t.Helper()
	path := l.worktree()
	l.writeIn(path, "a.txt", "ours\n")
	l.writeIn(path, "new/n.txt", "new\n")
	if err := os.Remove(filepath.Join(path, "dir/b.txt")); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// wantMerged checks that the branch is at the merge, and that a checkout of it followed.
func (l *lab) wantMerged(m tasks.MergePlan, checkout string) {
	l.t.Helper()
	if got := l.head("main"); got != m.Commit {
		l.t.Errorf("main is at %s, want the merge %s", got, m.Commit)
	}
	if n := l.run(l.root, "rev-list", "--merges", "--count", "main"); n != "1" {
		l.t.Errorf("%s merges on main, want 1", n)
	}
	if checkout == "" {
		return
	}
	if got := l.read(checkout, "a.txt") + l.read(checkout, "new/n.txt"); got != "ours\nnew\n" {
		l.t.Errorf("the checkout holds %q", got)
	}
	if _, err := os.Lstat(filepath.Join(checkout, "dir/b.txt")); !os.IsNotExist(err) {
		l.t.Errorf("dir/b.txt: %v, want it gone", err)
	}
	if lock, err := filepath.Glob(filepath.Join(l.root, ".git/*.lock")); err != nil || len(lock) > 0 {
		l.t.Errorf("locks left: %v %v", lock, err)
	}
}

func TestMergeTakesUncommittedWorkAlong(t *testing.T) {
	l := newLab(t, "main")
	l.git.Run = nil // under a keeper, as in the daemon
	path := l.workTree()
	l.writeIn(path, "ignored.txt", "a build product\n")
	old, branchOld := l.head("main"), l.head("task/0001-sample")
	m, err := l.merge()
	if err != nil {
		t.Fatal(err)
	}
	l.wantMerged(m, l.root)
	if !slices.Equal(m.Parents, []string{old, m.Theirs}) || l.run(l.root, "rev-parse", "main^1", "main^2") != old+"\n"+m.Theirs {
		t.Errorf("parents %v, want %s and the overlay", m.Parents, old)
	}
	if got := l.head("task/0001-sample"); got != m.Theirs || l.head("task/0001-sample^") != branchOld {
		t.Errorf("the task branch is at %s, want the overlay %s on %s", got, m.Theirs, branchOld)
	}
	if got := l.run(l.root, "log", "-1", "--format=%s|%an <%ae>|%ad", "--date=unix", "task/0001-sample"); got != "impl(0001-sample): worktree overlay captured at merge|greatminds <greatminds@localhost>|1800000000" {
		t.Errorf("overlay: %s", got)
	}
	if got := l.run(l.root, "log", "-1", "--format=%s", "main"); got != "review(0001-sample): Sample task" {
		t.Errorf("merge: %s", got)
	}
	for _, dir := range []string{l.root, path} {
		if got := l.run(dir, "status", "--porcelain"); got != "" {
			t.Errorf("%s is not clean: %s", dir, got)
		}
	}
	if names := l.run(l.root, "ls-tree", "-r", "--name-only", "main"); strings.Contains(names, "ignored") {
		t.Errorf("an ignored file was merged: %s", names)
	}
	if done, err := m.Done(l.ctx()); err != nil || !done {
		t.Errorf("done: %v %v", done, err)
	}
	if err := m.Perform(l.ctx(), true); err != nil {
		t.Errorf("again: %v", err)
	}
	l.wantMerged(m, l.root)
}

func TestMergeWithoutNewWorkIsNoMerge(t *testing.T) {
	l := newLab(t, "main")
	l.worktree()
	l.write("a.txt", "main goes on\n")
	head := l.commit(l.root, "later")
	m, err := l.merge()
	if err != nil || !m.Nothing || m.Commit != "" {
		t.Fatalf("got %+v %v, want nothing to merge", m, err)
	}
	if got := l.head("main"); got != head {
		t.Errorf("main moved to %s", got)
	}
}

func TestSameInputsMakeTheSameMerge(t *testing.T) {
	l := newLab(t, "main")
	l.workTree()
	before := l.picture(l.root)
	first, second := l.mustCompute(), l.mustCompute()
	if first.Commit != second.Commit || first.Theirs != second.Theirs || first.Commit == "" {
		t.Errorf("got %s and %s, want one merge", first.Commit, second.Commit)
	}
	if after := l.picture(l.root); after != before {
		t.Errorf("computing changed something:\n%s\nbefore:\n%s", after, before)
	}
}

func TestConflictChangesNothingAndNamesTheFiles(t *testing.T) {
	l := newLab(t, "main")
	path := l.workTree()
	l.write("a.txt", "theirs\n")
	l.write("dir/b.txt", "theirs too\n")
	l.commit(l.root, "later")
	before := l.picture(l.root, path)
	_, err := l.compute()
	var conflict *tasks.MergeConflict
	if !errors.As(err, &conflict) || !slices.Equal(conflict.Files, []string{"a.txt", "dir/b.txt"}) {
		t.Fatalf("got %v, want a conflict in a.txt and dir/b.txt", err)
	}
	wantCode(t, err, refusal.CodeMergeConflict, "a.txt", "dir/b.txt", "0001-sample")
	if after := l.picture(l.root, path); after != before {
		t.Errorf("something changed:\n%s\nbefore:\n%s", after, before)
	}
}

func TestIdentityIsGitsOwnWhereItHasOne(t *testing.T) {
	who := func(l *lab) string { return l.run(l.root, "log", "-1", "--format=%an <%ae>, %cn <%ce>", "main") }
	t.Run("none", func(t *testing.T) {
		l := newLab(t, "main")
		l.workTree()
		if _, err := l.merge(); err != nil {
			t.Fatal(err)
		}
		if got, want := who(l), "greatminds <greatminds@localhost>, greatminds <greatminds@localhost>"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("configured", func(t *testing.T) {
		l := newLab(t, "main")
		l.workTree()
		l.run(l.root, "config", "user.name", "Ann")
		l.run(l.root, "config", "user.email", "ann@example.invalid")
		l.run(l.root, "config", "committer.email", "bot@example.invalid")
		if _, err := l.merge(); err != nil {
			t.Fatal(err)
		}
		if got, want := who(l), "Ann <ann@example.invalid>, Ann <bot@example.invalid>"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestDefaultBranchMaster(t *testing.T) {
	l := newLab(t, "master")
	l.workTree()
	m, err := l.merge()
	if err != nil {
		t.Fatal(err)
	}
	if got := l.head("master"); got != m.Commit || l.read(l.root, "a.txt") != "ours\n" {
		t.Errorf("master is at %s, want %s", got, m.Commit)
	}
	if out, err := l.try(l.root, "rev-parse", "--verify", "-q", "main"); err == nil {
		t.Errorf("a branch main was made: %s", out)
	}
}

func TestHooksOfAMergeRun(t *testing.T) {
	t.Run("message", func(t *testing.T) {
		l := newLab(t, "main")
		l.workTree()
		l.hook("pre-merge-commit", "git ls-files > \"$HOME/seen\"")
		l.hook("commit-msg", `echo; echo "Change-Id: I1" >> "$1"`)
		if _, err := l.merge(); err != nil {
			t.Fatal(err)
		}
		if got := l.run(l.root, "log", "-1", "--format=%B", "main"); got != "review(0001-sample): Sample task\nChange-Id: I1" {
			t.Errorf("message %q", got)
		}
		if got := l.read(l.home, "seen"); got != ".gitignore\na.txt\nkeep.txt\nnew/n.txt\n" {
			t.Errorf("pre-merge-commit saw %q, want the merged files", got)
		}
	})
	for _, name := range []string{"pre-merge-commit", "commit-msg"} {
		t.Run(name+" fails", func(t *testing.T) {
			l := newLab(t, "main")
			path := l.workTree()
			l.hook(name, "echo not on a Friday >&2; exit 1")
			before := l.picture(l.root, path)
			_, err := l.compute()
			wantCode(t, err, refusal.CodeHookFailed, name, "not on a Friday")
			if after := l.picture(l.root, path); after != before {
				t.Errorf("something changed:\n%s\nbefore:\n%s", after, before)
			}
		})
		t.Run(name+" hangs", func(t *testing.T) {
			l := newLab(t, "main")
			path := l.workTree()
			l.hook(name, "sleep 600 & wait")
			l.git.Run = nil
			before := l.picture(l.root, path)
			l.git.Limit = 2 * time.Second
			_, err := l.compute()
			wantCode(t, err, refusal.CodeGitTimeout, name)
			if after := l.picture(l.root, path); after != before {
				t.Errorf("something changed:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
	t.Run("empty message", func(t *testing.T) {
		l := newLab(t, "main")
		l.workTree()
		l.hook("commit-msg", `: > "$1"`)
		_, err := l.compute()
		wantCode(t, err, refusal.CodeHookFailed, "commit-msg")
	})
}

// signer is a gpg that signs anything.
const signer = `#!/bin/sh
cat > /dev/null
echo "[GNUPG:] SIG_CREATED D 1 8 00 1 AAAA" >&2
printf -- '-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----\n'
`

func TestSigningFollowsGitsConfiguration(t *testing.T) {
	sign := func(l *lab, program string) {
		gpg := filepath.Join(l.home, "gpg")
		l.executable(gpg, program)
		l.run(l.root, "config", "gpg.program", gpg)
		l.run(l.root, "config", "commit.gpgSign", "true")
	}
	t.Run("signs", func(t *testing.T) {
		l := newLab(t, "main")
		l.workTree()
		sign(l, signer)
		m, err := l.merge()
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{m.Commit, m.Theirs} {
			if !strings.Contains(l.run(l.root, "cat-file", "commit", id), "gpgsig -----BEGIN PGP SIGNATURE") {
				t.Errorf("commit %s is not signed", id)
			}
		}
	})
	t.Run("fails", func(t *testing.T) {
		l := newLab(t, "main")
		path := l.workTree()
		sign(l, "#!/bin/sh\necho no secret key >&2; exit 2\n")
		before := l.picture(l.root, path)
		_, err := l.compute()
		wantCode(t, err, refusal.CodeSigningFailed, "commit.gpgSign")
		if after := l.picture(l.root, path); after != before {
			t.Errorf("something changed:\n%s\nbefore:\n%s", after, before)
		}
	})
	t.Run("hangs", func(t *testing.T) {
		l := newLab(t, "main")
		l.workTree()
		sign(l, "#!/bin/sh\nsleep 600\n")
		l.git.Run = nil
		l.git.Limit = 2 * time.Second
		_, err := l.compute()
		wantCode(t, err, refusal.CodeGitTimeout, "commit-tree")
	})
}

func TestWhatCannotBeMergedIsNamed(t *testing.T) {
	sub := func(l *lab, path string) {
		l.run(path, "init", "-q", "-b", "main", "vendor/sub")
		l.writeIn(path, "vendor/sub/f", "x")
	}
	cases := []struct {
		name  string
		spoil func(l *lab, path string)
		code  refusal.Code
		words []string
	}{
		{"repository inside", func(l *lab, path string) { sub(l, path); l.commit(filepath.Join(path, "vendor/sub"), "x") },
			refusal.CodeMergeNested, []string{"vendor/sub"}},
		{"repository inside without a commit", sub, refusal.CodeMergeNested, []string{"vendor/sub"}},
		{"repository around tracked files", func(l *lab, path string) { l.run(path, "init", "-q", "dir") },
			refusal.CodeMergeNested, []string{"0001-sample/dir"}},
		{"new submodule", func(l *lab, path string) {
			sub(l, path)
			l.commit(filepath.Join(path, "vendor/sub"), "x")
			l.run(path, "add", "vendor/sub")
			l.run(path, "commit", "-q", "-m", "sub")
		}, refusal.CodeMergeSubmodule, []string{"vendor/sub"}},
		{"merge left open", func(l *lab, path string) {
			l.run(path, "add", "-A")
			l.run(path, "commit", "-q", "-m", "work")
			l.write("a.txt", "theirs\n")
			l.commit(l.root, "later")
			if out, err := l.try(path, "merge", "main"); err == nil {
				l.t.Fatalf("no conflict: %s", out)
			}
		}, refusal.CodeMergeBusy, []string{"a merge", "0001-sample"}},
		{"no branch", func(l *lab, path string) {
			l.run(l.root, "worktree", "remove", "--force", path)
			l.run(l.root, "branch", "-q", "-D", "task/0001-sample")
		}, refusal.CodeMergeBranchMissing, []string{"task/0001-sample"}},
		{"unrelated history", func(l *lab, path string) {
			l.run(path, "update-ref", "refs/heads/task/0001-sample", l.run(path, "commit-tree", "-m", "root", "HEAD^{tree}"))
		}, refusal.CodeGitFailed, []string{"unrelated histories"}},
		{"strategy", func(l *lab, _ string) { l.policy.MergeStrategy = "--squash" }, refusal.CodeMergeStrategy, []string{"--squash"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, "main")
			path := l.workTree()
			c.spoil(l, path)
			before := l.picture(l.root)
			_, err := l.compute()
			wantCode(t, err, c.code, c.words...)
			if after := l.picture(l.root); after != before {
				t.Errorf("something changed:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

// A nested repository in an ignored folder is a build product like any other.
func TestRepositoryInIgnoredFolderIsNoObstacle(t *testing.T) {
	l := newLab(t, "main")
	l.write(".gitignore", ".worktrees/\n.greatminds/\nnode_modules/\n")
	l.commit(l.root, "ignore")
	path := l.workTree()
	l.run(path, "init", "-q", "node_modules/dep")
	m, err := l.merge()
	if err != nil {
		t.Fatal(err)
	}
	l.wantMerged(m, l.root)
}

// What an agent staged counts, ignored or not, and so does a file that git's index could take
// for unchanged because it changed within the same moment and kept its size.
func TestOverlayHoldsStagedAndRacyChanges(t *testing.T) {
	l := newLab(t, "main")
	path := l.worktree()
	l.writeIn(path, "ignored.txt", "forced\n")
	l.run(path, "add", "-f", "ignored.txt")
	// One moment, an hour ago: the index learns of the file, which then gets other contents of the
	// same size.
	moment := time.Now().Add(-time.Hour)
	file, index := filepath.Join(path, "a.txt"), filepath.Join(l.root, ".git/worktrees/0001-sample/index")
	at := func(name string) {
		if err := os.Chtimes(name, moment, moment); err != nil {
			t.Fatal(err)
		}
	}
	l.run(l.root, "config", "core.trustctime", "false")
	l.run(l.root, "config", "core.checkStat", "minimal")
	at(file)
	l.run(path, "update-index", "--refresh")
	l.writeIn(path, "a.txt", "two\n") // as long as "one\n"
	at(file)
	at(index)
	m, err := l.merge()
	if err != nil {
		t.Fatal(err)
	}
	if got := l.run(l.root, "show", m.Commit+":a.txt") + l.run(l.root, "show", m.Commit+":ignored.txt"); got != "twoforced" {
		t.Errorf("the merge holds %q", got)
	}
}

func TestLineEndsAreNoWork(t *testing.T) {
	l := newLab(t, "main")
	l.write(".gitattributes", "* text=auto eol=crlf\n")
	l.write("crlf.txt", "a\nb\n")
	l.commit(l.root, "crlf")
	path := l.worktree()
	if got := l.read(path, "crlf.txt"); got != "a\r\nb\r\n" {
		t.Fatalf("the worktree holds %q, want CRLF", got)
	}
	l.writeIn(path, "crlf.txt", "a\r\nb\r\n") // the same bytes, written again
	m := l.mustCompute()
	if m.Overlay() || !m.Nothing {
		t.Errorf("got %+v, want a clean worktree", m)
	}
	l.writeIn(path, "a.txt", "ours\r\n")
	if err := os.WriteFile(filepath.Join(l.root, "crlf.txt"), []byte("a\r\nb\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := l.merge()
	if err != nil {
		t.Fatal(err)
	}
	if got := l.run(l.root, "diff", "--name-only", m.Old, m.Commit); got != "a.txt" {
		t.Errorf("the merge changes %s, want a.txt", got)
	}
	if got := l.read(l.root, "a.txt"); got != "ours\r\n" {
		t.Errorf("the checkout holds %q", got)
	}
}
