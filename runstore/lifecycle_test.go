package runstore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"greatminds/internal/refusal"
)

// toState takes a fresh run into a state by the shortest way.
func toState(t *testing.T, s *Store, task string, state State) RunID {
	t.Helper()
	c := claim(t, s, task)
	ways := map[State][]State{Claimed: nil, Starting: {Starting}, Running: {Starting, Running},
		WaitingInput: {Starting, WaitingInput}, WaitingAuth: {Starting, WaitingAuth}, Cancelling: {Starting, Cancelling},
		Completed: {Starting, Running, Completed}, Failed: {Starting, Failed}, Cancelled: {Cancelled}, Interrupted: {Interrupted}}
	for _, to := range ways[state] {
		move(t, s, c.ID, to)
	}
	return c.ID
}

// E-184, E-187: every move in every state, legal or not.
func TestEveryMoveInEveryState(t *testing.T) {
	s := fresh(t)
	table := movesOf(t)
	n := 0
	for _, from := range sortedKeys(table) {
		for _, to := range sortedKeys(table) {
			n++
			run := toState(t, s, fmt.Sprintf("%04d-x", n), from)
			before := everything(s.View())
			err := s.Update(t.Context(), func(tx *Tx) error { return tx.Transition(run, "event", to, "r", nil) })
			if slices.Contains(table[from], to) {
				if got := s.View().Run(run); err != nil || got.State != to || got.Reason != "r" {
					t.Errorf("%s to %s: %v, %v", from, to, err, got)
				}
				continue
			}
			refused(t, err, refusal.CodeRunTransition)
			if got := everything(s.View()); got != before {
				t.Errorf("%s to %s: refused, and yet the state changed", from, to)
			}
		}
	}
	if len(runEdges) != len(table) || n != 100 {
		t.Errorf("%d states, %d moves tried", len(runEdges), n)
	}
}

// E-185, E-186
func TestAnEventIsToldOnce(t *testing.T) {
	s := fresh(t)
	c := running(t, s, "0001-a")
	tell := func(reason string, data map[string]any) error {
		return s.Update(t.Context(), func(tx *Tx) error { return tx.Transition(c.ID, "end", Completed, reason, data) })
	}
	if err := tell("turn_ended", map[string]any{"a": 1}); err != nil {
		t.Fatal(err)
	}
	before := everything(s.View())
	if err := tell("turn_ended", map[string]any{"a": 1}); err != nil {
		t.Errorf("the same event after the end: %v", err)
	}
	refused(t, tell("turn_ended", map[string]any{"a": 2}), refusal.CodeEventReused)
	refused(t, tell("", map[string]any{"a": 1}), refusal.CodeEventReused)
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.Transition(c.ID, "end", Failed, "turn_ended", nil) }), refusal.CodeEventReused)
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.Transition("nobody", "e", Failed, "", nil) }), refusal.CodeRunUnknown)
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.Transition(c.ID, "", Failed, "", nil) }), refusal.CodeIdentity)
	if got := everything(s.View()); got != before {
		t.Error("the state changed")
	}
	if !strings.Contains(string(s.View().Document()), `"event_receipts":{`) {
		t.Error("the receipts are not in the document")
	}
}

func TestATransitionTellsWhatItWas(t *testing.T) {
	s := fresh(t)
	c := running(t, s, "0001-a")
	update(t, s, func(tx *Tx) error {
		return tx.Transition(c.ID, NewID(), Failed, "transport_failure", map[string]any{
			"details": map[string]any{"prompt_started": false, "error_type": "ConnectionError", "updates": 3, "x_new": "kept"}})
	})
	e := s.View().Events(0, 100)[3]
	want := `{"details":{"error_type":"ConnectionError","prompt_started":false,"updates":3,"x_new":"kept"},"previous_state":"running","reason":"transport_failure","session_id":null,"target":"failed"}`
	if e.Kind != "failed" || string(e.Data) != want || *e.RunID != c.ID {
		t.Errorf("got %s %s, want %s", e.Kind, e.Data, want)
	}
	o := s.View().Run(c.ID).Outcome
	if o == nil || o.ErrorType != "ConnectionError" || *o.PromptStarted || *o.Updates != 3 || string(o.Extra["x_new"]) != `"kept"` {
		t.Errorf("got outcome %+v", o)
	}
}

