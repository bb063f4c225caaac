package tasks

import (
	"context"
	"errors"
	"strings"

	"greatminds/internal/refusal"
)

// Done reports whether the merge has been made: the branch is at the merge's commit, or
// contains it.
func (m MergePlan) Done(ctx context.Context) (bool, error) {
	if m.Nothing {
		return true, nil
	}
	there, err := m.git.commit(ctx, m.Root, m.Commit)
	if err != nil || there == "" {
		return false, err
	}
	return m.git.isAncestor(ctx, m.Root, m.Commit, m.Branch)
}

// Perform makes the merge: the task branch takes the overlay, every checkout of the branch
// follows, then the branch moves. With resumed it goes on from whatever an earlier attempt left,
// and never makes a second merge. It fails with
//   - an overlap's refusal, a lock's or the like where a checkout cannot follow,
//   - ErrBranchMoved when the branch moved first; every checkout is as it was,
//   - code checkout_uncertain where a checkout is between the two commits and holds something
//     else: a person has to look.
//
// Spec: design of the merge, points 5 to 8.
func (m MergePlan) Perform(ctx context.Context, resumed bool) error {
	if m.Nothing {
		return nil
	}
	if resumed {
		if done, err := m.Done(ctx); err != nil || done {
			return err
		}
	}
	m, err := m.known(ctx)
	if err != nil {
		return err
	}
	on, err := m.Checkouts(ctx)
	if err != nil {
		return err
	}
	head, err := m.git.commit(ctx, m.Root, m.Branch)
	if err != nil {
		return err
	}
	if head != m.Old {
		return m.takeBack(ctx, on, head)
	}
	if err := m.keepOverlay(ctx); err != nil {
		return err
	}
	for _, c := range on {
		if err := m.follow(ctx, c, resumed); err != nil {
			return err
		}
	}
	return m.updateBranch(ctx)
}

// Begun reports whether anything of the merge is in place: the branch, or a trace in a checkout.
// While it is not, the merge can be given up, and after it can only be finished.
func (m MergePlan) Begun(ctx context.Context) (bool, error) {
	if m.Nothing {
		return false, nil
	}
	if done, err := m.Done(ctx); err != nil || done {
		return true, err
	}
	on, err := m.Checkouts(ctx)
	if err != nil {
		return true, err
	}
	if m, err = m.known(ctx); err != nil {
		return true, err
	}
	for _, c := range on {
		index, err := m.indexSide(ctx, c)
		if err != nil {
			return true, err
		}
		states, err := m.git.classify(ctx, c.Path, m.changes)
		if err != nil || index == holdsNew || !unstarted(states) {
			return true, err
		}
	}
	return false, nil
}

// keepOverlay moves the task branch to the overlay commit, so that what the worktree held is on
// a branch from here on.
func (m MergePlan) keepOverlay(ctx context.Context) error {
	if !m.Overlay() {
		return nil
	}
	head, err := m.git.commit(ctx, m.Root, m.TaskBranch)
	if err != nil || head == m.Theirs {
		return err
	}
	if head != m.TaskOld {
		return refusal.New(refusal.CodeBranchMoved, "let it be verified again as it is now",
			"branch %s moved to %s while %s was being merged", m.TaskBranch, head, m.TaskOld)
	}
	if _, err := m.git.run(ctx, gitCall{step: "git.keep-overlay", dir: m.Root,
		args: []string{"update-ref", "-m", "greatminds: worktree overlay", m.TaskBranch, m.Theirs, m.TaskOld}}); err != nil {
		return err
	}
	if m.Worktree == "" {
		return nil
	}
	// The files are those of the overlay already. An index that stays behind (a lock, say) shows
	// them as changed, which is untidy and harmless.
	_, _ = m.git.run(ctx, gitCall{step: "git.overlay-index", dir: m.Worktree, args: []string{"read-tree", "-i", "-m", m.Theirs}})
	return nil
}

// updateBranch moves the branch from the old commit to the merge. When it has moved meanwhile,
// or cannot be moved, every checkout is taken back and the error is ErrBranchMoved or git's.
func (m MergePlan) updateBranch(ctx context.Context) error {
	short := strings.TrimPrefix(m.TaskBranch, "refs/heads/")
	_, err := m.git.run(ctx, gitCall{step: "git.update-ref", dir: m.Root,
		args: []string{"update-ref", "-m", "greatminds: merge " + short, m.Branch, m.Commit, m.Old}})
	if err == nil {
		return nil
	}
	var failed *gitError
	if !errors.As(err, &failed) {
		return err // not git's own answer: whether it moved is for Done to say
	}
	head, headErr := m.git.commit(ctx, m.Root, m.Branch)
	if headErr != nil {
		return headErr
	}
	if head == m.Commit {
		return nil
	}
	on, listErr := m.Checkouts(ctx)
	if listErr != nil {
		return listErr
	}
	if back := m.takeBack(ctx, on, head); !errors.Is(back, ErrBranchMoved) || head != m.Old {
		return back
	}
	return err // a lock or a hook of git's kept the branch where it was
}
