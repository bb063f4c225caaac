package runstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"greatminds/internal/refusal"
)

func eventTail(v *View) []uint64 {
	var all []uint64
	for _, e := range v.Events(v.h.discardedThrough(), 1<<20) {
		all = append(all, e.Sequence)
	}
	return all
}

// E-639, E-642, E-643, E-644, E-645
func TestTheEventTailIsPrunedSeldomAndByAFifth(t *testing.T) {
	dir := storeDir(t)
	o := options(dir, nil)
	o.MaxEvents = 100
	s := openStore(t, o)
	last := s.View().Sequence()
	prunings := 0
	for i := range 300 {
		update(t, s, func(tx *Tx) error { tx.Emit("tick", "", map[string]any{"i": i}); return nil })
		tail := eventTail(s.View())
		if len(tail) > 100 {
			t.Fatalf("%d events", len(tail))
		}
		if got := tail[len(tail)-1]; got <= last {
			t.Fatalf("sequence %d after %d", got, last)
		} else if got > last+1 { // the change and the pruning
			if prunings++; len(tail) != 80 || s.View().Events(got-1, 1)[0].Kind != "events_pruned" {
				t.Errorf("pruned to %d events, want 80", len(tail))
			}
		}
		last = tail[len(tail)-1]
		if i%70 == 69 { // retention holds across restarts of both kinds
			closeStore(t, s)
			s = openStore(t, options(dir, nil))
		}
	}
	if prunings < 9 || prunings > 15 {
		t.Errorf("%d prunings of 300 events, want about one in twenty", prunings)
	}
	r := s.View().EventRetention()
	first := eventTail(s.View())[0]
	if r.MaxEvents != 100 || r.DiscardedThrough != first-1 || r.DiscardedCount != first-1 || r.UpdatedAt == nil {
		t.Errorf("got %+v before event %d", r, first)
	}
	if doc := string(s.View().Document()); !strings.Contains(doc, fmt.Sprintf(`"event_retention":{"discarded_count":%d,"discarded_through":%d,"max_events":100,"updated_at":`, first-1, first-1)) {
		t.Errorf("got %s", doc[:200])
	}
	closeStore(t, s)
}

// E-637
func TestTheEventLimitIsInstalledOnce(t *testing.T) {
	dir := storeDir(t)
	for _, n := range []int{-1, 1, 99, 1_000_001} {
		o := options(dir, nil)
		o.MaxEvents = n
		_, err := Open(t.Context(), o)
		refused(t, err, refusal.CodeEventLimit)
		if r, _ := refusal.Find(err); r.Status() != refusal.Invalid {
			t.Errorf("got status %d, want 2", r.Status())
		}
	}
	for i, n := range []int{500, 500, 0, 600} {
		o := options(dir, nil)
		o.MaxEvents = n
		s := openStore(t, o)
		want := []int{500, 500, 500, 600}[i]
		if got := s.View().EventRetention().MaxEvents; got != want {
			t.Errorf("got limit %d, want %d", got, want)
		}
		closeStore(t, s)
	}
	v, err := Read(dir)
	if err != nil || kinds(v.Events(0, 10)) != "event_retention_configured event_retention_configured" {
		t.Errorf("got %s, %v", kinds(v.Events(0, 10)), err)
	}
	if got := (&View{}).EventRetention().MaxEvents; got != 10_000 {
		t.Errorf("default %d, want 10000", got)
	}
}

// E-641
func TestTheDefaultLimitHoldsWithoutADaemon(t *testing.T) {
	s := fresh(t)
	update(t, s, func(tx *Tx) error {
		for range 10_000 {
			tx.Emit("tick", "", nil)
		}
		return nil
	})
	if got := len(eventTail(s.View())); got != 10_000 {
		t.Fatalf("got %d events", got)
	}
	update(t, s, func(tx *Tx) error { tx.Emit("tick", "", nil); return nil })
	tail := s.View().Events(s.View().h.discardedThrough(), 1<<20)
	if len(tail) != 8_000 || tail[len(tail)-1].Kind != "events_pruned" || tail[len(tail)-2].Sequence != 10_001 {
		t.Errorf("got %d events, the last is %s", len(tail), tail[len(tail)-1].Kind)
	}
}

// E-645: the prune is in the same line of the journal as the change that made it.
func TestPruningIsReplayed(t *testing.T) {
	dir := storeDir(t)
	var want string
	killed(t, dir, func(s *Store) {
		update(t, s, func(tx *Tx) error { return tx.SetEventLimit(100) })
		for range 3 {
			update(t, s, func(tx *Tx) error {
				for range 150 { // more than the limit in one transaction
					tx.Emit("tick", "", nil)
				}
				return nil
			})
		}
		want = everything(s.View())
		if got := len(eventTail(s.View())); got != 80 {
			t.Errorf("got %d events", got)
		}
	})
	s := openStore(t, options(dir, nil))
	if got := everything(s.View()); got != want {
		t.Errorf("got %.400s\nwant %.400s", got, want)
	}
	update(t, s, func(tx *Tx) error { tx.Emit("next", "", nil); return nil })
	closeStore(t, s)
}

// E-647, E-648, E-649
func TestAGapIsToldBeforeThePage(t *testing.T) {
	s := fresh(t)
	update(t, s, func(tx *Tx) error {
		if err := tx.SetEventLimit(100); err != nil {
			return err
		}
		for range 150 {
			tx.Emit("tick", "", nil)
		}
		return nil
	})
	v := s.View()
	before := everything(v)
	through := v.EventRetention().DiscardedThrough
	page := v.Events(3, 10)
	gap := page[0]
	want := fmt.Sprintf(`{"discarded_through":%d,"first_available_sequence":%d,"requested_after":3}`, through, through+1)
	if len(page) != 11 || gap.Kind != "events_gap" || gap.RunID != nil || gap.Sequence != through || string(gap.Data) != want {
		t.Errorf("got %d events, first %s %s, want %s", len(page), gap.Kind, gap.Data, want)
	}
	seen := []uint64{}
	for after := gap.Sequence; ; {
		page := v.Events(after, 7)
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			seen = append(seen, e.Sequence)
		}
		after = page[len(page)-1].Sequence
	}
	if !slices.Equal(seen, eventTail(v)) || seen[0] != through+1 {
		t.Errorf("going on from the gap saw %d events from %d", len(seen), seen[0])
	}
	if got := v.Events(through, 1); got[0].Kind == "events_gap" {
		t.Error("a gap where nothing is missing")
	}
	if got := v.Events(0, 0); len(got) != 1 || got[0].Kind != "events_gap" {
		t.Errorf("limit 0: got %s", kinds(got))
	}
	if got := v.Events(1<<60, 5); len(got) != 0 {
		t.Errorf("beyond the end: got %s", kinds(got))
	}
	if everything(s.View()) != before {
		t.Error("reading changed the state")
	}
}
