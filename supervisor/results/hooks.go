package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// mergeOperation is the kind of the operation behind an operator's move to verified: the merge
// alone, since the move has a record of its own in the task tree.
const mergeOperation = "merge"

// Worktree performs one worktree action around an operator's move. A merge is an operation on
// record, like that of a result, so that one cut short is finished at the next start. It holds
// the task until it has ended.
func (a *Applier) Worktree(ctx context.Context, t *tasks.Task, action tasks.WorktreeAction) error {
	switch action {
	case tasks.WorktreeCreate:
		_, err := tasks.PrepareWorktree(ctx, tasks.WorktreeRequest{Git: a.o.Git, Project: a.o.Project, Policy: a.o.Policy, Task: t, Workspace: "."})
		return err
	case tasks.WorktreeMerge:
		release, err := a.serialize(ctx, tasks.Planned{Pre: []tasks.WorktreeAction{action}})
		if err != nil {
			return err
		}
		defer release()
		return a.operatorMerge(ctx, t)
	case tasks.WorktreeRemove:
		merged, err := a.o.Git.MergedHead(ctx, a.o.Project, a.o.Policy, t.ID)
		if err != nil {
			return err
		}
		removed, err := tasks.RemoveWorktree(ctx, tasks.RemoveRequest{Git: a.o.Git, Project: a.o.Project, Policy: a.o.Policy, Task: t.ID, Merged: merged})
		if err == nil && removed.Branch != "" {
			a.o.Log.Info("worktree removed", "task_id", t.ID, "branch", removed.Branch, "head", removed.Head)
		}
		return err
	}
	return fmt.Errorf("unknown worktree action %q", action)
}

// operatorMerge merges a task's work for an operator's move.
func (a *Applier) operatorMerge(ctx context.Context, t *tasks.Task) error {
	const attempts = 3
	var err error
	for range attempts {
		var m tasks.MergePlan
		if m, err = a.computeMerge(ctx, t, a.o.Now()); err == nil && m.Nothing {
			return nil
		}
		if err == nil {
			err = a.mergeOnRecord(ctx, t, m)
		}
		if !errors.Is(err, tasks.ErrBranchMoved) {
			return err
		}
	}
	return err
}

func (a *Applier) mergeOnRecord(ctx context.Context, t *tasks.Task, m tasks.MergePlan) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	o := runstore.Operation{ID: runstore.OperationID(runstore.NewID()), Kind: mergeOperation, Status: "prepared", TaskID: runstore.TaskID(t.ID),
		TaskRevision: runstore.Revision(t.Revision), Source: string(t.Queue), Destination: "verified", At: runstore.Epoch(a.o.Now()), Merge: raw}
	if err := a.putMerge(ctx, o); err != nil {
		return err
	}
	return a.settleMerge(ctx, o, m, a.o.Disk.Step("apply.merge", func() error { return m.Perform(ctx, false) }))
}

// resumeMerge goes on with an operator's merge from its record. The move behind it is the
// operator's to ask for again.
func (a *Applier) resumeMerge(ctx context.Context, o *runstore.Operation) error {
	op, err := a.readOperation(o)
	if err != nil {
		return err
	}
	if op.merge == nil {
		return refusal.New(refusal.CodeResultRecovery, "give it up", "operation %s has no merge on record", o.ID)
	}
	release, err := a.serialize(ctx, tasks.Planned{Pre: []tasks.WorktreeAction{tasks.WorktreeMerge}})
	if err != nil {
		return err
	}
	defer release()
	err = a.o.Disk.Step("apply.merge", func() error { return op.merge.Perform(ctx, true) })
	return a.settleMerge(ctx, op.Operation, *op.merge, err)
}

// settleMerge ends an operator's merge: applied, given up because nothing has moved, or left to
// a person.
func (a *Applier) settleMerge(ctx context.Context, o runstore.Operation, m tasks.MergePlan, err error) error {
	if err == nil {
		o.Status = "applied"
		return a.putMerge(ctx, o)
	}
	moved := errors.Is(err, tasks.ErrBranchMoved)
	if ctx.Err() != nil {
		return err
	}
	r, begun := refusalOf(err), false
	if !moved {
		var begunErr error
		if begun, begunErr = m.Begun(ctx); begunErr != nil {
			begun = true
		}
	}
	o.Status = "abandoned"
	if begun {
		o.Status = "needs_recovery"
		if o.Details, err = json.Marshal(map[string]string{"error": r.Error(), "remedy": r.Remedy}); err != nil {
			return err
		}
		err = r
	}
	if putErr := a.putMerge(ctx, o); putErr != nil {
		return putErr
	}
	return err
}

func (a *Applier) putMerge(ctx context.Context, o runstore.Operation) error {
	now := runstore.Epoch(a.o.Now())
	o.UpdatedAt = &now
	return a.o.Store.Update(ctx, func(tx *runstore.Tx) error { return tx.PutOperation(o) })
}

// abandonMerge gives an operator's merge up as long as nothing of it is in place.
func (a *Applier) abandonMerge(ctx context.Context, o *runstore.Operation, reason string) error {
	if !o.Open() {
		return settledRefusal("operation", string(o.ID), o.Status)
	}
	op, err := a.readOperation(o)
	if err != nil {
		return err
	}
	if op.merge != nil {
		if err := a.mayAbandon(ctx, op); err != nil {
			return err
		}
	}
	op.Status, op.Resolution = "abandoned", reason
	return a.putMerge(ctx, op.Operation)
}
