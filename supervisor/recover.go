package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
	"greatminds/supervisor/permission"
)

// recoverRuns ends what a dead supervisor left: for every active run its processes first, then
// the record. Waiting runs keep their hold without a process; every other one is interrupted.
// What cannot be proven gone is an error, never a reason to go on. E-239..E-242.
func recoverRuns(ctx context.Context, c *core) error {
	var unknown []error
	for _, run := range c.store.View().ActiveRuns() {
		if err := recoverRun(ctx, c, run); err != nil {
			unknown = append(unknown, fmt.Errorf("run %s: %w", run.ID, err))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return &refusal.Refusal{Code: refusal.CodeProcessUnknown, Err: errors.Join(unknown...),
		What:   fmt.Sprintf("what an earlier supervisor started cannot be proven ended: %v", errors.Join(unknown...)),
		Remedy: "end the named processes, then start coordd again"}
}

func recoverRun(ctx context.Context, c *core, run *runstore.Run) error {
	var cleanup json.RawMessage
	if run.Process != nil {
		ended, err := execgate.EndRecorded(ctx, *run.Process, string(run.ID), stopLadder)
		if err != nil {
			return err
		}
		cleanup = ended.Cleanup(stopLadder)
		c.log.Info("processes of an earlier supervisor ended", "run_id", run.ID, "count", ended.Ended, "how", ended.How)
	}
	err := c.store.Update(ctx, func(tx *runstore.Tx) error {
		if err := permission.CloseRun(tx, run.ID, permission.SupervisorRestart); err != nil {
			return err
		}
		// What the file says now may be an operator's word since; what was seen last is older than the crash.
		var left *string
		if seen := tx.Observation(run.TaskPath); seen != nil {
			left = (*string)(&seen.TaskRevision)
		}
		if err := tx.EditRun(run.ID, func(r *runstore.Run) { noteCleanup(r, cleanup); noteLeft(r, left) }); err != nil {
			return err
		}
		return tx.Recover(run.ID, c.owner)
	})
	if err == nil {
		c.log.Info("run recovered", "run_id", run.ID, "task_id", run.TaskID, "was", run.State)
	}
	return err
}

// noteCleanup says on a run how its processes were ended; nil says nothing.
func noteCleanup(r *runstore.Run, cleanup json.RawMessage) {
	if cleanup != nil {
		note(r, execgate.CleanupMember, cleanup)
	}
}

// noteLeft says on a run that its task was changed while it was at work, where it was; nil says nothing.
func noteLeft(r *runstore.Run, revision *string) {
	if revision != nil && *revision != string(r.TaskRevision) {
		note(r, dispatch.LeftMember, raw(*revision))
	}
}

func note(r *runstore.Run, member string, value json.RawMessage) {
	extra := runstore.Members{} // the run's own is shared with what is published
	maps.Copy(extra, r.Extra)
	extra[member] = value
	r.Extra = extra
}
