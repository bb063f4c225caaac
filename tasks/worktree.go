package tasks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// Kinds of workspaces, as a run records them.
const (
	// TaskWorktree is the task's own worktree, or a folder inside it.
	TaskWorktree = "task_worktree"
	// BindingWorkspace is the binding's configured folder.
	BindingWorkspace = "binding"
)

// Workspace is the folder a run works in and the git identity it starts from.
type Workspace struct {
	// Kind is TaskWorktree or BindingWorkspace.
	Kind string
	// Path is absolute, without symbolic links.
	Path string
	// Head is the commit, Branch the short name of the branch ("" when detached), CommonDir the
	// absolute git common folder. All are empty for a binding workspace outside git; Head is
	// empty on a branch without a commit.
	Head, Branch, CommonDir string
	// Locked names an index.lock that stands in the worktree: reading works beside it, writing
	// will not. It is never removed by us. Empty where there is none.
	Locked string
}

// WorktreeRequest says whose workspace to prepare.
type WorktreeRequest struct {
	Git     *Git
	Project contract.Project
	// Policy is the project's effective worktree policy.
	Policy contract.Worktrees
	Task   *Task
	// Workspace is the binding's, as configured: "." or a path, relative to the project.
	Workspace string
}

// worktreePlace is where a task's worktree belongs and on which branch.
type worktreePlace struct {
	id     ID
	path   string // <project>/<base_path>/<id>
	branch string // short name, <branch_prefix><id>
}

// ref is the full name of the branch.
func (p worktreePlace) ref() string { return "refs/heads/" + p.branch }

func placeOf(p contract.Project, policy contract.Worktrees, id ID) worktreePlace {
	base := policy.BasePath
	if !filepath.IsAbs(base) {
		base = filepath.Join(p.Root, base)
	}
	return worktreePlace{id: id, path: filepath.Join(base, string(id)), branch: policy.BranchPrefix + string(id)}
}

// WorktreePath is where the worktree of a task belongs, whether it exists or not.
func WorktreePath(p contract.Project, policy contract.Worktrees, id ID) string {
	return placeOf(p, policy, id).path
}

// PrepareWorktree makes the workspace of a run ready and returns it. For a task kind with a
// worktree of its own it creates `<base_path>/<id>` on branch `<branch_prefix><id>` from the
// latest plan's base_commit, else from the default branch; a left-over branch is used as it
// stands, an existing worktree is verified: a git worktree, of this repository, on that branch.
// Any other kind works in the configured folder. It refuses by name what it cannot use, switches
// no branch and removes nothing.
// Spec: "Project contract and operator commands" (E-026..E-032).
func PrepareWorktree(ctx context.Context, w WorktreeRequest) (Workspace, error) {
	if !w.Policy.Requires(w.Task.Kind) {
		return bindingWorkspace(ctx, w)
	}
	if err := w.Git.CheckVersion(ctx, w.Project.Root); err != nil {
		return Workspace{}, err
	}
	common, err := w.Git.repository(ctx, w.Project.Root)
	if err != nil {
		return Workspace{}, err
	}
	place := placeOf(w.Project, w.Policy, w.Task.ID)
	if err := w.Git.clearUnborn(ctx, place); err != nil {
		return Workspace{}, err
	}
	if vacant(place.path) {
		err = createWorktree(ctx, w, place)
	} else {
		err = w.Git.resumeCheckout(ctx, place, common)
	}
	if err != nil {
		return Workspace{}, err
	}
	s, err := w.Git.verifyWorktree(ctx, place, common)
	if err != nil {
		return Workspace{}, err
	}
	ws := Workspace{Kind: TaskWorktree, Head: s.head, Branch: place.branch, CommonDir: common, Locked: indexLock(s.gitDir)}
	ws.Path, err = workspaceInside(w, place)
	return ws, err
}

// vacant tells whether nothing stands at a path, or an empty folder, which git takes too.
func vacant(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return os.IsNotExist(err)
	}
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

// bindingWorkspace is the configured folder itself.
func bindingWorkspace(ctx context.Context, w WorktreeRequest) (Workspace, error) {
	path, err := configuredFolder(w)
	if err != nil {
		return Workspace{}, err
	}
	ws := Workspace{Kind: BindingWorkspace, Path: path}
	s, err := w.Git.look(ctx, path)
	if r, ok := refusal.Find(err); ok && r.Code == refusal.CodeNotARepository {
		return ws, nil
	}
	if err != nil {
		return Workspace{}, err
	}
	ws.Head, ws.Branch, ws.CommonDir = s.head, strings.TrimPrefix(s.ref, "refs/heads/"), s.common
	return ws, nil
}

// configuredFolder resolves the binding's workspace, symbolic links included.
func configuredFolder(w WorktreeRequest) (string, error) {
	path := w.Workspace
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.Project.Root, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(real); err == nil && info.IsDir() {
			return real, nil
		}
	}
	return "", &refusal.Refusal{Code: refusal.CodeWorkspaceMissing, Err: err,
		What:   fmt.Sprintf("the workspace %q of the binding is no folder (%s)", w.Workspace, path),
		Remedy: "make the folder, or correct `workspace` in coordination/execution.yaml"}
}

// workspaceInside is the worktree itself for ".", else the configured folder, which must lie
// inside it however the path is spelled.
func workspaceInside(w WorktreeRequest, place worktreePlace) (string, error) {
	tree, err := filepath.EvalSymlinks(place.path)
	if err != nil {
		return "", fmt.Errorf("worktree of task %s: %w", place.id, err)
	}
	if filepath.Clean(w.Workspace) == "." {
		return tree, nil
	}
	path, err := configuredFolder(w)
	if err != nil {
		return "", err
	}
	if path != tree && !strings.HasPrefix(path, tree+string(filepath.Separator)) {
		return "", refusal.New(refusal.CodeWorkspaceOutside,
			"set `workspace: .` in the binding, which means the task's own worktree",
			"the binding's workspace %q is %s, outside the worktree %s of task %s",
			w.Workspace, path, tree, place.id)
	}
	return path, nil
}
