package runstore

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"greatminds/internal/refusal"
)

// Claim makes a run of a task in state claimed and emits claimed.
//
// It is refused with holds, and nothing changed, when dispatch is paused, when the task has an
// active run, or when admit, called over the state that the claim would change, gives any. It
// is an error when the claim's id is malformed or taken. The run's credential is in the answer
// alone; the store keeps its hash. Spec: "Persistence and ownership".
func (tx *Tx) Claim(c Claim, admit func(*View) []Hold) (*ClaimedRun, []Hold, error) {
	if c.ID == "" {
		c.ID = RunID(NewID())
	}
	switch {
	case !validName(string(c.ID)):
		return nil, nil, badName("run", string(c.ID))
	case tx.Run(c.ID) != nil:
		return nil, nil, refusal.New(refusal.CodeIdentity, "claim with a new id", "run %s exists already", c.ID)
	case c.TaskID == "" || strings.ContainsRune(string(c.TaskID), 0):
		return nil, nil, refusal.New(refusal.CodeIdentity, "name the task", "task id %q", c.TaskID)
	}
	if holds := tx.ownHolds(c.TaskID); len(holds) > 0 {
		return nil, holds, nil
	}
	if admit != nil {
		seen := *tx.View
		if holds := admit(&seen); len(holds) > 0 {
			return nil, holds, nil
		}
	}
	var secret [32]byte
	rand.Read(secret[:]) // never fails: the runtime ends the process instead
	token := base64.RawURLEncoding.EncodeToString(secret[:])
	r, err := normal(tx.newRun(c, token))
	if err != nil {
		return nil, nil, unstorable("run", string(c.ID), err)
	}
	tx.Emit("claimed", r.ID, claimData(c))
	tx.putRun(r)
	return &ClaimedRun{Run: r, Token: Token(token)}, nil, nil
}

// ownHolds are the reasons against a claim that the store itself knows.
func (tx *Tx) ownHolds(task TaskID) []Hold {
	if tx.Paused() {
		return []Hold{{Code: "dispatch_paused", What: "dispatch is paused"}}
	}
	for _, r := range tx.RunsOfTask(task) {
		if !r.State.Terminal() {
			return []Hold{{Code: "active_run", RunID: r.ID, What: fmt.Sprintf("run %s of the task is %s", r.ID, r.State)}}
		}
	}
	return nil
}

func (tx *Tx) newRun(c Claim, token string) *Run {
	return &Run{ID: c.ID, ProjectID: tx.ProjectID(), OwnerID: c.OwnerID, TaskID: c.TaskID, TaskPath: c.TaskPath,
		TaskRevision: c.TaskRevision, ConversationID: copied(c.ConversationID), ConversationTask: c.ConversationTask,
		Role: c.Role, BindingID: c.BindingID, BindingSHA256: c.BindingSHA256, AgentID: c.AgentID, AgentSHA256: c.AgentSHA256,
		ConfigSHA256: c.ConfigSHA256, SchemaSHA256: c.SchemaSHA256, SchemaVersion: c.SchemaVersion, Workspace: c.Workspace,
		Account: c.Account, Permission: c.Permission, State: Claimed, CreatedAt: tx.at(), UpdatedAt: tx.at(),
		Sequence: tx.Sequence() + 1, SessionID: copied(c.SessionID), TokenSHA256: hashText(token),
		WorkspacePlan: copied(c.WorkspacePlan), QueueObservation: tx.queueWait(c)}
}

// queueWait copies what is known about how long the task has been waiting.
func (tx *Tx) queueWait(c Claim) *QueueWait {
	o := tx.Observation(c.TaskPath)
	if o == nil || o.TaskRevision != c.TaskRevision {
		return nil
	}
	w := &QueueWait{FirstObservedAt: o.FirstObservedAt, TaskRevision: o.TaskRevision, Source: o.Source,
		Scope: "observed_revision_wait", WaitSeconds: between(o.FirstObservedAt, tx.at())}
	if o.Source == sourceTransition {
		w.Scope = "accepted_transition_wait"
	}
	return w
}

func claimData(c Claim) map[string]any {
	data := map[string]any{"task_id": c.TaskID}
	for k, v := range c.Data {
		data[k] = v
	}
	return data
}

