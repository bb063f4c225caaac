package supervisor

import (
	"context"
	"time"

	"greatminds/internal/refusal"
	"greatminds/runstore"
)

// applyResults applies the decisions of runs that have ended, each in a goroutine of its own: a
// merge may take a while. It returns when one that was put off is due. E-195.
func (d *Daemon) applyResults(ctx context.Context) (next time.Time) {
	v, now := d.store.View(), d.o.Now()
	for _, res := range v.OpenResults() {
		run, key := v.Run(res.Envelope.RunID), "result/"+string(res.ID())
		if forPerson(res) || run == nil || d.Live(run.ID) || !run.State.Terminal() && run.Process != nil {
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

// forPerson tells whether only a person can lead a result on: its outcome is uncertain. One that
// is held goes on by itself.
func forPerson(r *runstore.Result) bool { return r.Status == "needs_recovery" && r.Hold() == nil }

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
			defer d.atCommand(c.RunID)()
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
	case now == nil || !now.Open() || forPerson(now):
		d.later.forget(key)
	case !again.IsZero():
		d.later.to(key, again, d.o.Now())
	default:
		d.tried(ctx, key, err)
	}
}
