package runstore

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"greatminds/internal/refusal"
)

// asked stores a pending request of a new run.
func asked(t *testing.T, s *Store, id string) RunID {
	t.Helper()
	run := running(t, s, "task-"+id)
	update(t, s, func(tx *Tx) error {
		return tx.AskPermission(Permission{ID: PermissionID(id), RunID: run.ID, SessionID: "s", ExpiresAt: tx.at() + 300, Tool: json.RawMessage(`{"kind":"edit"}`),
			Options: []Option{{OptionID: "yes", Kind: "allow_once"}, {OptionID: "no", Kind: "reject_once"}, {OptionID: "ever", Kind: "allow_always"}}})
	})
	return run.ID
}

func answer(t *testing.T, s *Store, id, option string) (bool, error) {
	t.Helper()
	var isNew bool
	err := s.Update(t.Context(), func(tx *Tx) (err error) {
		_, isNew, err = tx.AnswerPermission(PermissionID(id), option)
		return err
	})
	return isNew, err
}

func TestAPermissionIsAnsweredOnce(t *testing.T) {
	k := newClock()
	o := options(storeDir(t), nil)
	o.Now = k.now
	s := openStore(t, o)
	defer closeStore(t, s)
	run := asked(t, s, "p1")
	refusedAnswer := func(id, option string, code refusal.Code) {
		t.Helper()
		before := everything(s.View())
		_, err := answer(t, s, id, option)
		refused(t, err, code)
		if everything(s.View()) != before {
			t.Errorf("%s %s: refused, and yet the state changed", id, option)
		}
	}
	refusedAnswer("p1", "never offered", refusal.CodeOptionRefused)
	refusedAnswer("p1", "ever", refusal.CodeOptionRefused)
	refusedAnswer("nobody", "yes", refusal.CodePermissionUnknown)
	consume := func(id PermissionID) error {
		return s.Update(t.Context(), func(tx *Tx) error { return tx.ConsumePermission(id) })
	}
	refused(t, consume("p1"), refusal.CodeTransition)
	if isNew, err := answer(t, s, "p1", "yes"); err != nil || !isNew {
		t.Fatalf("new %v, %v", isNew, err)
	}
	if isNew, err := answer(t, s, "p1", "yes"); err != nil || isNew {
		t.Errorf("the same before delivery: new %v, %v", isNew, err)
	}
	refusedAnswer("p1", "no", refusal.CodePermissionGone)
	if err := consume("p1"); err != nil {
		t.Fatal(err)
	}
	if isNew, err := answer(t, s, "p1", "yes"); err != nil || isNew {
		t.Errorf("the same after delivery: new %v, %v", isNew, err)
	}
	refused(t, consume("p1"), refusal.CodeTransition)
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.ClosePermission("p1", "run_closed") }), refusal.CodeTransition)
	move(t, s, run, Failed)
	refusedAnswer("p1", "yes", refusal.CodePermissionGone)
	asked(t, s, "p2")
	k.add(301 * time.Second) // the wall clock says nothing of whether its callback still waits
	if isNew, err := answer(t, s, "p2", "yes"); err != nil || !isNew {
		t.Errorf("past the expiry on record: new %v, %v", isNew, err)
	}
	want := "permission_requested permission_answered permission_consumed"
	if got := kinds(slices.DeleteFunc(s.View().Events(0, 100), func(e *Event) bool { return *e.RunID != run || !strings.HasPrefix(e.Kind, "perm") })); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAnEndedRunLeavesNoOpenPermission(t *testing.T) {
	s := fresh(t)
	pending, answered := asked(t, s, "p1"), asked(t, s, "p2")
	if _, err := answer(t, s, "p2", "no"); err != nil {
		t.Fatal(err)
	}
	if got := s.View().OpenPermissions(); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	move(t, s, pending, Failed)
	move(t, s, answered, Completed)
	for _, id := range []PermissionID{"p1", "p2"} {
		if p := s.View().Permission(id); p.Status != "cancelled" || p.Reason != "run_closed" || p.ClosedAt == nil {
			t.Errorf("got %+v", p)
		}
	}
	update(t, s, func(tx *Tx) error { return tx.ClosePermission("p1", "callback_closed") })
	if p := s.View().Permission("p1"); p.Reason != "run_closed" || len(s.View().OpenPermissions()) != 0 {
		t.Errorf("closing twice: %+v", p)
	}
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.AskPermission(Permission{ID: "p3", RunID: pending}) }), refusal.CodeRunTransition)
	other := running(t, s, "0001-a")
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.AskPermission(Permission{ID: "p1", RunID: other.ID}) }), refusal.CodeIdentity)
}
