package supervisor

import (
	"context"
	"errors"
	"os"

	"greatminds/commands"
	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/execgate"
	"greatminds/runstore"
	"greatminds/supervisor/activity"
	"greatminds/supervisor/control"
	"greatminds/supervisor/ops"
	"greatminds/supervisor/results"
	"greatminds/tasks"
)

// Offline runs one operation in process: it takes the lease for it, brings what a dead daemon
// left to a known state, and performs the same table entry that a daemon would.
func Offline(ctx context.Context, o Options, call control.Call) (result any, err error) {
	err = InProcess(ctx, o, func(ctx context.Context, r *Rooms) error {
		// No daemon is alive that this process could descend from.
		self := execgate.Peer{PID: os.Getpid(), UID: uint32(os.Getuid()), Known: true}
		if result, err = r.Operations.Serve(ctx, self, call); err != nil {
			return err
		}
		return r.Settle(ctx)
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// Rooms are the rooms of a project, open and recovered.
type Rooms struct {
	Store      *runstore.Store
	Tree       *tasks.Tree
	Git        *tasks.Git
	Disk       *durable.Disk
	Commands   *commands.Service
	Results    *results.Applier
	Operations *ops.Env
	Contract   *contract.Contract
	Schema     *contract.Schema
	Worktrees  contract.Worktrees
	// Owner is the identity under which this process claims.
	Owner string
	// Settle carries out the controls that operators have asked for and that need no daemon.
	Settle func(ctx context.Context) error
}

// InProcess takes the lease, brings what a dead daemon left to a known state, lets f work on the
// rooms, and gives everything back. The rooms must not be used after f.
func InProcess(ctx context.Context, o Options, f func(ctx context.Context, r *Rooms) error) (err error) {
	c, err := open(ctx, o, holderCLI)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close(context.WithoutCancel(ctx))) }()
	if err := c.recover(ctx); err != nil {
		return err
	}
	return f(ctx, &Rooms{Store: c.store, Tree: c.tree, Git: c.git, Disk: c.disk, Commands: c.commands, Results: c.applier,
		Operations: c.operations(nobody{}), Contract: c.contract, Schema: c.schema, Worktrees: c.worktrees, Owner: c.owner, Settle: c.settleOffline})
}

// settleOffline carries out a control that needs no daemon, so that the next one finds it done.
func (c *core) settleOffline(ctx context.Context) error {
	for _, r := range c.store.View().OpenControls() {
		var err error
		switch r.Control.Kind {
		case "cancel":
			if err = beginCancel(ctx, c.store, r); err == nil {
				err = endCancelled(ctx, c.store, r.ID)
			}
		case "retry":
			err = authorizeRetry(ctx, c.store, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nobody stands for the daemon where none runs.
type nobody struct{}

func (nobody) Wake()                            {}
func (nobody) Live(runstore.RunID) bool         { return false }
func (nobody) Waits(runstore.PermissionID) bool { return false }
func (nobody) Cancel(runstore.RunID)            {}

func (nobody) Activity(runstore.RunID) *activity.Feed { return nil }
