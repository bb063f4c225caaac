package runstore

import (
	"bytes"
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"time"

	"greatminds/internal/refusal"
)

// sourceTransition marks an observation made by an applied result.
const sourceTransition = "accepted_transition"

// Receive stores a run's decision as received and emits result_received, or returns the
// receipt it already has for exactly this envelope, whatever has become of it; true means new.
//
// It is refused when the envelope names another run, task, revision or schema than the run's;
// when its id, or the run, already has another decision; when the run is neither running nor
// waiting for input; and while one of its commands has no outcome.
// Spec: "Lifecycle and result receipts".
func (tx *Tx) Receive(run RunID, env Envelope) (*Result, bool, error) {
	r, err := tx.need(run)
	if err != nil {
		return nil, false, err
	}
	if !validName(string(env.ResultID)) {
		return nil, false, badName("result", string(env.ResultID))
	}
	e, err := normal(&env)
	if err != nil {
		return nil, false, unstorable("result", string(env.ResultID), err)
	}
	if e.RunID != r.ID || e.TaskID != r.TaskID || e.TaskRevision != r.TaskRevision || e.SchemaSHA256 != r.SchemaSHA256 {
		return nil, false, refusal.New(refusal.CodeIdentityMismatch, "leave run_id, task_id, task_revision and schema_sha256 out: they are filled in",
			"result %s is not of run %s, task %s at %.12s", e.ResultID, r.ID, r.TaskID, r.TaskRevision)
	}
	sha := hashText(string(encode(e)))
	if old, err := tx.sameDecision(r, e, sha); old != nil || err != nil {
		return old, false, err
	}
	if r.State != Running && r.State != WaitingInput {
		return nil, false, refusal.New(refusal.CodeRunNotAccepting, "nothing can be submitted any more", "run %s is %s", run, r.State)
	}
	if c := tx.unresolved(run); c != nil {
		return nil, false, refusal.New(refusal.CodeCommandPending, "wait for it: `greatminds run command-status "+string(c.ID)+"`",
			"command %s of run %s is %s", c.ID, run, c.Status)
	}
	res := &Result{Status: resultReceived, SHA256: sha, Envelope: *e, Role: r.Role, At: tx.at()}
	tx.putResult(res)
	tx.Emit("result_received", run, map[string]any{"result_id": e.ResultID, "sha256": sha})
	return res, true, nil
}

// sameDecision finds the receipt of the same decision, or refuses another one.
func (tx *Tx) sameDecision(r *Run, e *Envelope, sha string) (*Result, error) {
	old := tx.Result(e.ResultID)
	if old != nil && (old.SHA256 == sha || old.means(e)) {
		return old, nil
	}
	if old == nil {
		old = tx.ResultOfRun(r.ID)
	}
	if old == nil {
		return nil, nil
	}
	return nil, refusal.New(refusal.CodeDecisionConflict, "a run decides once; read the receipt with `greatminds run show "+string(old.Envelope.RunID)+"`",
		"run %s has already submitted result %s with other contents", old.Envelope.RunID, old.ID())
}

