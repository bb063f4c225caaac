package runstore

import "sync"

// faults is what look-ups in the history met, for one View. The first one is kept.
type faults struct {
	mu    sync.Mutex
	first error
}

// HistoryFault returns why a look-up in this View could not be answered from the history, nil where
// all could. Such a look-up has returned nothing, which does not mean that there is nothing.
func (v *View) HistoryFault() error {
	if v.faults == nil {
		return nil
	}
	v.faults.mu.Lock()
	defer v.faults.mu.Unlock()
	return v.faults.first
}

// Apart returns the same state with a HistoryFault of its own: what other readers of v met says
// nothing about the look-ups in it.
func (v *View) Apart() *View { return newView(&v.h) }

func (v *View) fail(err error) {
	if v.faults == nil {
		return
	}
	v.faults.mu.Lock()
	defer v.faults.mu.Unlock()
	if v.faults.first == nil {
		v.faults.first = historyRefusal(err)
	}
}

// nothing is the bundle that holds nothing.
var nothing = &hot{}

// past returns the bundle in the history that holds an id, an empty one where there is none.
func (v *View) past(kind, id string, has func(*hot) bool) *hot {
	if v.h.history == nil {
		return nothing
	}
	b, err := v.h.history.find(kind, id, has)
	if err != nil {
		v.fail(err)
	}
	if b == nil {
		return nothing
	}
	return b
}

func runsOf(b *hot) pmap[*Run]               { return b.runs }
func resultsOf(b *hot) pmap[*Result]         { return b.results }
func commandsOf(b *hot) pmap[*Command]       { return b.commands }
func permissionsOf(b *hot) pmap[*Permission] { return b.permissions }

// holding makes the question whether a bundle holds an id.
func holding[I ~string, V any](id I, of func(*hot) pmap[V]) func(*hot) bool {
	return func(b *hot) bool { _, ok := of(b).get(string(id)); return ok }
}

// bundle returns the state in which everything of a run stands: the hot one, or its bundle in the
// history. A run is wholly in one of them.
func (v *View) bundle(id RunID) *hot {
	if v.h.history == nil {
		return &v.h
	}
	if _, ok := v.h.runs.get(string(id)); ok {
		return &v.h
	}
	if b := v.past(keyRun, string(id), holding(id, runsOf)); b != nothing {
		return b
	}
	return &v.h
}

func (h *hot) operation(id OperationID) *Operation {
	if o, ok := h.operations.get(string(id)); ok {
		return o
	}
	return lookup(h.maintenance, string(id))
}

// bundles returns the bundles in the history with a key, newest first. One that left twice is
// there twice.
func (v *View) bundles(kind, id string) []*hot {
	if v.h.history == nil {
		return nil
	}
	places, err := v.h.history.places(kind, id, true)
	if err != nil {
		v.fail(err)
		return nil
	}
	all := make([]*hot, 0, len(places))
	for _, p := range places {
		b, err := v.h.history.bundle(p)
		if err != nil {
			v.fail(err)
			return nil
		}
		all = append(all, b)
	}
	return all
}

// pastRuns returns the runs in the history that in accepts, and that are not hot again.
func (v *View) pastRuns(kind, id string, in func(*Run) bool) []*Run {
	var all []*Run
	seen := map[RunID]bool{}
	for _, b := range v.bundles(kind, id) {
		putAll(b.runs, func(r *Run) {
			if _, hot := v.h.runs.get(string(r.ID)); !hot && !seen[r.ID] && in(r) {
				all = append(all, r)
			}
			seen[r.ID] = true
		})
	}
	return all
}

// pastOperations returns the operations of a task that are in the history and not hot again.
func (v *View) pastOperations(task TaskID) []*Operation {
	var all []*Operation
	seen := map[OperationID]bool{}
	for _, b := range v.bundles(keyTask, string(task)) {
		one := func(o *Operation) {
			if v.h.operation(o.ID) == nil && !seen[o.ID] && o.TaskID == task {
				all = append(all, o)
			}
			seen[o.ID] = true
		}
		putAll(b.operations, one)
		putAll(b.maintenance, one)
	}
	return all
}

// receipt returns the hash of a run's event that is on record.
func (v *View) receipt(run RunID, event string) (string, bool) {
	return v.bundle(run).receipts.get(below(run, event))
}

// thaw brings a bundle back from the history, before something of it is changed. The transaction
// then holds all of it, and its run is counted among the hot ones.
func (tx *Tx) thaw(b *hot) {
	h := &tx.View.h
	h.take(b)
	for c := range b.entities() {
		tx.touch(c.collection, c.key)
	}
	putAll(b.runs, func(r *Run) {
		totals := map[State]int{}
		for state, n := range h.totals {
			totals[state] = n
		}
		totals[r.State]--
		h.totals = totals
		tx.touch(inTop, topHistory)
	})
}

// thawRun brings a run's bundle back where it is in the history.
func (tx *Tx) thawRun(id RunID) {
	if _, hot := tx.View.h.runs.get(string(id)); hot || tx.View.h.history == nil {
		return
	}
	if b := tx.past(keyRun, string(id), holding(id, runsOf)); b != nothing {
		tx.thaw(b)
	}
}

// thawOperation brings the bundle of an operation back where it is in the history.
func (tx *Tx) thawOperation(id OperationID) {
	if tx.View.h.operation(id) != nil || tx.View.h.history == nil {
		return
	}
	if b := tx.past(keyOperation, string(id), func(b *hot) bool { return b.operation(id) != nil }); b != nothing {
		tx.thaw(b)
	}
}
