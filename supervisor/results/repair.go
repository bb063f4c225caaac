package results

import (
	"context"
	"fmt"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// Repaired is the answer of a repair: the receipt and the record as they are now.
type Repaired struct {
	Version int `json:"version"`
	// Result is nil for an operation that applies none.
	Result    *runstore.Result    `json:"result"`
	Operation *runstore.Operation `json:"operation"`
}

func (a *Applier) repaired(id string) Repaired {
	view := a.o.Store.View()
	return Repaired{Version: 1, Result: view.Result(runstore.ResultID(id)), Operation: view.Operation(runstore.OperationID(id))}
}

// Repair looks again at a result or operation that needs recovery, or that is held, and finishes
// it where its state is certain by now. It fails with what is still in the way, and has then
// changed nothing that the record does not say. The answer is a [Repaired].
// Spec: DESIGN "Every needs_recovery" (E-218).
func (a *Applier) Repair(ctx context.Context, id string) (any, error) {
	view := a.o.Store.View()
	if o := view.Operation(runstore.OperationID(id)); o != nil && o.Kind == mergeOperation {
		if !o.Open() {
			return nil, settledRefusal("operation", id, o.Status)
		}
		err := a.resumeMerge(ctx, o)
		return a.repaired(id), err
	}
	if o := view.Operation(runstore.OperationID(id)); o != nil && o.Kind == runstore.ResumeOperation {
		if !o.Open() {
			return nil, settledRefusal("operation", id, o.Status)
		}
		err := a.finishResume(ctx, o)
		return a.repaired(id), err
	}
	res := view.Result(runstore.ResultID(id))
	if res == nil {
		return nil, refusal.New(refusal.CodeNotFound, "read the ids from `greatminds run status`", "there is no result or operation %q", id)
	}
	switch res.Status {
	case "received", "applying":
	case "needs_recovery":
		if res.Hold() != nil {
			break // nothing of it has moved; applying it takes it up
		}
		if err := a.reopen(ctx, res); err != nil {
			return nil, err
		}
	default:
		return nil, settledRefusal("result", id, res.Status)
	}
	_, err := a.Apply(ctx, res.ID())
	return a.repaired(id), err
}

func settledRefusal(what, id, status string) error {
	return refusal.New(refusal.CodeResultSettled, "read `greatminds run status`", "%s %s is %s: there is nothing to repair", what, id, status)
}

// reopen puts a result that needs recovery back to applying, to go on from its record.
func (a *Applier) reopen(ctx context.Context, res *runstore.Result) error {
	return a.o.Store.Update(ctx, func(tx *runstore.Tx) error {
		if err := a.lookedAt(tx, runstore.OperationID(res.ID())); err != nil {
			return err
		}
		return tx.SetResult(res.ID(), "applying", nil)
	})
}

// Abandon gives a result or operation up that needs recovery or is held, as long as its task has
// not moved and nothing was merged; new bytes of the task that were already written at its old
// place are put back. It never undoes a merge. The answer is a [Repaired].
// Spec: DESIGN "Every needs_recovery" (E-218).
func (a *Applier) Abandon(ctx context.Context, id, reason string) (any, error) {
	if strings.TrimSpace(reason) == "" {
		return nil, refusal.New(refusal.CodeUsage, "add --reason TEXT", "giving up %s needs a reason", id)
	}
	view := a.o.Store.View()
	if o := view.Operation(runstore.OperationID(id)); o != nil && o.Kind == mergeOperation {
		if err := a.abandonMerge(ctx, o, reason); err != nil {
			return nil, err
		}
		return a.repaired(id), nil
	}
	if o := view.Operation(runstore.OperationID(id)); o != nil && o.Kind == runstore.ResumeOperation {
		if err := a.abandonResume(ctx, o, reason); err != nil {
			return nil, err
		}
		return a.repaired(id), nil
	}
	res := view.Result(runstore.ResultID(id))
	if res == nil {
		return nil, refusal.New(refusal.CodeNotFound, "read the ids from `greatminds run status`", "there is no result or operation %q", id)
	}
	held, err := a.o.Tree.Lock(ctx, tasks.ID(res.Envelope.TaskID))
	if err != nil {
		return nil, err
	}
	defer held.Release()
	if err := a.abandon(ctx, held, runstore.ResultID(id), reason); err != nil {
		return nil, err
	}
	a.settled(res.ID())
	a.o.Log.Warn("result given up by the operator", "task_id", res.Envelope.TaskID, "result_id", id)
	return a.repaired(id), nil
}

func (a *Applier) abandon(ctx context.Context, held *tasks.Held, id runstore.ResultID, reason string) error {
	res := a.o.Store.View().Result(id)
	switch {
	case res.Status == "received" && res.Hold() != nil:
		return a.giveUp(ctx, res, nil, reason)
	case res.Status == "needs_recovery", res.Status == "applying" && res.Hold() != nil:
	case res.Open():
		return refusal.New(refusal.CodeResultSettled, "wait until the daemon has applied it", "result %s is %s and nothing is in its way", id, res.Status)
	default:
		return settledRefusal("result", string(id), res.Status)
	}
	o := a.o.Store.View().Operation(runstore.OperationID(id))
	if o == nil {
		return a.giveUp(ctx, res, nil, reason)
	}
	op, err := a.readOperation(o)
	if err != nil {
		return err
	}
	if err := a.mayAbandon(ctx, op); err != nil {
		return err
	}
	if err := a.putBack(held, op); err != nil {
		return err
	}
	return a.giveUp(ctx, res, op, reason)
}

// mayAbandon refuses once the operation has gone too far.
func (a *Applier) mayAbandon(ctx context.Context, op *operation) error {
	repair, _ := RepairCommands(string(op.ID))
	begun := func(what string) error {
		return refusal.New(refusal.CodeOperationBegun, fmt.Sprintf("finish it with `%s`", repair), "operation %s cannot be given up: %s", op.ID, what)
	}
	if op.moves() {
		if _, there := a.o.Tree.Look(contract.Queue(op.Destination), string(op.TaskID)+".yaml"); there {
			if _, still := a.o.Tree.Look(contract.Queue(op.Source), string(op.TaskID)+".yaml"); !still {
				return begun(fmt.Sprintf("task %s stands in %s already", op.TaskID, op.Destination))
			}
		}
	}
	if written, err := a.o.Tree.HasOperation(string(op.ID)); err != nil || written {
		if err == nil {
			err = begun("its journal line is written")
		}
		return err
	}
	if op.merge == nil {
		return a.mayForget(ctx, op)
	}
	merging, err := op.merge.Begun(ctx)
	if err != nil {
		return fmt.Errorf("whether the merge of operation %s has begun cannot be told: %w", op.ID, err)
	}
	if merging {
		return begun(fmt.Sprintf("its merge %.12s into %s has begun", op.merge.Commit, op.merge.Branch))
	}
	return nil
}

// putBack restores the task's old bytes where ours stand at the old place.
func (a *Applier) putBack(held *tasks.Held, op *operation) error {
	written := tasks.RevisionOf(op.file(op.Source), []byte(op.After))
	found, there := a.o.Tree.Look(contract.Queue(op.Source), string(op.TaskID)+".yaml")
	if !there || found.Revision != written || op.BeforeSHA256 == op.AfterSHA256 {
		return nil // as it was, or somebody else's by now: either is left
	}
	before := op.before()
	if contentHash([]byte(before)) != op.BeforeSHA256 {
		return refusal.New(refusal.CodeResultRecovery, "restore the file by hand", "the record of operation %s does not hold the old bytes of task %s", op.ID, op.TaskID)
	}
	return a.o.Disk.Step("abandon.write", func() error {
		_, err := a.o.Tree.Write(held, found.Ref, []byte(before))
		return err
	})
}

// giveUp records the operator's decision. A result that was never taken up is rejected, which is
// the only end its life has before application.
func (a *Applier) giveUp(ctx context.Context, res *runstore.Result, op *operation, reason string) error {
	details := &runstore.ResultDetails{Error: "given up by the operator: " + reason}
	set := func(r *runstore.Result) { r.Details = details }
	return a.o.Store.Update(ctx, func(tx *runstore.Tx) error {
		if err := tx.HoldResult(res.ID(), nil); err != nil {
			return err
		}
		if op != nil && op.Phase == "prepared" {
			op.Phase, op.Resolution = "abandoned", reason
			if err := tx.PutOperation(op.Operation); err != nil {
				return err
			}
		}
		switch res.Status {
		case "received":
			return tx.SetResult(res.ID(), "rejected", set)
		case "applying":
			if err := tx.SetResult(res.ID(), "needs_recovery", set); err != nil {
				return err
			}
		}
		return tx.SetResult(res.ID(), "abandoned", set)
	})
}