// means tells whether the envelope on record says the same as e, however its strings are spelled.
// A receipt that was taken over from the original carries the hash of other bytes.
func (r *Result) means(e *Envelope) bool {
	var both [2]any
	for i, envelope := range []*Envelope{&r.Envelope, e} {
		dec := json.NewDecoder(bytes.NewReader(encode(envelope)))
		dec.UseNumber() // floats would take two large numbers for one
		if dec.Decode(&both[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(both[0], both[1])
}

// unresolved returns a command of the run without an outcome.
func (tx *Tx) unresolved(run RunID) *Command {
	for _, c := range tx.CommandsOfRun(run) {
		if c.Open() {
			return c
		}
	}
	return nil
}

func (tx *Tx) putResult(r *Result) {
	tx.thawRun(r.Envelope.RunID)
	tx.View.h.putResult(r)
	tx.touch(inResults, string(r.ID()))
}

func (tx *Tx) needResult(id ResultID) (*Result, error) {
	if r := tx.Result(id); r != nil {
		return r, nil
	}
	return nil, refusal.New(refusal.CodeNotFound, "read the ids from `greatminds run status`", "unknown result %q", id)
}

// clone returns a copy of which every part may be replaced.
func (r *Result) clone() *Result {
	c := *r
	c.UpdatedAt, c.Details = copied(r.UpdatedAt), copied(r.Details)
	c.Validation, c.Timings, c.Held = copied(r.Validation), copied(r.Timings), copied(r.Held)
	return &c
}

// SetResult moves a result along its edges and emits result_STATUS; f, which may be nil, may
// change Details and Extra. A result that is resolved is held no more. Moving to the status it has already changes nothing at all, so
// that an application found done twice keeps its times.
//
// The first move to applying starts the application's clock, the first to applied, rejected,
// needs_recovery or abandoned records the resolution. Applied with a decision that moved the
// task (Details.Destination is another place than the run's task_path) also records, in the same
// commit, the run's domain progress and the arrival of Details.DestinationRevision in the
// destination. Spec: "Queue, validation and accepted transitions".
func (tx *Tx) SetResult(id ResultID, status string, f func(*Result)) error {
	old, err := tx.needResult(id)
	if err != nil {
		return err
	}
	if old.Status == status {
		return nil
	}
	if !allowed(resultEdges, old.Status, status) {
		return refusal.New(refusal.CodeTransition, "look at `greatminds run status`", "result %s is %s and cannot become %s", id, old.Status, status)
	}
	next := old.clone()
	if f != nil {
		f(next)
	}
	now := tx.at()
	next.Status, next.SHA256, next.Envelope, next.Role, next.At = status, old.SHA256, old.Envelope, old.Role, old.At
	next.UpdatedAt, next.Timings = &now, nextTimings(old, status, now)
	if !next.Open() || status == needsRecovery {
		next.Held = nil
	}
	if next, err = normal(next); err != nil {
		return unstorable("result", string(id), err)
	}
	tx.putResult(next)
	data := map[string]any{"result_id": id}
	if next.Details != nil {
		data["details"] = encode(next.Details)
	}
	tx.Emit("result_"+status, old.Envelope.RunID, data)
	if status == resultApplied {
		tx.progress(next, now)
	}
	return nil
}

// nextTimings keeps what an earlier attempt recorded.
func nextTimings(r *Result, status string, now float64) *ResultTimings {
	t := &ResultTimings{}
	if r.Timings != nil {
		*t = *r.Timings
	}
	if status == resultApplying {
		if t.ApplicationStartedAt == nil {
			t.ApplicationStartedAt = &now
		}
		return t
	}
	if t.ResolutionAt != nil && status == needsRecovery {
		return t
	}
	t.ResolutionAt, t.ReceivedToResolutionSeconds = &now, between(r.At, now)
	t.ApplicationElapsedSeconds = nil
	if t.ApplicationStartedAt != nil {
		t.ApplicationElapsedSeconds = between(*t.ApplicationStartedAt, now)
	}
	return t
}

// progress records that an applied decision moved its task. Spec: "Queue, validation and
// accepted transitions".
func (tx *Tx) progress(res *Result, now float64) {
	run := tx.Run(res.Envelope.RunID)
	d := res.Details
	if run == nil || d == nil || d.Destination == "" {
		return
	}
	arrived := d.Destination
	if !strings.Contains(arrived, "/") {
		arrived += "/" + path.Base(run.TaskPath)
	}
	if arrived == run.TaskPath {
		return
	}
	if decision := res.Envelope.Decision; decision != "handoff" && decision != "blocked" {
		return
	}
	next := run.clone()
	next.DomainProgress = &Progress{ResultID: res.ID(), AcceptedTransitionAt: now, ClaimToTransitionSeconds: between(run.CreatedAt, now)}
	next.UpdatedAt = now
	tx.putRun(next)
	if d.DestinationRevision == "" {
		return
	}
	tx.View.h.putObservation(arrived, &Observation{TaskRevision: d.DestinationRevision, FirstObservedAt: now, Source: sourceTransition})
	tx.touch(inObservations, arrived)
}

// BeginValidation starts a preparation attempt of a result, emits result_validation_started
// and returns the attempt's id. Completion and duration of the attempt are unknown until
// CompleteValidation. Spec: "Queue, validation and accepted transitions".
func (tx *Tx) BeginValidation(id ResultID) (string, error) {
	old, err := tx.needResult(id)
	if err != nil {
		return "", err
	}
	if !old.Open() {
		return "", refusal.New(refusal.CodeTransition, "look at `greatminds run status`", "result %s is %s and is not validated any more", id, old.Status)
	}
	next := old.clone()
	v := &Validation{AttemptID: NewID(), Attempts: 1, StartedAt: tx.at()}
	if old.Validation != nil {
		v.Attempts = old.Validation.Attempts + 1
	}
	next.Validation = v
	tx.putResult(next)
	tx.Emit("result_validation_started", old.Envelope.RunID, map[string]any{"result_id": id, "attempt_id": v.AttemptID, "attempts": v.Attempts})
	return v.AttemptID, nil
}

// CompleteValidation ends an attempt with its monotonic duration and emits
// result_validation_completed. An attempt that is not the latest any more is ignored, and so
// is a second completion.
func (tx *Tx) CompleteValidation(id ResultID, attempt string, took time.Duration, valid bool) error {
	old, err := tx.needResult(id)
	if err != nil {
		return err
	}
	if old.Validation == nil || old.Validation.AttemptID != attempt || old.Validation.CompletedAt != nil {
		return nil
	}
	next := old.clone()
	now, seconds := tx.at(), max(took, 0).Seconds()
	next.Validation.CompletedAt, next.Validation.Seconds, next.Validation.Valid = &now, &seconds, &valid
	tx.putResult(next)
	tx.Emit("result_validation_completed", old.Envelope.RunID, map[string]any{"result_id": id, "attempt_id": attempt, "seconds": seconds, "valid": valid})
	return nil
}
