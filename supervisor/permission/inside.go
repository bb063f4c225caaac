package permission

import (
	"os"
	"path/filepath"
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
	if does == moves && !n.several() {
		return false // where it goes to is not told
	}
	a := area{root: root, workspace: workspace}
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

// Folders inside a workspace that are no part of the work. What is written to the first ones runs as
// the user (hooks), or is the supervisor's own record; the last one says what agents may do.
var (
	neverInside  = []string{".git"}                      // at any depth
	neverBelow   = []string{".greatminds", ".worktrees"} // in the workspace itself
	neverChanged = []string{"coordination"}
)

// allows says whether what was found may be touched in this way.
func (a area) allows(f found, does effect) bool {
	rel, err := filepath.Rel(a.root, f.path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return false
	}
	parts := strings.Split(rel, "/")
	if isOneOf(parts[0], neverBelow) || does != reads && (rel == "." || isOneOf(parts[0], neverChanged)) {
		return false
	}
	for _, part := range parts {
		if isOneOf(part, neverInside) {
			return false
		}
	}
	switch {
	case f.info == nil: // not there yet
		return true
	case f.info.Mode().IsRegular():
		// A second name of the file may lie anywhere, and what is written shows under both.
		return does != writes || links(f.info) <= 1
	}
	return f.info.IsDir() && does != writes // no pipe, device or socket
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
