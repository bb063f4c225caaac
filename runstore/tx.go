package runstore

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"greatminds/internal/refusal"
)

// Tx is one transaction. Its reads see its own writes. It ends with the function it was given
// to: a call after that panics.
//
// A call that returns an error has changed nothing by itself; the transaction is undone as a
// whole when its function returns an error.
type Tx struct {
	*View
	now     time.Time
	changed map[change]struct{}
	err     error
}

func newTx(tip *hot, now time.Time) *Tx {
	return &Tx{View: newView(tip), now: now, changed: map[change]struct{}{}}
}

// finish runs f and returns the state after it, nil where nothing changed.
func (tx *Tx) finish(f func(tx *Tx) error) (*hot, error) {
	last := tx.View.h.lastEvent
	v := tx.View
	defer func() { tx.View = nil }()
	err := f(tx)
	// What could not be looked up may have looked like "never seen".
	if fault := v.HistoryFault(); fault != nil {
		return nil, fault
	}
	if err != nil {
		return nil, err
	}
	if tx.err != nil {
		return nil, tx.err
	}
	if len(tx.changed) == 0 && v.h.lastEvent == last {
		return nil, nil
	}
	tx.prune()
	after := v.h
	return &after, nil
}

// Now returns the transaction's one moment.
func (tx *Tx) Now() time.Time { return tx.now }

// at is Now in seconds of the Unix epoch, as the store writes it.
func (tx *Tx) at() float64 { return Epoch(tx.now) }

// Epoch returns a moment as the store writes it: seconds of the Unix epoch, to the microsecond.
func Epoch(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// between returns the interval between two recorded moments, nil where the clock went backward
// or a moment is not a number. Spec: "Queue, validation and accepted transitions".
func between(from, to float64) *float64 {
	d := math.Round((to-from)*1e6) / 1e6
	if math.IsNaN(d) || math.IsInf(d, 0) || d < 0 {
		return nil
	}
	return &d
}

func (tx *Tx) touch(collection, key string) { tx.changed[change{collection, key}] = struct{}{} }

// Emit appends an event; run may be empty. Data that has no JSON form fails the transaction.
func (tx *Tx) Emit(kind string, run RunID, data map[string]any) {
	if data == nil {
		data = map[string]any{}
	}
	raw, err := toRaw(data)
	if err != nil {
		tx.err = refusal.New(refusal.CodeRecordInvalid, "this is a fault of the program: report it", "event %s of run %q: %v", kind, run, err)
		return
	}
	e := &Event{Sequence: tx.View.h.lastEvent + 1, At: tx.at(), Kind: kind, Data: raw}
	if run != "" {
		e.RunID = &run
	}
	tx.View.h.addEvent(storedEvent(e))
}

// prune keeps the event tail within its limit: beyond it the tail shrinks to 80 percent, so
// that the next pruning is far away. Spec: "Runtime event retention".
func (tx *Tx) prune() {
	h := &tx.View.h
	limit := h.maxEvents()
	if len(h.events) <= limit {
		return
	}
	keep := limit*8/10 - 1 // one more tells of the pruning
	dropped := h.events[:len(h.events)-keep]
	through := dropped[len(dropped)-1].sequence
	r := Retention{MaxEvents: limit}
	if h.retention != nil {
		r = *h.retention
	}
	at := tx.at()
	r.DiscardedCount += uint64(len(dropped))
	r.DiscardedThrough, r.UpdatedAt = through, &at
	h.retention = &r
	tx.touch(inTop, topRetention)
	h.discard(through)
	tx.Emit("events_pruned", "", map[string]any{"discarded": len(dropped), "discarded_through": through, "max_events": limit})
}

func validLimit(n int) bool { return n >= minMaxEvents && n <= maxMaxEvents }

func limitRefusal(n int) error {
	return refusal.New(refusal.CodeEventLimit, fmt.Sprintf("set max_runtime_events to %d..%d", minMaxEvents, maxMaxEvents), "an event limit of %d", n)
}

// SetEventLimit installs the event limit, 100 to 1,000,000. The same limit again changes
// nothing.
func (tx *Tx) SetEventLimit(n int) error {
	if !validLimit(n) {
		return limitRefusal(n)
	}
	h := &tx.View.h
	if h.retention != nil && h.retention.MaxEvents == n {
		return nil
	}
	r := Retention{}
	if h.retention != nil {
		r = *h.retention
	}
	r.MaxEvents = n
	h.retention = &r
	tx.touch(inTop, topRetention)
	tx.Emit("event_retention_configured", "", map[string]any{"max_events": n})
	return nil
}

// SetPaused pauses or resumes dispatch. While paused no claim is made; active runs go on.
// Spec: "Lifecycle and result receipts".
func (tx *Tx) SetPaused(paused bool) {
	if tx.View.h.paused == paused {
		return
	}
	tx.View.h.paused = paused
	tx.touch(inTop, topPaused)
	kind := "dispatch_resumed"
	if paused {
		kind = "dispatch_paused"
	}
	tx.Emit(kind, "", nil)
}

// SetFindings stores the maintenance findings; data goes into their event. Findings that are
// equal to the stored ones change nothing. Spec: "Dependency maintenance".
func (tx *Tx) SetFindings(findings json.RawMessage, data map[string]any) error {
	raw, err := checkRaw(findings)
	if err != nil {
		return refusal.New(refusal.CodeRecordInvalid, "this is a fault of the program: report it", "maintenance findings: %v", err)
	}
	if string(raw) == string(tx.View.h.findings) {
		return nil
	}
	tx.View.h.findings = raw
	tx.touch(inTop, topFindings)
	tx.Emit("maintenance_findings_changed", "", data)
	return nil
}

// PutRequest stores the receipt of a changing request, a JSON value. The same id with the same
// receipt again changes nothing; with another one it replaces it, as a begun request's receipt
// becomes its final one.
func (tx *Tx) PutRequest(id string, receipt json.RawMessage) error {
	if !validName(id) {
		return badName("request", id)
	}
	raw, err := checkRaw(receipt)
	if err != nil {
		return refusal.New(refusal.CodeRecordInvalid, "this is a fault of the program: report it", "receipt of request %s: %v", id, err)
	}
	old := tx.Request(id)
	if old != nil && string(old.Receipt) == string(raw) {
		return nil
	}
	r := &Request{ID: id, At: tx.at(), Receipt: raw}
	if old != nil {
		r.At, r.Extra = old.At, old.Extra
	}
	tx.View.h.requests = tx.View.h.requests.set(id, r)
	tx.touch(inRequests, id)
	return nil
}

func badName(what, id string) error {
	return refusal.New(refusal.CodeIdentity, "use a letter or digit, then up to 199 letters, digits, - or _", "%s id %q", what, id)
}
