package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// RemoveRequest says which worktree and branch to remove.
type RemoveRequest struct {
	Git     *Git
	Project contract.Project
	Policy  contract.Worktrees
	Task    ID
	// Merged is the commit that holds all of the worktree's contents, as [MergePlan] has it: a
	// worktree that holds anything else is kept, and a branch that is elsewhere too. Empty for an
	// archived task, whose worktree and branch go as they are.
	Merged string
}

// Removed tells what was removed.
type Removed struct {
	// Branch is the removed branch, Head the commit it was at: `git branch Branch Head` brings
	// it back while git keeps the commit. Both are empty where there was no branch.
	Branch, Head string
}

// RemoveWorktree removes a task's worktree and branch. It can be repeated after any crash: the
// folder is first moved aside in one rename, so that it is never half a worktree. It refuses
// what is locked, another repository's, on another branch, or changed since Merged.
func RemoveWorktree(ctx context.Context, r RemoveRequest) (Removed, error) {
	place := placeOf(r.Project, r.Policy, r.Task)
	aside := filepath.Join(filepath.Dir(place.path), ".removed-"+string(r.Task))
	all, err := r.Git.checkouts(ctx, r.Project.Root)
	if err != nil {
		return Removed{}, err
	}
	if err := checkRemovable(ctx, r, place, all); err != nil {
		return Removed{}, err
	}
	if _, err := os.Lstat(place.path); err == nil {
		if err := r.Git.deleteTree("worktree.clear", aside); err != nil {
			return Removed{}, err
		}
		if err := r.Git.Disk.Rename(place.path, aside); err != nil {
			return Removed{}, fmt.Errorf("worktree of task %s: %w", r.Task, err)
		}
	}
	if err := forgetWorktree(ctx, r, place, all); err != nil {
		return Removed{}, err
	}
	removed, err := deleteBranch(ctx, r, place, all)
	if err != nil {
		return Removed{}, err
	}
	return removed, r.Git.deleteTree("worktree.delete", aside)
}

// checkRemovable refuses a worktree that must stay.
func checkRemovable(ctx context.Context, r RemoveRequest, place worktreePlace, all []checkout) error {
	for _, c := range all {
		if c.locked && samePlace(c.path, place.path) {
			return refusal.New(refusal.CodeWorktreeLocked, fmt.Sprintf("run `git worktree unlock %s`, or keep it", c.path),
				"the worktree %s of task %s is locked: %s", c.path, r.Task, c.reason)
		}
	}
	if _, err := os.Lstat(place.path); os.IsNotExist(err) {
		return nil
	}
	common, err := r.Git.repository(ctx, r.Project.Root)
	if err != nil {
		return err
	}
	s, err := r.Git.verifyWorktree(ctx, place, common)
	if err != nil || r.Merged == "" {
		return err
	}
	now, err := r.Git.overlayTree(ctx, place, s)
	if err != nil || now == s.tree && s.head == r.Merged {
		return err
	}
	changes, err := r.Git.treeChanges(ctx, place.path, r.Merged, now)
	if err != nil || len(changes) == 0 {
		return err
	}
	names := make([]string, len(changes))
	for i, c := range changes {
		names[i] = c.path
	}
	return refusal.New(refusal.CodeWorktreeChanged,
		fmt.Sprintf("look at the changes; then remove it with `git worktree remove --force %s`", place.path),
		"the worktree %s of task %s was merged and has changed since, in %s: it is kept", place.path, r.Task, nameSome(names))
}

// forgetWorktree drops git's entry of a worktree whose folder has been moved aside.
func forgetWorktree(ctx context.Context, r RemoveRequest, place worktreePlace, all []checkout) error {
	for _, c := range all {
		if samePlace(c.path, place.path) {
			_, err := r.Git.run(ctx, gitCall{step: "git.worktree-remove", dir: r.Project.Root,
				args: []string{"worktree", "remove", "--force", c.path}})
			return err
		}
	}
	return nil
}

// deleteBranch deletes the task branch, unless it moved on or another checkout is on it.
func deleteBranch(ctx context.Context, r RemoveRequest, place worktreePlace, all []checkout) (Removed, error) {
	head, err := r.Git.commit(ctx, r.Project.Root, place.ref())
	if err != nil || head == "" {
		return Removed{}, err
	}
	if r.Merged != "" && head != r.Merged {
		return Removed{}, refusal.New(refusal.CodeBranchMoved, fmt.Sprintf("look at it, then delete it with `git branch -D %s`", place.branch),
			"branch %s of task %s is at %s, not at the merged %s: it is kept", place.branch, r.Task, head, r.Merged)
	}
	for _, c := range all {
		if c.ref == place.ref() && !samePlace(c.path, place.path) {
			return Removed{}, refusal.New(refusal.CodeBranchCheckedOut, fmt.Sprintf("switch %s to another branch", c.path),
				"branch %s of task %s is checked out in %s: it is kept", place.branch, r.Task, c.path)
		}
	}
	_, err = r.Git.run(ctx, gitCall{step: "git.branch-delete", dir: r.Project.Root,
		args: []string{"update-ref", "-d", place.ref(), head}})
	return Removed{Branch: place.branch, Head: head}, err
}

// deleteTree deletes a folder with everything in it, read-only folders included (module caches
// are made of them).
func (g *Git) deleteTree(step, path string) error {
	if _, err := os.Lstat(path); os.IsNotExist(err) {
		return nil
	}
	return g.Disk.Step(step, func() error {
		err := os.RemoveAll(path)
		if !errors.Is(err, fs.ErrPermission) {
			return err
		}
		_ = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				// Where this fails, the removal below says so.
				_ = os.Chmod(name, 0o700)
			}
			return nil
		})
		return os.RemoveAll(path)
	})
}

// MergedHead is the head of a task's branch where the default branch contains it, and empty
// where it does not or where there is no branch: what [RemoveRequest] takes as Merged when no
// plan tells.
func (g *Git) MergedHead(ctx context.Context, p contract.Project, policy contract.Worktrees, id ID) (string, error) {
	head, err := g.commit(ctx, p.Root, placeOf(p, policy, id).ref())
	if err != nil || head == "" {
		return "", err
	}
	merged, err := g.isAncestor(ctx, p.Root, head, "refs/heads/"+policy.DefaultBranch)
	if err != nil || !merged {
		return "", err
	}
	return head, nil
}
