package results

import (
	"context"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// hold records why a result does not go on now. Where a user's checkout is in the way only a
// person can clear it, so the receipt says needs_recovery; nothing has moved, so it is not
// uncertain either: it stays held, and goes on by itself once the checkout is clear.
func (a *Applier) hold(ctx context.Context, id runstore.ResultID, cause *refusal.Refusal) error {
	h := &runstore.ResultHold{Code: string(cause.Code), What: cause.Error(), Remedy: cause.Remedy}
	return a.o.Store.Update(ctx, func(tx *runstore.Tx) error {
		res := tx.Result(id)
		if res != nil && res.Status != "needs_recovery" && inCheckout(cause.Code) {
			details, err := recoveryDetails(id, cause)
			if err != nil {
				return err
			}
			if err := tx.SetResult(id, "needs_recovery", func(r *runstore.Result) { r.Details = details }); err != nil {
				return err
			}
		}
		return tx.HoldResult(id, h)
	})
}

// inCheckout tells whether a hold is a checkout that cannot follow a merge: files of its own in
// the way, a lock of git's, a merge, rebase or the like under way.
func inCheckout(code refusal.Code) bool {
	switch code {
	case refusal.CodeCheckoutOverlap, refusal.CodeGitIndexLocked, refusal.CodeMergeBusy:
		return true
	}
	return false
}

// recorded tells whether the application of a result has an intent on record to go on from.
func (a *Applier) recorded(res *runstore.Result) bool {
	if res.Status == "applying" {
		return true
	}
	o := a.o.Store.View().Operation(runstore.OperationID(res.ID()))
	return res.Status == "needs_recovery" && o != nil && o.Phase == "prepared"
}

// takeUp puts a result that was held in needs_recovery back to applying before the first step of
// its operation is tried again. While something is still in the way it changes nothing, so that a
// hold that lasts writes no event at each look.
func (a *Applier) takeUp(ctx context.Context, op *operation) error {
	if a.o.Store.View().Result(op.ResultID).Status != "needs_recovery" {
		return nil
	}
	if op.merge != nil {
		overlaps, err := op.merge.CheckCheckouts(ctx)
		if err != nil {
			return err
		}
		if len(overlaps) > 0 {
			return tasks.OverlapRefusal(op.merge.Branch, overlaps)
		}
	}
	return storeFailure(a.o.Store.Update(ctx, func(tx *runstore.Tx) error {
		if err := tx.HoldResult(op.ResultID, nil); err != nil {
			return err
		}
		return tx.SetResult(op.ResultID, "applying", nil)
	}))
}
