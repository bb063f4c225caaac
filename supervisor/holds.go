package supervisor

import (
	"context"
	"log/slog"
	"time"

	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
	"greatminds/tasks"
)

// world is what does not stand in the store, as it is now.
func (d *Daemon) world() dispatch.World {
	now := d.o.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	holds := make(map[tasks.ID]runstore.Hold, len(d.holds))
	for id, h := range d.holds {
		if _, waits := d.later.waits(taskKey(id), now); waits {
			holds[id] = h
		}
	}
	w := d.core.world(d.places)
	w.Holds, w.Stopping, w.Waited, w.HeldFor = holds, d.stopping, d.ends.waited, d.limits.waited
	return w
}

// told is the world as people are told of it: also that the last pass failed, which stops no claim of the
// next one.
func (d *Daemon) told() dispatch.World {
	w := d.world()
	d.mu.Lock()
	defer d.mu.Unlock()
	w.Trouble, w.TroubleUntil = d.trouble, d.troubleUntil
	return w
}

func taskKey(id tasks.ID) string { return "task/" + string(id) }

// putOff holds a task back for a while, longer each time in a row, and returns until when and how
// often that was.
func (d *Daemon) putOff(id tasks.ID, h runstore.Hold) (until time.Time, tries int) {
	until, tries = d.later.off(taskKey(id), d.o.Now())
	at := runstore.Epoch(until)
	h.NextAt = &at
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holds[id] = h
	return until, tries
}

// letGo ends the hold of a task.
func (d *Daemon) letGo(id tasks.ID) {
	d.later.forget(taskKey(id))
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.holds, id)
}

// ripe forgets the holds whose time is over, and says when the next one is. fresh tells whether
// one of the others is of a task that was put off only a moment ago, as by somebody at work on its
// file.
func (d *Daemon) ripe() (next time.Time, fresh bool) {
	const few = 3
	now := d.o.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.holds {
		until, waits := d.later.waits(taskKey(id), now)
		if !waits {
			delete(d.holds, id)
			continue
		}
		next = earliest(next, until)
		fresh = fresh || d.later.tries(taskKey(id)) <= few
	}
	return next, fresh
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
