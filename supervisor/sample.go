package supervisor

import (
	"context"
	"time"

	"greatminds/internal/pace"
	"greatminds/runstore"
	"greatminds/supervisor/usage"
)

// sampleEvery is the shortest time between two durable samples of a turn.
const sampleEvery = 5 * time.Second

// sample makes what was counted of a turn durable while it goes on, at a bounded rate, so that a
// crash loses the last seconds only. It returns when ctx ends.
func (d *Daemon) sample(ctx context.Context, e *execution) {
	pace.Keep(ctx, e.activity, sampleEvery, func() {
		if err := d.saveSample(ctx, e); err != nil {
			// The next sample, or the end, says it all again.
			d.log.Warn("turn not sampled", "run_id", e.run.ID, "err", err)
		}
	})
}

func (d *Daemon) saveSample(ctx context.Context, e *execution) error {
	stats := e.session.Stats()
	counted := e.outcomeRecord(stats)
	var used usage.Record
	err := d.update(ctx, func(tx *runstore.Tx) (err error) {
		if used, err = d.saveUsage(tx, e); err != nil {
			return err
		}
		protocol, err := e.observeProtocol(tx, tx.Run(e.run.ID), stats, ending{})
		if err != nil {
			return err
		}
		return tx.EditRun(e.run.ID, func(r *runstore.Run) { r.Outcome, r.Protocol = counted, protocol })
	})
	if err == nil {
		e.usage.keep(used)
	}
	return err
}
