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
	"strings"
	"sync"
	"syscall"
)

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
