package permission

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"greatminds/transport"
)

// effect is what a bounded kind of tool does with the files it names.
type effect int

const (
	reads effect = iota + 1
	writes
	removes
	moves
)

// boundedKinds are the tool kinds whose whole effect lies in the paths they name. A shell
// command, a fetch or a kind we do not know can reach anything, so a person decides those.
var boundedKinds = map[string]effect{"read": reads, "search": reads, "edit": writes, "delete": removes, "move": moves}

// maxPaths bounds how many paths one question may name and still be decided without a person.
const maxPaths = 256

// Inside tells whether everything that the question names lies inside the workspace, with
// every symlink resolved, and its kind can reach nothing else. False means: ask a person.
//
// The paths are those of the moment: what an agent does with its answer later is its own, and
// policies govern only what an agent asks for. E-070.
func Inside(workspace string, r transport.PermissionRequest) bool {
	does := boundedKinds[r.ToolKind]
	if does == 0 {
		return false
	}
	root, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return false
	}
	n, ok := readNamed(r.ToolCall)
	if !ok || len(n.paths) == 0 || len(n.paths)+len(n.bases) > maxPaths {
		return false
	}
	a := area{root: root, workspace: workspace}
	if does == moves && !a.several(n.paths) {
		return false // where it goes to is not told
	}
	return a.bases(n) && a.holdsAll(n.paths, does) && a.holdsAll(n.bases, reads)
}

// area is a workspace as named and as resolved.
type area struct{ root, workspace string }

// bases refuses relative paths that an agent may take from another folder than the workspace.
func (a area) bases(n *named) bool {
	for _, base := range n.bases {
		path, ok := a.absolute(base)
		if !ok {
			return false
		}
		found, err := follow(path)
		if err != nil {
			return false
		}
		if found.path != a.root && n.relative() {
			return false
		}
	}
	return true
}

// several tells whether paths lead to more than one place, however each is written.
func (a area) several(paths []string) bool {
	first := a.place(paths[0])
	return slices.ContainsFunc(paths, func(p string) bool { return a.place(p) != first })
}

// place is where a path leads, empty for one that holds refuses.
func (a area) place(path string) string {
	full, ok := a.absolute(path)
	if !ok {
		return ""
	}
	found, err := follow(full)
	if err != nil {
		return ""
	}
	return found.path
}

func (a area) holdsAll(paths []string, does effect) bool {
	for _, p := range paths {
		if !a.holds(p, does) {
			return false
		}
	}
	return true
}

// holds tells whether a path lies inside, for the kernel, which follows a link before the ".."
// behind it, and for a program that shortens the text of a path first.
func (a area) holds(path string, does effect) bool {
	full, ok := a.absolute(path)
	if !ok {
		return false
	}
	for _, reading := range []string{full, filepath.Clean(full)} {
		found, err := follow(reading)
		if err != nil || !a.allows(found, does) {
			return false
		}
	}
	return true
}

// absolute is a named path as a path of the file system. It is not ok where an agent may mean
// something else by it than we do: a home folder, a variable, a URL.
func (a area) absolute(path string) (string, bool) {
	if uri, is := strings.CutPrefix(path, "file:"); is {
		if path, is = fromURI(uri); !is {
			return "", false
		}
	}
	switch {
	case path == "", len(path) > maxPathBytes, strings.ContainsAny(path, "\x00\n"), strings.Contains(path, "://"),
		path[0] == '~', path[0] == '$':
		return "", false
	case path[0] == '/':
		return path, true
	}
	return a.workspace + "/" + path, true // not joined, which would take ".." out
}

// Folders inside a workspace that are no part of the work, at any depth: a workspace may hold whole
// projects. What is written to the first runs as the user (hooks), the others hold the supervisor's own
// record and other tasks' work; neverChanged says what agents may do, and holds the record in the old layout.
var (
	neverInside  = []string{".git", ".greatminds", ".worktrees"}
	neverChanged = "coordination"
	oldRecord    = ".runtime"
)

// allows says whether what was found may be touched in this way.
func (a area) allows(f found, does effect) bool {
	rel, err := filepath.Rel(a.root, f.path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") || does != reads && rel == "." {
		return false
	}
	parts := strings.Split(rel, "/")
	for i := range parts {
		if a.protects(parts[:i+1], does) {
			return false
		}
	}
	switch {
	case f.info == nil: // not there yet
		return true
	case f.info.Mode().IsRegular():
		// A second name of the file may lie anywhere, and what is written shows under both.
		return does != writes || links(f.info) <= 1
	case !f.info.IsDir(): // a pipe, device or socket
		return false
	}
	return does == reads || does != writes && a.free(parts, does)
}

// protects tells whether a folder, named by its way from the root, is one that must not be touched.
func (a area) protects(way []string, does effect) bool {
	part, above := way[len(way)-1], way[:len(way)-1]
	switch {
	case isOneOf(part, neverInside):
		return true
	case strings.EqualFold(part, oldRecord):
		return len(above) > 0 && strings.EqualFold(above[len(above)-1], neverChanged)
	case does == reads || !strings.EqualFold(part, neverChanged):
		return false
	case len(above) == 0:
		return true
	}
	_, err := os.Lstat(filepath.Join(a.root, filepath.Join(way...), "execution.yaml"))
	return err == nil
}

// maxRemoved bounds what a folder may hold that is removed or moved without a person.
const maxRemoved = 10_000

// free tells whether a folder can be taken away: nothing below it is protected.
func (a area) free(way []string, does effect) bool {
	seen, ok := 0, true
	err := filepath.WalkDir(filepath.Join(a.root, filepath.Join(way...)), func(path string, _ fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(a.root, path)
		if seen++; err != nil || relErr != nil || seen > maxRemoved || a.protects(strings.Split(rel, "/"), does) {
			ok = false
			return filepath.SkipAll
		}
		return nil
	})
	return err == nil && ok
}

// isOneOf compares without case: some file systems do.
func isOneOf(part string, names []string) bool {
	for _, n := range names {
		if strings.EqualFold(part, n) {
			return true
		}
	}
	return false
}

func links(info os.FileInfo) uint64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 2 // not known, so not taken for its only name
	}
	return uint64(st.Nlink)
}
