package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// FileEvidence looks what git knows about files, named relative to the workspace, as
// implementation blocks name them. A file counts as changed when it is modified, added, deleted
// or untracked there, or when the task branch changed it since it left the branch base: work
// that an agent has committed is work too. A folder counts by what is in it. Outside git only
// existence is looked at.
func (g *Git) FileEvidence(ctx context.Context, workspace, base string, files []string) (map[string]FileFact, error) {
	facts := make(map[string]FileFact, len(files))
	if len(files) == 0 {
		return facts, nil
	}
	out, err := g.run(ctx, gitCall{dir: workspace, codes: []int{128}, args: []string{"rev-parse", "--show-prefix"}})
	if err != nil {
		return nil, err
	}
	if out.Code != 0 {
		for _, name := range files {
			_, err := os.Lstat(filepath.Join(workspace, filepath.FromSlash(name)))
			facts[name] = FileFact{Exists: err == nil}
		}
		return facts, nil
	}
	prefix := strings.TrimRight(string(out.Stdout), "\n")
	changed, err := g.changedPaths(ctx, workspace, base)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		_, err := os.Lstat(filepath.Join(workspace, filepath.FromSlash(name)))
		facts[name] = FileFact{InGit: true, Exists: err == nil, Changed: touches(changed, prefix+strings.TrimSuffix(name, "/"))}
	}
	return facts, nil
}

func touches(changed []string, name string) bool {
	for _, path := range changed {
		if path == name || strings.HasPrefix(path, name+"/") {
			return true
		}
	}
	return false
}

// changedPaths lists what is pending in the work tree and what its branch changed since base,
// from the top of the repository.
func (g *Git) changedPaths(ctx context.Context, workspace, base string) ([]string, error) {
	lines, err := g.fields(ctx, workspace, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, line := range lines {
		if len(line) > 3 {
			paths = append(paths, strings.TrimSuffix(line[3:], "/"))
		}
	}
	if base == "" {
		return paths, nil
	}
	out, err := g.run(ctx, gitCall{dir: workspace, codes: []int{128},
		args: []string{"diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "refs/heads/" + base + "...HEAD", "--"}})
	if err != nil {
		return nil, err
	}
	// 128: no such branch or no common history, so nothing tells what the branch changed.
	return append(paths, splitNUL(out.Stdout)...), nil
}

// Fingerprint identifies a workspace's uncommitted contents by 32 hex digits: "clean" when there
// are none, empty where git cannot say.
func (g *Git) Fingerprint(ctx context.Context, workspace string) string {
	diff, err := g.run(ctx, gitCall{dir: workspace, long: true, args: []string{"diff", "--no-color", "--no-ext-diff", "HEAD"}})
	if err != nil {
		return ""
	}
	top, err := g.text(ctx, workspace, "rev-parse", "--show-toplevel")
	if err != nil {
		return ""
	}
	untracked, err := g.fields(ctx, top, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return ""
	}
	if len(diff.Stdout) == 0 && len(untracked) == 0 {
		return "clean"
	}
	sum := sha256.New()
	sum.Write(diff.Stdout)
	for _, name := range untracked {
		fmt.Fprintf(sum, "\n+++ untracked %s\n", name)
		if err := hashContents(sum, filepath.Join(top, filepath.FromSlash(name))); err != nil {
			return ""
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:32]
}

// hashContents adds a file's bytes, or a link's target; a folder (a repository inside) adds
// nothing but its name.
func hashContents(to io.Writer, name string) error {
	info, err := os.Lstat(name)
	switch {
	case err != nil:
		return err
	case info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(name)
		if err == nil {
			_, err = io.WriteString(to, target)
		}
		return err
	case !info.Mode().IsRegular():
		return nil
	}
	return copyRegular(to, name)
}

// copyRegular copies a regular file; whatever has taken its place meanwhile is refused, and
// never waited for.
func copyRegular(to io.Writer, name string) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close() // read only: closing loses nothing
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return refusal.New(refusal.CodeArtifact, "name a regular file", "%s is no regular file", name)
	}
	_, err = io.Copy(to, f)
	return err
}

// ArtifactEvidence hashes a file that a decision names, relative to the workspace. Symbolic
// links are resolved, and what they lead to must be a regular file inside the workspace.
func ArtifactEvidence(workspace, name string) ArtifactFact {
	root, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return ArtifactFact{Problem: fmt.Sprintf("cannot be looked at: %v", err)}
	}
	real, err := filepath.EvalSymlinks(filepath.Join(root, filepath.FromSlash(name)))
	switch {
	case os.IsNotExist(err):
		return ArtifactFact{Problem: "does not exist"}
	case err != nil:
		return ArtifactFact{Problem: fmt.Sprintf("cannot be looked at: %v", err)}
	case !strings.HasPrefix(real, root+string(filepath.Separator)):
		return ArtifactFact{Problem: "leads out of the workspace, to " + real}
	}
	if info, err := os.Lstat(real); err != nil || !info.Mode().IsRegular() {
		return ArtifactFact{Problem: "is no regular file"}
	}
	sum := sha256.New()
	if err := copyRegular(sum, real); err != nil {
		return ArtifactFact{Problem: fmt.Sprintf("cannot be read: %v", err)}
	}
	return ArtifactFact{SHA256: hex.EncodeToString(sum.Sum(nil))}
}

// InsideWorktree tells whether a folder is the worktree of a task, or lies in it.
func InsideWorktree(p contract.Project, policy contract.Worktrees, id ID, folder string) bool {
	tree, err := filepath.EvalSymlinks(WorktreePath(p, policy, id))
	if err != nil {
		return false
	}
	real, err := filepath.EvalSymlinks(folder)
	return err == nil && (real == tree || strings.HasPrefix(real, tree+string(filepath.Separator)))
}

// BaseProblem says why no task branch can start at a commit; empty when one can. A folder that is no
// git repository, where no worktree is made, has nothing against any name.
func (g *Git) BaseProblem(ctx context.Context, root, commit string) (string, error) {
	if commit == "" {
		return "", nil
	}
	out, err := g.run(ctx, gitCall{dir: root, codes: []int{128}, args: []string{"rev-parse", "--git-dir"}})
	if err != nil || out.Code != 0 {
		return "", err
	}
	id, err := g.commit(ctx, root, commit)
	if err != nil || id != "" {
		return "", err
	}
	return fmt.Sprintf("base_commit %q is no commit in %s", commit, root), nil
}
