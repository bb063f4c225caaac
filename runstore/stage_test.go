package runstore

import (
	"testing"
	"time"

	"greatminds/internal/refusal"
)

// E-582, E-583, E-584
func TestStagesAreFirstSights(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	c := running(t, s, "0001-a")
	stage := func(name string, offset time.Duration) error {
		return s.Update(t.Context(), func(tx *Tx) error { return tx.Stage(c.ID, name, offset) })
	}
	for _, err := range []error{stage("workspace_ready", 250*time.Millisecond), stage("protocol_ready", time.Second), stage("workspace_ready", 9*time.Second)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	refused(t, stage("lunch", 0), refusal.CodeRecordInvalid)
	refused(t, stage("context_ready", -1), refusal.CodeRecordInvalid)
	events := s.View().Events(3, 10)
	if kinds(events) != "run_stage_observed run_stage_observed" || string(events[0].Data) != `{"offset_seconds":0.25,"stage":"workspace_ready"}` {
		t.Errorf("got %s, %s", kinds(events), events[0].Data)
	}
	update(t, s, func(tx *Tx) error { return tx.Recover(c.ID, "owner2") })
	refused(t, stage("cleanup_complete", time.Second), refusal.CodeRunTransition)
	closeStore(t, s)
	s = openStore(t, options(dir, nil))
	if got := string(encode(s.View().Run(c.ID).Timings)); got != `{"protocol_ready":1.0,"workspace_ready":0.25}` {
		t.Errorf("got %s", got)
	}
	closeStore(t, s)
}

// E-570
func TestReservationsAreIdempotent(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	c := running(t, s, "0001-a")
	reserve := func(id string, n int64) error {
		return s.Update(t.Context(), func(tx *Tx) error {
			return tx.Reserve(c.ID, id, Reservation{RequestedBytes: n, UsedBytes: n, LimitBytes: 100})
		})
	}
	for _, err := range []error{reserve("p1", 10), reserve("p2", 20), reserve("p1", 10)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	refused(t, reserve("p1", 11), refusal.CodeEventReused)
	refused(t, reserve("a b", 1), refusal.CodeIdentity)
	if got := kinds(s.View().Events(3, 10)); got != "prompt_input_reserved prompt_input_reserved" {
		t.Errorf("got %s", got)
	}
	move(t, s, c.ID, Failed)
	refused(t, reserve("p3", 1), refusal.CodeRunTransition)
	if err := reserve("p2", 20); err != nil {
		t.Errorf("the same again after the end: %v", err)
	}
	closeStore(t, s)
	s = openStore(t, options(dir, nil))
	if got := s.View().Reservations(c.ID); len(got) != 2 || got["p2"].RequestedBytes != 20 {
		t.Errorf("got %v", got)
	}
	closeStore(t, s)
}

func TestControlsHaveOneWay(t *testing.T) {
	s := fresh(t)
	c := running(t, s, "0001-a")
	var first, again *Control
	update(t, s, func(tx *Tx) (err error) { first, err = tx.RequestControl(c.ID, "retry"); return err })
	update(t, s, func(tx *Tx) (err error) { again, err = tx.RequestControl(c.ID, "retry"); return err })
	if again.ID != first.ID {
		t.Error("an open control was made twice")
	}
	set := func(id, status string) error {
		return s.Update(t.Context(), func(tx *Tx) error { return tx.SetControl(c.ID, id, status) })
	}
	refused(t, set("other", "processing"), refusal.CodeTransition)
	for _, status := range []string{"processing", "processing", "completed", "completed"} {
		if err := set(first.ID, status); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, set(first.ID, "pending"), refusal.CodeTransition)
	if r := s.View().Run(c.ID); !r.RetryAuthorized || r.Control.Status != "completed" {
		t.Errorf("got %+v", r.Control)
	}
	if got := kinds(s.View().Events(3, 10)); got != "control_requested control_processing control_completed" {
		t.Errorf("got %s", got)
	}
	refused(t, s.Update(t.Context(), func(tx *Tx) error { _, err := tx.RequestControl(c.ID, "dance"); return err }), refusal.CodeRecordInvalid)
}
