package contract

import "path/filepath"

// Project is one project's place on disk. Both paths are absolute.
type Project struct {
	// Root is the project folder, the one that agents work in.
	Root string
	// Runtime is the folder of task queues and runtime state: Root/.greatminds, or
	// Root/coordination in the old layout.
	Runtime string
}

// ExecutionPath is the file of the execution contract, coordination/execution.yaml.
func (p Project) ExecutionPath() string {
	return filepath.Join(p.Root, "coordination", "execution.yaml")
}

// CoordPath is the optional file of project overrides, coordination/coord.yaml.
func (p Project) CoordPath() string { return filepath.Join(p.Root, "coordination", "coord.yaml") }

// StoreDir is the private folder of the durable store.
func (p Project) StoreDir() string { return filepath.Join(p.Runtime, ".runtime") }

// QueueDir is the folder of one task queue.
func (p Project) QueueDir(q Queue) string { return filepath.Join(p.Runtime, string(q)) }

// WorktreesDir is the folder of the per-task worktrees under the schema's default policy.
func (p Project) WorktreesDir() string { return filepath.Join(p.Root, ".worktrees") }

// SchemaMirrorPath is the project's copy of the schema, for people to read; never authoritative.
func (p Project) SchemaMirrorPath() string { return filepath.Join(p.Runtime, "schema.yaml") }

// SocketPath is the daemon's control socket.
func (p Project) SocketPath() string { return filepath.Join(p.StoreDir(), "coordd.sock") }
