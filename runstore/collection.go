package runstore

import (
	"encoding/json"
	"fmt"
	"strings"
)

// collection is one kind of entity as the journal sees it: whole values under keys.
type collection struct {
	name string
	// get returns the value under a key for the journal; false means deleted.
	get func(h *hot, key string) (json.RawMessage, bool)
	// put takes a value that stands at off in its document.
	put func(h *hot, key string, raw []byte, off int) error
	// del removes a key; nil where entities are never removed.
	del func(h *hot, key string)
}

// The names of the collections, which are also the keys of a journal line's changes.
const (
	inTop          = "top"
	inRuns         = "runs"
	inReceipts     = "event_receipts"
	inReservations = "input_reservations"
	inResults      = "results"
	inCommands     = "commands"
	inPermissions  = "permissions"
	inOperations   = "operations"
	inMaintenance  = "maintenance"
	inObservations = "queue_observations"
	inAccountHolds = "account_holds"
	inRequests     = "requests"
)

// collections lists every kind once. A kind that is missing here is not durable.
var collections = map[string]collection{
	inTop: {name: inTop, get: getTop, put: putTop},
	inRuns: entity(inRuns, func(h *hot) pmap[*Run] { return h.runs },
		func(h *hot, _ string, r *Run) { h.putRun(r) }, func(r *Run) string { return string(r.ID) }),
	inReservations: entity(inReservations, func(h *hot) pmap[*Reservation] { return h.reservations },
		func(h *hot, key string, r *Reservation) { h.reservations = h.reservations.set(key, r) }, nil),
	inResults: entity(inResults, func(h *hot) pmap[*Result] { return h.results },
		func(h *hot, _ string, r *Result) { h.putResult(r) }, func(r *Result) string { return string(r.ID()) }),
	inCommands: entity(inCommands, func(h *hot) pmap[*Command] { return h.commands },
		func(h *hot, _ string, c *Command) { h.putCommand(c) }, func(c *Command) string { return string(c.ID) }),
	inPermissions: entity(inPermissions, func(h *hot) pmap[*Permission] { return h.permissions },
		func(h *hot, _ string, p *Permission) { h.putPermission(p) }, func(p *Permission) string { return string(p.ID) }),
	inOperations: entity(inOperations, func(h *hot) pmap[*Operation] { return h.operations },
		func(h *hot, _ string, o *Operation) { h.putOperation(o) }, func(o *Operation) string { return string(o.ID) }),
	inMaintenance: translating(entity(inMaintenance, func(h *hot) pmap[*Operation] { return h.maintenance },
		func(h *hot, _ string, o *Operation) { h.putOperation(o) }, func(o *Operation) string { return string(o.ID) })),
	inRequests: entity(inRequests, func(h *hot) pmap[*Request] { return h.requests },
		func(h *hot, key string, r *Request) { h.requests = h.requests.set(key, r) }, func(r *Request) string { return r.ID }),
	inObservations: removable(entity(inObservations, func(h *hot) pmap[*Observation] { return h.observations },
		func(h *hot, path string, o *Observation) { h.putObservation(path, o) }, nil),
		func(h *hot, key string) { h.observations, h.observed = h.observations.del(key), true }),
	inAccountHolds: entity(inAccountHolds, func(h *hot) pmap[*AccountHold] { return h.accountHolds },
		func(h *hot, _ string, a *AccountHold) { h.putAccountHold(a) }, func(a *AccountHold) string { return a.Account }),
	inReceipts: {name: inReceipts,
		get: func(h *hot, key string) (json.RawMessage, bool) {
			sha, ok := h.receipts.get(key)
			return encode(sha), ok
		},
		put: func(h *hot, key string, raw []byte, off int) error {
			var sha string
			if err := decode(raw, off, &sha); err != nil {
				return err
			}
			h.receipts = h.receipts.set(key, sha)
			return nil
		}},
}

func removable(c collection, del func(h *hot, key string)) collection {
	c.del = del
	return c
}

// entity makes the collection of a struct type; id, where given, must agree with the key.
func entity[T any](name string, of func(*hot) pmap[*T], put func(*hot, string, *T), id func(*T) string) collection {
	return collection{name: name,
		get: func(h *hot, key string) (json.RawMessage, bool) {
			v, ok := of(h).get(key)
			if !ok {
				return nil, false
			}
			return encode(v), true
		},
		put: func(h *hot, key string, raw []byte, off int) error {
			v := new(T)
			if err := decode(raw, off, v); err != nil {
				return err
			}
			if id != nil && id(v) != key {
				return faultAt(off, "%s %q stands under the key %q", name, id(v), key)
			}
			if what := check(v, raw); what != "" {
				return faultAt(off, "%s", what)
			}
			put(h, key, v)
			return nil
		}}
}

// check finds what the types cannot say: a value that no transaction of ours could have made
// and that later code would misread.
func check(v any, raw []byte) string {
	known := func(table map[string][]string, status string) string {
		if _, ok := table[status]; ok {
			return ""
		}
		return fmt.Sprintf("unknown status %q", status)
	}
	switch e := v.(type) {
	case *Run:
		e.processNull = e.Process == nil && hasNull(raw, "process")
		if !validName(string(e.ID)) {
			return fmt.Sprintf("%q is no run id", e.ID)
		}
		if _, ok := runEdges[e.State]; !ok {
			return fmt.Sprintf("unknown state %q", e.State)
		}
		if strings.ContainsRune(string(e.TaskID), 0) {
			return "a task id with a NUL"
		}
		if e.Control != nil {
			return known(controlEdges, e.Control.Status)
		}
	case *Result:
		return known(resultEdges, e.Status)
	case *Command:
		return known(commandEdges, e.Status)
	case *Permission:
		return known(permissionEdges, e.Status)
	case *Operation:
		return known(operationEdges, e.stage())
	case *AccountHold:
		if e.ID == "" || !e.Active() && e.Status != holdResolved {
			return fmt.Sprintf("hold %q with the status %q", e.ID, e.Status)
		}
	}
	return ""
}

// hasNull tells whether an object has the member name with the value null.
func hasNull(raw []byte, name string) bool {
	for w := walk(raw, 0); w.next(); {
		if w.name() == name {
			return isNull(w.raw)
		}
	}
	return false
}

// The single values of the document that transactions change.
const (
	topProject   = "project_id"
	topPaused    = "paused"
	topRetention = "event_retention"
	topFindings  = "maintenance_findings"
	// topHistory is in the journal alone; the snapshot has it in store.history.
	topHistory = "history_totals"
)

func getTop(h *hot, key string) (json.RawMessage, bool) {
	switch key {
	case topProject:
		return encode(h.projectID), true
	case topPaused:
		return encode(h.paused), true
	case topRetention:
		return encode(h.retention), h.retention != nil
	case topFindings:
		return h.findings, h.findings != nil
	case topHistory:
		return encode(h.totals), true
	}
	panic("runstore: no top-level value " + key)
}

func putTop(h *hot, key string, raw []byte, off int) error {
	switch key {
	case topProject:
		return decode(raw, off, &h.projectID)
	case topPaused:
		return decode(raw, off, &h.paused)
	case topRetention:
		r := new(Retention)
		if err := decode(raw, off, r); err != nil {
			return err
		}
		if r.MaxEvents < 1 {
			return faultAt(off, "an event limit of %d", r.MaxEvents)
		}
		h.retention = r
		return nil
	case topFindings:
		h.findings = canonical(raw)
		return nil
	case topHistory:
		h.totals = nil
		return decode(raw, off, &h.totals)
	}
	return faultAt(off, "unknown value %q", key)
}
