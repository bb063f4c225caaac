package supervisor

import (
	"context"
	"errors"
	"os"

	"greatminds/internal/execgate"
	"greatminds/runstore"
	"greatminds/supervisor/control"
)

// Offline runs one operation in process: it takes the lease for it, brings what a dead daemon
// left to a known state, and performs the same table entry that a daemon would.
func Offline(ctx context.Context, o Options, call control.Call) (_ any, err error) {
	c, err := open(ctx, o, holderCLI)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close(context.WithoutCancel(ctx))) }()
	if err := c.recover(ctx); err != nil {
		return nil, err
	}
	// No daemon is alive that this process could descend from.
	self := execgate.Peer{PID: os.Getpid(), UID: uint32(os.Getuid()), Known: true}
	result, err := c.operations(nobody{}).Serve(ctx, self, call)
	if err != nil {
		return nil, err
	}
	return result, c.settleOffline(ctx)
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