// E-242
func TestRecoveryKeepsHolds(t *testing.T) {
	s := fresh(t)
	for i, from := range []State{Claimed, Starting, Running, WaitingInput, WaitingAuth, Cancelling} {
		run := toState(t, s, fmt.Sprintf("%04d-x", i), from)
		held := from == WaitingInput || from == WaitingAuth
		update(t, s, func(tx *Tx) error {
			if err := tx.RecordProcess(run, Process{PID: 5}); err != nil {
				return err
			}
			return tx.AskPermission(Permission{ID: PermissionID(fmt.Sprint("p", i)), RunID: run, ExpiresAt: 2e9, Tool: json.RawMessage(`{}`)})
		})
		update(t, s, func(tx *Tx) error { return tx.Recover(run, "owner2") })
		r := s.View().Run(run)
		want := Interrupted
		if held {
			want = from
		}
		if r.State != want || r.OwnerID != "owner2" || r.Process != nil || (r.Reason == "supervisor_restart") == held {
			t.Errorf("%s: got %s, owner %s, process %v, reason %q", from, r.State, r.OwnerID, r.Process, r.Reason)
		}
		p := s.View().PermissionsOfRun(run)[0]
		if p.Status != "cancelled" || p.Reason != "supervisor_restart" {
			t.Errorf("%s: permission %s, %s", from, p.Status, p.Reason)
		}
		e := s.View().Events(s.View().Sequence()-1, 1)[0]
		if want := fmt.Sprintf(`{"held":%v,"previous_owner":"owner1","state":"%s"}`, held, want); e.Kind != "run_recovered" || string(e.Data) != want {
			t.Errorf("%s: got %s %s, want %s", from, e.Kind, e.Data, want)
		}
		if doc := string(encode(r)); !strings.Contains(doc, `"process":null`) {
			t.Errorf("%s: the gone process is not null: %s", from, doc)
		}
	}
}

func TestAGoneProcessStaysNull(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	run := toState(t, s, "0001-a", WaitingAuth)
	if doc := string(encode(s.View().Run(run))); strings.Contains(doc, `"process"`) {
		t.Errorf("a process that never was is told: %s", doc)
	}
	update(t, s, func(tx *Tx) error { return tx.RecordProcess(run, Process{PID: 5}) })
	update(t, s, func(tx *Tx) error { return tx.EditRun(run, func(r *Run) { r.Process = nil }) })
	update(t, s, func(tx *Tx) error { return tx.EditRun(run, func(r *Run) { r.Workspace = "/x" }) })
	closeStore(t, s)
	s = openStore(t, options(dir, nil))
	if doc := string(encode(s.View().Run(run))); !strings.Contains(doc, `"process":null`) {
		t.Errorf("got %s", doc)
	}
	closeStore(t, s)
}

func TestEditRunKeepsWhatIsNotItsOwn(t *testing.T) {
	s := fresh(t)
	c := running(t, s, "0001-a")
	before := s.View().Run(c.ID)
	update(t, s, func(tx *Tx) error {
		return tx.EditRun(c.ID, func(r *Run) {
			r.ID, r.State, r.Reason, r.TokenSHA256, r.TaskID, r.Sequence = "x", Completed, "x", "x", "x", 99
			r.Outcome = &Outcome{SessionStrategy: "loaded"}
		})
	})
	r := s.View().Run(c.ID)
	if r.State != Running || r.Reason != "" || r.TokenSHA256 != before.TokenSHA256 || r.TaskID != before.TaskID || r.Sequence != before.Sequence || r.Outcome.SessionStrategy != "loaded" {
		t.Errorf("got %+v", r)
	}
	if before.Outcome != nil {
		t.Error("the published run was changed")
	}
	refused(t, s.Update(t.Context(), func(tx *Tx) error {
		return tx.EditRun(c.ID, func(r *Run) { r.Usage = json.RawMessage(`{`) })
	}), refusal.CodeRecordInvalid)
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.EditRun("nobody", func(*Run) {}) }), refusal.CodeRunUnknown)
}

// E-506: what is recorded of a run after its end does not move the end.
func TestTheEndOfARunStandsStill(t *testing.T) {
	s := fresh(t)
	c := running(t, s, "0001-a")
	if s.View().Run(c.ID).EndedAt != nil {
		t.Error("a run that goes on has an end")
	}
	move(t, s, c.ID, Failed)
	end := *s.View().Run(c.ID).EndedAt
	update(t, s, func(tx *Tx) error {
		return tx.EditRun(c.ID, func(r *Run) { r.RetryAuthorized, r.EndedAt = true, nil })
	})
	if r := s.View().Run(c.ID); r.EndedAt == nil || *r.EndedAt != end || r.UpdatedAt == end {
		t.Errorf("got end %v, changed %v, want the end at %v", r.EndedAt, r.UpdatedAt, end)
	}
	left := running(t, s, "0002-b")
	update(t, s, func(tx *Tx) error { return tx.Recover(left.ID, "next") })
	if s.View().Run(left.ID).EndedAt == nil {
		t.Error("an interrupted run has no end")
	}
}

func TestStartupReadyIsSetOnce(t *testing.T) {
	s := fresh(t)
	c := running(t, s, "0001-a")
	first := *s.View().Run(c.ID).StartupReadyAt
	move(t, s, c.ID, WaitingInput)
	move(t, s, c.ID, Running)
	if got := *s.View().Run(c.ID).StartupReadyAt; got != first {
		t.Errorf("got %v, want %v", got, first)
	}
	waiting := toState(t, s, "0002-b", WaitingAuth)
	if s.View().Run(waiting).StartupReadyAt != nil {
		t.Error("a run that never ran has it")
	}
}
