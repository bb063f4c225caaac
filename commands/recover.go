package commands

import (
	"context"
	"errors"
	"fmt"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
)

// Recover brings the requests of an earlier supervisor to a known state, before anything new is
// started: those without a recorded process are cancelled, since nothing was executed; of those
// with one, everything that still runs is ended, and then they wait in needs_recovery for a
// person. Nothing is executed again. An error says that the state of a process is not known, or
// that it could not be ended: the receipt then stays as it is, and nothing may be started.
// Spec: E-115, E-116, E-118, E-239..E-241.
func (s *Service) Recover(ctx context.Context) error {
	var faults []error
	for _, c := range s.o.Store.View().OpenCommands() {
		if c.Status == statusNeedsRecovery {
			continue
		}
		faults = append(faults, s.recoverOne(ctx, c))
	}
	return errors.Join(faults...)
}

func (s *Service) recoverOne(ctx context.Context, c *runstore.Command) error {
	o := outcome{status: statusCancelled, reason: reasonRestart}
	if c.Process != nil {
		ended, err := execgate.EndRecorded(ctx, *c.Process, markOf(c), stopLadder)
		if err != nil {
			return &refusal.Refusal{
				Code:   refusal.CodeCommandProcess,
				What:   fmt.Sprintf("command %s of run %s was running when its daemon ended, and its processes cannot be ended: %v", c.ID, c.RunID, err),
				Remedy: "end them, then start the daemon again",
				Err:    err,
			}
		}
		o.status, o.cleanup = statusNeedsRecovery, string(ended.Cleanup(stopLadder))
		o.detail = "the daemon ended while the command ran; its effects are not known"
		if ended.How == execgate.HowRecovered {
			o.detail += "; what was left of it has been ended"
		}
	} else if c.Status == statusStarting {
		o.detail = "the daemon ended before the command was executed"
	}
	return s.settle(ctx, c, o, nil)
}
