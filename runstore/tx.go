package runstore

import (
	"encoding/json"
	"time"
)

// Tx is one transaction. Its reads see its own writes. It ends with the function it was
// given to.
type Tx struct{ *View }

// Now returns the transaction's one moment.
func (tx *Tx) Now() time.Time { return time.Time{} }

// Claim makes a run of a task, when dispatch is not paused, the task has no active run and
// admit gives no hold. It emits claimed.
func (tx *Tx) Claim(c Claim, admit func(*View) []Hold) (*ClaimedRun, []Hold, error) {
	return nil, nil, errUnbuilt
}

// Transition moves a run along the table of state edges and emits an event of the state's
// name. The same event id again changes nothing; with other contents it is an error.
func (tx *Tx) Transition(run RunID, eventID string, to State, reason string, data map[string]any) error {
	return errUnbuilt
}

// EditRun changes fields of a run, never State, Reason or identity.
func (tx *Tx) EditRun(run RunID, f func(*Run)) error { return errUnbuilt }

// Recover gives a run to a new owner at a daemon's start and emits run_recovered: a waiting
// run keeps its state, every other active one becomes interrupted. The process must be gone.
func (tx *Tx) Recover(run RunID, owner string) error { return errUnbuilt }

// RecordProcess records the process that waits at a run's gate.
func (tx *Tx) RecordProcess(run RunID, p Process) error { return errUnbuilt }

// Stage records the first sight of a stage, offset after the execution began.
func (tx *Tx) Stage(run RunID, stage string, offset time.Duration) error { return errUnbuilt }

// Emit appends an event; run may be empty.
func (tx *Tx) Emit(kind string, run RunID, data map[string]any) {}

// Reserve debits input bytes of a run under a request id. The same id again changes nothing.
func (tx *Tx) Reserve(run RunID, id string, r Reservation) error { return errUnbuilt }

// Receive stores a decision, or returns the receipt it already has; true means new.
func (tx *Tx) Receive(run RunID, env Envelope) (*Result, bool, error) {
	return nil, false, errUnbuilt
}

// BeginValidation starts a preparation attempt of a result and returns its id.
func (tx *Tx) BeginValidation(id ResultID) (string, error) { return "", errUnbuilt }

// CompleteValidation ends the attempt with its monotonic duration.
func (tx *Tx) CompleteValidation(id ResultID, attempt string, took time.Duration, valid bool) error {
	return errUnbuilt
}

// SetResult moves a result along its edges; f may change Details.
func (tx *Tx) SetResult(id ResultID, status string, f func(*Result)) error { return errUnbuilt }

// PutOperation stores an operation whole.
func (tx *Tx) PutOperation(o Operation) error { return errUnbuilt }

// RequestCommand queues a command, or returns the receipt it already has; true means new.
func (tx *Tx) RequestCommand(c Command) (*Command, bool, error) { return nil, false, errUnbuilt }

// SetCommand moves a command along its edges; an empty status changes fields only.
func (tx *Tx) SetCommand(id CommandID, status string, f func(*Command)) error { return errUnbuilt }

// AskPermission stores a pending permission request.
func (tx *Tx) AskPermission(p Permission) error { return errUnbuilt }

// AnswerPermission records the operator's choice; true means new.
func (tx *Tx) AnswerPermission(id PermissionID, option string) (*Permission, bool, error) {
	return nil, false, errUnbuilt
}

// ConsumePermission marks an answer as handed to the agent's callback.
func (tx *Tx) ConsumePermission(id PermissionID) error { return errUnbuilt }

// ClosePermission cancels a request that was not consumed.
func (tx *Tx) ClosePermission(id PermissionID, reason string) error { return errUnbuilt }

// SetPaused pauses or resumes dispatch.
func (tx *Tx) SetPaused(paused bool) {}

// RequestControl asks for cancel or retry of a run. The same open request is returned again.
func (tx *Tx) RequestControl(run RunID, kind string) (*Control, error) { return nil, errUnbuilt }

// SetControl moves a run's control to processing or completed.
func (tx *Tx) SetControl(run RunID, id, status string) error { return errUnbuilt }

// Observe records the first sight of each queued revision by task path and drops the absent.
func (tx *Tx) Observe(queued map[string]Revision) {}

// SetFindings stores the maintenance findings; unchanged ones emit nothing.
func (tx *Tx) SetFindings(findings json.RawMessage, data map[string]any) error { return errUnbuilt }

// SetAccountHold stores an account's hold; nil removes it.
func (tx *Tx) SetAccountHold(account string, hold json.RawMessage) {}

// PutRequest stores the receipt of a changing request.
func (tx *Tx) PutRequest(id string, receipt json.RawMessage) error { return errUnbuilt }

// SetEventLimit installs the event limit, 100 to 1,000,000.
func (tx *Tx) SetEventLimit(n int) error { return errUnbuilt }
