package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// Recover finishes what an earlier process left in the middle, before anything new starts: what
// is certain goes on from its record, what is not becomes needs_recovery. Received results are
// left for Apply, as is one that something stands in the way of. It fails only where the store
// does, or at the end of ctx. Spec: "Lifecycle and result receipts" (E-202, E-203).
func (a *Applier) Recover(ctx context.Context) error {
	// Nobody works in it yet, and what is left in it belongs to nobody.
	_ = os.RemoveAll(a.o.Git.Scratch)
	for _, o := range a.o.Store.View().OpenOperations() {
		err := a.recoverOne(ctx, o)
		if r, ok := refusal.Find(err); ok {
			a.o.Log.Warn("operation not finished at start", "operation", o.ID, "task_id", o.TaskID, "code", r.Code, "what", r.What)
		} else if err != nil {
			return fmt.Errorf("operation %s: %w", o.ID, err)
		}
		if err := a.o.Store.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (a *Applier) recoverOne(ctx context.Context, o *runstore.Operation) error {
	switch {
	case o.Kind == runstore.ResultOperation:
		res := a.o.Store.View().Result(o.ResultID)
		if res == nil || res.Status != "applying" {
			return nil
		}
		a.o.Log.Info("operation taken up again", "operation", o.ID, "task_id", o.TaskID)
		_, err := a.Apply(ctx, o.ResultID)
		return err
	case o.Kind == mergeOperation && o.Status == "prepared":
		a.o.Log.Info("operation taken up again", "operation", o.ID, "task_id", o.TaskID)
		return a.resumeMerge(ctx, o)
	case o.Kind == runstore.ResumeOperation && o.Status == "prepared":
		a.o.Log.Info("operation taken up again", "operation", o.ID, "task_id", o.TaskID)
		return a.finishResume(ctx, o)
	}
	return nil
}

// resume takes up the application of a result from its record.
func (a *Applier) resume(ctx context.Context, held *tasks.Held, run *runstore.Run, res *runstore.Result) error {
	o := a.o.Store.View().Operation(runstore.OperationID(res.ID()))
	// The original tells of the end of its record first, and then of the result's.
	if o == nil || o.Phase != "prepared" && o.Phase != "committed" {
		return a.needsRecovery(ctx, &operation{Operation: runstore.Operation{ResultID: res.ID(), TaskID: run.TaskID}},
			refusal.New(refusal.CodeResultRecovery, "look at state.json", "result %s is applying without an open operation on record", res.ID()))
	}
	op, err := a.readOperation(o)
	if err != nil {
		return a.settle(ctx, &operation{Operation: *o}, err)
	}
	if op.unmerged() {
		return a.withoutMerge(ctx, op)
	}
	release, err := a.serialize(ctx, tasks.Planned{Pre: actionsOf(op.Pre)})
	if err != nil {
		return err
	}
	defer release()
	if err = a.takeUp(ctx, op); err == nil {
		err = a.perform(ctx, held, op, true)
	}
	return a.settle(ctx, op, err)
}

func actionsOf(names []string) []tasks.WorktreeAction {
	out := make([]tasks.WorktreeAction, len(names))
	for i, name := range names {
		out[i] = tasks.WorktreeAction(name)
	}
	return out
}

// settle decides what becomes of an operation that did not get to its end.
func (a *Applier) settle(ctx context.Context, op *operation, err error) error {
	var void *voidError
	var store storeError
	switch {
	case err == nil, errors.Is(err, tasks.ErrBranchMoved), ctx.Err() != nil:
		return err
	case errors.As(err, &store):
		return store.err
	case errors.As(err, &void):
		return a.void(ctx, op, void.reasons)
	}
	if a.untouched(ctx, op) {
		return &heldError{refusalOf(err)}
	}
	return a.needsRecovery(ctx, op, refusalOf(err))
}

// untouched tells whether an operation has changed nothing yet, for certain.
func (a *Applier) untouched(ctx context.Context, op *operation) bool {
	if state, err := a.fileState(op); err != nil || state != fileBefore {
		return false
	}
	if op.merge == nil {
		return true
	}
	begun, err := op.merge.Begun(ctx)
	return err == nil && !begun
}

// void ends an operation that has touched nothing and must not go on: its decision is rejected.
func (a *Applier) void(ctx context.Context, op *operation, reasons []refusal.Reason) error {
	op.Phase, op.Resolution = "abandoned", "the decision no longer counts"
	if err := a.put(ctx, op); err != nil {
		return err
	}
	return a.reject(ctx, a.o.Store.View().Result(op.ResultID), reasons)
}

// needsRecovery leaves a result to a person, with both ways out named.
func (a *Applier) needsRecovery(ctx context.Context, op *operation, r *refusal.Refusal) error {
	details, err := recoveryDetails(op.ResultID, r)
	if err != nil {
		return err
	}
	err = a.o.Store.Update(ctx, func(tx *runstore.Tx) error {
		if err := tx.HoldResult(op.ResultID, nil); err != nil {
			return err
		}
		if tx.Result(op.ResultID).Status == "needs_recovery" {
			// It was held and is uncertain by now, which is another need.
			if err := tx.SetResult(op.ResultID, "applying", nil); err != nil {
				return err
			}
		}
		return tx.SetResult(op.ResultID, "needs_recovery", func(res *runstore.Result) { res.Details = details })
	})
	if err != nil {
		return err
	}
	a.settled(op.ResultID)
	a.o.Log.Error("result needs recovery", "task_id", op.TaskID, "result_id", op.ResultID, "code", r.Code, "what", r.Error(), "err", errors.Unwrap(r))
	return recoveryRefusal(a.o.Store.View().Result(op.ResultID))
}

// recoveryDetails are what the receipt of a result in needs_recovery says: why, what helps, and
// both ways out.
func recoveryDetails(id runstore.ResultID, r *refusal.Refusal) (*runstore.ResultDetails, error) {
	repair, abandon := RepairCommands(string(id))
	details := &runstore.ResultDetails{Error: r.Error(), Extra: runstore.Members{}}
	for name, value := range map[string]string{"code": string(r.Code), "remedy": r.Remedy, "repair": repair, "abandon": abandon} {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		details.Extra[name] = raw
	}
	return details, nil
}

// RepairCommands are the two commands that lead out of needs_recovery.
func RepairCommands(id string) (repair, abandon string) {
	repair = "greatminds run repair --operation " + id
	return repair, repair + " --abandon --reason TEXT"
}

func recoveryRefusal(res *runstore.Result) *refusal.Refusal {
	repair, abandon := RepairCommands(string(res.ID()))
	what := "its outcome is not known"
	if res.Details != nil && res.Details.Error != "" {
		what = res.Details.Error
	}
	remedy := fmt.Sprintf("`%s` finishes it, `%s` gives it up", repair, abandon)
	if res.Details != nil {
		var first string
		// A receipt without it only says less.
		if _ = json.Unmarshal(res.Details.Extra["remedy"], &first); first != "" {
			remedy = first + "; then " + remedy
		}
	}
	return refusal.New(refusal.CodeResultRecovery, remedy, "result %s of task %s needs recovery: %s", res.ID(), res.Envelope.TaskID, what)
}
