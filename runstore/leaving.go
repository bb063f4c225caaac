package runstore

import "slices"

// rollRules say what stays in the hot state at a roll-over, beside everything that is not over.
type rollRules struct {
	runs       int   // the newest finished runs
	operations int   // the newest finished maintenance operations
	requests   int   // the newest receipts of requests
	least      int   // fewer bundles than this are not worth a roll-over
	room       int64 // of a segment
}

var (
	ordinaryRules = rollRules{runs: 50, operations: 50, requests: 200, least: 50, room: segmentRoom}
	eagerRules    = rollRules{runs: 1, operations: 0, requests: 1, least: 1, room: 3000}
)

// leaving returns the bundles that may leave h: what has ended and nothing of which can move by
// itself, but for what is still asked for all the time: the newest of everything, and what the
// verdict about an account rests on.
func (h *hot) leaving(rules rollRules) (runs []RunID, others []change) {
	keep := h.keptRuns(rules.runs)
	h.runs.each(func(id string, r *Run) bool {
		if !keep[r.ID] && h.settled(r) {
			runs = append(runs, r.ID)
		}
		return true
	})
	slices.SortFunc(runs, func(a, b RunID) int {
		return endOf(lookup(h.runs, string(b))).newestFirst(endOf(lookup(h.runs, string(a))))
	})
	for _, o := range oldest(h.maintenance.values(), rules.operations, byStart) {
		if !o.Open() {
			others = append(others, change{inMaintenance, string(o.ID)})
		}
	}
	for _, r := range oldest(h.requests.values(), rules.requests, byAnswer) {
		others = append(others, change{inRequests, r.ID})
	}
	return runs, others
}

// oldest returns all but the newest.
func oldest[V any](all []V, newest int, order func(a, b V) int) []V {
	if len(all) <= newest {
		return nil
	}
	slices.SortFunc(all, order)
	return all[:len(all)-newest]
}

// keptRuns returns the runs that stay although they may have ended.
func (h *hot) keptRuns(newest int) map[RunID]bool {
	keep := map[RunID]bool{}
	latest := map[string]RunID{}
	var ended []*Run
	h.runOrder.each(func(_ string, r *Run) bool {
		latest["binding "+r.BindingID], latest["account "+r.Account] = r.ID, r.ID
		if r.State.Terminal() {
			ended = append(ended, r)
		}
		return true
	})
	for _, id := range latest {
		keep[id] = true
	}
	slices.SortFunc(ended, func(a, b *Run) int { return endOf(a).newestFirst(endOf(b)) })
	for _, r := range ended[:min(newest, len(ended))] {
		keep[r.ID] = true
	}
	for _, runs := range h.accountRuns() {
		for _, r := range runs {
			keep[r.ID] = true
		}
	}
	return keep
}
