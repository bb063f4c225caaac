package tasks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"greatminds/internal/refusal"
)

// checkout is one entry of `git worktree list`.
type checkout struct {
	path     string
	head     string // commit
	ref      string // full branch name, empty when detached or bare
	bare     bool
	locked   bool
	reason   string // of the lock
	prunable bool   // its folder is gone
}

// checkouts lists the checkouts of the repository that dir belongs to, the main one first.
func (g *Git) checkouts(ctx context.Context, dir string) ([]checkout, error) {
	out, err := g.run(ctx, gitCall{dir: dir, args: []string{"worktree", "list", "--porcelain", "-z"}})
	if err != nil {
		return nil, err
	}
	return parseCheckouts(string(out.Stdout)), nil
}

// parseCheckouts reads records of NUL-ended attributes, each record ended by an empty one.
func parseCheckouts(text string) []checkout {
	var all []checkout
	for _, record := range strings.Split(text, "\x00\x00") {
		var c checkout
		for _, line := range strings.Split(strings.Trim(record, "\x00"), "\x00") {
			key, value, _ := strings.Cut(line, " ")
			switch key {
			case "worktree":
				c.path = value
			case "HEAD":
				c.head = value
			case "branch":
				c.ref = value
			case "bare":
				c.bare = true
			case "locked":
				c.locked, c.reason = true, value
			case "prunable":
				c.prunable = true
			}
		}
		if c.path != "" {
			all = append(all, c)
		}
	}
	return all
}

// sight is what git says about a folder, asked in one call.
type sight struct {
	common string // folder that all worktrees of the repository share, links resolved
	gitDir string // folder of the checkout's own HEAD and index
	hooks  string
	head   string // commit and its tree; empty on a branch without a commit
	tree   string
	ref    string // full name of the branch, empty when detached
}

// look asks git about a folder. One outside every repository is refused.
func (g *Git) look(ctx context.Context, dir string) (sight, error) {
	const places = 3
	args := []string{"rev-parse", "--path-format=absolute", "--git-common-dir", "--git-dir", "--git-path", "hooks"}
	out, err := g.run(ctx, gitCall{dir: dir, codes: []int{128},
		args: slices.Concat(args, []string{"HEAD", "HEAD^{tree}", "--symbolic-full-name", "HEAD"})})
	if err != nil {
		return sight{}, err
	}
	if out.Code != 0 {
		if out, err = g.run(ctx, gitCall{dir: dir, codes: []int{128}, args: args}); err != nil {
			return sight{}, err
		}
	}
	lines := strings.Split(strings.TrimRight(string(out.Stdout), "\n"), "\n")
	if out.Code != 0 || len(lines) < places {
		return sight{}, refusal.New(refusal.CodeNotARepository,
			"run `git init` there and commit once, or open the project inside its repository",
			"%s is in no usable git repository: %s", dir, shorten(out.Stderr))
	}
	s := sight{gitDir: lines[1], hooks: lines[2]}
	if s.common, err = filepath.EvalSymlinks(lines[0]); err != nil {
		return sight{}, fmt.Errorf("git folder of %s: %w", dir, err)
	}
	if len(lines) == places {
		s.ref, err = g.headRef(ctx, dir)
		return s, err
	}
	if len(lines) != places+3 {
		return sight{}, fmt.Errorf("git described %s in %d lines", dir, len(lines))
	}
	s.head, s.tree = lines[3], lines[4]
	if lines[5] != "HEAD" {
		s.ref = lines[5]
	}
	return s, nil
}

// headRef is the full name of the branch that dir is on, empty when detached.
func (g *Git) headRef(ctx context.Context, dir string) (string, error) {
	out, err := g.run(ctx, gitCall{dir: dir, codes: []int{1}, args: []string{"symbolic-ref", "-q", "HEAD"}})
	return strings.TrimRight(string(out.Stdout), "\n"), err
}

// repository is the common folder of the project's repository. It is remembered: a repository
// that moves takes its daemon along.
func (g *Git) repository(ctx context.Context, root string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if common, ok := g.commons[root]; ok {
		return common, nil
	}
	s, err := g.look(ctx, root)
	if err != nil {
		return "", err
	}
	if g.commons == nil {
		g.commons = map[string]string{}
	}
	g.commons[root] = s.common
	return s.common, nil
}

// gitDirOf is the absolute folder of the HEAD and index of the checkout whose top is dir.
func (g *Git) gitDirOf(ctx context.Context, dir string) (string, error) {
	dotGit := filepath.Join(dir, ".git")
	if info, err := os.Stat(dotGit); err == nil && info.IsDir() {
		return dotGit, nil
	}
	// A linked worktree's .git is one line, "gitdir: PATH". Reading it saves a process for each
	// checkout of the repository; whatever else stands there is for git to say.
	if data, err := os.ReadFile(dotGit); err == nil {
		if path, ok := strings.CutPrefix(strings.TrimRight(string(data), "\n"), "gitdir: "); ok && filepath.IsAbs(path) {
			return path, nil
		}
	}
	return g.text(ctx, dir, "rev-parse", "--absolute-git-dir")
}

