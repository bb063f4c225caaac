package runstore

import (
	"maps"
	"strings"

	"greatminds/internal/refusal"
)

// putRun publishes r, which must not be changed any more. A run of an older store that has ended
// without a record of when gets that record now, before its last change is another one.
func (tx *Tx) putRun(r *Run) {
	tx.thawRun(r.ID)
	if old := lookup(tx.View.h.runs, string(r.ID)); old != nil && old.State.Terminal() && r.EndedAt == nil {
		r.EndedAt = copied(&old.UpdatedAt)
	}
	tx.View.h.putRun(r)
	tx.touch(inRuns, string(r.ID))
}

// need returns a run, or the refusal of one that does not exist.
func (tx *Tx) need(id RunID) (*Run, error) {
	if r := tx.Run(id); r != nil {
		return r, nil
	}
	return nil, refusal.New(refusal.CodeRunUnknown, "read the ids from `greatminds run status`", "unknown run %q", id)
}

// live returns a run that has not ended, or a refusal.
func (tx *Tx) live(id RunID) (*Run, error) {
	r, err := tx.need(id)
	if err == nil && r.State.Terminal() {
		return nil, refusal.New(refusal.CodeRunTransition, "a run that has ended stays as it is; `greatminds run retry "+string(id)+"` makes another one",
			"run %s has ended (%s)", id, r.State)
	}
	return r, err
}

// Transition moves a run to another state and emits an event named after it, with the members
// target, previous_state, reason, session_id (null where data has none) and those of data;
// data["details"], an object, becomes the run's outcome. The first transition to running sets startup_ready_at. One into a terminal state
// closes the run's open permission requests.
//
// eventID is the supervisor's identity of this event. The same id with the same contents again
// changes nothing, whatever the run's state by then; with other contents it is refused, as is
// every state that the table of edges does not have. Spec: "Lifecycle and result receipts".
func (tx *Tx) Transition(run RunID, eventID string, to State, reason string, data map[string]any) error {
	if eventID == "" || len(eventID) > 200 || strings.ContainsRune(eventID, 0) {
		return badName("event", eventID)
	}
	if _, err := tx.need(run); err != nil {
		return err
	}
	contents, err := toRaw(map[string]any{"state": to, "reason": reason, "data": data})
	if err != nil {
		return refusal.New(refusal.CodeRecordInvalid, "this is a fault of the program: report it", "transition of run %s: %v", run, err)
	}
	sha := hashText(string(contents))
	if old, replayed := tx.receipt(run, eventID); replayed {
		if old == sha {
			return nil
		}
		return refusal.New(refusal.CodeEventReused, "give every event an id of its own", "event %s of run %s already stands for other contents", eventID, run)
	}
	r, err := tx.live(run)
	if err != nil {
		return err
	}
	if !mayMove(r, to) {
		return refusal.New(refusal.CodeRunTransition, "look at `greatminds run status`", "run %s is %s and cannot become %s", run, r.State, to)
	}
	outcome, err := outcomeOf(data)
	if err != nil {
		return refusal.New(refusal.CodeRecordInvalid, "this is a fault of the program: report it", "outcome of run %s: %v", run, err)
	}
	tx.move(r, to, reason, outcome, data)
	tx.View.h.receipts = tx.View.h.receipts.set(below(run, eventID), sha)
	tx.touch(inReceipts, below(run, eventID))
	if to.Terminal() {
		return tx.closePermissions(run, "run_closed")
	}
	return nil
}

// mayMove reads the table of edges.
func mayMove(r *Run, to State) bool {
	switch runEdges[r.State][to] {
	case byRun:
		return true
	case byControl:
		return r.Control != nil && r.Control.Status != controlCompleted
	}
	return false
}

func outcomeOf(data map[string]any) (*Outcome, error) {
	details, ok := data["details"]
	if !ok {
		return nil, nil
	}
	raw, err := toRaw(details)
	if err != nil {
		return nil, err
	}
	o := new(Outcome)
	return o, decode(raw, 0, o)
}

