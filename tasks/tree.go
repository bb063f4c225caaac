package tasks

import (
	"context"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
)

// Tree is the task files of one project. It holds no state of its own but where they are: two
// trees over one project agree through the locks on disk. It is safe for concurrent use.
type Tree struct {
	project contract.Project
	schema  *contract.Schema
	disk    *durable.Disk
	now     func() time.Time
}

// Open returns the tree of a project. It touches no file. now gives the time for blocks,
// journal lines and lock waits.
func Open(p contract.Project, s *contract.Schema, d *durable.Disk, now func() time.Time) *Tree {
	return &Tree{project: p, schema: s, disk: d, now: now}
}

// Found is one entry of a queue folder that is a task, or looks as if it wanted to be one.
type Found struct {
	Ref
	// Task is nil where the file could not be read as one.
	Task *Task
	// Problem says why the entry must not be worked on; nil for a good task. It is a
	// *refusal.Refusal where a person has to act.
	Problem error
}

// Discover reads every task file of every queue.
func (t *Tree) Discover() ([]Found, error) { return nil, errNotYet }

// Find resolves a full id, a short one, a slug or a path to the task file it means.
func (t *Tree) Find(id string) (Ref, error) { return Ref{}, errNotYet }

// Read reads the task at a ref, and refuses another revision than the ref's.
func (t *Tree) Read(r Ref) (*Task, error) { return nil, errNotYet }

// ReadCurrent reads a task wherever it stands.
func (t *Tree) ReadCurrent(id ID) (*Task, error) { return nil, errNotYet }

// Held is the locks of some tasks.
type Held struct{}

// Release gives the locks back.
func (h *Held) Release() {}

// Lock takes the locks of some tasks in stable order.
func (t *Tree) Lock(ctx context.Context, ids ...ID) (*Held, error) { return nil, errNotYet }

// Write replaces a task file whose revision is still the ref's.
func (t *Tree) Write(h *Held, r Ref, data []byte) (Ref, error) { return Ref{}, errNotYet }

// Move renames a task file into another queue.
func (t *Tree) Move(h *Held, r Ref, to contract.Queue) (Ref, error) { return Ref{}, errNotYet }

// Parse reads a task file.
func Parse(schema *contract.Schema, queue contract.Queue, file string, data []byte) (*Task, error) {
	return nil, errNotYet
}
