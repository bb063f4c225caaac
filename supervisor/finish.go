package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/permission"
	"greatminds/transport"
)

// Limits of the three parts of an end. A command's end reads its source once more, which takes
// its time in a large tree.
const (
	agentEndLimit   = 20 * time.Second
	commandEndLimit = 2 * time.Minute
	recordLimit     = 30 * time.Second
)

// onceTries is how often --once tries to end a run. A daemon that goes on tries until it stops.
const onceTries = 5

// finish ends everything that belongs to a run, and only then records how the run ended.
//
// Order: the agent's input, its whole tree, the session, the run's command, its open questions,
// the state. A tree that cannot be proven empty, or an end that cannot be recorded, leaves the run
// active, so that its task does not run twice; both are tried again. What a stopping daemon leaves
// undone the next one finishes from the record. E-240.
func (d *Daemon) finish(ctx context.Context, e *execution, end ending) {
	ctx = context.WithoutCancel(ctx)
	for try := d.tryFinish; ; try = d.retryFinish {
		code, err := try(ctx, e, &end)
		if err == nil {
			break
		}
		until, tries := d.putOff(e.task.ID, runstore.Hold{Code: code, RunID: e.run.ID, What: err.Error(), Remedy: endRemedy(code, err)})
		d.log.Error("run not ended; it is tried again", "run_id", e.run.ID, "task_id", e.task.ID, "reason", end.reason, "err", err)
		if d.o.Once && tries == onceTries {
			d.giveUp(err)
			return
		}
		if !d.rest(until) {
			return
		}
	}
	d.letGo(e.task.ID)
	d.log.Info("run ended", "run_id", e.run.ID, "task_id", e.task.ID, "binding", e.binding.ID, "state", end.state,
		"reason", end.reason, "took", time.Since(e.began).Round(time.Millisecond), "err", end.cause)
}

// Codes of the holds of runs that could not be ended.
const (
	processUnknown = string(refusal.CodeProcessUnknown)
	endUnrecorded  = "end_not_recorded"
)

// mendDisk helps where the store cannot be written, in work that is tried again.
const mendDisk = "free space or mend the disk; it goes on by itself then"

// endRemedy is what helps a run to its end, which is tried again until it is there.
func endRemedy(code string, err error) string {
	if r, told := refusal.Find(err); code == endUnrecorded || told && r.Code == refusal.CodeStoreWrite {
		return mendDisk
	}
	return "end the processes that it names; it goes on by itself then"
}

// tryFinish ends a run for the first time. The code says what stands in the way of its end.
func (d *Daemon) tryFinish(ctx context.Context, e *execution, end *ending) (code string, err error) {
	err = d.endAgent(ctx, e)
	e.closePipes()
	if err != nil {
		return processUnknown, err
	}
	e.explain(*end)
	return d.settleEnd(ctx, e, end)
}

// retryFinish looks again, as the next daemon would, at an agent that could not be ended.
func (d *Daemon) retryFinish(ctx context.Context, e *execution, end *ending) (code string, err error) {
	if e.child != nil && !e.gone {
		ended, err := execgate.EndRecorded(ctx, e.child.Process(), string(e.run.ID), stopLadder)
		if err != nil {
			return processUnknown, err
		}
		e.gone, e.cleanup = true, ended.Cleanup(stopLadder)
	}
	return d.settleEnd(ctx, e, end)
}

// settleEnd ends the run's command and records the end of the run.
func (d *Daemon) settleEnd(ctx context.Context, e *execution, end *ending) (code string, err error) {
	limit, cancel := context.WithTimeout(ctx, commandEndLimit)
	defer cancel()
	if err := d.commands.CancelRun(limit, e.run.ID); err != nil {
		return processUnknown, fmt.Errorf("the run's command is not ended: %w", err)
	}
	limit, cancel = context.WithTimeout(ctx, recordLimit)
	defer cancel()
	if err := d.recordEnd(limit, e, end); err != nil {
		return endUnrecorded, err
	}
	return "", nil
}

// rest waits until it is time to try again; false where nobody will.
func (d *Daemon) rest(until time.Time) bool {
	timer := time.NewTimer(until.Sub(d.o.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.halt:
	case <-d.store.Failed():
	}
	return false
}

// giveUp leaves something undone that --once has to tell.
func (d *Daemon) giveUp(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.undone = errors.Join(d.undone, err)
}

// unfinished is what --once had to leave undone.
func (d *Daemon) unfinished() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.undone
}

// endAgent closes the agent's input, ends its whole tree, and closes the conversation last, so
// that its last words are still read. It returns nil once the tree is proven empty.
func (d *Daemon) endAgent(ctx context.Context, e *execution) error {
	ctx, cancel := context.WithTimeout(ctx, agentEndLimit)
	defer cancel()
	if e.session == nil {
		return d.endTree(ctx, e)
	}
	e.leave(ctx)
	err := d.endTree(ctx, e)
	if err := e.session.Close(ctx); err != nil {
		d.log.Warn("session not closed cleanly", "run_id", e.run.ID, "err", err)
	}
	return err
}

// leave closes the session and the agent's input and gives it a moment to go by itself: many save
// their session then, some never go, and one that has stopped reading must not hold us up.
func (e *execution) leave(ctx context.Context) {
	e.session.CloseSession(ctx)
	brief, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	// An agent that is gone, or that does not read, has no use for the end of its input.
	_ = e.session.CloseInput(brief)
	select {
	case <-e.child.Ended():
	case <-brief.Done():
	}
}

