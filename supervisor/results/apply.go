package results

import (
	"context"
	"errors"
	"fmt"
	"time"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// Apply takes one result as far as it goes: a received one is judged, recorded and carried out,
// one whose application was cut short goes on from its record. It returns nil once the result
// is applied, also when its task was handed back because the work does not merge.
//
// A refusal says why it is not: it was rejected, needs recovery, or is held. Only a held result
// is worth another try by itself, and again says when; it is zero otherwise. When the store fails
// or ctx ends, the result is left as it stands and goes on at the next start. The run must have
// ended (E-195).
func (a *Applier) Apply(ctx context.Context, id runstore.ResultID) (again time.Time, err error) {
	run, _, err := a.open(id)
	if err != nil || run == nil {
		return time.Time{}, err
	}
	held, err := a.o.Tree.Lock(ctx, tasks.ID(run.TaskID))
	if err == nil {
		defer held.Release()
		// What was read before the lock may be history by now.
		var res *runstore.Result
		if run, res, err = a.open(id); err != nil || run == nil {
			return time.Time{}, err
		}
		err = a.advance(ctx, held, run, res)
	} else {
		err = holdFor(err)
	}
	return a.outcome(ctx, id, err)
}

// open returns a result that can be applied with its run; no run for one that is settled.
func (a *Applier) open(id runstore.ResultID) (*runstore.Run, *runstore.Result, error) {
	view := a.o.Store.View()
	res := view.Result(id)
	if res == nil {
		return nil, nil, refusal.New(refusal.CodeNotFound, "read the ids from `greatminds run status`", "unknown result %q", id)
	}
	switch res.Status {
	case "received", "applying":
	case "needs_recovery":
		if res.Hold() == nil {
			return nil, nil, recoveryRefusal(res)
		}
	default:
		return nil, nil, nil
	}
	run := view.Run(res.Envelope.RunID)
	if run == nil {
		return nil, nil, fmt.Errorf("result %s: its run %s is not in the store", id, res.Envelope.RunID)
	}
	if !run.State.Terminal() && (run.State != runstore.WaitingInput && run.State != runstore.WaitingAuth || run.Process != nil) {
		return nil, nil, refusal.New(refusal.CodeResultBusy, "wait until the run has ended", "run %s is %s", run.ID, run.State)
	}
	return run, res, nil
}

// advance applies a result under its task's lock.
func (a *Applier) advance(ctx context.Context, held *tasks.Held, run *runstore.Run, res *runstore.Result) error {
	if a.recorded(res) {
		err := a.resume(ctx, held, run, res)
		if !errors.Is(err, tasks.ErrBranchMoved) && !errors.Is(err, errMergeAnew) {
			return err
		}
	}
	const attempts = 3
	var err error
	for range attempts {
		if err = a.carry(ctx, held, run, res); !errors.Is(err, tasks.ErrBranchMoved) {
			return err
		}
	}
	return &heldError{refusal.New(refusal.CodeBranchMoved, "wait until nobody commits to it; the merge then goes on by itself",
		"the branch %s moved each time while task %s was being merged into it", a.o.Policy.DefaultBranch, run.TaskID)}
}

// heldError is a refusal that stands in the way for now, with nothing moved.
type heldError struct{ cause *refusal.Refusal }

// Error says what is in the way.
func (e *heldError) Error() string { return e.cause.Error() }

// Unwrap returns the refusal.
func (e *heldError) Unwrap() error { return e.cause }

// outcome records a hold, or forgets it, and says when to try again.
func (a *Applier) outcome(ctx context.Context, id runstore.ResultID, err error) (time.Time, error) {
	var held *heldError
	if !errors.As(err, &held) || ctx.Err() != nil {
		if err == nil {
			a.settled(id)
		}
		return time.Time{}, errors.Join(ctx.Err(), err)
	}
	if err := a.hold(ctx, id, held.cause); err != nil {
		return time.Time{}, err
	}
	return a.again(id), held.cause
}

// carry takes a result from its judgement to its end.
func (a *Applier) carry(ctx context.Context, held *tasks.Held, run *runstore.Run, res *runstore.Result) error {
	task, err := a.current(run)
	if r, ok := refusal.Find(err); ok {
		return a.unreadable(ctx, res, r)
	}
	if err != nil {
		return holdFor(err)
	}
	j, err := a.validate(ctx, run, res, task)
	if err != nil {
		return holdFor(err)
	}
	if len(j.reasons) > 0 {
		return a.reject(ctx, res, j.reasons)
	}
	release, err := a.serialize(ctx, j.planned)
	if err != nil {
		return err
	}
	defer release()
	op, err := a.prepare(ctx, run, res, task, j)
	if err != nil {
		return err
	}
	return a.settle(ctx, op, a.perform(ctx, held, op, false))
}

// unreadable rejects a decision about a task that is not any more what it was; what may be right
// again by itself holds it.
func (a *Applier) unreadable(ctx context.Context, res *runstore.Result, r *refusal.Refusal) error {
	switch r.Code {
	case refusal.CodeTaskStorage, refusal.CodeTaskDuplicate, refusal.CodeTaskLocked:
		return &heldError{r}
	}
	return a.reject(ctx, res, []refusal.Reason{{Code: r.Code, What: r.What, Remedy: r.Remedy}})
}

// validate judges the decision and measures it. Spec: "Queue, validation and accepted
// transitions". A result that is looked at again under a hold has its measured attempt already.
func (a *Applier) validate(ctx context.Context, run *runstore.Run, res *runstore.Result, task *tasks.Task) (judgement, error) {
	measured := res.Hold() == nil && res.Status == "received"
	var attempt string
	if measured {
		err := a.o.Store.Update(ctx, func(tx *runstore.Tx) (err error) {
			attempt, err = tx.BeginValidation(res.ID())
			return err
		})
		if err != nil {
			return judgement{}, storeError{err}
		}
	}
	began := time.Now()
	j, err := a.judge(ctx, run, res.Envelope, task)
	if err != nil || !measured {
		return j, err
	}
	took := time.Since(began)
	err = a.o.Store.Update(ctx, func(tx *runstore.Tx) error {
		return tx.CompleteValidation(res.ID(), attempt, took, len(j.reasons) == 0)
	})
	if err != nil {
		return j, storeError{err}
	}
	return j, nil
}

// storeError keeps a refusal of the store from being taken for one about the decision.
type storeError struct{ err error }

// Error is the store's.
func (e storeError) Error() string { return e.err.Error() }

// Unwrap returns the store's error.
func (e storeError) Unwrap() error { return e.err }

// holdFor turns what went wrong before anything moved into a hold; the store's own errors stay.
func holdFor(err error) error {
	var store storeError
	if errors.As(err, &store) {
		return store.err
	}
	return &heldError{refusalOf(err)}
}

// refusalOf gives an error that nobody foresaw the shape that a person can act on.
func refusalOf(err error) *refusal.Refusal {
	if r, ok := refusal.Find(err); ok {
		return r
	}
	return &refusal.Refusal{Code: refusal.CodeFailed, What: err.Error(), Err: err, Remedy: "put right what it names"}
}

// reject ends a result whose decision does not count. Nothing of the task has changed.
func (a *Applier) reject(ctx context.Context, res *runstore.Result, reasons []refusal.Reason) error {
	err := a.o.Store.Update(ctx, func(tx *runstore.Tx) error {
		if err := tx.HoldResult(res.ID(), nil); err != nil {
			return err
		}
		return tx.SetResult(res.ID(), "rejected", func(r *runstore.Result) {
			r.Details = &runstore.ResultDetails{Error: reasonsText(reasons)}
		})
	})
	if err != nil {
		return err
	}
	a.settled(res.ID())
	a.o.Log.Info("result rejected", "run_id", res.Envelope.RunID, "task_id", res.Envelope.TaskID, "result_id", res.ID(), "reasons", len(reasons))
	return &refusal.Refusal{Code: refusal.CodeResultRejected, Reasons: reasons,
		What:   fmt.Sprintf("the %s decision of run %s about task %s does not count", res.Envelope.Decision, res.Envelope.RunID, res.Envelope.TaskID),
		Remedy: fmt.Sprintf("`greatminds run retry %s` gives the task to a new run", res.Envelope.RunID)}
}

// serialize lets one merge through at a time, from its computation to its end.
func (a *Applier) serialize(ctx context.Context, p tasks.Planned) (release func(), err error) {
	for _, action := range p.Pre {
		if action != tasks.WorktreeMerge {
			continue
		}
		select {
		case a.merging <- struct{}{}:
			return func() { <-a.merging }, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return func() {}, nil
}
