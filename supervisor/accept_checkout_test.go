package supervisor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The files and the branch of a user who works elsewhere are left alone.
func TestAUserOnAnotherBranchIsLeftThere(t *testing.T) {
	t.Parallel()
	r := newReview(t, "main")
	r.git(t, "switch", "-q", "-c", "mine")
	r.put(t, "a.txt", "my own\n")
	r.put(t, "new/n.txt", "untracked\n")
	before := r.picture(t, r.project)
	r.once(t)
	r.merged(t)
	if after := r.picture(t, r.project); after != before {
		t.Errorf("the checkout became\n%s\nbefore\n%s", after, before)
	}
}

func TestDirtyFilesElsewhereAreKeptWhileTheCheckoutFollows(t *testing.T) {
	t.Parallel()
	r := newReview(t, "main")
	own := map[string]string{"keep.txt": "half done\n", "staged.txt": "staged\n", "loose.txt": "loose\n", "built.txt": "ignored\n"}
	for name, text := range own {
		r.put(t, name, text)
	}
	r.git(t, "add", "staged.txt")
	r.once(t)
	r.merged(t)
	r.followed(t, r.project, own)
	if got := r.git(t, "diff", "--cached", "--name-only"); got != "staged.txt" {
		t.Errorf("staged is %q, want staged.txt", got)
	}
}

// What stands in the merge's way holds it, and once it is away the daemon merges by itself.
func TestWhatIsInTheMergesWayHoldsItUntilItIsAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file string
		steps      []string
		clear      func(t *testing.T, r *review)
	}{
		{"modified", "a.txt", nil, func(t *testing.T, r *review) { r.git(t, "checkout", "-q", "--", "a.txt") }},
		{"staged", "a.txt", nil, func(t *testing.T, r *review) { r.git(t, "stash", "-q") }},
		{"untracked", "new/n.txt", nil, func(t *testing.T, r *review) {
			must(t, os.Rename(filepath.Join(r.project, "new", "n.txt"), filepath.Join(r.root, "aside")))
		}},
		{"ignored", "built.txt", []string{edit(".gitignore", ".worktrees/\n.greatminds/\n"), edit("built.txt", "the agent's\n")},
			func(t *testing.T, r *review) {
				must(t, os.Rename(filepath.Join(r.project, "built.txt"), filepath.Join(r.root, "aside")))
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newReview(t, "main", c.steps...)
			r.put(t, c.file, "my own\n")
			if c.name == "staged" {
				r.git(t, "add", c.file)
			}
			before := r.picture(t, r.project)
			r.start(t)
			r.held(t, "checkout_overlap", c.file, r.project)
			if after := r.picture(t, r.project); after != before {
				t.Errorf("held, but the checkout became\n%s\nbefore\n%s", after, before)
			}
			c.clear(t, r)
			r.done(t)
			own := map[string]string{}
			if len(c.steps) > 0 {
				own["built.txt"] = "the agent's\n"
			}
			r.followed(t, r.project, own)
			if c.name == "staged" {
				if got := r.git(t, "show", "stash@{0}:a.txt"); got != "my own" {
					t.Errorf("the stash holds %q", got)
				}
				return
			}
			if kept, err := os.ReadFile(filepath.Join(r.root, "aside")); c.name != "modified" && (err != nil || string(kept) != "my own\n") {
				t.Errorf("what was moved aside is %q %v", kept, err)
			}
		})
	}
}

// Every checkout of the branch follows, wherever it is; one of them in the way holds all.
func TestTheBranchInASecondWorktreeFollowsThere(t *testing.T) {
	t.Parallel()
	second := func(t *testing.T) (*review, string) {
		r := newReview(t, "main")
		r.git(t, "switch", "-q", "-c", "mine")
		r.put(t, "a.txt", "my own\n")
		other := filepath.Join(r.root, "other")
		r.git(t, "worktree", "add", "-q", other, "main")
		return r, other
	}
	t.Run("clean", func(t *testing.T) {
		t.Parallel()
		r, other := second(t)
		before := r.picture(t, r.project)
		r.once(t)
		r.merged(t)
		r.followed(t, other, nil)
		if got := r.git(t, "-C", other, "symbolic-ref", "HEAD"); got != "refs/heads/main" {
			t.Errorf("the second worktree is on %s", got)
		}
		if after := r.picture(t, r.project); after != before {
			t.Errorf("the first checkout became\n%s\nbefore\n%s", after, before)
		}
	})
	t.Run("dirty", func(t *testing.T) {
		t.Parallel()
		r, other := second(t)
		write(t, filepath.Join(other, "a.txt"), "my own there\n")
		before := r.picture(t, r.project) + r.picture(t, other)
		r.once(t)
		r.wantHeld(t, "checkout_overlap", "a.txt", other)
		if after := r.picture(t, r.project) + r.picture(t, other); after != before {
			t.Errorf("held, but the checkouts became\n%s\nbefore\n%s", after, before)
		}
		r.git(t, "-C", other, "checkout", "-q", "--", "a.txt")
		r.once(t)
		r.merged(t)
		r.followed(t, other, nil)
	})
}

