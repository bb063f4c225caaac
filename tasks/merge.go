package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// ErrBranchMoved is a branch that moved between the planning of a merge and its making. Nothing
// is left half done: the merge has to be computed again.
var ErrBranchMoved = errors.New("the branch moved since the merge was computed")

// MergeRequest says which verified task to merge.
type MergeRequest struct {
	Git     *Git
	Project contract.Project
	Policy  contract.Worktrees
	Task    ID
	// Message is the merge commit's message.
	Message string
	// When is the time of both commits. The same inputs and time give the same ids, unless a
	// signing program adds something of its own.
	When time.Time
}

// MergePlan is a merge that is computed but not made: everything that recovery compares with,
// fit to be recorded before anything moves. Its objects are in the repository already.
type MergePlan struct {
	// Branch is the full name of the branch merged into, Old the commit it is at.
	Branch string `json:"branch"`
	Old    string `json:"old"`
	// TaskBranch is the full name of the task's branch, TaskOld the commit it is at, Theirs the
	// commit that is merged: TaskOld, or the overlay commit on it that holds what the worktree
	// had uncommitted.
	TaskBranch string `json:"task_branch"`
	TaskOld    string `json:"task_old"`
	Theirs     string `json:"theirs"`
	// Commit is the merge, with Tree and Parents. All are empty when Nothing.
	Commit  string   `json:"commit,omitempty"`
	Tree    string   `json:"tree,omitempty"`
	Parents []string `json:"parents,omitempty"`
	// Nothing says that the branch contains the task's work already.
	Nothing bool `json:"nothing,omitempty"`
	// Root is the folder git is asked in, Worktree the task's worktree ("" when there is none).
	Root     string `json:"root"`
	Worktree string `json:"worktree,omitempty"`

	git     *Git
	changes []pathChange // what the merge changes on the branch; nil until it is known
}

// With returns the plan ready to be performed by g, as after reading it from a record.
func (m MergePlan) With(g *Git) MergePlan {
	m.git = g
	return m
}

// Overlay reports whether the worktree held uncommitted work.
func (m MergePlan) Overlay() bool { return m.Theirs != m.TaskOld }

// MergeConflict is a merge that git cannot make by itself. Nothing has changed.
type MergeConflict struct {
	Branch string
	Task   ID
	// Files are the paths in conflict, sorted as git lists them.
	Files []string
}

// Error names the branch and the files.
func (c *MergeConflict) Error() string {
	return fmt.Sprintf("task %s does not merge into %s: conflicts in %s", c.Task, c.Branch, nameSome(c.Files))
}

// Unwrap gives the conflict its refusal code.
func (c *MergeConflict) Unwrap() error {
	return &refusal.Refusal{Code: refusal.CodeMergeConflict, What: c.Error(),
		Remedy: fmt.Sprintf("bring the task branch up to date with %s and resolve the files there", c.Branch)}
}

// ComputeMerge computes the merge of a task's work into the default branch and makes its
// commits, without moving a branch, an index or a file. It fails with a *MergeConflict where
// git finds conflicts, and with a refusal that names what is in the way otherwise; both mean
// that nothing has changed but for unreferenced objects.
// Spec: design of the merge, points 1 to 4.
func ComputeMerge(ctx context.Context, r MergeRequest) (MergePlan, error) {
	if err := r.Git.CheckVersion(ctx, r.Project.Root); err != nil {
		return MergePlan{}, err
	}
	if s := strings.TrimSpace(r.Policy.MergeStrategy); s != "" && s != "--no-ff" {
		return MergePlan{}, refusal.New(refusal.CodeMergeStrategy,
			"set worktrees.merge_strategy to --no-ff, or leave it out", "the merge strategy %q is not supported", s)
	}
	m, place, where, err := locate(ctx, r)
	if err != nil {
		return MergePlan{}, err
	}
	who, err := r.Git.identity(ctx, m.dir())
	if err != nil {
		return MergePlan{}, err
	}
	if m.Worktree != "" {
		if err := r.Git.overlay(ctx, r, place, where, who, &m); err != nil {
			return MergePlan{}, err
		}
	}
	if err := r.Git.mergeTree(ctx, r, &m); err != nil || m.Nothing {
		return m, err
	}
	return m, r.Git.mergeCommit(ctx, r, where, who, &m)
}

// dir is where git computes: in the task's worktree, so that the attributes that count are those
// of the work and not those of whatever the user has checked out.
func (m MergePlan) dir() string {
	if m.Worktree != "" {
		return m.Worktree
	}
	return m.Root
}