// putRun publishes r, which must not be changed any more.
func (tx *Tx) putRun(r *Run) {
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
// previous_state, reason and those of data; data["details"], an object, becomes the run's
// outcome. The first transition to running sets startup_ready_at. One into a terminal state
// closes the run's open permission requests.
//
// eventID is the supervisor's identity of this event. The same id with the same contents again
// changes nothing, whatever the run's state by then; with other contents it is refused, as is
// every state that the table of edges does not have. Spec: "Lifecycle and result receipts".
func (tx *Tx) Transition(run RunID, eventID string, to State, reason string, data map[string]any) error {
	if eventID == "" || len(eventID) > 200 || strings.ContainsRune(eventID, 0) {
		return badName("event", eventID)
	}
	r, err := tx.need(run)
	if err != nil {
		return err
	}
	contents, err := toRaw(map[string]any{"state": to, "reason": reason, "data": data})
	if err != nil {
		return refusal.New(refusal.CodeRecordInvalid, "this is a fault of the program: report it", "transition of run %s: %v", run, err)
	}
	sha := hashText(string(contents))
	if old, replayed := tx.View.h.receipts.get(below(run, eventID)); replayed {
		if old == sha {
			return nil
		}
		return refusal.New(refusal.CodeEventReused, "give every event an id of its own", "event %s of run %s already stands for other contents", eventID, run)
	}
	if r, err = tx.live(run); err != nil {
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
	if to == Running && next.StartupReadyAt == nil {
		next.StartupReadyAt = copied(&next.UpdatedAt)
	}
	tx.putRun(next)
	told := map[string]any{}
	for k, v := range data {
		told[k] = v
	}
	told["previous_state"], told["reason"] = r.State, reason
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
// identity, state, reason and credential, which stay; it must not write into raw JSON or
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
	next.State, next.Reason, next.TokenSHA256, next.CreatedAt = r.State, r.Reason, r.TokenSHA256, r.CreatedAt
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
	held := r.State == WaitingInput || r.State == WaitingAuth
	if !held {
		next.State, next.Reason = Interrupted, "supervisor_restart"
	}
	next.OwnerID, next.UpdatedAt = owner, tx.at()
	next.Process, next.processNull = nil, true
	tx.putRun(next)
	tx.Emit("run_recovered", run, map[string]any{"previous_owner": r.OwnerID, "state": next.State, "held": held})
	return nil
}

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
	if old, again := tx.View.h.reservations.get(below(run, id)); again {
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

// RequestControl asks for a run's cancel or retry and emits control_requested. An open control
// of the same kind is returned again; an open one of the other kind is refused.
func (tx *Tx) RequestControl(run RunID, kind string) (*Control, error) {
	r, err := tx.need(run)
	if err != nil {
		return nil, err
	}
	if c := r.Control; c != nil && c.Status != controlCompleted {
		if c.Kind == kind {
			return copied(c), nil
		}
		return nil, refusal.New(refusal.CodeControlPending, "wait until it is completed (`greatminds run status`)", "control %s (%s) of run %s is still %s", c.ID, c.Kind, run, c.Status)
	}
	if kind != "cancel" && kind != "retry" {
		return nil, refusal.New(refusal.CodeRecordInvalid, "ask for cancel or retry", "control %q of run %s", kind, run)
	}
	c := &Control{ID: NewID(), Kind: kind, Status: controlPending, At: tx.at()}
	tx.putControl(r, c, "control_requested")
	return copied(c), nil
}

// SetControl moves a run's control to processing or completed and emits control_STATUS. A
// completed retry authorizes one more attempt. The status it has already changes nothing.
func (tx *Tx) SetControl(run RunID, id, status string) error {
	r, err := tx.need(run)
	if err != nil {
		return err
	}
	if r.Control == nil || r.Control.ID != id {
		return refusal.New(refusal.CodeTransition, "look at `greatminds run status`", "run %s has no control %s", run, id)
	}
	if r.Control.Status == status {
		return nil
	}
	if !allowed(controlEdges, r.Control.Status, status) {
		return refusal.New(refusal.CodeTransition, "look at `greatminds run status`", "control %s of run %s is %s and cannot become %s", id, run, r.Control.Status, status)
	}
	c := copied(r.Control)
	c.Status = status
	tx.putControl(r, c, "control_"+status)
	return nil
}

func (tx *Tx) putControl(r *Run, c *Control, event string) {
	next := r.clone()
	next.Control, next.UpdatedAt = copied(c), tx.at()
	if c.Kind == "retry" && c.Status == controlCompleted {
		next.RetryAuthorized = true
	}
	tx.putRun(next)
	tx.Emit(event, r.ID, map[string]any{"id": c.ID, "kind": c.Kind})
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
