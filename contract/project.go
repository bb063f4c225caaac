package contract

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"greatminds/internal/refusal"
)

// Names of a project's folders.
const (
	runtimeDir   = ".greatminds"
	configDir    = "coordination"
	worktreesDir = ".worktrees"
)

// Project is one project's place on disk. Both paths are absolute and free of symbolic links, so
// that one project has one name whichever way it was reached.
type Project struct {
	// Root is the project folder, the one that agents work in.
	Root string
	// Runtime is the folder of task queues and runtime state: Root/.greatminds, or
	// Root/coordination in the old layout.
	Runtime string
}

// FindProject finds the project that the folder start belongs to. The variable
// GREATMINDS_PROJECT_DIR wins where it names a project; else the nearest project at or above
// start. Nothing inside a .worktrees folder is a project: it is a copy of one. It fails with
// project_missing. Spec: reference "Conventions", project resolution.
func FindProject(start string, getenv func(string) string) (Project, error) {
	if named := getenv("GREATMINDS_PROJECT_DIR"); named != "" {
		if root, err := resolved(named); err == nil && isProject(root) {
			return at(root), nil
		}
	}
	root, err := resolved(start)
	if err != nil {
		return Project{}, missing(start, err)
	}
	for dir := root; ; dir = filepath.Dir(dir) {
		if isProject(dir) {
			return at(dir), nil
		}
		if dir == filepath.Dir(dir) {
			return Project{}, missing(start, fs.ErrNotExist)
		}
	}
}

// OpenProject takes dir itself as the project, as --project-dir does. It fails with
// project_missing where dir is none.
func OpenProject(dir string) (Project, error) {
	root, err := resolved(dir)
	if err != nil {
		return Project{}, missing(dir, err)
	}
	if !isProject(root) {
		return Project{}, missing(dir, fs.ErrNotExist)
	}
	return at(root), nil
}

// ProjectAt is the project that dir would be after setup. dir must be a folder.
func ProjectAt(dir string) (Project, error) {
	root, err := resolved(dir)
	if err != nil {
		return Project{}, missing(dir, err)
	}
	return at(root), nil
}

func missing(dir string, cause error) error {
	return &refusal.Refusal{Code: refusal.CodeProjectMissing, Err: cause,
		What:   fmt.Sprintf("no greatminds project found from %s", dir),
		Remedy: "run `greatminds setup` in the project's folder, or name it with --project-dir"}
}

// resolved is the absolute path of a folder without symbolic links.
func resolved(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", err
	}
	if !isDir(abs) {
		return "", fmt.Errorf("%s is no folder", abs)
	}
	return abs, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isProject(root string) bool {
	if slices.Contains(strings.Split(root, string(filepath.Separator)), worktreesDir) {
		return false
	}
	return isDir(filepath.Join(root, runtimeDir)) || isDir(filepath.Join(root, configDir))
}

// at settles where the runtime is. coordination is the runtime of the old layout only when it
// holds runtime data: in a fresh clone it holds tracked configuration alone, and state must not
// be written there.
func at(root string) Project {
	p := Project{Root: root, Runtime: filepath.Join(root, runtimeDir)}
	if !isDir(p.Runtime) {
		if old := filepath.Join(root, configDir); len(RuntimeData(old)) > 0 {
			p.Runtime = old
		}
	}
	return p
}

// RuntimeData lists what a folder holds of a runtime: folders of task queues, the store, the old
// agent registry. It is empty for a folder without any.
func RuntimeData(dir string) []string {
	var found []string
	names := []string{".runtime", ".agent_registry"}
	for _, q := range EmbeddedSchema().TaskQueues() {
		names = append(names, string(q))
	}
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			found = append(found, name)
		}
	}
	return found
}

// ExecutionPath is the file of the execution contract, coordination/execution.yaml.
func (p Project) ExecutionPath() string { return filepath.Join(p.Root, configDir, "execution.yaml") }

// CoordPath is the optional file of project overrides, coordination/coord.yaml.
func (p Project) CoordPath() string { return filepath.Join(p.Root, configDir, "coord.yaml") }

// StoreDir is the private folder of the durable store.
func (p Project) StoreDir() string { return filepath.Join(p.Runtime, ".runtime") }

// QueueDir is the folder of one task queue.
func (p Project) QueueDir(q Queue) string { return filepath.Join(p.Runtime, string(q)) }

// WorktreesDir is the folder of the per-task worktrees under the schema's default policy.
func (p Project) WorktreesDir() string { return filepath.Join(p.Root, worktreesDir) }

// SchemaMirrorPath is the project's copy of the schema, for people to read; never authoritative.
func (p Project) SchemaMirrorPath() string { return filepath.Join(p.Runtime, "schema.yaml") }

// SocketPath is the daemon's control socket.
func (p Project) SocketPath() string { return filepath.Join(p.StoreDir(), "coordd.sock") }
