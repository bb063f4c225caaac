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
// Look-ups by id, and of what belongs to a run, a task or a session, go on in the history of
// finished work, where they read files. One that cannot be answered there returns nothing, and
// HistoryFault then says why: ask it before "not there" is taken for an answer.
//
// Inside a transaction the same calls see the transaction's own writes, and a look-up that could
// not be answered fails the transaction.
type View struct {
	h      hot
	faults *faults
}

func newView(h *hot) *View { return &View{h: *h, faults: &faults{}} }

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
func (v *View) Run(id RunID) *Run {
	if r, ok := v.h.runs.get(string(id)); ok {
		return r
	}
	return lookup(v.past(keyRun, string(id), holding(id, runsOf)).runs, string(id))
}

// Runs returns the runs in the hot state, oldest claim first: those that have not ended or have
// something open, the newest finished ones, and others that have not left for the history yet.
func (v *View) Runs() []*Run { return v.h.runOrder.values() }

// ActiveRuns returns the runs in no terminal state, oldest claim first.
func (v *View) ActiveRuns() []*Run { return sorted(v.h.activeRuns.values(), byClaim) }

// OpenControls returns the runs whose control is pending or processing, oldest claim first.
func (v *View) OpenControls() []*Run { return sorted(v.h.openControls.values(), byClaim) }

// RunsOfTask returns the runs of a task, oldest claim first.
func (v *View) RunsOfTask(id TaskID) []*Run {
	all := children(v.h.runsByTask, string(id))
	return sorted(append(all, v.pastRuns(keyTask, string(id), func(r *Run) bool { return r.TaskID == id })...), byClaim)
}

// RunsOfSession returns the runs of an agent's session, oldest claim first.
func (v *View) RunsOfSession(id string) []*Run {
	in := func(r *Run) bool { return r.SessionID != nil && *r.SessionID == id }
	all := v.pastRuns(keySession, id, in)
	v.h.runs.each(func(_ string, r *Run) bool {
		if in(r) {
			all = append(all, r)
		}
		return true
	})
	return sorted(all, byClaim)
}

// Result returns a result by id.
func (v *View) Result(id ResultID) *Result {
	if r, ok := v.h.results.get(string(id)); ok {
		return r
	}
	return lookup(v.past(keyResult, string(id), holding(id, resultsOf)).results, string(id))
}

// ResultOfRun returns the one result of a run.
func (v *View) ResultOfRun(id RunID) *Result {
	return lookup(v.bundle(id).resultOfRun, string(id))
}

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
func (v *View) Command(id CommandID) *Command {
	if c, ok := v.h.commands.get(string(id)); ok {
		return c
	}
	return lookup(v.past(keyCommand, string(id), holding(id, commandsOf)).commands, string(id))
}

// CommandsOfRun returns a run's commands, oldest request first.
func (v *View) CommandsOfRun(id RunID) []*Command {
	return sorted(children(v.bundle(id).commandsByRun, string(id)), byRequest)
}

// OpenCommands returns the commands without an outcome: queued, starting, running or in need
// of recovery, oldest request first.
func (v *View) OpenCommands() []*Command { return sorted(v.h.openCommands.values(), byRequest) }

func byCreation(a, b *Permission) int {
	return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// Permission returns a permission request by id.
func (v *View) Permission(id PermissionID) *Permission {
	if p, ok := v.h.permissions.get(string(id)); ok {
		return p
	}
	return lookup(v.past(keyPermission, string(id), holding(id, permissionsOf)).permissions, string(id))
}

// PermissionsOfRun returns a run's permission requests, oldest first.
func (v *View) PermissionsOfRun(id RunID) []*Permission {
	return sorted(children(v.bundle(id).permissionsByRun, string(id)), byCreation)
}

// OpenPermissions returns the pending and answered requests, oldest first.
func (v *View) OpenPermissions() []*Permission {
	return sorted(v.h.openPermissions.values(), byCreation)
}

// Operation returns an operation by id, of either kind.
func (v *View) Operation(id OperationID) *Operation {
	if o := v.h.operation(id); o != nil {
		return o
	}
	has := func(b *hot) bool { return b.operation(id) != nil }
	return v.past(keyOperation, string(id), has).operation(id)
}

func byStart(a, b *Operation) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) }

// OpenOperations returns the operations that hold their task, oldest first.
func (v *View) OpenOperations() []*Operation { return sorted(v.h.openOperations.values(), byStart) }

// OperationsOfTask returns the operations of a task, oldest first.
func (v *View) OperationsOfTask(id TaskID) []*Operation {
	all := children(v.h.operationsByTask, string(id))
	return sorted(append(all, v.pastOperations(id)...), byStart)
}

// Reservations returns the input reservations of a run by request id.
func (v *View) Reservations(id RunID) map[string]Reservation {
	all := map[string]Reservation{}
	v.bundle(id).reservations.prefix(below(id, ""), func(key string, r *Reservation) {
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

func byAnswer(a, b *Request) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) }

// Request returns the receipt of a changing request.
func (v *View) Request(id string) *Request {
	if r, ok := v.h.requests.get(id); ok {
		return r
	}
	has := func(b *hot) bool { _, ok := b.requests.get(id); return ok }
	return lookup(v.past(keyRequest, id, has).requests, id)
}

// Findings returns the maintenance findings, nil before the first.
func (v *View) Findings() json.RawMessage { return v.h.findings }

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
