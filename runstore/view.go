package runstore

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// View is one consistent, immutable state of the store. What it does not hold is nil, and
// what it returns must not be changed. Reading it takes no lock and copies no history.
//
// Inside a transaction the same calls see the transaction's own writes.
type View struct{ h hot }

// lookup returns the value of a key, the zero value where there is none.
func lookup[V any](m pmap[V], key string) V {
	v, _ := m.get(key)
	return v
}

// children returns the values below a parent.
func children[V any](m pmap[V], parent string) []V {
	var all []V
	m.prefix(parent+"\x00", func(_ string, v V) { all = append(all, v) })
	return all
}

func byClaim(a, b *Run) int {
	return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.ID, b.ID))
}

func sorted[V any](all []V, order func(a, b V) int) []V {
	slices.SortFunc(all, order)
	return all
}

// Run returns a run by id.
func (v *View) Run(id RunID) *Run { return lookup(v.h.runs, string(id)) }

// Runs returns every run in the hot state, oldest claim first. It costs the whole history:
// ask for what you need.
func (v *View) Runs() []*Run { return v.h.runOrder.values() }

// ActiveRuns returns the runs in no terminal state, oldest claim first.
func (v *View) ActiveRuns() []*Run { return sorted(v.h.activeRuns.values(), byClaim) }

// OpenControls returns the runs whose control is pending or processing, oldest claim first.
func (v *View) OpenControls() []*Run { return sorted(v.h.openControls.values(), byClaim) }

// RunsOfTask returns the runs of a task, oldest claim first.
func (v *View) RunsOfTask(id TaskID) []*Run {
	return sorted(children(v.h.runsByTask, string(id)), byClaim)
}

// Result returns a result by id.
func (v *View) Result(id ResultID) *Result { return lookup(v.h.results, string(id)) }

// ResultOfRun returns the one result of a run.
func (v *View) ResultOfRun(id RunID) *Result { return lookup(v.h.resultOfRun, string(id)) }

// Results returns every result in the hot state, in order of id.
func (v *View) Results() []*Result { return v.h.results.values() }

// OpenResults returns the results that are received, applying or in need of recovery, in the
// order in which they were received.
func (v *View) OpenResults() []*Result {
	return sorted(v.h.openResults.values(), func(a, b *Result) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID(), b.ID()))
	})
}

func byRequest(a, b *Command) int {
	return cmp.Or(cmp.Compare(a.RequestedAt, b.RequestedAt), cmp.Compare(a.ID, b.ID))
}

// Command returns a command by request id.
func (v *View) Command(id CommandID) *Command { return lookup(v.h.commands, string(id)) }

// CommandsOfRun returns a run's commands, oldest request first.
func (v *View) CommandsOfRun(id RunID) []*Command {
	return sorted(children(v.h.commandsByRun, string(id)), byRequest)
}

// OpenCommands returns the commands without an outcome: queued, starting, running or in need
// of recovery, oldest request first.
func (v *View) OpenCommands() []*Command { return sorted(v.h.openCommands.values(), byRequest) }

func byCreation(a, b *Permission) int {
	return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// Permission returns a permission request by id.
func (v *View) Permission(id PermissionID) *Permission { return lookup(v.h.permissions, string(id)) }

// PermissionsOfRun returns a run's permission requests, oldest first.
func (v *View) PermissionsOfRun(id RunID) []*Permission {
	return sorted(children(v.h.permissionsByRun, string(id)), byCreation)
}

// OpenPermissions returns the pending and answered requests, oldest first.
func (v *View) OpenPermissions() []*Permission {
	return sorted(v.h.openPermissions.values(), byCreation)
}

// Operation returns an operation by id, of either kind.
func (v *View) Operation(id OperationID) *Operation {
	if o, ok := v.h.operations.get(string(id)); ok {
		return o
	}
	return lookup(v.h.maintenance, string(id))
}

func byStart(a, b *Operation) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) }

// OpenOperations returns the operations that hold their task, oldest first.
func (v *View) OpenOperations() []*Operation { return sorted(v.h.openOperations.values(), byStart) }

// OperationsOfTask returns the operations of a task, oldest first.
func (v *View) OperationsOfTask(id TaskID) []*Operation {
	return sorted(children(v.h.operationsByTask, string(id)), byStart)
}

// Reservations returns the input reservations of a run by request id.
func (v *View) Reservations(id RunID) map[string]Reservation {
	all := map[string]Reservation{}
	v.h.reservations.prefix(below(id, ""), func(key string, r *Reservation) {
		all[strings.TrimPrefix(key, below(id, ""))] = *r
	})
	return all
}

// Events returns up to limit events after a sequence, in order. Where events after that
// sequence were discarded, a synthetic events_gap comes first, beyond the limit, with the
// sequence of the last discarded event: going on from it misses and repeats nothing.
// Spec: "Runtime event retention".
func (v *View) Events(sequence uint64, limit int) []*Event {
	tail := eventsAfter(v.h.events, sequence)
	page := decodeEvents(tail[:min(max(limit, 0), len(tail))])
	through := v.h.discardedThrough()
	if sequence >= through {
		return page
	}
	first := v.h.lastEvent + 1
	if len(v.h.events) > 0 {
		first = v.h.events[0].sequence
	}
	data := map[string]uint64{"requested_after": sequence, "discarded_through": through, "first_available_sequence": first}
	gap := &Event{Sequence: through, Kind: "events_gap", Data: encode(data)}
	if v.h.retention.UpdatedAt != nil {
		gap.At = *v.h.retention.UpdatedAt
	}
	return append([]*Event{gap}, page...)
}

// Paused tells whether dispatch is paused.
func (v *View) Paused() bool { return v.h.paused }

// ProjectID returns the project's identity, 32 hex digits; empty where there is no store yet.
func (v *View) ProjectID() string { return v.h.projectID }

// Observations returns the queue observations by task path.
func (v *View) Observations() map[string]*Observation {
	all := make(map[string]*Observation, v.h.observations.len())
	v.h.observations.each(func(path string, o *Observation) bool { all[path] = o; return true })
	return all
}

// Observation returns the observation of one task path.
func (v *View) Observation(path string) *Observation { return lookup(v.h.observations, path) }

// Request returns the receipt of a changing request.
func (v *View) Request(id string) *Request { return lookup(v.h.requests, id) }

// Findings returns the maintenance findings, nil before the first.
func (v *View) Findings() json.RawMessage { return v.h.findings }

// AccountHold returns the hold of an account, nil where there is none.
func (v *View) AccountHold(account string) json.RawMessage { return lookup(v.h.accountHolds, account) }

// AccountHolds returns all account holds by account.
func (v *View) AccountHolds() map[string]json.RawMessage {
	all := make(map[string]json.RawMessage, v.h.accountHolds.len())
	v.h.accountHolds.each(func(account string, hold json.RawMessage) bool { all[account] = hold; return true })
	return all
}

// Sequence returns the sequence of the last event, 0 before the first.
func (v *View) Sequence() uint64 { return v.h.lastEvent }

// EventRetention returns the event bound in force and what was discarded for it.
func (v *View) EventRetention() Retention {
	if v.h.retention == nil {
		return Retention{MaxEvents: defaultMaxEvents}
	}
	return *v.h.retention
}

// Authorized tells whether token is the credential of a run that has not ended. The time it
// takes tells nothing about the token.
func (v *View) Authorized(id RunID, token string) bool {
	r := v.Run(id)
	if r == nil || r.State.Terminal() || r.TokenSHA256 == "" {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(r.TokenSHA256), []byte(hashText(token))) == 1
}

func hashText(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