// locate finds both branches and the worktree.
func locate(ctx context.Context, r MergeRequest) (MergePlan, worktreePlace, sight, error) {
	place := placeOf(r.Project, r.Policy, r.Task)
	m := MergePlan{Branch: "refs/heads/" + r.Policy.DefaultBranch, TaskBranch: place.ref(), Root: r.Project.Root, git: r.Git}
	var err error
	if m.Old, err = r.Git.defaultHead(ctx, m.Root, r.Policy.DefaultBranch); err != nil {
		return m, place, sight{}, err
	}
	if _, err := os.Lstat(place.path); err == nil {
		common, err := r.Git.repository(ctx, m.Root)
		if err != nil {
			return m, place, sight{}, err
		}
		s, err := r.Git.verifyWorktree(ctx, place, common)
		m.Worktree, m.TaskOld, m.Theirs = place.path, s.head, s.head
		return m, place, s, err
	}
	if m.TaskOld, err = r.Git.commit(ctx, m.Root, place.ref()); err != nil {
		return m, place, sight{}, err
	}
	if m.TaskOld == "" {
		return m, place, sight{}, refusal.New(refusal.CodeMergeBranchMissing,
			fmt.Sprintf("where the work is somewhere else, run `git branch %s COMMIT`; where there is none, `git worktree add -f -b %s %s %s`",
				place.branch, place.branch, place.path, r.Policy.DefaultBranch),
			"task %s has neither the worktree %s nor the branch %s: nothing tells what to merge", r.Task, place.path, place.branch)
	}
	m.Theirs = m.TaskOld
	s, err := r.Git.look(ctx, m.Root)
	return m, place, s, err
}

func (g *Git) isAncestor(ctx context.Context, dir, a, b string) (bool, error) {
	out, err := g.run(ctx, gitCall{dir: dir, codes: []int{1}, args: []string{"merge-base", "--is-ancestor", a, b}})
	return err == nil && out.Code == 0, err
}

// mergeTree computes the merged tree and what it changes on the branch.
func (g *Git) mergeTree(ctx context.Context, r MergeRequest, m *MergePlan) error {
	out, err := g.run(ctx, gitCall{step: "git.merge-tree", dir: m.dir(), long: true, codes: []int{1},
		args: []string{"merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", m.Old, m.Theirs}})
	if err != nil {
		return fmt.Errorf("merge of task %s: %w", r.Task, err)
	}
	fields := strings.Split(string(out.Stdout), "\x00")
	if !isObjectID(fields[0]) {
		// A status of 1 without a tree is git's own failure, not a conflict.
		failed := &gitError{dir: m.dir(), args: []string{"merge-tree"}, code: out.Code, stderr: shorten(out.Stderr)}
		return &refusal.Refusal{Code: refusal.CodeGitFailed, What: failed.Error(), Err: failed,
			Remedy: "put right what git names, then try again"}
	}
	if out.Code == 1 {
		return &MergeConflict{Branch: r.Policy.DefaultBranch, Task: r.Task, Files: conflictFiles(fields[1:])}
	}
	m.Tree = fields[0]
	if m.changes, err = g.treeChanges(ctx, m.dir(), m.Old, m.Tree); err != nil {
		return err
	}
	if len(m.changes) == 0 {
		// The branch has all of it: by containing the commits, or by having the same contents.
		m.changes = []pathChange{}
		if m.Nothing, err = g.isAncestor(ctx, m.dir(), m.Theirs, m.Old); m.Nothing {
			m.Tree = ""
		}
		return err
	}
	for _, c := range m.changes {
		if c.submodule() {
			return refusal.New(refusal.CodeMergeSubmodule,
				fmt.Sprintf("merge %s into %s by hand; the task then goes on by itself", strings.TrimPrefix(m.TaskBranch, "refs/heads/"), r.Policy.DefaultBranch),
				"the merge of task %s changes the submodule %s, which is left to a person", r.Task, c.path)
		}
	}
	return nil
}

// conflictFiles reads the names up to the empty field that ends them.
func conflictFiles(fields []string) []string {
	var files []string
	for _, f := range fields {
		if f == "" {
			break
		}
		if len(files) == 0 || files[len(files)-1] != f {
			files = append(files, f)
		}
	}
	return files
}

func isObjectID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// indexCopy copies a worktree's index into a temporary folder and returns the environment that
// makes git use it.
func indexCopy(gitDir, tmp string) ([]string, error) {
	path := filepath.Join(tmp, "index")
	env := []string{"GIT_INDEX_FILE=" + path}
	from := filepath.Join(gitDir, "index")
	info, err := os.Stat(from)
	if os.IsNotExist(err) {
		return env, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return nil, err
	}
	// Git tells a file that changed within the index's own time slice by that time: a younger
	// copy would make it take such a file for unchanged.
	return env, os.Chtimes(path, info.ModTime(), info.ModTime())
}
