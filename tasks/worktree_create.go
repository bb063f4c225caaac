package tasks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"greatminds/internal/refusal"
)

// createWorktree makes the worktree of a task where nothing stands yet.
//
// The checkout is a step of its own, after an empty worktree: so the hook that a checkout
// triggers has a bound of its own, and a checkout cut short is told from a finished one (no
// index) and can be taken up again.
func createWorktree(ctx context.Context, w WorktreeRequest, place worktreePlace) error {
	branch, err := w.Git.commit(ctx, w.Project.Root, place.ref())
	if err != nil {
		return err
	}
	force, err := checkPlaceFree(ctx, w, place)
	if err != nil {
		return err
	}
	args := append([]string{"worktree", "add", "--no-checkout"}, force...)
	if branch != "" {
		args = append(args, place.path, place.branch)
	} else {
		base, err := baseCommit(ctx, w)
		if err != nil {
			return err
		}
		args = append(args, "--no-track", "-b", place.branch, place.path, base)
	}
	if err := w.Git.Disk.MkdirAll(filepath.Dir(place.path), 0o755); err != nil {
		return storage(err, "the folder of worktrees cannot be made")
	}
	if _, err := w.Git.run(ctx, gitCall{step: "git.worktree-add", dir: w.Project.Root, args: args}); err != nil {
		return fmt.Errorf("worktree of task %s: %w", place.id, err)
	}
	return w.Git.firstCheckout(ctx, place)
}

// initializing is the reason with which git locks a worktree while it adds it; one that was cut
// short keeps it.
const initializing = "initializing"

// checkPlaceFree refuses where the branch is checked out elsewhere, and returns what git needs to
// be told where it still lists a worktree at this place whose folder is gone.
func checkPlaceFree(ctx context.Context, w WorktreeRequest, place worktreePlace) (force []string, err error) {
	all, err := w.Git.checkouts(ctx, w.Project.Root)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		here := samePlace(c.path, place.path)
		switch {
		case here && c.locked && c.reason != initializing:
			return nil, refusal.New(refusal.CodeWorktreeLocked,
				fmt.Sprintf("bring the folder back, or run `git worktree unlock %s`", c.path),
				"the worktree %s of task %s is locked and its folder is not there: %s", c.path, place.id, c.reason)
		case here && c.locked:
			force = []string{"--force", "--force"}
		case here:
			force = []string{"--force"}
		case c.ref == place.ref():
			return nil, refusal.New(refusal.CodeBranchCheckedOut,
				fmt.Sprintf("switch %s to another branch", c.path),
				"branch %s of task %s is checked out in %s", place.branch, place.id, c.path)
		}
	}
	return force, nil
}

// clearUnborn makes room where git was killed while it added the worktree: its folder holds nothing
// but git's own link, and git's entry is locked as it was begun and names no branch yet. What it left
// is no use to anybody, and git itself adds it anew once the link is gone.
func (g *Git) clearUnborn(ctx context.Context, place worktreePlace) error {
	entries, err := os.ReadDir(place.path)
	if err != nil || len(entries) != 1 || entries[0].Name() != ".git" || !entries[0].Type().IsRegular() {
		return nil
	}
	dir, err := g.gitDirOf(ctx, place.path)
	if err != nil {
		return nil
	}
	reason, err := os.ReadFile(filepath.Join(dir, "locked"))
	if err != nil || strings.TrimSpace(string(reason)) != initializing {
		return nil
	}
	if head, err := os.ReadFile(filepath.Join(dir, "HEAD")); err == nil && strings.Trim(string(head), "0\n") != "" {
		return nil
	}
	if err := g.Disk.Remove(filepath.Join(place.path, ".git")); err != nil {
		return storage(err, "the worktree of task %s that git began cannot be cleared", place.id)
	}
	return nil
}

// samePlace compares paths of which the last element may be missing.
func samePlace(a, b string) bool {
	return filepath.Base(a) == filepath.Base(b) && (filepath.Dir(a) == filepath.Dir(b) || sameFile(filepath.Dir(a), filepath.Dir(b)))
}

// baseCommit is where a new task branch starts: the latest plan's base_commit, else the default
// branch.
func baseCommit(ctx context.Context, w WorktreeRequest) (string, error) {
	if base := w.Task.Latest("plan").Text("base_commit"); base != "" {
		id, err := w.Git.commit(ctx, w.Project.Root, base)
		if err == nil && id == "" {
			err = refusal.New(refusal.CodeBaseCommitUnknown, "file a plan block with a commit of this repository",
				"the plan of task %s names base_commit %q, which is no commit in %s", w.Task.ID, base, w.Project.Root)
		}
		return id, err
	}
	return w.Git.defaultHead(ctx, w.Project.Root, w.Policy.DefaultBranch)
}