// A file whose times changed and whose contents did not is nobody's work.
func TestATouchedFileIsNotInTheWay(t *testing.T) {
	t.Parallel()
	r := newReview(t, "main")
	for _, name := range []string{"a.txt", "dir/b.txt", "keep.txt"} {
		past := time.Unix(1_000_000_000, 0)
		must(t, os.Chtimes(filepath.Join(r.project, name), past, past))
	}
	if got := r.git(t, "diff-index", "--name-only", "HEAD"); !strings.Contains(got, "a.txt") {
		t.Fatalf("git does not take the touched files for changed: %q", got)
	}
	r.once(t)
	r.merged(t)
	r.followed(t, r.project, nil)
}

// Somebody's git at work in the checkout holds the merge; nobody's lock is taken away.
func TestAnIndexLockHoldsTheMergeUntilItIsGone(t *testing.T) {
	t.Parallel()
	r := newReview(t, "main")
	lock := filepath.Join(r.project, ".git", "index.lock")
	write(t, lock, "")
	before := r.picture(t, r.project)
	r.start(t)
	r.held(t, "git_index_locked", "index.lock")
	if after := r.picture(t, r.project); after != before {
		t.Errorf("held, but the checkout became\n%s\nbefore\n%s", after, before)
	}
	if _, err := os.Stat(lock); err != nil {
		t.Errorf("the lock was taken away: %v", err)
	}
	must(t, os.Remove(lock))
	r.done(t)
	r.followed(t, r.project, nil)
}

// A merge of the user's own that is under way holds ours, across passes and restarts, until it has ended.
func TestAMergeUnderWayHoldsTheMergeUntilItHasEnded(t *testing.T) {
	t.Parallel()
	r := newReview(t, "main")
	r.git(t, "switch", "-q", "-c", "other")
	r.put(t, "keep.txt", "theirs\n")
	r.commit(t, "other work")
	r.git(t, "switch", "-q", "main")
	r.git(t, "merge", "-q", "--no-ff", "--no-commit", "other")
	before := r.picture(t, r.project)
	for range 2 {
		r.once(t)
		r.wantHeld(t, "merge_busy", "a merge", r.project)
	}
	if after := r.picture(t, r.project); after != before {
		t.Errorf("held, but the checkout became\n%s\nbefore\n%s", after, before)
	}
	r.git(t, "merge", "--abort")
	r.start(t)
	r.done(t)
	r.followed(t, r.project, nil)
}

// A hook that fails holds the merge, with what the hook said, until it passes.
func TestAFailingHookHoldsTheMergeUntilItIsMended(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pre-merge-commit", "commit-msg"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReview(t, "main")
			hook := filepath.Join(r.project, ".git", "hooks", name)
			executable(t, hook, "#!/bin/sh\necho not on a Friday >&2\nexit 1\n")
			before := r.picture(t, r.project)
			r.start(t)
			r.held(t, "git_hook_failed", name, "not on a Friday")
			if after := r.picture(t, r.project); after != before {
				t.Errorf("held, but the checkout became\n%s\nbefore\n%s", after, before)
			}
			executable(t, hook, "#!/bin/sh\necho ran >> \"$HOME/hook-ran\"\nexit 0\n")
			r.done(t)
			r.followed(t, r.project, nil)
			if _, err := os.Stat(filepath.Join(r.root, "hook-ran")); err != nil {
				t.Errorf("the mended hook did not run: %v", err)
			}
		})
	}
}