func (tx *Tx) move(r *Run, to State, reason string, outcome *Outcome, data map[string]any) {
	next := r.clone()
	next.State, next.Reason, next.UpdatedAt = to, reason, tx.at()
	if outcome != nil {
		next.Outcome = outcome
	}
	switch {
	case to == Running && next.StartupReadyAt == nil:
		next.StartupReadyAt = copied(&next.UpdatedAt)
	case to.Terminal():
		next.EndedAt = copied(&next.UpdatedAt)
	}
	tx.putRun(next)
	told := map[string]any{"session_id": nil}
	maps.Copy(told, data)
	told["target"], told["previous_state"], told["reason"] = to, r.State, reason
	tx.Emit(string(to), r.ID, told)
}

func (tx *Tx) closePermissions(run RunID, reason string) error {
	for _, p := range tx.PermissionsOfRun(run) {
		if p.Open() {
			if err := tx.ClosePermission(p.ID, reason); err != nil {
				return err
			}
		}
	}
	return nil
}

// EditRun changes fields of a run. F gets a copy and may replace whatever it likes but
// identity, state, reason, end and credential, which stay; it must not write into raw JSON or
// nested objects that it did not put there. Raw JSON that does not parse is refused. Setting
// Process to nil after there was one says that the process is gone.
func (tx *Tx) EditRun(run RunID, f func(*Run)) error {
	r, err := tx.need(run)
	if err != nil {
		return err
	}
	next := r.clone()
	f(next)
	next.ID, next.ProjectID, next.TaskID, next.Sequence = r.ID, r.ProjectID, r.TaskID, r.Sequence
	next.State, next.Reason, next.TokenSHA256, next.CreatedAt, next.EndedAt = r.State, r.Reason, r.TokenSHA256, r.CreatedAt, r.EndedAt
	next.UpdatedAt = tx.at()
	next.processNull = next.Process == nil && (r.Process != nil || r.processNull)
	if next, err = normal(next); err != nil {
		return unstorable("run", string(run), err)
	}
	tx.putRun(next)
	return nil
}

// RecordProcess records the process that waits at a run's gate, before the gate opens.
// It emits process_recorded. Spec: "Persistence and ownership".
func (tx *Tx) RecordProcess(run RunID, p Process) error {
	r, err := tx.live(run)
	if err != nil {
		return err
	}
	next := r.clone()
	next.Process, next.UpdatedAt = &p, tx.at()
	tx.putRun(next)
	tx.Emit("process_recorded", run, map[string]any{"pid": p.PID, "start_ticks": p.StartTicks, "boot_id": p.BootID,
		"group": p.Group, "session": p.Session})
	return nil
}

// Recover gives an active run to a new owner at a daemon's start, after its processes have
// been proven gone, and emits run_recovered. A waiting run keeps its state and its hold;
// every other one becomes interrupted. Open permission requests are closed with the reason
// supervisor_restart; an answer that was not delivered is not delivered any more.
// Spec: "Operator permission requests", reference 2.
func (tx *Tx) Recover(run RunID, owner string) error {
	r, err := tx.live(run)
	if err != nil {
		return err
	}
	if err := tx.closePermissions(run, "supervisor_restart"); err != nil {
		return err
	}
	next := r.clone()
	next.OwnerID, next.UpdatedAt = owner, tx.at()
	held := r.State == WaitingInput || r.State == WaitingAuth
	if !held {
		next.State, next.Reason, next.EndedAt = Interrupted, "supervisor_restart", copied(&next.UpdatedAt)
	}
	next.Process, next.processNull = nil, true
	tx.putRun(next)
	tx.Emit("run_recovered", run, map[string]any{"previous_owner": r.OwnerID, "state": next.State, "held": held})
	return nil
}

// allowed reads a table of edges.
func allowed(table map[string][]string, from, to string) bool {
	for _, next := range table[from] {
		if next == to {
			return true
		}
	}
	return false
}
