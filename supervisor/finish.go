package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"greatminds/internal/execgate"
	"greatminds/runstore"
	"greatminds/supervisor/permission"
	"greatminds/transport"
)

// finish ends everything that belongs to a run, and only then records how the run ended.
//
// Order: the agent's input, its whole tree, the session, the run's command, its open questions,
// the state. A
// tree that cannot be proven empty leaves the run active: its task must not run twice. E-240.
func (d *Daemon) finish(ctx context.Context, e *execution, end ending) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	clean := d.endAgent(bounded, e)
	e.closePipes()
	if err := d.commands.CancelRun(bounded, e.run.ID); err != nil {
		d.log.Error("command of the run not ended", "run_id", e.run.ID, "err", err)
		clean = false
	}
	if !clean {
		d.hold(e.task.ID, runstore.Hold{Code: "process_unknown", RunID: e.run.ID,
			What: "processes of run " + string(e.run.ID) + " could not be ended; a restart tries again"})
		return
	}
	if err := d.recordEnd(bounded, e, end); err != nil {
		d.log.Error("end of the run not recorded", "run_id", e.run.ID, "err", err)
		return
	}
	d.log.Info("run ended", "run_id", e.run.ID, "task_id", e.task.ID, "binding", e.binding.ID, "state", end.state,
		"reason", end.reason, "took", time.Since(e.began).Round(time.Millisecond), "err", end.cause)
}

// endAgent closes the agent's input, ends its whole tree, and closes the conversation last, so
// that its last words are still read. It tells whether the tree is proven empty.
func (d *Daemon) endAgent(ctx context.Context, e *execution) bool {
	if e.session == nil {
		return d.endTree(ctx, e)
	}
	e.leave(ctx)
	clean := d.endTree(ctx, e)
	if err := e.session.Close(ctx); err != nil {
		d.log.Warn("session not closed cleanly", "run_id", e.run.ID, "err", err)
	}
	return clean
}

// leave closes the agent's input and gives it a moment to go by itself: many save their session
// then, some never go, and one that has stopped reading must not hold us up.
func (e *execution) leave(ctx context.Context) {
	brief, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	// An agent that is gone, or that does not read, has no use for the end of its input.
	_ = e.session.CloseInput(brief)
	select {
	case <-e.child.Ended():
	case <-brief.Done():
	}
}

// endTree ends the agent and everything below it, and tells whether that is proven.
func (d *Daemon) endTree(ctx context.Context, e *execution) bool {
	if e.child == nil {
		return true
	}
	ended, err := e.child.Stop(ctx, d.ladder(e))
	if err != nil || len(ended.Survivors) > 0 {
		d.log.Error("processes of the run are left", "run_id", e.run.ID, "survivors", len(ended.Survivors), "err", err)
		return false
	}
	if ended.Ended > 0 {
		d.log.Info("processes ended with the run", "run_id", e.run.ID, "count", ended.Ended, "how", ended.How, "took", ended.Took)
	}
	return true
}

// ladder gives an agent time to leave by itself only where it was told to in its own protocol.
func (d *Daemon) ladder(e *execution) execgate.Grace {
	if e.session == nil {
		return execgate.Grace{Term: stopLadder.Term / 4, Kill: stopLadder.Kill}
	}
	return stopLadder
}

// recordEnd writes outcome, protocol record and state in one transaction.
func (d *Daemon) recordEnd(ctx context.Context, e *execution, end ending) error {
	elapsed := time.Since(e.began)
	var stats transport.Stats
	if e.session != nil {
		stats = e.session.Stats()
	}
	return d.store.Update(ctx, func(tx *runstore.Tx) error {
		if err := permission.CloseRun(tx, e.run.ID, permission.RunClosed); err != nil {
			return err
		}
		run := tx.Run(e.run.ID)
		end := settle(tx, run, end)
		out := e.outcomeRecord(stats, elapsed)
		protocol, err := e.protocolRecord(run, stats, end, epoch(tx.Now()))
		if err != nil {
			return err
		}
		err = tx.EditRun(run.ID, func(r *runstore.Run) {
			r.Outcome, r.Protocol = out, protocol
			if !end.state.Terminal() {
				r.Process = nil // it waits for a person, without a process
			}
		})
		if err != nil {
			return err
		}
		if err := tx.Stage(run.ID, "cleanup_complete", elapsed); err != nil {
			return err
		}
		if run.State == end.state {
			return nil
		}
		return d.endState(tx, run, end, out)
	})
}

