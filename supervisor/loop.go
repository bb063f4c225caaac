package supervisor

import (
	"context"
	"errors"
	"log/slog"
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
		changed, quiet := d.store.Changed(), d.quiet()
		next, err := d.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			if next, err = d.survive(err); err != nil {
				return err
			}
		case d.o.Once && quiet && d.quiet() && !closed(changed) && !d.catalog.Waiting() && !d.expectant():
			return d.unfinished()
		}
		timer.Reset(max(next.Sub(d.o.Now()), time.Millisecond))
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
	d.log.Error("the work could not be looked at; it is tried again", "err", err)
	return next, nil
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
	return earliest(next, at, d.catalog.SweepAt()), nil
}

// dispatch claims what may be claimed, one task after the other, and starts its run.
func (d *Daemon) dispatch(ctx context.Context, found []tasks.Found) (time.Time, error) {
	for ctx.Err() == nil {
		plan, next, started := dispatch.Plan(d.world(), d.store.View(), found), time.Time{}, false
		d.logHolds(plan)
		for _, j := range plan {
			next = earliest(next, j.NextAt)
			if j.Reason != dispatch.Ready {
				continue
			}
			var err error
			if started, err = d.claim(ctx, j); err != nil {
				return time.Time{}, err
			}
			// Every claim changes the counts that the rest was judged by, and one that was put off
			// has its own time.
			if _, off := d.later.waits(taskKey(j.Task.ID), d.o.Now()); started || off {
				started = true
				break
			}
		}
		if !started {
			return next, nil
		}
	}
	return time.Time{}, nil
}

func (d *Daemon) world() dispatch.World {
	now := d.o.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	holds := make(map[tasks.ID]runstore.Hold, len(d.holds))
	for id, h := range d.holds {
		if _, waits := d.later.waits(taskKey(id), now); h.NextAt == nil || waits {
			holds[id] = h
		}
	}
	w := d.core.world(d.places)
	w.Holds, w.Stopping = holds, d.stopping
	return w
}

func taskKey(id tasks.ID) string { return "task/" + string(id) }

// hold keeps a task from being claimed by this process: for good, or while it is put off.
func (d *Daemon) hold(id tasks.ID, h runstore.Hold) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holds[id] = h
}

// putOff holds a task back for a while.
func (d *Daemon) putOff(id tasks.ID, h runstore.Hold) {
	until, _ := d.later.off(taskKey(id), d.o.Now())
	at := epoch(until)
	h.NextAt = &at
	d.hold(id, h)
}

// letGo ends the hold of a task.
func (d *Daemon) letGo(id tasks.ID) {
	d.mu.Lock()
	d.later.forget(taskKey(id))
	defer d.mu.Unlock()
	delete(d.holds, id)
}

// logHolds says once, for each task and binding, why it does not run.
func (d *Daemon) logHolds(plan []dispatch.Judgement) {
	seen := make(map[string]string, len(plan))
	for _, j := range plan {
		key := string(j.Task.ID) + "/" + j.Binding.ID
		seen[key] = j.Reason
		if j.Reason == dispatch.Ready || d.lastHolds[key] == j.Reason {
			continue
		}
		level := slog.LevelInfo
		if j.Remedy == "" && j.Reason != string(j.Repeat.Hold) {
			level = slog.LevelDebug // it goes on by itself, and the cause is told elsewhere
		}
		d.log.Log(context.Background(), level, "task held", "task_id", j.Task.ID, "binding", j.Binding.ID, "reason", j.Reason, "what", j.What, "remedy", j.Remedy)
	}
	d.lastHolds = seen
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

// applyResults applies the decisions of runs that have ended, each in a goroutine of its own: a
// merge may take a while. It returns when one that was put off is due. E-195.
func (d *Daemon) applyResults(ctx context.Context) (next time.Time) {
	v, now := d.store.View(), d.o.Now()
	for _, res := range v.OpenResults() {
		run, key := v.Run(res.Envelope.RunID), "result/"+string(res.ID())
		if res.Status == "needs_recovery" || run == nil || d.Live(run.ID) || !run.State.Terminal() && run.Process != nil {
			continue
		}
		if at, waits := d.later.waits(key, now); waits {
			next = earliest(next, at)
			continue
		}
		d.inTurn(key, func() {
			again, err := d.applier.Apply(ctx, res.ID())
			d.afterApply(ctx, key, res, again, err)
		})
	}
	return next
}

// startCommands carries out queued commands, each in a goroutine of its own, and records outcomes
// that the store did not take before. It returns when one that was put off is due.
func (d *Daemon) startCommands(ctx context.Context) (next time.Time) {
	now := d.o.Now()
	for _, c := range d.store.View().OpenCommands() {
		key := "command/" + string(c.ID)
		if c.Status != "queued" && !d.commands.Unsettled(c.ID) || !d.Live(c.RunID) {
			continue
		}
		if at, waits := d.later.waits(key, now); waits {
			next = earliest(next, at)
			continue
		}
		d.inTurn(key, func() {
			err := d.commands.Execute(ctx, c.ID)
			d.tried(ctx, key, err)
			if err != nil {
				d.log.Error("command not carried out", "run_id", c.RunID, "request_id", c.ID, "err", err)
			}
		})
	}
	return next
}

// tried remembers how a try ended: what failed is tried again after a pause.
func (d *Daemon) tried(ctx context.Context, key string, err error) {
	if err == nil || ctx.Err() != nil {
		d.later.forget(key)
		return
	}
	d.later.off(key, d.o.Now())
}

// settleControls carries out what operators asked of runs. It returns when one that was put off
// is due. E-235.
func (d *Daemon) settleControls(ctx context.Context) (next time.Time) {
	now := d.o.Now()
	for _, r := range d.store.View().OpenControls() {
		key := "control/" + r.Control.ID
		if at, waits := d.later.waits(key, now); waits {
			next = earliest(next, at)
			continue
		}
		var err error
		switch r.Control.Kind {
		case "cancel":
			err = d.cancelRun(ctx, r)
		case "retry":
			err = authorizeRetry(ctx, d.store, r)
		}
		d.tried(ctx, key, err)
		if err != nil {
			at, _ := d.later.waits(key, now)
			next = earliest(next, at)
			d.log.Error("operator's control not carried out", "run_id", r.ID, "kind", r.Control.Kind, "err", err)
		}
	}
	return next
}

// expectant tells whether a task was put off only a moment ago, as by somebody at work on its file.
func (d *Daemon) expectant() bool {
	const few = 3
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, h := range d.holds {
		if h.NextAt != nil && d.later.tries(taskKey(id)) <= few {
			return true
		}
	}
	return false
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

// afterApply says how an application ended, and when one that did not come to its end is tried
// again.
func (d *Daemon) afterApply(ctx context.Context, key string, res *runstore.Result, again time.Time, err error) {
	r, isRefusal := refusal.Find(err)
	said := d.log.With("run_id", res.Envelope.RunID, "task_id", res.Envelope.TaskID, "result_id", res.ID())
	switch {
	case err == nil:
		said.Info("result applied", "decision", res.Envelope.Decision)
	case ctx.Err() != nil: // the next start goes on
	case isRefusal:
		said.Warn("result not applied", "code", r.Code, "what", r.What)
	default:
		said.Error("result not applied", "err", err)
	}
	switch now := d.store.View().Result(res.ID()); {
	case now == nil || !now.Open() || now.Status == "needs_recovery":
		d.later.forget(key)
	case !again.IsZero():
		d.later.to(key, again, d.o.Now())
	default:
		d.tried(ctx, key, err)
	}
}
