package runstore

import (
	"time"

	"greatminds/internal/refusal"
)

// stages are the names of the observed stages of a run. Spec: "Stage Observation boundary".
var stages = map[string]bool{"workspace_ready": true, "context_ready": true, "process_recorded": true,
	"protocol_ready": true, "session_ready": true, "first_prompt_started": true, "first_protocol_activity": true,
	"first_prompt_activity": true, "cleanup_complete": true}

// Stage records the first sight of a stage, offset after the execution began by a monotonic
// clock, and emits run_stage_observed. Later sights change nothing.
// Spec: "Durable run-stage timing".
func (tx *Tx) Stage(run RunID, stage string, offset time.Duration) error {
	if !stages[stage] || offset < 0 {
		return refusal.New(refusal.CodeRecordInvalid, "this is a fault of the program: report it", "stage %q at %v of run %s", stage, offset, run)
	}
	r, err := tx.need(run)
	if err != nil {
		return err
	}
	if _, seen := r.Timings[stage]; seen {
		return nil
	}
	if r, err = tx.live(run); err != nil {
		return err
	}
	next := r.clone()
	if next.Timings == nil {
		next.Timings = map[string]float64{}
	}
	next.Timings[stage] = offset.Seconds()
	next.UpdatedAt = tx.at()
	tx.putRun(next)
	tx.Emit("run_stage_observed", run, map[string]any{"stage": stage, "offset_seconds": offset.Seconds()})
	return nil
}

// Reserve debits input bytes of a run under a request id, before a prompt is sent, and emits
// prompt_input_reserved. The same id with the same bytes again changes nothing; with others it
// is refused. The debit stands whatever becomes of the prompt. Spec: "Bounded client input".
func (tx *Tx) Reserve(run RunID, id string, r Reservation) error {
	if !validName(id) {
		return badName("reservation", id)
	}
	if old, again := tx.bundle(run).reservations.get(below(run, id)); again {
		if old.RequestedBytes == r.RequestedBytes && old.LimitBytes == r.LimitBytes {
			return nil
		}
		return refusal.New(refusal.CodeEventReused, "give every prompt an id of its own", "reservation %s of run %s already stands for %d bytes", id, run, old.RequestedBytes)
	}
	if _, err := tx.live(run); err != nil {
		return err
	}
	tx.View.h.reservations = tx.View.h.reservations.set(below(run, id), &r)
	tx.touch(inReservations, below(run, id))
	tx.Emit("prompt_input_reserved", run, map[string]any{"request_id": id, "requested_bytes": r.RequestedBytes,
		"used_bytes": r.UsedBytes, "limit_bytes": r.LimitBytes})
	return nil
}