// executable replaces a program at once, so that nobody runs half of it.
func executable(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+".new", text)
	must(t, os.Chmod(path+".new", 0o755))
	must(t, os.Rename(path+".new", path))
}

func TestConfiguredSigningSignsTheMerge(t *testing.T) {
	t.Parallel()
	r := newReview(t, "main")
	gpg := filepath.Join(r.root, "gpg")
	executable(t, gpg, "#!/bin/sh\necho no secret key >&2\nexit 2\n")
	r.git(t, "config", "gpg.program", gpg)
	r.git(t, "config", "commit.gpgSign", "true")
	before := r.picture(t, r.project)
	r.once(t)
	r.wantHeld(t, "git_signing_failed", "commit.gpgSign")
	if after := r.picture(t, r.project); after != before {
		t.Errorf("held, but the checkout became\n%s\nbefore\n%s", after, before)
	}
	executable(t, gpg, "#!/bin/sh\ncat > /dev/null\necho '[GNUPG:] SIG_CREATED D 1 8 00 1 AAAA' >&2\n"+
		"printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n'\n")
	r.once(t)
	r.merged(t)
	r.followed(t, r.project, nil)
	if got := r.git(t, "cat-file", "commit", "main"); !strings.Contains(got, "gpgsig -----BEGIN PGP SIGNATURE") {
		t.Errorf("the merge is not signed:\n%s", got)
	}
}

func TestADefaultBranchMasterIsMergedInto(t *testing.T) {
	t.Parallel()
	r := newReview(t, "master")
	r.once(t)
	r.merged(t)
	r.followed(t, r.project, nil)
	if got := r.git(t, "for-each-ref", "--format=%(refname)", "refs/heads"); got != "refs/heads/master" {
		t.Errorf("branches %q, want master alone", got)
	}
}

// The daemon's environment has a HOME without any git configuration: the merge is made all the
// same, and where the repository names a person it is that person's.
func TestTheMergeNeedsNoIdentityAndTakesTheRepositorys(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"none": "greatminds <greatminds@localhost>", "configured": "Ann <ann@example.invalid>"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReview(t, "main")
			if name == "configured" {
				r.git(t, "config", "user.name", "Ann")
				r.git(t, "config", "user.email", "ann@example.invalid")
			}
			r.once(t)
			r.merged(t)
			if got := r.git(t, "log", "-1", "--format=%an <%ae>", "main"); got != want {
				t.Errorf("the author is %s, want %s", got, want)
			}
		})
	}
}

// Work that does not merge goes back to the implementer's queue with the files named, and
// neither the branch nor the checkout shows a trace of the attempt.
func TestAConflictHandsTheTaskBack(t *testing.T) {
	t.Parallel()
	r := newReview(t, "main")
	r.put(t, "a.txt", "theirs\n")
	r.commit(t, "meanwhile")
	head, before := r.git(t, "rev-parse", "main"), r.picture(t, r.project)
	r.once(t)
	if q := r.queue(t); q != "feature_dev" {
		t.Fatalf("the task stands in %s, want feature_dev", q)
	}
	if got := r.git(t, "rev-parse", "main"); got != head {
		t.Errorf("main moved from %s to %s", head, got)
	}
	if after := r.picture(t, r.project); after != before {
		t.Errorf("the checkout became\n%s\nbefore\n%s", after, before)
	}
	if n := r.journalTo(t, "feature_dev"); n != 1 {
		t.Errorf("%d lines of the journal tell the hand-back, want 1", n)
	}
	if out := r.run(t, "", "run", "status", "--json", "--project-dir", r.project); !strings.Contains(out, `"a.txt"`) {
		t.Errorf("no receipt names a.txt:\n%s", out)
	}
	task, err := os.ReadFile(filepath.Join(r.project, ".greatminds", "feature_dev", r.task+".yaml"))
	must(t, err)
	if !strings.Contains(string(task), "a.txt") || !strings.Contains(string(task), "conflict") {
		t.Errorf("the task does not tell its next developer of the conflict:\n%s", task)
	}
	if got, err := os.ReadFile(filepath.Join(r.project, ".worktrees", r.task, "a.txt")); err != nil || string(got) != newText {
		t.Errorf("the worktree holds %q %v, want the work", got, err)
	}
}