// settle adapts an ending to what the store knows by now: a decision ends an input hold, and a
// run that is being cancelled ends cancelled whatever its agent did.
func settle(tx *runstore.Tx, run *runstore.Run, end ending) ending {
	switch {
	case end.reason == permissionRequired && tx.ResultOfRun(run.ID) != nil:
		return ending{runstore.Completed, turnEnded, nil}
	case run.State == runstore.Cancelling && end.state != runstore.Interrupted:
		return ending{runstore.Cancelled, operatorCancelled, nil}
	}
	return end
}

// endState moves the run along its edges; some ends pass through a state in between.
func (d *Daemon) endState(tx *runstore.Tx, run *runstore.Run, end ending, out *runstore.Outcome) error {
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
	if err := tx.Transition(run.ID, runstore.NewID(), to, end.reason, map[string]any{"details": details}); err != nil {
		return err
	}
	if run.Control != nil && run.Control.Kind == "cancel" && run.Control.Status != "completed" && to.Terminal() {
		return tx.SetControl(run.ID, run.Control.ID, "completed")
	}
	return nil
}

func (e *execution) outcomeRecord(s transport.Stats, elapsed time.Duration) *runstore.Outcome {
	started, active := e.promptStarted.Load(), s.PrePromptActivity
	seconds := elapsed.Seconds()
	o := &runstore.Outcome{ContextBytes: &e.outcome.contextBytes, Updates: &s.Updates, PromptStarted: &started,
		PrePromptActivity: &active, SessionStrategy: e.outcome.strategy, InputBytesReserved: &e.outcome.reserved,
		SessionInputBytesReserved: &e.outcome.sessionReserved, ElapsedSeconds: &seconds, ErrorType: e.outcome.errorType,
		ErrorCode: e.outcome.errorCode, AuthenticationMethod: e.outcome.authMethod, Extra: runstore.Members{}}
	if e.outcome.stopReason != "" {
		o.StopReason = &e.outcome.stopReason
	}
	if !s.LastActivity.IsZero() {
		at := epoch(s.LastActivity)
		o.LastActivityAt = &at
	}
	if e.outcome.inputBudget != nil {
		o.InputBudget = raw(e.outcome.inputBudget)
	}
	if e.outcome.what != "" {
		o.Extra["error_what"] = raw(e.outcome.what)
	}
	if skipped := counted(s); skipped != nil {
		o.Extra["protocol_counts"] = raw(skipped)
	}
	return o
}

// counted lists what the guard had to leave out or repair, where there was any.
func counted(s transport.Stats) map[string]int64 {
	out := map[string]int64{}
	for name, n := range map[string]int64{"garbage_lines": s.GarbageLines, "gaps": s.Gaps, "repaired": s.Repaired,
		"stray_replies": s.StrayReplies, "rejected_requests": s.Rejected, "unknown_updates": s.Unknown,
		"late_updates": s.LateUpdates, "replayed_updates": s.Replayed} {
		if n > 0 {
			out[name] = n
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// protocolRecord is the bounded protocol summary: no prompt, title, argument or agent text.
// Spec: "Managed protocol diagnostics".
func (e *execution) protocolRecord(run *runstore.Run, s transport.Stats, end ending, at float64) (json.RawMessage, error) {
	doc := map[string]any{"version": 1}
	if len(run.Protocol) > 0 {
		if err := json.Unmarshal(run.Protocol, &doc); err != nil {
			return nil, err
		}
	}
	tools := []map[string]any{}
	for _, t := range s.Tools {
		tools = append(tools, map[string]any{"at": epoch(t.At), "data": map[string]any{"phase": t.Phase, "update": t.Update,
			"tool_reference": t.Reference, "kind": t.ToolKind, "status": t.Status, "content_count": t.ContentCount, "location_count": t.LocationCount}})
	}
	doc["tool_events"], doc["tool_events_truncated"] = tools, s.ToolsTruncated
	if e.outcome.stopReason != "" {
		doc["stop"] = map[string]any{"at": at, "data": map[string]any{"phase": "prompt", "reason": e.outcome.stopReason}}
	}
	if e.outcome.errorType != "" || e.outcome.errorCode != nil {
		doc["error"] = map[string]any{"at": at, "data": map[string]any{"exception": e.outcome.errorType,
			"phase": phaseOf(end.cause), "rpc_code": e.outcome.errorCode}}
	}
	return json.Marshal(doc)
}

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("supervisor: a plain value does not encode: " + err.Error())
	}
	return b
}

// phaseOf names the protocol stage that failed; preflight where no conversation had begun.
func phaseOf(cause error) transport.Phase {
	var te *transport.Error
	if errors.As(cause, &te) {
		return te.Phase
	}
	return transport.PhasePreflight
}
