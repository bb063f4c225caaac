package results

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// perform carries out a recorded operation, from wherever an earlier attempt left it.
func (a *Applier) perform(ctx context.Context, held *tasks.Held, op *operation, resumed bool) error {
	state, err := a.fileState(op)
	if err != nil {
		return err
	}
	if err := a.recheck(ctx, op, state, resumed); err != nil {
		return err
	}
	for i, action := range op.Pre {
		if err := a.pre(ctx, op, actionName("pre", i, action), tasks.WorktreeAction(action), resumed); err != nil {
			return err
		}
	}
	ref, err := a.moveFile(held, op, state)
	if err != nil {
		return err
	}
	if err := a.o.Disk.Step("apply.journal", func() error { return a.o.Tree.AppendJournal(a.line(op)) }); err != nil {
		return err
	}
	kept := ""
	for i, action := range op.Post {
		why, err := a.post(ctx, op, actionName("post", i, action))
		if err != nil {
			return err
		}
		kept = why
	}
	return a.commit(ctx, op, ref, kept)
}

// recheck looks once more at what the decision relies on, while nothing has been touched. What
// no longer holds rejects the decision.
func (a *Applier) recheck(ctx context.Context, op *operation, state fileState, resumed bool) error {
	if begun, err := a.begun(ctx, op, state, resumed); err != nil || begun {
		return err
	}
	run := a.o.Store.View().Run(op.RunID)
	if run == nil {
		return fmt.Errorf("operation %s: its run %s is not in the store", op.ID, op.RunID)
	}
	var reasons []refusal.Reason
	for _, f := range op.Artifacts {
		fact := tasks.ArtifactEvidence(run.Workspace, f.Path)
		if fact.SHA256 != f.SHA256 {
			reasons = append(reasons, refusal.Reason{Code: refusal.CodeArtifactChanged, Remedy: "decide again about the file as it is",
				What: fmt.Sprintf("the artifact %s changed since the decision was judged%s", f.Path, behind(fact.Problem))})
		}
	}
	stale, err := a.staleEvidence(ctx, run, op)
	if err != nil {
		return err
	}
	reasons = append(reasons, stale...)
	if resumed && len(reasons) == 0 {
		res := a.o.Store.View().Result(op.ResultID)
		task, err := a.current(run)
		if err != nil {
			return err
		}
		j, err := a.judge(ctx, run, res.Envelope, task)
		if err != nil {
			return err
		}
		reasons = j.reasons
	}
	if len(reasons) > 0 {
		return &voidError{reasons}
	}
	return nil
}

// staleEvidence looks again at the commands that the decision cites: computing a merge can take
// long enough for their source to change.
func (a *Applier) staleEvidence(ctx context.Context, run *runstore.Run, op *operation) ([]refusal.Reason, error) {
	var reasons []refusal.Reason
	for _, id := range op.CommandEvidence {
		receipt := a.o.Store.View().Command(runstore.CommandID(id))
		if receipt == nil {
			return nil, fmt.Errorf("command %s, which operation %s cites, is not in the store", id, op.ID)
		}
		fact, err := a.commandFact(ctx, run, receipt)
		if err != nil {
			return nil, err
		}
		if fact.Stale != "" {
			reasons = append(reasons, refusal.Reason{Code: refusal.CodeCommandEvidence, Remedy: "run the command again and decide again",
				What: fmt.Sprintf("the command request %s no longer counts: %s", id, fact.Stale)})
		}
	}
	return reasons, nil
}

// begun tells whether an operation has left a trace already: then it is too late to change our
// mind about it. Whether a merge whose state cannot be told may go on is for the merge to say.
func (a *Applier) begun(ctx context.Context, op *operation, state fileState, resumed bool) (bool, error) {
	if op.BeforeSHA256 == op.AfterSHA256 && !op.moves() {
		return a.o.Tree.HasOperation(string(op.ID))
	}
	if state != fileBefore || op.merge == nil || !resumed {
		return state != fileBefore, nil
	}
	begun, err := op.merge.Begun(ctx)
	return begun || err != nil, nil
}

func behind(text string) string {
	if text == "" {
		return ""
	}
	return ": it " + text
}

// voidError is an operation that must not go on, with nothing touched yet.
type voidError struct{ reasons []refusal.Reason }

// Error lists the reasons.
func (e *voidError) Error() string { return reasonsText(e.reasons) }

// actionName is an action's entry in the record.
func actionName(when string, i int, action string) string {
	return fmt.Sprintf("%s-%d-%s", when, i, action)
}

