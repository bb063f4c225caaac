package runstore

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Event limits. Spec: "Runtime event retention".
const (
	defaultMaxEvents = 10_000
	minMaxEvents     = 100
	maxMaxEvents     = 1_000_000
)

// Retention is the bound of the event tail and what was discarded for it.
type Retention struct {
	MaxEvents int `json:"max_events"`
	// DiscardedCount and DiscardedThrough are 0 before the first pruning.
	DiscardedCount   uint64   `json:"discarded_count,omitempty"`
	DiscardedThrough uint64   `json:"discarded_through,omitempty"`
	UpdatedAt        *float64 `json:"updated_at,omitempty"`
	Extra            Members  `json:"-"`
}

// hot is one whole state of the store, as a value: copying it is copying some pointers, and a
// copy never changes with the original. Everything it points to is immutable, but for the
// spare capacity behind events, which only the newest state appends to.
type hot struct {
	projectID    string
	paused       bool
	retention    *Retention
	findings     json.RawMessage
	events       []tailEvent
	lastEvent    uint64
	runs         pmap[*Run]
	receipts     pmap[string]       // run/event id to the hash of the event
	reservations pmap[*Reservation] // run/request id
	results      pmap[*Result]
	commands     pmap[*Command]
	permissions  pmap[*Permission]
	operations   pmap[*Operation] // applications of results, by result id
	maintenance  pmap[*Operation]
	observations pmap[*Observation]
	observed     bool // queue_observations has been used
	accountHolds pmap[*AccountHold]
	held         bool // account_holds has been used
	requests     pmap[*Request]
	extra        Members // unknown top-level members

	// history is what has left the hot state, nil before anything has; totals counts its runs
	// that are not hot again, by state.
	history *history
	totals  map[State]int

	// Indexes; each is made by the put functions alone.
	runOrder         pmap[*Run] // by sequence
	runsByTask       pmap[*Run] // task NUL run
	activeRuns       pmap[*Run]
	openControls     pmap[*Run]
	resultOfRun      pmap[*Result]
	openResults      pmap[*Result]
	commandsByRun    pmap[*Command]
	openCommands     pmap[*Command]
	permissionsByRun pmap[*Permission]
	openPermissions  pmap[*Permission]
	operationsByTask pmap[*Operation]
	openOperations   pmap[*Operation]
}

// within is the key of id below a parent.
func within[P, I ~string](parent P, id I) string { return string(parent) + "\x00" + string(id) }

// below is the key of an entry of a run's own list; run ids hold no slash.
func below(run RunID, id string) string { return string(run) + "/" + id }

// keep sets key where yes holds, and otherwise removes it.
func keep[V any](m pmap[V], key string, v V, yes bool) pmap[V] {
	if yes {
		return m.set(key, v)
	}
	return m.del(key)
}

func (h *hot) putRun(r *Run) {
	id := string(r.ID)
	h.runs = h.runs.set(id, r)
	h.runOrder = h.runOrder.set(orderKey(r), r)
	h.runsByTask = h.runsByTask.set(within(r.TaskID, r.ID), r)
	h.activeRuns = keep(h.activeRuns, id, r, !r.State.Terminal())
	h.openControls = keep(h.openControls, id, r, r.Control != nil && r.Control.Status != controlCompleted)
}

func (h *hot) dropRun(r *Run) {
	id := string(r.ID)
	h.runs, h.runOrder = h.runs.del(id), h.runOrder.del(orderKey(r))
	h.runsByTask = h.runsByTask.del(within(r.TaskID, r.ID))
	h.activeRuns, h.openControls = h.activeRuns.del(id), h.openControls.del(id)
}

// orderKey sorts runs by claim.
func orderKey(r *Run) string { return fmt.Sprintf("%020d/%s", r.Sequence, r.ID) }

func (h *hot) putResult(r *Result) {
	id := string(r.ID())
	h.results = h.results.set(id, r)
	h.resultOfRun = h.resultOfRun.set(string(r.Envelope.RunID), r)
	h.openResults = keep(h.openResults, id, r, r.Open())
}

func (h *hot) putCommand(c *Command) {
	h.commands = h.commands.set(string(c.ID), c)
	h.commandsByRun = h.commandsByRun.set(within(c.RunID, c.ID), c)
	h.openCommands = keep(h.openCommands, string(c.ID), c, c.Open())
}

func (h *hot) putPermission(p *Permission) {
	h.permissions = h.permissions.set(string(p.ID), p)
	h.permissionsByRun = h.permissionsByRun.set(within(p.RunID, p.ID), p)
	h.openPermissions = keep(h.openPermissions, string(p.ID), p, p.Open())
}

func (h *hot) putOperation(o *Operation) {
	if o.Kind == ResultOperation {
		h.operations = h.operations.set(string(o.ID), o)
	} else {
		h.maintenance = h.maintenance.set(string(o.ID), o)
	}
	h.operationsByTask = h.operationsByTask.set(within(o.TaskID, o.ID), o)
	h.openOperations = keep(h.openOperations, string(o.ID), o, o.Open())
}

func (h *hot) dropOperation(o *Operation) {
	h.operations, h.maintenance = h.operations.del(string(o.ID)), h.maintenance.del(string(o.ID))
	h.operationsByTask = h.operationsByTask.del(within(o.TaskID, o.ID))
}

func (h *hot) putObservation(path string, o *Observation) {
	h.observations, h.observed = h.observations.set(path, o), true
}

func (h *hot) putAccountHold(hold *AccountHold) {
	h.accountHolds, h.held = h.accountHolds.set(hold.Account, hold), true
}

// maxEvents is the event limit in force.
func (h *hot) maxEvents() int {
	if h.retention == nil {
		return defaultMaxEvents
	}
	return h.retention.MaxEvents
}

func (h *hot) discardedThrough() uint64 {
	if h.retention == nil {
		return 0
	}
	return h.retention.DiscardedThrough
}

// addEvent appends e, which must be the newest.
func (h *hot) addEvent(e tailEvent) {
	h.events = append(h.events, e)
	h.lastEvent = e.sequence
}

// discard drops the events up to a sequence. The rest is copied, so that the memory of the
// dropped ones is freed.
func (h *hot) discard(through uint64) {
	if kept := eventsAfter(h.events, through); len(kept) < len(h.events) {
		h.events = slices.Clone(kept)
	}
}

// clipped returns the same state without spare room behind its events, so that what a
// transaction that failed has written there is never seen.
func (h *hot) clipped() *hot {
	c := *h
	c.events = slices.Clip(c.events)
	return &c
}
