package runstore

import "encoding/json"

// View is one consistent, immutable state of the store. Missing entities are nil.
type View struct{}

// Run returns a run by id.
func (v *View) Run(id RunID) *Run { return nil }

// Runs returns every run in the hot state, oldest claim first.
func (v *View) Runs() []*Run { return nil }

// ActiveRuns returns the runs in no terminal state, oldest claim first.
func (v *View) ActiveRuns() []*Run { return nil }

// OpenControls returns the runs whose control is pending or processing, oldest claim first.
func (v *View) OpenControls() []*Run { return nil }

// RunsOfTask returns the runs of a task, oldest claim first.
func (v *View) RunsOfTask(id TaskID) []*Run { return nil }

// Result returns a result by id.
func (v *View) Result(id ResultID) *Result { return nil }

// ResultOfRun returns the one result of a run.
func (v *View) ResultOfRun(id RunID) *Result { return nil }

// Results returns every result in the hot state, in order of id.
func (v *View) Results() []*Result { return nil }

// OpenResults returns the results that are received, applying or in need of recovery.
func (v *View) OpenResults() []*Result { return nil }

// Command returns a command by request id.
func (v *View) Command(id CommandID) *Command { return nil }

// CommandsOfRun returns a run's commands, oldest request first.
func (v *View) CommandsOfRun(id RunID) []*Command { return nil }

// OpenCommands returns the commands without an outcome: queued, starting, running or in need
// of recovery.
func (v *View) OpenCommands() []*Command { return nil }

// Permission returns a permission request by id.
func (v *View) Permission(id PermissionID) *Permission { return nil }

// PermissionsOfRun returns a run's permission requests, oldest first.
func (v *View) PermissionsOfRun(id RunID) []*Permission { return nil }

// OpenPermissions returns the pending and answered requests.
func (v *View) OpenPermissions() []*Permission { return nil }

// Operation returns an operation by id, of either kind.
func (v *View) Operation(id OperationID) *Operation { return nil }

// OpenOperations returns the operations that hold their task.
func (v *View) OpenOperations() []*Operation { return nil }

// OperationsOfTask returns the operations of a task.
func (v *View) OperationsOfTask(id TaskID) []*Operation { return nil }

// Reservations returns the input reservations of a run by request id.
func (v *View) Reservations(id RunID) map[string]Reservation { return nil }

// Events returns up to limit events after a sequence, in order. Where events after that
// sequence were discarded, an events_gap comes first, beyond the limit.
func (v *View) Events(after uint64, limit int) []*Event { return nil }

// Paused tells whether dispatch is paused.
func (v *View) Paused() bool { return false }

// ProjectID returns the project's identity, empty before the first commit.
func (v *View) ProjectID() string { return "" }

// Observations returns the queue observations by task path.
func (v *View) Observations() map[string]*Observation { return nil }

// Request returns the receipt of a changing request.
func (v *View) Request(id string) *Request { return nil }

// Findings returns the maintenance findings, nil before the first.
func (v *View) Findings() json.RawMessage { return nil }

// AccountHold returns the hold of an account, nil where there is none.
func (v *View) AccountHold(account string) json.RawMessage { return nil }

// AccountHolds returns all account holds by account.
func (v *View) AccountHolds() map[string]json.RawMessage { return nil }

// Sequence returns the sequence of the last event.
func (v *View) Sequence() uint64 { return 0 }

// Authorized tells whether token is the credential of a run that has not ended.
func (v *View) Authorized(id RunID, token string) bool { return false }

// Document returns the store's part of `run status`: one JSON object with sorted keys.
func (v *View) Document() json.RawMessage { return nil }
