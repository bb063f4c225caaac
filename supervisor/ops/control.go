package ops

import (
	"context"
	"fmt"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/permission"
)

// Paused is the answer of run.pause and run.resume.
type Paused struct {
	Version int  `json:"version"`
	Paused  bool `json:"paused"`
}

func runPause(ctx context.Context, r *request) (any, error)  { return r.setPaused(ctx, true) }
func runResume(ctx context.Context, r *request) (any, error) { return r.setPaused(ctx, false) }

// setPaused stops or allows new claims; active runs go on. E-188, E-255.
func (r *request) setPaused(ctx context.Context, paused bool) (any, error) {
	if err := r.decode(&struct{}{}); err != nil {
		return nil, err
	}
	answer, err := r.change(ctx, func(tx *runstore.Tx) (any, error) {
		tx.SetPaused(paused)
		return Paused{Version: 1, Paused: paused}, nil
	})
	if err == nil {
		r.Daemon.Wake()
	}
	return answer, err
}

// operatorCheck does nothing: that it is not refused is its answer, for commands that change what no
// operation changes.
func operatorCheck(_ context.Context, r *request) (any, error) {
	if err := r.decode(&struct{}{}); err != nil {
		return nil, err
	}
	return struct {
		Version int `json:"version"`
	}{1}, nil
}

// RunArgs name one run.
type RunArgs struct {
	Run runstore.RunID `json:"run_id"`
}

// runCancel asks for the bounded cancellation of a run. E-256.
func runCancel(ctx context.Context, r *request) (any, error) {
	var args RunArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	live := r.Daemon.Live(args.Run)
	answer, err := r.change(ctx, func(tx *runstore.Tx) (any, error) {
		run, err := findRun(tx.View, args.Run)
		if err != nil {
			return nil, err
		}
		if run.State.Terminal() {
			return nil, refusal.New(refusal.CodeRunEnded, "read `greatminds run status`",
				"run %s has already ended (%s, %s)", run.ID, run.State, run.Reason)
		}
		if err := otherControl(run, "cancel"); err != nil {
			return nil, err
		}
		c, err := tx.RequestControl(run.ID, "cancel")
		if err != nil || live || !waits(run) {
			return c, err
		}
		return c, endWaiting(tx, run, c)
	})
	if err != nil {
		return nil, err
	}
	// A run that is not live has been ended above, and a live one is the daemon's to end.
	r.Daemon.Cancel(args.Run)
	r.Daemon.Wake()
	return answer, nil
}

// runRetry authorizes exactly one more attempt after a run that has ended, or that waits without
// a process. E-257, E-258.
func runRetry(ctx context.Context, r *request) (any, error) {
	var args RunArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	live := r.Daemon.Live(args.Run)
	answer, err := r.change(ctx, func(tx *runstore.Tx) (any, error) {
		run, err := findRun(tx.View, args.Run)
		if err != nil {
			return nil, err
		}
		if err := mayRetry(tx.View, run, live); err != nil {
			return nil, err
		}
		if run.RetryAuthorized {
			return run.Control, nil
		}
		c, err := tx.RequestControl(run.ID, "retry")
		if err != nil {
			return nil, err
		}
		if !run.State.Terminal() {
			err = endWaiting(tx, run, c)
		} else {
			err = tx.SetControl(run.ID, c.ID, "completed")
		}
		if err != nil {
			return nil, err
		}
		return c, tx.EditRun(run.ID, func(run *runstore.Run) { run.RetryAuthorized = true })
	})
	if err == nil {
		r.Daemon.Wake()
	}
	return answer, err
}

// endWaiting ends a run that waits without a process: there is nothing to stop, so that the
// control is carried out by the store alone.
func endWaiting(tx *runstore.Tx, run *runstore.Run, c *runstore.Control) error {
	if err := permission.CloseRun(tx, run.ID, permission.RunClosed); err != nil {
		return err
	}
	if err := tx.SetControl(run.ID, c.ID, "processing"); err != nil {
		return err
	}
	for _, state := range []runstore.State{runstore.Cancelling, runstore.Cancelled} {
		if err := tx.Transition(run.ID, runstore.NewID(), state, "operator_cancelled", nil); err != nil {
			return err
		}
	}
	return tx.SetControl(run.ID, c.ID, "completed")
}

// mayRetry says what stands against another attempt.
func mayRetry(v *runstore.View, run *runstore.Run, live bool) error {
	if !run.State.Terminal() && (live || !waits(run)) {
		return refusal.New(refusal.CodeRunActive, fmt.Sprintf("wait for it, or end it with `greatminds run cancel %s`", run.ID),
			"run %s is still at work (%s)", run.ID, run.State)
	}
	if runs := v.RunsOfTask(run.TaskID); len(runs) > 0 && runs[len(runs)-1].ID != run.ID {
		newest := runs[len(runs)-1]
		return refusal.New(refusal.CodeRunSuperseded, fmt.Sprintf("retry that one: `greatminds run retry %s`", newest.ID),
			"run %s is not the newest of task %s: run %s came after it", run.ID, run.TaskID, newest.ID)
	}
	if result := v.ResultOfRun(run.ID); result != nil && result.Open() {
		return refusal.New(refusal.CodeResultPending, resultRemedy(result),
			"result %s of run %s is %s", result.ID(), run.ID, result.Status)
	}
	for _, c := range v.CommandsOfRun(run.ID) {
		if c.Open() {
			return refusal.New(refusal.CodeCommandPending, commandRemedy(c),
				"command %s of run %s is %s", c.ID, run.ID, c.Status)
		}
	}
	for _, o := range v.OperationsOfTask(run.TaskID) {
		if o.Open() {
			return refusal.New(refusal.CodeResultPending, operationRemedy(o),
				"operation %s on task %s is not finished", o.ID, run.TaskID)
		}
	}
	return otherControl(run, "retry")
}

func findRun(v *runstore.View, id runstore.RunID) (*runstore.Run, error) {
	if run := v.Run(id); run != nil {
		return run, nil
	}
	return nil, absent(v, refusal.New(refusal.CodeRunUnknown, "read the ids from `greatminds run list`", "unknown run %q", id))
}

// otherControl refuses while a control of another kind is open.
func otherControl(run *runstore.Run, kind string) error {
	c := run.Control
	if c == nil || c.Status == "completed" || c.Kind == kind {
		return nil
	}
	return refusal.New(refusal.CodeControlPending, "wait until it is completed (`greatminds run status`)",
		"control %s (%s) of run %s is still %s", c.ID, c.Kind, run.ID, c.Status)
}

// waits tells whether a run waits for a person, with its processes proven gone.
func waits(run *runstore.Run) bool {
	return run.Process == nil && (run.State == runstore.WaitingInput || run.State == runstore.WaitingAuth)
}

func resultRemedy(r *runstore.Result) string {
	if r.Status == "needs_recovery" {
		return repairRemedy(string(r.ID()))
	}
	return "wait until the daemon has applied it"
}

func operationRemedy(o *runstore.Operation) string {
	if o.Kind != runstore.ResultOperation && o.Status != "needs_recovery" {
		return "wait until the daemon has finished it"
	}
	return repairRemedy(string(o.ID))
}

func repairRemedy(id string) string {
	return fmt.Sprintf("`greatminds run repair --operation %s` finishes it, with `--abandon --reason TEXT` it is given up", id)
}

func commandRemedy(c *runstore.Command) string {
	if c.Status == "needs_recovery" {
		return fmt.Sprintf("inspect what it did, then `greatminds run command-resolve %s --reason TEXT`", c.ID)
	}
	return "wait for it"
}
