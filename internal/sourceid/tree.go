package sourceid

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"
	"syscall"

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

// hash returns the line of each path, computed by several goroutines.
func (t *tree) hash(ctx context.Context, paths []string, depth int) ([]string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lines := make([]string, len(paths))
	next := make(chan int)
	var wait sync.WaitGroup
	for range min(hashers, runtime.GOMAXPROCS(0)*2, max(1, len(paths))) {
		wait.Go(func() {
			buffer := make([]byte, 128<<10)
			for i := range next {
				line, err := t.line(ctx, paths[i], buffer, depth)
				if err != nil {
					cancel(err)
				}
				lines[i] = line
			}
		})
	}
	for i := range paths {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	wait.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return lines, nil
}

// line describes one path.
func (t *tree) line(ctx context.Context, path string, buffer []byte, depth int) (string, error) {
	full := filepath.Join(t.root, path)
	info, err := os.Lstat(full)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Sprintf("m %s\n", counted(path)), nil
	case err != nil:
		return "", fmt.Errorf("source identity: %w", err)
	case info.Mode()&fs.ModeSymlink != 0:
		return t.link(ctx, path, full, buffer)
	case info.IsDir():
		return t.nested(ctx, path, full, depth)
	case !info.Mode().IsRegular():
		return "", t.refuse(path, "is neither a file nor a link")
	}
	sum, mode, err := contents(ctx, full, buffer)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("f %s %s %s\n", mode, counted(path), sum), nil
}

// link describes a symbolic link, which must stay in the tree and lead to a file.
func (t *tree) link(ctx context.Context, path, full string, buffer []byte) (string, error) {
	target, err := os.Readlink(full)
	if err != nil {
		return "", fmt.Errorf("source identity: %w", err)
	}
	resolved, err := filepath.EvalSymlinks(full)
	if errors.Is(err, fs.ErrNotExist) {
		if !t.inside(lexical(full, target)) {
			return "", t.refuse(path, "is a link that leads outside: "+target)
		}
		return fmt.Sprintf("d %s %s\n", counted(path), counted(target)), nil
	}
	if err != nil {
		return "", t.refuse(path, "is a link that cannot be followed: "+err.Error())
	}
	if !t.inside(resolved) {
		return "", t.refuse(path, "is a link that leads outside: "+target)
	}
	info, err := os.Lstat(resolved)
	if err != nil {
		return "", fmt.Errorf("source identity: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", t.refuse(path, "is a link to a folder or device: "+target)
	}
	sum, mode, err := contents(ctx, resolved, buffer)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("l %s %s %s %s\n", mode, counted(path), counted(target), sum), nil
}

func lexical(link, target string) string {
	if filepath.IsAbs(target) {
		return filepath.Clean(target)
	}
	return filepath.Join(filepath.Dir(link), target)
}

func (t *tree) inside(path string) bool { return strings.HasPrefix(path, t.root+"/") }

// nested describes a folder that Git lists as one thing: a submodule, or another repository.
func (t *tree) nested(ctx context.Context, path, full string, depth int) (string, error) {
	var source Source
	if _, err := os.Lstat(filepath.Join(full, ".git")); err == nil {
		inner := &tree{root: full, git: t.git}
		if source, err = inner.identify(ctx, depth+1); err != nil {
			return "", err
		}
	} else if entries, err := os.ReadDir(full); err != nil || len(entries) > 0 {
		return "", t.refuse(path, "is a folder where Git expects a file or a submodule")
	}
	return fmt.Sprintf("s %s %s %s\n", counted(path), source.Commit, source.SHA256), nil
}

func (t *tree) refuse(path, why string) error {
	return refusal.New(refusal.CodeSourceTree, "remove it from the tree, or let Git ignore it",
		"%s %s; the sources have no reproducible identity", filepath.Join(t.root, path), why)
}

// contents returns the hash and the permissions of a regular file, both of the same open file.
func contents(ctx context.Context, path string, buffer []byte) (sum, mode string, err error) {
	// Without O_NONBLOCK a pipe put in the file's place would hang us.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", "", fmt.Errorf("source identity: %w", err)
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return "", "", fmt.Errorf("source identity: %w", err)
	}
	h := sha256.New()
	if _, err := io.CopyBuffer(h, struct{ io.Reader }{reader{ctx, f}}, buffer); err != nil {
		return "", "", fmt.Errorf("source identity: %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), octal(info.Mode()), nil
}

// reader ends with its context, between two reads.
type reader struct {
	ctx context.Context
	f   *os.File
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.f.Read(p)
}

func octal(mode fs.FileMode) string {
	bits := uint32(mode.Perm())
	for flag, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return fmt.Sprintf("%04o", bits)
}

// counted makes a name unambiguous in a line, whatever bytes it holds.
func counted(s string) string { return fmt.Sprintf("%d:%s", len(s), s) }
