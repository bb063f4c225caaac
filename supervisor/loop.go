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
		changed, quiet := d.store.Changed(), d.quiet()
		next, err := d.pass(ctx)
		if err != nil {
			return err
		}
		if d.o.Once && quiet && d.quiet() && !closed(changed) && !d.catalog.Waiting() {
			return nil
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

// pass does everything that can be done now, in the order of the original, and returns when
// time alone will bring the next change.
func (d *Daemon) pass(ctx context.Context) (time.Time, error) {
	d.lookAtPlaces(ctx)
	d.settleControls(ctx)
	d.applyResults(ctx)
	d.startCommands(ctx)
	found, err := d.catalog.Tasks()
	if err != nil {
		return time.Time{}, err
	}
	if err := d.observeQueues(ctx, found); err != nil {
		return time.Time{}, err
	}
	next, err := d.dispatch(ctx, found)
	if err != nil {
		return time.Time{}, err
	}
	for _, at := range append(d.dueTimes(), d.catalog.SweepAt()) {
		if at.Before(next) {
			next = at
		}
	}
	return next, nil
}

// horizon is when the loop looks again although nothing is due: clocks can jump.
const horizon = time.Minute

// dispatch claims what may be claimed, one task after the other, and starts its run.
func (d *Daemon) dispatch(ctx context.Context, found []tasks.Found) (time.Time, error) {
	for {
		w, next, ready := d.world(), d.o.Now().Add(horizon), false
		plan := dispatch.Plan(w, d.store.View(), found)
		d.logHolds(plan)
		for _, j := range plan {
			if !j.NextAt.IsZero() && j.NextAt.Before(next) {
				next = j.NextAt
			}
			if j.Reason != dispatch.Ready {
				continue
			}
			started, err := d.claim(ctx, j)
			if err != nil {
				return next, err
			}
			// Every claim changes the counts that the rest was judged by.
			ready = ready || started
			if started {
				break
			}
		}
		if !ready {
			return next, nil
		}
	}
}

func (d *Daemon) world() dispatch.World {
	d.mu.Lock()
	defer d.mu.Unlock()
	holds := make(map[tasks.ID]runstore.Hold, len(d.holds))
	for id, h := range d.holds {
		holds[id] = h
	}
	w := d.core.world(d.places)
	w.Holds, w.Stopping = holds, d.stopping
	return w
}

// hold keeps a task from being claimed by this process; only a restart clears it.
func (d *Daemon) hold(id tasks.ID, h runstore.Hold) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holds[id] = h
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
		if j.Remedy == "" && j.NextAt.IsZero() {
			level = slog.LevelDebug // work that is under way; it goes on by itself
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

// applyResults applies the decisions of runs that have ended, each in a goroutine of its own:
// a merge may take a while. E-195.
func (d *Daemon) applyResults(ctx context.Context) {
	v := d.store.View()
	for _, res := range v.OpenResults() {
		run := v.Run(res.Envelope.RunID)
		if res.Status == "needs_recovery" || run == nil || d.Live(run.ID) || !d.due(res.ID()) {
			continue
		}
		if !run.State.Terminal() && run.Process != nil || !d.once("result", string(res.ID())) {
			continue
		}
		d.goDo(func() {
			defer d.done("result", string(res.ID()))
			again, err := d.applier.Apply(ctx, res.ID())
			d.afterApply(res, again, err)
		})
	}
}

// startCommands carries out queued commands, each in a goroutine of its own.
func (d *Daemon) startCommands(ctx context.Context) {
	for _, c := range d.store.View().OpenCommands() {
		if c.Status != "queued" || !d.Live(c.RunID) || !d.once("command", string(c.ID)) {
			continue
		}
		d.goDo(func() {
			defer d.done("command", string(c.ID))
			if err := d.commands.Execute(ctx, c.ID); err != nil {
				d.log.Error("command not carried out", "run_id", c.RunID, "request_id", c.ID, "err", err)
			}
			d.Wake()
		})
	}
}

// settleControls carries out what operators asked of runs. E-235.
func (d *Daemon) settleControls(ctx context.Context) {
	for _, r := range d.store.View().OpenControls() {
		var err error
		switch r.Control.Kind {
		case "cancel":
			err = d.cancelRun(ctx, r)
		case "retry":
			err = authorizeRetry(ctx, d.store, r)
		}
		if err != nil {
			d.log.Error("operator's control not carried out", "run_id", r.ID, "kind", r.Control.Kind, "err", err)
		}
	}
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

func (d *Daemon) afterApply(res *runstore.Result, again time.Time, err error) {
	r, isRefusal := refusal.Find(err)
	switch {
	case err == nil:
		d.log.Info("result applied", "run_id", res.Envelope.RunID, "task_id", res.Envelope.TaskID, "result_id", res.ID(), "decision", res.Envelope.Decision)
	case errors.Is(err, context.Canceled):
	case isRefusal:
		d.log.Warn("result not applied", "run_id", res.Envelope.RunID, "task_id", res.Envelope.TaskID, "result_id", res.ID(), "code", r.Code, "what", r.What)
	default:
		d.log.Error("result not applied", "run_id", res.Envelope.RunID, "task_id", res.Envelope.TaskID, "result_id", res.ID(), "err", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if again.IsZero() {
		delete(d.again, res.ID())
	} else {
		d.again[res.ID()] = again
	}
}

// due tells whether a result whose application was put off is to be tried now.
func (d *Daemon) due(id runstore.ResultID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, waits := d.again[id]
	return !waits || !d.o.Now().Before(at)
}

func (d *Daemon) dueTimes() []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]time.Time, 0, len(d.again)+1)
	for _, at := range d.again {
		out = append(out, at)
	}
	return out
}
