package runstore

import (
	"maps"
	"math"
	"slices"

	"greatminds/internal/refusal"
)

// Totals returns how many runs there have ever been, by state, wherever they are now.
func (v *View) Totals() map[State]int {
	all := map[State]int{}
	maps.Copy(all, v.h.totals)
	v.h.runs.each(func(_ string, r *Run) bool { all[r.State]++; return true })
	maps.DeleteFunc(all, func(_ State, n int) bool { return n == 0 })
	return all
}

// History returns up to limit finished runs, the one that ended last first, wherever they are. After
// is the last run of the page before, or empty for the first page; next is what to give for the
// next one, empty where nothing follows. Pages repeat and miss nothing, also when runs end between
// them: those stand before the first page.
//
// It is refused when after is unknown or has not ended, and with code history_unreadable when the
// history is damaged where the page stands.
func (v *View) History(after RunID, limit int) (runs []*Run, next RunID, err error) {
	from := endEntry{ended: math.MaxInt64, hash: math.MaxUint64}
	if after != "" {
		r := v.Run(after)
		switch {
		case v.HistoryFault() != nil:
			return nil, "", v.HistoryFault()
		case r == nil:
			return nil, "", refusal.New(refusal.CodeRunUnknown, "read the ids from `greatminds run list`", "unknown run %q", after)
		case !r.State.Terminal():
			return nil, "", refusal.New(refusal.CodeUsage, "give the last run of the page before", "run %s has not ended", after)
		}
		from = endOf(r)
	}
	l := v.listing(from)
	for r := l.next(); r != nil; r = l.next() {
		if len(runs) == max(limit, 0) {
			if len(runs) > 0 {
				next = runs[len(runs)-1].ID
			}
			break
		}
		runs = append(runs, r)
	}
	if l.err != nil {
		return nil, "", historyRefusal(l.err)
	}
	return runs, next, nil
}

// listing merges the finished runs of the hot state with those of every index.
type listing struct {
	v       *View
	hot     []*Run
	cursors []*endCursor // oldest index first; those that have an entry
	last    RunID
	err     error
}

func (v *View) listing(from endEntry) *listing {
	l := &listing{v: v}
	v.h.runs.each(func(_ string, r *Run) bool {
		if r.State.Terminal() && from.newestFirst(endOf(r)) < 0 {
			l.hot = append(l.hot, r)
		}
		return true
	})
	slices.SortFunc(l.hot, func(a, b *Run) int { return endOf(a).newestFirst(endOf(b)) })
	if v.h.history == nil {
		return l
	}
	for _, x := range v.h.history.indexes {
		l.keep(x.seekEnd(from))
	}
	return l
}

// keep moves a cursor on, and drops it at its end.
func (l *listing) keep(c *endCursor) {
	if c.next() {
		l.cursors = append(l.cursors, c)
	} else if c.err != nil {
		l.err = c.err
	}
}

// next returns the next run, nil at the end and after an error. A run that has left twice, or is
// hot again, is there once.
func (l *listing) next() *Run {
	for l.err == nil {
		c := l.newest()
		if c == nil || len(l.hot) > 0 && endOf(l.hot[0]).newestFirst(c.entry) <= 0 {
			if len(l.hot) == 0 {
				return nil
			}
			r := l.hot[0]
			l.hot = l.hot[1:]
			return r
		}
		at := c.entry.at
		l.cursors = slices.DeleteFunc(l.cursors, func(o *endCursor) bool { return o == c })
		l.keep(c)
		b, err := l.v.h.history.bundle(at)
		if err != nil {
			l.err = err
			return nil
		}
		var r *Run
		putAll(b.runs, func(one *Run) { r = one })
		if r == nil || r.ID == l.last {
			continue
		}
		if _, again := l.v.h.runs.get(string(r.ID)); again {
			continue
		}
		l.last = r.ID
		return r
	}
	return nil
}

// newest returns the cursor whose entry comes next; of equal ones that of the newest line.
func (l *listing) newest() *endCursor {
	var best *endCursor
	for _, c := range l.cursors {
		if best == nil {
			best = c
			continue
		}
		order := c.entry.newestFirst(best.entry)
		if order < 0 || order == 0 && c.entry.at.compare(best.entry.at) > 0 {
			best = c
		}
	}
	return best
}
