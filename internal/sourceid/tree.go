package sourceid

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"greatminds/internal/refusal"
)

// Source is the identity of a source tree at one moment. Spec: E-095.
type Source struct {
	// Commit is the hash that HEAD names, "" without Git or before the first commit.
	Commit string `json:"commit"`
	// SHA256 is over all files, see the package comment.
	SHA256 string `json:"source_sha256"`
}

// Git runs one git command in a folder and returns its standard output and exit status. It must
// bound time and output; an error means that the answer is not known.
type Git func(ctx context.Context, dir string, args ...string) (stdout []byte, code int, err error)

const (
	// maxFiles bounds a tree.
	maxFiles = 500_000
	// maxNested bounds work trees inside work trees.
	maxNested = 8
	// hashers is how many files are read at the same time: opening and closing dominates for
	// source files, and more than this gains nothing.
	hashers = 4
)

// Tree returns the identity of the source tree at dir. exclude names files and folders, relative
// to dir, that do not count: runtime metadata. ctx bounds the time.
// Spec: "Configured commands and evidence"; E-095..E-099.
func Tree(ctx context.Context, dir string, git Git, exclude []string) (Source, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Source{}, fmt.Errorf("source identity: %w", err)
	}
	if root, err = filepath.Abs(root); err != nil {
		return Source{}, fmt.Errorf("source identity: %w", err)
	}
	t := &tree{root: root, git: git, exclude: exclude}
	return t.identify(ctx, 0)
}

type tree struct {
	root    string
	git     Git
	exclude []string
}

func (t *tree) identify(ctx context.Context, depth int) (Source, error) {
	if depth > maxNested {
		return Source{}, refusal.New(refusal.CodeSourceTree, "", "%s: more than %d Git work trees inside each other", t.root, maxNested)
	}
	commit, paths, err := t.list(ctx)
	if err != nil {
		return Source{}, err
	}
	paths = t.kept(paths)
	if len(paths) > maxFiles {
		return Source{}, refusal.New(refusal.CodeSourceTree, "let Git ignore generated files",
			"%s holds %d files, more than %d", t.root, len(paths), maxFiles)
	}
	lines, err := t.hash(ctx, paths, depth)
	if err != nil {
		return Source{}, err
	}
	sum := sha256.New()
	sum.Write([]byte("gmsrc1\n"))
	for _, line := range lines {
		sum.Write([]byte(line))
	}
	return Source{Commit: commit, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// kept sorts, and drops duplicates (a path with a merge conflict is listed up to three times) and
// what is excluded.
func (t *tree) kept(paths []string) []string {
	sort.Strings(paths)
	out := paths[:0]
	last := ""
	for _, path := range paths {
		// Git ends the name of a work tree inside this one with a slash.
		path = strings.TrimSuffix(path, "/")
		if path == last || path == "" || t.excluded(path) {
			continue
		}
		last = path
		out = append(out, path)
	}
	return out
}

func (t *tree) excluded(path string) bool {
	for _, e := range append([]string{".git"}, t.exclude...) {
		if path == e || strings.HasPrefix(path, e+"/") {
			return true
		}
	}
	return false
}

// list returns the commit and the paths that belong to the source.
func (t *tree) list(ctx context.Context) (string, []string, error) {
	if !hasGit(t.root) {
		paths, err := t.walk(ctx)
		return "", paths, err
	}
	commit, code, err := t.git(ctx, t.root, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
	if err != nil || code > 1 {
		return "", nil, gitFault(t.root, "rev-parse", code, err)
	}
	listing, code, err := t.git(ctx, t.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil || code != 0 {
		return "", nil, gitFault(t.root, "ls-files", code, err)
	}
	head := strings.TrimSpace(string(commit))
	if len(listing) == 0 {
		// A folder that an enclosing repository ignores is no part of it.
		_, code, err := t.git(ctx, t.root, "check-ignore", "--quiet", ".")
		if err != nil || code > 1 {
			return "", nil, gitFault(t.root, "check-ignore", code, err)
		}
		if code == 0 {
			paths, err := t.walk(ctx)
			return "", paths, err
		}
		return head, nil, nil
	}
	return head, strings.Split(strings.TrimSuffix(string(listing), "\x00"), "\x00"), nil
}

func gitFault(dir, command string, code int, err error) error {
	if err == nil {
		err = fmt.Errorf("exit status %d", code)
	}
	return &refusal.Refusal{
		Code: refusal.CodeSourceTree, What: fmt.Sprintf("git %s does not answer in %s: %v", command, dir, err),
		Remedy: "look at `git status` there", Err: err,
	}
}

// hasGit says whether dir belongs to a Git work tree. It looks at names only: a repository that
// Git itself cannot read must be an error, not a folder without Git.
func hasGit(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}

// walk lists the regular files and links of a tree without Git.
func (t *tree) walk(ctx context.Context) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(t.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(t.root, path)
		if err != nil || name == "." {
			return err
		}
		switch {
		case t.excluded(name):
			if d.IsDir() {
				return filepath.SkipDir
			}
		case d.Type().IsRegular(), d.Type()&fs.ModeSymlink != 0:
			paths = append(paths, name)
		}
		if len(paths) > maxFiles {
			return filepath.SkipAll
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("source identity of %s: %w", t.root, err)
	}
	return paths, nil
}

func (t *tree) refuse(path, why string) error {
	return refusal.New(refusal.CodeSourceTree, "remove it from the tree, or let Git ignore it",
		"%s %s; the sources have no reproducible identity", filepath.Join(t.root, path), why)
}
