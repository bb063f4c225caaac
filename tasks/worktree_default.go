package tasks

import "context"

// CheckDefaultBranch refuses a default branch that the repository at root does not have, or that
// has no commit yet. It is asked before any run, so that nobody works for hours towards a merge
// that cannot be made.
func (g *Git) CheckDefaultBranch(ctx context.Context, root, branch string) error {
	if err := g.CheckVersion(ctx, root); err != nil {
		return err
	}
	_, err := g.defaultHead(ctx, root, branch)
	return err
}
