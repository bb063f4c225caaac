package tasks

import (
	"context"
	"strings"
)

// MergeCommit is one merge commit of a branch.
type MergeCommit struct {
	Commit string
	// Parents are the commits that it joins, the branch's own first.
	Parents []string
}

// Merges lists the merge commits on the branch's own line (first parents), newest first. It is
// empty for a branch without a commit, and costs the branch's whole history.
func (g *Git) Merges(ctx context.Context, root, branch string) ([]MergeCommit, error) {
	head, err := g.commit(ctx, root, "refs/heads/"+branch)
	if err != nil || head == "" {
		return []MergeCommit{}, err
	}
	text, err := g.text(ctx, root, "rev-list", "--merges", "--first-parent", "--parents", head)
	merges := []MergeCommit{}
	for line := range strings.Lines(text) {
		if ids := strings.Fields(line); len(ids) > 1 {
			merges = append(merges, MergeCommit{Commit: ids[0], Parents: ids[1:]})
		}
	}
	return merges, err
}
