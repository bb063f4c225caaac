package supervisor

import (
	"context"

	"greatminds/runstore"
	"greatminds/supervisor/permission"
)

// Wake makes the loop look at its work again at once.
func (d *Daemon) Wake() {
	select {
	case d.wake <- struct{}{}:
	default: // a notice is already waiting
	}
}

// Live reports whether this process drives the run now, from its claim to its recorded end.
func (d *Daemon) Live(run runstore.RunID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live[run] != nil
}

// Waits reports whether an agent's callback still waits for the answer to a question.
func (d *Daemon) Waits(question runstore.PermissionID) bool { return d.broker.Waits(question) }

// Cancel carries out the pending cancel control of a live run; the run ends bounded in time.
func (d *Daemon) Cancel(run runstore.RunID) { d.stopRun(run, errOperatorCancel) }

func (d *Daemon) stopRun(run runstore.RunID, cause error) {
	d.mu.Lock()
	e := d.live[run]
	d.mu.Unlock()
	if e != nil {
		e.stop(cause)
	}
}

// cancelRun carries out a cancel control: a live run is told to stop, one without a process
// ends at once. E-256.
func (d *Daemon) cancelRun(ctx context.Context, r *runstore.Run) error {
	if r.Control.Status == "pending" {
		if err := beginCancel(ctx, d.store, r); err != nil {
			return err
		}
	}
	if d.Live(r.ID) {
		d.Cancel(r.ID)
		return nil
	}
	return endCancelled(ctx, d.store, r.ID)
}

func beginCancel(ctx context.Context, s *runstore.Store, r *runstore.Run) error {
	return s.Update(ctx, func(tx *runstore.Tx) error {
		run := tx.Run(r.ID)
		if run.Control == nil || run.Control.Status != "pending" {
			return nil
		}
		if err := tx.SetControl(run.ID, run.Control.ID, "processing"); err != nil {
			return err
		}
		// A claimed run ends cancelled without a state in between.
		if s := run.State; s == runstore.Claimed || s == runstore.Cancelling || s.Terminal() {
			return nil
		}
		return tx.Transition(run.ID, runstore.NewID(), runstore.Cancelling, operatorCancelled, nil)
	})
}

// endCancelled ends a run that has no process and nobody who drives it.
func endCancelled(ctx context.Context, s *runstore.Store, id runstore.RunID) error {
	return s.Update(ctx, func(tx *runstore.Tx) error {
		run := tx.Run(id)
		if !run.State.Terminal() {
			if run.Process != nil {
				return nil // recovery has to prove the process gone first
			}
			if err := permission.CloseRun(tx, id, permission.RunClosed); err != nil {
				return err
			}
			if err := tx.Transition(id, runstore.NewID(), runstore.Cancelled, operatorCancelled, nil); err != nil {
				return err
			}
		}
		if c := tx.Run(id).Control; c != nil && c.Status != "completed" {
			return tx.SetControl(id, c.ID, "completed")
		}
		return nil
	})
}

// authorizeRetry allows exactly one more attempt after the run; a waiting run ends first. E-257.
func authorizeRetry(ctx context.Context, s *runstore.Store, r *runstore.Run) error {
	return s.Update(ctx, func(tx *runstore.Tx) error {
		run := tx.Run(r.ID)
		if run.Control == nil || run.Control.Kind != "retry" || run.Control.Status == "completed" {
			return nil
		}
		if run.Control.Status == "pending" {
			if err := tx.SetControl(run.ID, run.Control.ID, "processing"); err != nil {
				return err
			}
		}
		if !run.State.Terminal() {
			if run.Process != nil {
				return nil
			}
			if err := permission.CloseRun(tx, run.ID, permission.RunClosed); err != nil {
				return err
			}
			if err := tx.Transition(run.ID, runstore.NewID(), runstore.Cancelling, run.Reason, nil); err != nil {
				return err
			}
			if err := tx.Transition(run.ID, runstore.NewID(), runstore.Cancelled, run.Reason, nil); err != nil {
				return err
			}
		}
		if err := tx.EditRun(run.ID, func(x *runstore.Run) { x.RetryAuthorized = true }); err != nil {
			return err
		}
		return tx.SetControl(run.ID, run.Control.ID, "completed")
	})
}
