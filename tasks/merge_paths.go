package tasks

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// pathChange is one path that differs between two trees. A mode of 000000 means that the path
// is not in that tree.
type pathChange struct {
	path             string // with slashes, below the top of the work tree
	oldMode, newMode string
	oldID, newID     string
}

const (
	noMode        = "000000"
	submoduleMode = "160000"
)

func (c pathChange) added() bool     { return c.oldMode == noMode }
func (c pathChange) deleted() bool   { return c.newMode == noMode }
func (c pathChange) submodule() bool { return c.oldMode == submoduleMode || c.newMode == submoduleMode }

// treeChanges lists every path that differs between two commits or trees, renames taken apart.
func (g *Git) treeChanges(ctx context.Context, dir, from, to string) ([]pathChange, error) {
	out, err := g.run(ctx, gitCall{dir: dir,
		args: []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", from, to, "--"}})
	if err != nil {
		return nil, err
	}
	return parseRaw(out.Stdout)
}

// parseRaw reads `:100644 100644 <id> <id> M NUL path NUL …`.
func parseRaw(data []byte) ([]pathChange, error) {
	fields := splitNUL(data)
	var all []pathChange
	for i := 0; i+1 < len(fields); i += 2 {
		words := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(words) != 5 {
			return nil, fmt.Errorf("git listed a change as %q", fields[i])
		}
		all = append(all, pathChange{path: fields[i+1],
			oldMode: words[0], newMode: words[1], oldID: words[2], newID: words[3]})
	}
	return all, nil
}

// treeEntries lists a whole tree as additions.
func (g *Git) treeEntries(ctx context.Context, dir, tree string) ([]pathChange, error) {
	fields, err := g.fields(ctx, dir, "ls-tree", "-r", "-z", "--full-tree", tree)
	if err != nil {
		return nil, err
	}
	var all []pathChange
	for _, f := range fields {
		meta, path, ok := strings.Cut(f, "\t")
		words := strings.Fields(meta)
		if !ok || len(words) != 3 {
			return nil, fmt.Errorf("git listed a tree entry as %q", f)
		}
		all = append(all, pathChange{path: path, oldMode: noMode, newMode: words[0], newID: words[2]})
	}
	return all, nil
}

// content says what a work tree holds at a path of a change.
type content int

// What a path can hold, compared with the two sides of a change.
const (
	holdsOther   content = iota // neither side's
	holdsOld                    // what the old side has, which may be nothing
	holdsNew                    // what the new side has, which may be nothing
	holdsNothing                // nothing, where both sides have something
)

type contents map[string]content

// others lists the paths that hold neither side, sorted.
func (c contents) others() []string {
	var names []string
	for path, what := range c {
		if what == holdsOther {
			names = append(names, path)
		}
	}
	sort.Strings(names)
	return names
}

// all reports whether every path holds one of the given contents.
func (c contents) all(allowed ...content) bool {
	for _, what := range c {
		ok := false
		for _, a := range allowed {
			ok = ok || a == what
		}
		if !ok {
			return false
		}
	}
	return true
}

// classify compares a work tree with both sides of each change, by git's own rules for filters,
// line ends, modes and links.
func (g *Git) classify(ctx context.Context, dir string, changes []pathChange) (contents, error) {
	oldSide, err := g.differing(ctx, dir, changes, func(c pathChange) (string, string) { return c.oldMode, c.oldID })
	if err != nil {
		return nil, err
	}
	newSide, err := g.differing(ctx, dir, changes, func(c pathChange) (string, string) { return c.newMode, c.newID })
	if err != nil {
		return nil, err
	}
	states := make(contents, len(changes))
	for _, c := range changes {
		_, statErr := os.Lstat(filepath.Join(dir, filepath.FromSlash(c.path)))
		// A file that took a parent folder's place leaves nothing at the path, like a missing one.
		nothing := statErr != nil
		switch {
		case nothing && c.deleted(), !nothing && !c.deleted() && !newSide[c.path]:
			states[c.path] = holdsNew
		case nothing && c.added(), !nothing && !c.added() && !oldSide[c.path]:
			states[c.path] = holdsOld
		case nothing:
			states[c.path] = holdsNothing
		default:
			states[c.path] = holdsOther
		}
	}
	return states, nil
}

// differing returns the paths at which the work tree is not what one side has. It uses an index
// of its own that holds just these paths.
func (g *Git) differing(ctx context.Context, dir string, changes []pathChange, side func(pathChange) (mode, id string)) (map[string]bool, error) {
	var entries bytes.Buffer
	for _, c := range changes {
		if mode, id := side(c); mode != noMode {
			fmt.Fprintf(&entries, "%s %s\t%s\x00", mode, id, c.path)
		}
	}
	tmp, done, err := g.temporary("compare-*")
	if err != nil {
		return nil, err
	}
	defer done()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(tmp, "index")}
	if _, err = g.run(ctx, gitCall{dir: dir, env: env, stdin: entries.Bytes(),
		args: []string{"update-index", "-z", "--index-info"}}); err != nil {
		return nil, err
	}
	if _, err = g.run(ctx, gitCall{dir: dir, env: env, long: true, codes: []int{1},
		args: []string{"update-index", "-q", "--refresh"}}); err != nil {
		return nil, err
	}
	out, err := g.run(ctx, gitCall{dir: dir, env: env, args: []string{"diff-files", "-z", "--name-only"}})
	if err != nil {
		return nil, err
	}
	differ := map[string]bool{}
	for _, name := range splitNUL(out.Stdout) {
		differ[name] = true
	}
	return differ, nil
}

// nameSome names at most ten paths and counts the rest.
func nameSome(paths []string) string {
	const most = 10
	if len(paths) <= most {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
}