// act makes one action an entry of the record: begun before it, done after it.
func (a *Applier) act(ctx context.Context, op *operation, name string, do func() error) error {
	if slices.Contains(op.ActionsDone, name) {
		return nil
	}
	if op.ActionStarted == nil || *op.ActionStarted != name {
		op.ActionStarted = &name
		if err := a.put(ctx, op); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	op.ActionsDone, op.ActionStarted = append(op.ActionsDone, name), nil
	return a.put(ctx, op)
}

func (a *Applier) put(ctx context.Context, op *operation) error {
	return storeFailure(a.o.Store.Update(ctx, func(tx *runstore.Tx) error { return tx.PutOperation(op.Operation) }))
}

func storeFailure(err error) error {
	if err != nil {
		return storeError{err}
	}
	return nil
}

// pre performs an action that comes before the task file.
func (a *Applier) pre(ctx context.Context, op *operation, name string, action tasks.WorktreeAction, resumed bool) error {
	return a.act(ctx, op, name, func() error {
		switch action {
		case tasks.WorktreeCreate:
			return a.o.Disk.Step("apply.create", func() error { return a.createWorktree(ctx, op) })
		case tasks.WorktreeMerge:
			if op.merge == nil {
				return refusal.New(refusal.CodeResultRecovery, "look at the record in state.json", "operation %s has no merge on record", op.ID)
			}
			return a.o.Disk.Step("apply.merge", func() error { return op.merge.Perform(ctx, resumed) })
		}
		return refusal.New(refusal.CodeResultRecovery, "look at the record in state.json", "operation %s asks for the unknown action %q", op.ID, action)
	})
}

func (a *Applier) createWorktree(ctx context.Context, op *operation) error {
	schema, err := a.o.Schema(op.SchemaSHA256)
	if err != nil {
		return err
	}
	// The plan that names the base commit may be one of the new blocks.
	task, err := tasks.Parse(schema, contract.Queue(op.Source), op.file(op.Source), []byte(op.After))
	if err != nil {
		return err
	}
	_, err = tasks.PrepareWorktree(ctx, tasks.WorktreeRequest{Git: a.o.Git, Project: a.o.Project, Policy: a.o.Policy, Task: task, Workspace: "."})
	return err
}

// line is the journal's line of the operation. Its operation id keeps it from being written twice.
func (a *Applier) line(op *operation) tasks.JournalLine {
	return tasks.JournalLine{T: a.o.Now().UTC().Format("2006-01-02T15:04:05Z"), Actor: "SYSTEM", ActorKind: "system", DecisionBy: op.Role,
		Task: string(op.TaskID), From: op.Source, To: op.Destination, Reason: "apply " + op.Decision + " result",
		IntentID: string(op.ID), OperationID: string(op.ID), RunID: string(op.RunID), SchemaSHA256: op.SchemaSHA256}
}

// post removes the worktree behind a finished task. A worktree that has to stay is no failure of
// the application: why says what keeps it.
func (a *Applier) post(ctx context.Context, op *operation, name string) (why string, err error) {
	err = a.act(ctx, op, name, func() error {
		return a.o.Disk.Step("apply.post", func() error {
			merged, err := a.mergedByOriginal(ctx, op)
			if err != nil {
				return err
			}
			removed, err := tasks.RemoveWorktree(ctx, tasks.RemoveRequest{Git: a.o.Git, Project: a.o.Project, Policy: a.o.Policy,
				Task: op.taskID(), Merged: merged})
			if r, ok := refusal.Find(err); ok && ctx.Err() == nil {
				why = r.Error()
				a.o.Log.Warn("worktree kept", "task_id", op.TaskID, "result_id", op.ResultID, "what", why)
				return nil
			}
			if err == nil && removed.Branch != "" {
				a.o.Log.Info("worktree removed", "task_id", op.TaskID, "branch", removed.Branch, "head", removed.Head)
			}
			return err
		})
	})
	return why, err
}

// commit ends the operation and acknowledges the result in one transaction.
func (a *Applier) commit(ctx context.Context, op *operation, ref tasks.Ref, kept string) error {
	details := &runstore.ResultDetails{Destination: op.file(op.Destination), Decision: op.Decision, DestinationRevision: runstore.Revision(ref.Revision),
		Artifacts: op.Artifacts, Question: op.Question, CommandEvidence: op.CommandEvidence, Extra: runstore.Members{}}
	for name, value := range map[string]string{"merge_commit": op.mergeCommit(), "worktree_kept": kept} {
		if value == "" {
			continue
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		details.Extra[name] = raw
	}
	if files, ok := op.Extra[conflictMember]; ok {
		details.Extra[conflictMember] = files
	}
	op.Phase = "committed"
	now := runstore.Epoch(a.o.Now())
	op.UpdatedAt = &now
	err := a.o.Disk.Step("apply.commit", func() error {
		return a.o.Store.Update(ctx, func(tx *runstore.Tx) error {
			if err := tx.HoldResult(op.ResultID, nil); err != nil {
				return err
			}
			if err := tx.PutOperation(op.Operation); err != nil {
				return err
			}
			return tx.SetResult(op.ResultID, "applied", func(r *runstore.Result) { r.Details = details })
		})
	})
	if err == nil {
		a.o.Log.Info("task moved", "task_id", op.TaskID, "from", op.Source, "to", op.Destination, "result_id", op.ResultID,
			"merge", op.mergeCommit(), "took", time.Duration((now-op.At)*float64(time.Second)).Round(time.Millisecond))
	}
	return storeFailure(err)
}
