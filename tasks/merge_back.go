package tasks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"greatminds/internal/refusal"
)

// takeBack brings the checkouts that have moved already back from the merge, because the branch
// is at head and not at the old commit. It returns ErrBranchMoved when all are back.
func (m MergePlan) takeBack(ctx context.Context, on []Checkout, head string) error {
	if head == "" {
		return refusal.New(refusal.CodeBranchMoved, "bring the branch back, then repair the operation",
			"the branch %s is gone", m.Branch)
	}
	for _, c := range on {
		if err := m.takeBackOne(ctx, c, head); err != nil {
			return err
		}
	}
	return ErrBranchMoved
}

func (m MergePlan) takeBackOne(ctx context.Context, c Checkout, head string) error {
	if index, err := m.indexSide(ctx, c); err != nil {
		return err
	} else if index == holdsNew && len(m.changes) > 0 {
		return m.takeBackWhole(ctx, c, head)
	}
	states, err := m.git.classify(ctx, c.Path, m.changes)
	if err != nil || unstarted(states) {
		return err
	}
	moved, err := m.git.treeChanges(ctx, c.Path, m.Old, head)
	if err != nil {
		return err
	}
	if len(states.others()) > 0 || overlapping(moved, m.changes) {
		return m.uncertain(c, states)
	}
	if err := checkIdle(c.Path, c.GitDir); err != nil {
		return err
	}
	if err := m.restore(ctx, c, head); err != nil {
		return err
	}
	return m.dropAdded(c, states)
}

// dropAdded removes the files that the cut step had already added: they are in no index, so that
// restore does not know them, and their contents are those of the merge.
func (m MergePlan) dropAdded(c Checkout, states contents) error {
	for _, change := range m.changes {
		if !change.added() || states[change.path] != holdsNew {
			continue
		}
		if err := m.git.Disk.Remove(filepath.Join(c.Path, filepath.FromSlash(change.path))); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// takeBackWhole undoes a finished checkout step, unless somebody has committed its contents.
func (m MergePlan) takeBackWhole(ctx context.Context, c Checkout, head string) error {
	since, err := m.git.treeChanges(ctx, c.Path, m.Commit, head)
	if err != nil {
		return err
	}
	if !overlapping(since, m.changes) && head != m.Old {
		return refusal.New(refusal.CodeCheckoutUncertain,
			"look at that commit; where it holds the merge's files, merge the task branch by hand and repair the operation",
			"the commit %.12s on %s, made in %s, contains the files of the merge %.12s without being it",
			head, m.Branch, c.Path, m.Commit)
	}
	if err := checkIdle(c.Path, c.GitDir); err != nil {
		return err
	}
	if _, err := m.git.run(ctx, gitCall{step: "git.take-back", dir: c.Path, long: true,
		args: []string{"read-tree", "-m", "-u", m.Commit, m.Old}}); err != nil {
		return &refusal.Refusal{Code: refusal.CodeCheckoutUncertain, Err: err,
			What:   fmt.Sprintf("the checkout %s took the merge %.12s in and could not be taken back: %v", c.Path, m.Commit, err),
			Remedy: fmt.Sprintf("look at `git -C %s status`, then repair the operation", c.Path)}
	}
	return nil
}

func overlapping(some, changes []pathChange) bool {
	names := make([]string, len(some))
	for i, c := range some {
		names[i] = c.path
	}
	return anyOf(names, changes)
}
