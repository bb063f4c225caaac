// Package results applies decisions: it judges a decision, and carries its effect out as one
// journaled operation over the task file, the journal and git.
//
// The invariant kept: before anything is touched the whole operation is on record (the new task
// file, where it goes, the hashes it relies on, the merge with its commit id). Each step can be
// repeated or can tell that it has happened, so that an operation stopped anywhere ends applied
// exactly once: one merge, one journal line, the task in one queue. What cannot be told is
// needs_recovery, for a person, and is never tried a second time by itself.
//
// The order of a walk through an operation:
//
//	judge      tasks.Effect over gathered facts     apply.go, judge.go
//	merge      tasks.ComputeMerge, CheckCheckouts   prepare.go
//	intent     record, receipt applying             prepare.go
//	actions    create, merge                        perform.go
//	file       write at the source, move            file.go
//	journal    one line, once                       perform.go
//	actions    remove                               perform.go
//	end        record committed, receipt applied    perform.go
//
// Spec: "Lifecycle and result receipts".
package results

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/runstore"
	"greatminds/tasks"
)

// Commands tells whether recorded commands still count as evidence.
type Commands interface {
	// Stale says why the receipt of a finished command no longer counts: its source, environment,
	// executable or output changed. It is empty while it counts.
	Stale(ctx context.Context, run *runstore.Run, c *runstore.Command) (string, error)
}

// Options is what an Applier works on. All members but Commands and Log are needed.
type Options struct {
	Project contract.Project
	Store   *runstore.Store
	Tree    *tasks.Tree
	Disk    *durable.Disk
	Git     *tasks.Git
	// Schema and Contract return the documents that a run pinned, by hash.
	Schema   func(sha string) (*contract.Schema, error)
	Contract func(sha string) (*contract.Contract, error)
	// Policy is the project's effective worktree policy.
	Policy contract.Worktrees
	// Commands judges command evidence; nil lets none count.
	Commands Commands
	Now      func() time.Time
	Log      *slog.Logger
}

// Applier applies the results of one project. It is safe for concurrent use; operations on
// different tasks run beside each other, their merges one after the other.
type Applier struct {
	o Options

	merging chan struct{} // holds one: two merges into one branch would take it from each other

	mu    sync.Mutex // guards waits
	waits map[runstore.ResultID]time.Duration
}

// New returns an applier. It touches no file.
func New(o Options) (*Applier, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Git.Scratch == "" {
		o.Git.Scratch = filepath.Join(o.Project.StoreDir(), "scratch")
	}
	return &Applier{o: o, merging: make(chan struct{}, 1), waits: map[runstore.ResultID]time.Duration{}}, nil
}

// How long a held result waits before it is looked at again: the first time, and at most.
const (
	firstWait = 2 * time.Second
	mostWait  = 30 * time.Second
)

// again returns when a held result is to be looked at again.
func (a *Applier) again(id runstore.ResultID) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	wait := min(max(2*a.waits[id], firstWait), mostWait)
	a.waits[id] = wait
	return a.o.Now().Add(wait)
}

func (a *Applier) settled(id runstore.ResultID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waits, id)
}
