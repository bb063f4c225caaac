package runstore

import (
	"strings"
	"testing"
	"time"
)

// E-594, E-595, E-597
func TestQueueObservationsAreFirstSights(t *testing.T) {
	k := newClock()
	o := options(storeDir(t), nil)
	o.Now = k.now
	s := openStore(t, o)
	defer closeStore(t, s)
	observe := func(queued map[string]Revision) {
		update(t, s, func(tx *Tx) error { tx.Observe(queued); return nil })
	}
	observe(map[string]Revision{"feature_dev/0001-a.yaml": "rev-0001-a", "feature_dev/0002-b.yaml": "rev-0002-b"})
	first := s.View().Observation("feature_dev/0001-a.yaml").FirstObservedAt
	k.add(7 * time.Second)
	before := everything(s.View())
	observe(map[string]Revision{"feature_dev/0002-b.yaml": "rev-0002-b", "feature_dev/0001-a.yaml": "rev-0001-a"})
	if got := everything(s.View()); got != before {
		t.Error("the same sight was written again")
	}
	c := claim(t, s, "0001-a")
	w := c.QueueObservation
	if w == nil || w.Scope != "observed_revision_wait" || w.FirstObservedAt != first || *w.WaitSeconds < 7 || *w.WaitSeconds > 7.1 || w.Source != "" {
		t.Errorf("got %+v", w)
	}
	edited := claimOf("0002-b")
	edited.TaskRevision = "edited meanwhile"
	update(t, s, func(tx *Tx) error {
		c, _, err := tx.Claim(edited, nil)
		if err == nil && c.QueueObservation != nil {
			t.Errorf("another revision's wait was copied: %+v", c.QueueObservation)
		}
		return err
	})
	observe(map[string]Revision{"feature_dev/0002-b.yaml": "rev-2"})
	if got := s.View().Observations(); len(got) != 1 || got["feature_dev/0002-b.yaml"].TaskRevision != "rev-2" || got["feature_dev/0002-b.yaml"].FirstObservedAt <= first {
		t.Errorf("got %v", got)
	}
	k.add(-time.Hour)
	back := claimOf("0003-c")
	update(t, s, func(tx *Tx) error {
		tx.View.h.putObservation(back.TaskPath, &Observation{TaskRevision: back.TaskRevision, FirstObservedAt: tx.at() + 60})
		c, _, err := tx.Claim(back, nil)
		if err == nil && c.QueueObservation.WaitSeconds != nil {
			t.Errorf("a backward interval is %v, want null", *c.QueueObservation.WaitSeconds)
		}
		return err
	})
	observe(nil)
	if doc := string(s.View().Document()); !strings.Contains(doc, `"queue_observations":{}`) {
		t.Error("an emptied index is gone from the document")
	}
}

// E-598
func TestRunsKeepTheirObservationWhenEventsGo(t *testing.T) {
	s := fresh(t)
	update(t, s, func(tx *Tx) error {
		tx.Observe(map[string]Revision{"feature_dev/0001-a.yaml": "rev-0001-a"})
		return tx.SetEventLimit(100)
	})
	c := claim(t, s, "0001-a")
	before := string(encode(c.QueueObservation))
	update(t, s, func(tx *Tx) error {
		for range 200 {
			tx.Emit("tick", "", nil)
		}
		return tx.Recover(c.ID, "owner2")
	})
	if got := string(encode(s.View().Run(c.ID).QueueObservation)); got != before || before == "null" {
		t.Errorf("got %s, want %s", got, before)
	}
}