// endTree ends the agent and everything below it, and returns nil once that is proven.
func (d *Daemon) endTree(ctx context.Context, e *execution) error {
	if e.child == nil {
		return nil
	}
	ended, err := e.child.Stop(ctx, d.ladder(e))
	if err != nil {
		return fmt.Errorf("the run's processes are not ended: %w", err)
	}
	e.gone, e.died, e.cleanup = true, ended, ended.Cleanup(d.ladder(e))
	if ended.Ended > 0 {
		d.log.Info("processes ended with the run", "run_id", e.run.ID, "count", ended.Ended, "how", ended.How, "took", ended.Took)
	}
	return nil
}

// ladder gives an agent time to leave by itself only where it was told to in its own protocol.
func (d *Daemon) ladder(e *execution) execgate.Grace {
	if e.session == nil {
		return execgate.Grace{Term: stopLadder.Term / 4, Kill: stopLadder.Kill}
	}
	return stopLadder
}

// recordEnd writes outcome, protocol record and state in one transaction, and says in end what
// the run came to.
func (d *Daemon) recordEnd(ctx context.Context, e *execution, end *ending) error {
	d.closeFeed(e)
	d.lookAtTask(e)
	elapsed := time.Since(e.began)
	var stats transport.Stats
	if e.session != nil {
		stats = e.session.Stats()
	}
	settled := *end
	err := d.store.Update(ctx, func(tx *runstore.Tx) error {
		run := tx.Run(e.run.ID)
		settled = settle(tx, run, *end)
		if err := permission.CloseRun(tx, run.ID, permission.RunClosed); err != nil {
			return err
		}
		if err := d.recordLimit(tx, e); err != nil {
			return err
		}
		if err := d.settleUsage(tx, e); err != nil {
			return err
		}
		out, took := e.outcomeRecord(stats), elapsed.Seconds()
		out.ElapsedSeconds = &took
		protocol, err := e.observeProtocol(tx, run, stats, settled)
		if err != nil {
			return err
		}
		err = tx.EditRun(run.ID, func(r *runstore.Run) {
			r.Outcome, r.Protocol = out, protocol
			noteCleanup(r, e.cleanup)
			noteLeft(r, e.left)
			if !settled.state.Terminal() {
				r.Process = nil // it waits for a person, without a process
			}
		})
		if err != nil {
			return err
		}
		if err := tx.Stage(run.ID, "cleanup_complete", elapsed); err != nil {
			return err
		}
		if run.State == settled.state {
			return nil
		}
		return endState(tx, run, settled, out)
	})
	if err == nil {
		*end = settled
		d.sessions.note(d.store.View(), e.run.ID)
	}
	return err
}

// lookAtTask looks once, when nothing of the run is left, in which revision the run has left its task.
func (d *Daemon) lookAtTask(e *execution) {
	if e.left != nil {
		return
	}
	// A task that cannot be read is held for that, and counts as new once it can be.
	if revision, err := d.revision(e.run.TaskID); err == nil {
		e.left = (*string)(&revision)
	}
}

// settle adapts an ending to what the store knows by now: a run that an operator cancelled ends
// cancelled whatever its agent did, and a decision ends an input hold. A question that was open
// when the daemon was told to stop leaves the hold that it would leave at a crash. E-242.
func settle(tx *runstore.Tx, run *runstore.Run, end ending) ending {
	decided := tx.ResultOfRun(run.ID) != nil
	switch {
	case run.State == runstore.Cancelling, run.CancelAsked() && end.state != runstore.Completed:
		return ending{runstore.Cancelled, operatorCancelled, nil}
	case end.reason == permissionRequired && decided:
		return ending{runstore.Completed, turnEnded, nil}
	case end.reason == supervisorStopped && run.State == runstore.WaitingInput && !decided:
		return ending{runstore.WaitingInput, permissionRequired, nil}
	}
	return end
}

// endState moves the run along its edges; some ends pass through a state in between.
func endState(tx *runstore.Tx, run *runstore.Run, end ending, out *runstore.Outcome) error {
	to := end.state
	switch {
	case to == runstore.Cancelled && run.State != runstore.Cancelling && run.State != runstore.Claimed:
		if err := tx.Transition(run.ID, runstore.NewID(), runstore.Cancelling, end.reason, nil); err != nil {
			return err
		}
	case to == runstore.Completed && run.State == runstore.WaitingInput,
		to == runstore.WaitingAuth && run.State == runstore.WaitingInput:
		if err := tx.Transition(run.ID, runstore.NewID(), runstore.Running, "permission_callback_resolved", nil); err != nil {
			return err
		}
	}
	details := map[string]any{}
	if raw, err := json.Marshal(out); err == nil {
		// An outcome of plain values always encodes; without it the event only says less.
		_ = json.Unmarshal(raw, &details)
	}
	// The outcome's own encoding is the store's; this one leaves out the members that are ours alone.
	for name, value := range out.Extra {
		details[name] = value
	}
	if err := tx.Transition(run.ID, runstore.NewID(), to, end.reason, map[string]any{"details": details}); err != nil {
		return err
	}
	if run.CancelAsked() && to.Terminal() {
		return tx.SetControl(run.ID, run.Control.ID, "completed")
	}
	return nil
}
