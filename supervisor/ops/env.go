package ops

import (
	"context"
	"log/slog"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/tasks"
)

// Env is what operations work on. One Env serves a daemon's whole life, or one call in process.
type Env struct {
	Project  contract.Project
	Contract *contract.Contract
	Schema   *contract.Schema
	Tree     *tasks.Tree
	Disk     *durable.Disk
	Now      func() time.Time
	Log      *slog.Logger
	// Daemon is the process that performs the call.
	Daemon Daemon
}

// Daemon is what an operation asks of the process that performs it. None of the calls waits.
type Daemon interface {
	// Wake makes the daemon look at its work again at once. In process, outside a daemon, it may
	// do nothing.
	Wake()
	// Live reports whether this process drives the run now: its agent or its preparation is up.
	Live(run string) bool
	// Cancel carries out the pending cancel control of a run, bounded in time. A run that is not
	// live is ended by the call itself, in the store.
	Cancel(ctx context.Context, run string) error
}
