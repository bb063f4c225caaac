package powercut

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Tree is a folder with everything in it, held in memory. A Tree and its nodes are not changed
// once made.
type Tree struct {
	// paths are relative to the folder, with slashes, in the order of their bytes, so that a
	// folder comes before what is in it.
	paths []string
	nodes map[string]*node
}

// node is a file, a folder or a symbolic link.
type node struct {
	mode fs.FileMode
	data []byte // of a file, or the target of a link
	time time.Time
	sum  uint64
}

var seed = maphash.MakeSeed()

func newNode(mode fs.FileMode, data []byte, at time.Time) *node {
	return &node{mode: mode, data: data, time: at, sum: maphash.Bytes(seed, data)}
}

// same compares what a reader of the folder can tell, but for times.
func (n *node) same(o *node) bool {
	return n == o || n.mode == o.mode && n.sum == o.sum && bytes.Equal(n.data, o.data)
}

func newTree(nodes map[string]*node) Tree {
	t := Tree{nodes: nodes, paths: make([]string, 0, len(nodes))}
	for path := range nodes {
		t.paths = append(t.paths, path)
	}
	slices.Sort(t.paths)
	return t
}

// Sum tells trees apart within one process: equal trees have equal sums, and others by any
// chance that matters do not. Times do not count.
func (t Tree) Sum() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, path := range t.paths {
		n := t.nodes[path]
		fmt.Fprintf(&h, "%s\x00%o\x00%x\n", path, n.mode, n.sum)
	}
	return h.Sum64()
}

// Paths returns every path, sorted. It must not be changed.
func (t Tree) Paths() []string { return t.paths }

// Files returns the paths of all regular files, sorted.
func (t Tree) Files() []string {
	var files []string
	for _, path := range t.paths {
		if t.nodes[path].mode.IsRegular() {
			files = append(files, path)
		}
	}
	return files
}

// File returns a file's bytes, which must not be changed; false where there is no such file.
func (t Tree) File(path string) ([]byte, bool) {
	n := t.nodes[path]
	if n == nil || !n.mode.IsRegular() {
		return nil, false
	}
	return n.data, true
}

// Diff names the paths in which two trees differ, sorted.
func (t Tree) Diff(o Tree) []string {
	var paths []string
	for path, n := range t.nodes {
		if m := o.nodes[path]; m == nil || !n.same(m) {
			paths = append(paths, path)
		}
	}
	for path := range o.nodes {
		if t.nodes[path] == nil {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// Capture reads the folder root. Sockets and pipes are left out: they do not outlive a power
// cut.
func Capture(root string) (Tree, error) { return (&camera{root: root}).capture() }

// camera captures one folder again and again, and reads only files that may have changed.
type camera struct {
	root string
	last map[string]shot
}

// shot is a node with what the kernel said of its file when it was read.
type shot struct {
	node  *node
	inode uint64
	ctime syscall.Timespec
	size  int64
	// young says that the file was so new when it was read that its times do not tell whether
	// it was written again.
	young bool
}

// tick is longer than any step of the clock by which a file system stamps changes.
const tick = 50 * time.Millisecond

func (c *camera) capture() (Tree, error) {
	shots := make(map[string]shot, len(c.last))
	err := filepath.WalkDir(c.root, func(full string, d fs.DirEntry, err error) error {
		if err == nil && full != c.root {
			var rel string
			if rel, err = filepath.Rel(c.root, full); err == nil {
				err = c.take(shots, filepath.ToSlash(rel), full)
			}
		}
		if errors.Is(err, fs.ErrNotExist) && full != c.root {
			return nil // another program removed it meanwhile
		}
		return err
	})
	if err != nil {
		return Tree{}, err
	}
	c.last = shots
	nodes := make(map[string]*node, len(shots))
	for path, s := range shots {
		nodes[path] = s.node
	}
	return newTree(nodes), nil
}

func (c *camera) take(shots map[string]shot, rel, full string) error {
	info, err := os.Lstat(full)
	if err != nil {
		return err
	}
	if info.Mode().Type()&^(fs.ModeDir|fs.ModeSymlink) != 0 {
		return nil
	}
	st := info.Sys().(*syscall.Stat_t) // always so on Linux
	now := shot{inode: st.Ino, ctime: st.Ctim, size: info.Size(), young: time.Since(time.Unix(st.Ctim.Unix())) < tick}
	old, known := c.last[rel]
	if known && !old.young && old.inode == now.inode && old.ctime == now.ctime && old.size == now.size {
		now.node = old.node
		shots[rel] = now
		return nil
	}
	var data []byte
	switch info.Mode().Type() {
	case 0:
		data, err = os.ReadFile(full)
	case fs.ModeSymlink:
		var target string
		target, err = os.Readlink(full)
		data = []byte(target)
	}
	if err != nil {
		return err
	}
	now.node = newNode(info.Mode(), data, info.ModTime())
	if known && old.node.same(now.node) {
		now.node = old.node
	}
	shots[rel] = now
	return nil
}

// Restore makes the folder root hold exactly the tree.
func (t Tree) Restore(root string) error {
	if err := empty(root); err != nil {
		return err
	}
	for _, path := range t.paths {
		if err := t.nodes[path].put(filepath.Join(root, filepath.FromSlash(path))); err != nil {
			return err
		}
	}
	// A folder's mode comes last: one without the right to write takes no files.
	for _, path := range slices.Backward(t.paths) {
		if n := t.nodes[path]; n.mode.IsDir() {
			if err := os.Chmod(filepath.Join(root, filepath.FromSlash(path)), n.mode.Perm()); err != nil {
				return err
			}
		}
	}
	return nil
}

func empty(root string) error {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(root, 0o700)
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(root, e.Name())))
	}
	return err
}

func (n *node) put(full string) error {
	switch n.mode.Type() {
	case fs.ModeDir:
		return os.Mkdir(full, 0o700)
	case fs.ModeSymlink:
		return os.Symlink(string(n.data), full)
	}
	if err := os.WriteFile(full, n.data, n.mode.Perm()); err != nil {
		return err
	}
	// The umask may have taken bits away.
	return errors.Join(os.Chmod(full, n.mode.Perm()), os.Chtimes(full, n.time, n.time))
}

// parent is the folder of a relative path.
func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return "."
}