// verifyWorktree checks that the worktree at a task's place is one of this repository, on the
// task's branch, and returns what git sees there.
func (g *Git) verifyWorktree(ctx context.Context, place worktreePlace, common string) (sight, error) {
	if err := checkWorktreeFolder(place); err != nil {
		return sight{}, err
	}
	s, err := g.look(ctx, place.path)
	if r, ok := refusal.Find(err); ok && r.Code == refusal.CodeNotARepository {
		return sight{}, &refusal.Refusal{Code: refusal.CodeWorktreeForeign, Err: err,
			What: fmt.Sprintf("the worktree %s of task %s points to no repository that git can read: %v",
				place.path, place.id, err),
			Remedy: fmt.Sprintf("try `git worktree repair %s`, or move the folder away", place.path)}
	}
	switch {
	case err != nil:
		return sight{}, err
	case !sameFile(s.common, common):
		return sight{}, refusal.New(refusal.CodeWorktreeForeign,
			"move that folder away; the daemon then makes the task's own worktree",
			"the worktree %s of task %s belongs to the repository %s, not to %s", place.path, place.id, s.common, common)
	case s.ref != place.ref():
		return sight{}, wrongBranch(place, s.ref)
	case s.head == "":
		return sight{}, refusal.New(refusal.CodeWorktreeBranch,
			fmt.Sprintf("give branch %s a commit, or remove the worktree", place.branch),
			"branch %s of task %s has no commit", place.branch, place.id)
	}
	return s, nil
}

func wrongBranch(place worktreePlace, ref string) error {
	on := "a detached HEAD"
	if ref != "" {
		on = "branch " + strings.TrimPrefix(ref, "refs/heads/")
	}
	return refusal.New(refusal.CodeWorktreeBranch,
		fmt.Sprintf("put it back with `git -C %s switch %s`, or move the folder away", place.path, place.branch),
		"the worktree %s of task %s is on %s, not on branch %s", place.path, place.id, on, place.branch)
}

// checkWorktreeFolder looks at the place itself, before git is asked: inside a folder without
// .git, git would answer for the repository around it.
func checkWorktreeFolder(place worktreePlace) error {
	info, err := os.Lstat(place.path)
	if err != nil {
		return fmt.Errorf("worktree of task %s: %w", place.id, err)
	}
	if !info.IsDir() {
		return refusal.New(refusal.CodeWorktreePath, "move it away; the daemon then makes the worktree",
			"%s, where the worktree of task %s belongs, is no folder (%s)", place.path, place.id, info.Mode().Type())
	}
	dotGit, err := os.Lstat(filepath.Join(place.path, ".git"))
	if os.IsNotExist(err) {
		return refusal.New(refusal.CodeWorktreeWithoutGit,
			fmt.Sprintf("move it away, such as `mv %s %s.kept`; the daemon then makes the worktree", place.path, place.path),
			"the folder %s, where the worktree of task %s belongs, has no .git: it is no git worktree", place.path, place.id)
	}
	if err != nil {
		return fmt.Errorf("worktree of task %s: %w", place.id, err)
	}
	if !dotGit.Mode().IsRegular() {
		return refusal.New(refusal.CodeWorktreeForeign,
			"move that folder away; the daemon then makes the task's own worktree",
			"%s is a repository of its own, not the worktree of task %s", place.path, place.id)
	}
	return nil
}

// indexLock returns the path of an index.lock in a git folder, empty where there is none. One
// that cannot be looked at counts as there.
func indexLock(gitDir string) string {
	path := filepath.Join(gitDir, "index.lock")
	if _, err := os.Lstat(path); os.IsNotExist(err) {
		return ""
	}
	return path
}

// underWay names what a checkout is in the middle of, empty when nothing.
func underWay(gitDir string) string {
	for _, mark := range []struct{ name, what string }{
		{"MERGE_HEAD", "a merge"}, {"rebase-merge", "a rebase"}, {"rebase-apply", "a rebase or am"},
		{"CHERRY_PICK_HEAD", "a cherry-pick"}, {"REVERT_HEAD", "a revert"},
		{"sequencer", "a cherry-pick or revert"}, {"BISECT_LOG", "a bisect"},
	} {
		if _, err := os.Lstat(filepath.Join(gitDir, mark.name)); !os.IsNotExist(err) {
			return mark.what
		}
	}
	return ""
}

// checkIdle refuses a checkout in which a lock stands or something is under way.
func checkIdle(path, gitDir string) error {
	if lock := indexLock(gitDir); lock != "" {
		return locked(path, lock, nil)
	}
	if what := underWay(gitDir); what != "" {
		return refusal.New(refusal.CodeMergeBusy, "finish it or abort it there",
			"%s is under way in the checkout %s", what, path)
	}
	return nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
