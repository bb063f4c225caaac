package tasks

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"greatminds/internal/refusal"
)

// overlay puts what the worktree holds uncommitted into a commit on top of the task branch's,
// and leaves branch, index and files as they are.
func (g *Git) overlay(ctx context.Context, r MergeRequest, place worktreePlace, where sight, who identity, m *MergePlan) error {
	if err := checkIdle(place.path, where.gitDir); err != nil {
		return err
	}
	tree, err := g.overlayTree(ctx, place, where)
	if err != nil || tree == where.tree {
		return err
	}
	ours := person{ourName, ourEmail}
	message := fmt.Sprintf("impl(%s): worktree overlay captured at merge\n", r.Task)
	m.Theirs, err = g.commitTree(ctx, "git.commit-overlay", newCommit{dir: place.path, tree: tree,
		parents: []string{m.TaskOld}, message: message, when: r.When, who: identity{ours, ours, who.sign}})
	return err
}

// overlayTree writes the worktree's whole contents, ignored files left out, as a tree. It works
// on a copy of the index, so what somebody staged (also with force) counts as they left it.
func (g *Git) overlayTree(ctx context.Context, place worktreePlace, where sight) (string, error) {
	tmp, done, err := g.temporary("overlay-*")
	if err != nil {
		return "", err
	}
	defer done()
	env, err := indexCopy(where.gitDir, tmp)
	if err != nil {
		return "", err
	}
	clean, err := g.refuseNested(ctx, place, env)
	if err != nil {
		return "", err
	}
	if clean {
		return where.tree, nil
	}
	if _, err = g.run(ctx, gitCall{step: "git.add", dir: place.path, env: env, long: true,
		args: []string{"add", "--all"}}); err != nil {
		return "", fmt.Errorf("uncommitted work of task %s: %w", place.id, err)
	}
	out, err := g.run(ctx, gitCall{step: "git.write-tree", dir: place.path, env: env, args: []string{"write-tree"}})
	if err != nil {
		return "", fmt.Errorf("uncommitted work of task %s: %w", place.id, err)
	}
	return strings.TrimSpace(string(out.Stdout)), nil
}

// refuseNested refuses a repository inside the worktree, whose files git would not take along
// and whose history would be lost with the worktree, and a changed submodule. It tells whether
// the worktree is at its commit.
func (g *Git) refuseNested(ctx context.Context, place worktreePlace, env []string) (bool, error) {
	out, err := g.run(ctx, gitCall{dir: place.path, env: env, long: true,
		args: []string{"status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=none"}})
	if err != nil {
		return false, err
	}
	for _, line := range splitNUL(out.Stdout) {
		// "1 XY sub mH mI mW hH hI path", "u XY sub m1 m2 m3 mW h1 h2 h3 path", "? path"
		words := strings.SplitN(line, " ", 4)
		switch {
		case words[0] == "?" && strings.HasSuffix(line, "/"):
			return false, nestedRefusal(place, strings.TrimPrefix(line, "? "))
		case words[0] == "u":
			return false, refusal.New(refusal.CodeMergeBusy, "resolve it there and `git add` it",
				"the worktree %s of task %s has the unmerged file %s", place.path, place.id, afterSpaces(line, 10))
		case words[0] == "1" && len(words) == 4 && strings.HasPrefix(words[2], "S"):
			return false, refusal.New(refusal.CodeMergeSubmodule,
				"commit and push inside the submodule and merge by hand, or undo the change",
				"the worktree of task %s holds a changed submodule: %s", place.id, afterSpaces(line, 8))
		}
	}
	return len(out.Stdout) == 0, g.refuseNestedTracked(ctx, place, env)
}

// afterSpaces returns what stands after the n-th space: a path, which may hold more of them.
func afterSpaces(line string, n int) string {
	fields := strings.SplitN(line, " ", n+1)
	return fields[len(fields)-1]
}

// refuseNestedTracked looks for a .git inside folders whose files are tracked: git takes such
// files along but not the history beside them.
func (g *Git) refuseNestedTracked(ctx context.Context, place worktreePlace, env []string) error {
	out, err := g.run(ctx, gitCall{dir: place.path, env: env, args: []string{"ls-files", "-z", "--stage"}})
	if err != nil {
		return err
	}
	seen := map[string]bool{".": true}
	for _, line := range splitNUL(out.Stdout) {
		meta, name, _ := strings.Cut(line, "\t")
		if strings.HasPrefix(meta, submoduleMode) {
			continue
		}
		for dir := path.Dir(name); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			if _, err := os.Lstat(filepath.Join(place.path, filepath.FromSlash(dir), ".git")); err == nil {
				return nestedRefusal(place, dir+"/")
			}
		}
	}
	return nil
}

func nestedRefusal(place worktreePlace, dir string) error {
	full := filepath.Join(place.path, filepath.FromSlash(dir))
	return refusal.New(refusal.CodeMergeNested,
		fmt.Sprintf("move %s out of the worktree, or remove its .git", full),
		"the worktree of task %s holds a repository of its own in %s", place.id, full)
}
