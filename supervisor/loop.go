package supervisor

import (
	"context"
	"errors"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
	"greatminds/tasks"
)

// loop looks at the work whenever something may have changed, until ctx ends or, with --once,
// nothing is left that this process could move. It never polls.
func (d *Daemon) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		// Taken before the look, so that nothing that comes during it is missed.
		changed, quiet, began := d.store.Changed(), d.quiet(), d.o.Now()
		next, err := d.pass(ctx)
		ripe, fresh := d.ripe()
		next = earliest(next, ripe)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			if next, err = d.survive(err); err != nil {
				return err
			}
		case d.o.Once && quiet && d.quiet() && !closed(changed) && !d.catalog.Waiting() && !fresh:
			return d.unfinished()
		}
		// Of a clock that was set meanwhile, whichever reading says sooner: too soon costs a look.
		timer.Reset(max(min(next.Sub(began), next.Sub(d.o.Now())), time.Millisecond))
		select {
		case <-ctx.Done():
			return nil
		case <-d.store.Failed():
			return d.store.Err()
		case <-changed:
		case <-d.wake:
		case <-d.catalog.Changed():
		case <-timer.C:
		}
	}
}

// passKey is the pass in d.later.
const passKey = "pass"

// survive decides what a failed pass means. A store that works again, or may, is no reason to end
// the agents at work: the pass is made again after a pause. With --once somebody waits for an
// answer, and gets the error once nothing is under way any more.
func (d *Daemon) survive(err error) (time.Time, error) {
	if d.store.Err() != nil {
		return time.Time{}, errors.Join(d.store.Err(), err)
	}
	if d.o.Once && d.quiet() {
		return time.Time{}, err
	}
	next, _ := d.later.off(passKey, d.o.Now())
	d.inTrouble(err, next)
	d.log.Error("the work could not be looked at; it is tried again", "err", err)
	return next, nil
}

// inTrouble remembers, until a pass comes to its end, why this one did not: for whoever asks why nothing
// is claimed.
func (d *Daemon) inTrouble(err error, until time.Time) {
	r, told := refusal.Find(err)
	switch {
	case err == nil:
	case !told:
		r = refusal.New(refusal.CodeFailed, "put right what it names; it is tried again by itself", "%v", err)
	case r.Code == refusal.CodeStoreWrite:
		r = refusal.New(r.Code, mendDisk, "%s", r.What)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trouble, d.troubleUntil = r, until
}

// horizon is when the loop looks again although nothing is due: clocks can jump.
const horizon = time.Minute

// pass does everything that can be done now, in the order of the original, and returns when
// time alone will bring the next change.
func (d *Daemon) pass(ctx context.Context) (time.Time, error) {
	next := d.o.Now().Add(horizon)
	d.lookAtPlaces(ctx)
	next = earliest(next, d.settleControls(ctx), d.applyResults(ctx), d.startCommands(ctx))
	found, err := d.catalog.Tasks()
	if err != nil {
		return time.Time{}, err
	}
	if err := d.observeQueues(ctx, found); err != nil {
		return time.Time{}, err
	}
	at, err := d.dispatch(ctx, found)
	if err != nil {
		return time.Time{}, err
	}
	d.later.forget(passKey)
	d.inTrouble(nil, time.Time{})
	return earliest(next, at, d.catalog.SweepAt()), nil
}

// dispatch claims what may be claimed, one task after the other, and starts its run.
func (d *Daemon) dispatch(ctx context.Context, found []tasks.Found) (time.Time, error) {
	for ctx.Err() == nil {
		plan, next, again := dispatch.Plan(d.world(), d.store.View(), found), time.Time{}, false
		d.logHolds(plan)
		for _, j := range plan {
			next = earliest(next, j.NextAt)
			if j.Reason != dispatch.Ready {
				continue
			}
			started, err := d.claim(ctx, j)
			if err != nil {
				return time.Time{}, err
			}
			// Every claim changes the counts that the rest was judged by, and one that was put off
			// has its own time.
			_, off := d.later.waits(taskKey(j.Task.ID), d.o.Now())
			if again = started || off; again {
				break
			}
		}
		if !again {
			return next, nil
		}
	}
	return time.Time{}, nil
}

func (d *Daemon) observeQueues(ctx context.Context, found []tasks.Found) error {
	queued := make(map[string]runstore.Revision, len(found))
	for _, f := range found {
		if spec, ok := d.schema.Queue(f.Queue); ok && spec.Kind == contract.QueueActive && f.Problem == nil {
			queued[f.File] = runstore.Revision(f.Revision)
		}
	}
	known := d.store.View().Observations()
	same := len(known) == len(queued)
	for file, revision := range queued {
		o := known[file]
		same = same && o != nil && o.TaskRevision == revision
	}
	if same {
		return nil
	}
	return d.store.Update(ctx, func(tx *runstore.Tx) error { tx.Observe(queued); return nil })
}

// quiet tells whether no run, result or command is in work. With --once a pass that began and
// ended quiet, and found nothing changed meanwhile, has left every task held: the end. Backoffs
// are holds; it does not wait for them. E-233.
func (d *Daemon) quiet() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.live) == 0 && len(d.inWork) == 0
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