// defaultHead is the commit of the default branch.
func (g *Git) defaultHead(ctx context.Context, root, branch string) (string, error) {
	id, err := g.commit(ctx, root, "refs/heads/"+branch)
	if err == nil && id == "" {
		err = refusal.New(refusal.CodeDefaultBranchMissing,
			"commit once on it, or set worktrees.default_branch in coordination/coord.yaml to the right branch (`greatminds setup` records the repository's own where none is set) and restart coordd",
			"the default branch %q has no commit in %s", branch, root)
	}
	return id, err
}

// firstCheckout fills a new, empty worktree and runs the hook that a checkout runs.
func (g *Git) firstCheckout(ctx context.Context, place worktreePlace) error {
	_, err := g.run(ctx, gitCall{step: "git.worktree-checkout", dir: place.path, long: true,
		args: []string{"read-tree", "-m", "-u", "HEAD"}})
	if err != nil {
		return fmt.Errorf("checkout of the worktree of task %s: %w", place.id, err)
	}
	s, err := g.look(ctx, place.path)
	if err != nil {
		return err
	}
	return g.hook(ctx, s, hookCall{name: "post-checkout", dir: place.path,
		args: []string{strings.Repeat("0", len(s.head)), s.head, "1"}})
}

// resumeCheckout takes up the first checkout of a worktree where it was cut short. A worktree
// that is not ours to finish is left for verifyWorktree to name.
func (g *Git) resumeCheckout(ctx context.Context, place worktreePlace, common string) error {
	if checkWorktreeFolder(place) != nil {
		return nil
	}
	dir, err := g.gitDirOf(ctx, place.path)
	if err != nil {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(dir, "index")); !os.IsNotExist(err) {
		return nil
	}
	if _, err := g.verifyWorktree(ctx, place, common); err != nil {
		return nil
	}
	if lock := indexLock(dir); lock != "" {
		return refusal.New(refusal.CodeWorktreeUnfinished,
			fmt.Sprintf("if no git runs there, remove %s", lock),
			"the first checkout of the worktree %s of task %s was cut short, and %s exists", place.path, place.id, lock)
	}
	if reason, err := os.ReadFile(filepath.Join(dir, "locked")); err == nil && strings.TrimSpace(string(reason)) == initializing {
		if _, err := g.run(ctx, gitCall{step: "git.worktree-unlock", dir: place.path, args: []string{"worktree", "unlock", place.path}}); err != nil {
			return err
		}
	}
	if err = g.firstCheckout(ctx, place); err == nil {
		return nil
	}
	var failed *gitError
	if !errors.As(err, &failed) {
		return err
	}
	return g.finishFirstCheckout(ctx, place, err)
}

// finishFirstCheckout completes a checkout in which files stand already, but only when each of
// them holds what the commit has for it, or the beginning of it, as git leaves the file it was
// writing: then nobody's bytes are overwritten.
func (g *Git) finishFirstCheckout(ctx context.Context, place worktreePlace, cause error) error {
	names, err := g.treeEntries(ctx, place.path, "HEAD")
	if err != nil {
		return err
	}
	states, err := g.classify(ctx, place.path, names)
	if err != nil {
		return err
	}
	others, err := g.foreign(ctx, place.path, states.others())
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return &refusal.Refusal{Code: refusal.CodeWorktreeUnfinished, Err: cause,
			What: fmt.Sprintf("the first checkout of the worktree %s of task %s was cut short, and it holds other contents in %s",
				place.path, place.id, nameSome(others)),
			Remedy: fmt.Sprintf("keep what you need of it, then run `git worktree remove --force %s`", place.path)}
	}
	_, err = g.run(ctx, gitCall{step: "git.worktree-restore", dir: place.path, long: true,
		args: []string{"restore", "--source=HEAD", "--staged", "--worktree", "--", ":/"}})
	return err
}

// foreign returns the files that are not the beginning of what HEAD has for them.
func (g *Git) foreign(ctx context.Context, dir string, names []string) ([]string, error) {
	var rest []string
	for _, name := range names {
		begun, err := g.begun(ctx, dir, name)
		if err != nil {
			return nil, err
		}
		if !begun {
			rest = append(rest, name)
		}
	}
	return rest, nil
}

// begun tells whether a file is the beginning of what a checkout of HEAD would write there, filters
// and line ends included.
func (g *Git) begun(ctx context.Context, dir, name string) (bool, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false, nil
	}
	if info.Size() == 0 {
		return true, nil
	}
	whole, err := g.run(ctx, gitCall{dir: dir, long: true, args: []string{"cat-file", "--filters", "HEAD:" + name}})
	if err != nil {
		return false, err
	}
	part, err := os.ReadFile(path)
	return err == nil && bytes.HasPrefix(whole.Stdout, part), nil
}
