package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/supervisor/dispatch"
	"greatminds/tasks"
)

// placePause is the pause between two looks at a folder or default branch that was not there, as
// long as a task waits for it.
const placePause = 10 * time.Second

// lookAtPlaces looks at the folders and the branch that runs would need: a stat for each binding
// in every pass, git only until the branch was there once.
func (d *Daemon) lookAtPlaces(ctx context.Context) {
	now := d.o.Now()
	p := dispatch.Places{Worktrees: d.worktrees, Workspaces: workspaceFaults(d.o.Project, d.contract)}
	d.mu.Lock()
	p.Branch = d.places.Branch
	d.mu.Unlock()
	if since := now.Sub(d.branchAt); d.branchAt.IsZero() || p.Branch != nil && (since >= placePause || since < 0) {
		p.Branch, d.branchAt = branchFault(ctx, d.git, d.o.Project, d.worktrees), now
	}
	p.LookAt = now.Add(placePause)
	if p.Branch != nil {
		p.LookAt = d.branchAt.Add(placePause)
	}
	d.mu.Lock()
	d.places = p
	d.mu.Unlock()
}

// workspaceFaults says, by binding, why its own workspace cannot be used. E-036.
func workspaceFaults(p contract.Project, c *contract.Contract) map[string]*refusal.Refusal {
	out := map[string]*refusal.Refusal{}
	for _, b := range c.Bindings {
		path := workspaceOf(p, b)
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			out[b.ID] = refusal.New(refusal.CodeWorkspaceMissing,
				"make the folder, or mend bindings."+b.ID+".workspace in coordination/execution.yaml and restart coordd",
				"binding %s works in %s, which is no folder", b.ID, path)
		}
	}
	return out
}

// branchFault says why no worktree can be made from the default branch; nil where one can.
func branchFault(ctx context.Context, git *tasks.Git, p contract.Project, w contract.Worktrees) *refusal.Refusal {
	err := git.CheckDefaultBranch(ctx, p.Root, w.DefaultBranch)
	if err == nil {
		return nil
	}
	if r, told := refusal.Find(err); told {
		return r
	}
	return refusal.New(refusal.CodeFailed, "look at the repository with git status", "git cannot tell the default branch: %v", err)
}

// workspaceOf is the folder that a binding names, absolute.
func workspaceOf(p contract.Project, b contract.Binding) string {
	if filepath.IsAbs(b.Workspace) {
		return filepath.Clean(b.Workspace)
	}
	return filepath.Join(p.Root, b.Workspace)
}
