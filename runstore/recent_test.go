package runstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestRecentDoesNotGrow(t *testing.T) {
	h := workday(t, 400, 5000)
	tx := newTx(h, time.Unix(1_900_000_001, 0))
	h, err := tx.finish(func(tx *Tx) error {
		for _, task := range []string{"active", "waiting"} {
			c := claimOf(task)
			c.ID = RunID(task)
			if _, _, err := tx.Claim(c, nil); err != nil {
				return err
			}
			if err := tx.Transition(c.ID, "e", Starting, "", nil); err != nil {
				return err
			}
		}
		// Of the oldest run a command is in need of a person again.
		c := tx.Command("cmd-0").Status
		if c != "succeeded" {
			return fmt.Errorf("cmd-0 is %s", c)
		}
		stuck := *tx.Command("cmd-0")
		stuck.Status = needsRecovery
		tx.putCommand(&stuck)
		return tx.Transition("waiting", "e2", WaitingAuth, "login", nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	raw := newView(h).Recent()
	var text bytes.Buffer
	if err := json.Indent(&text, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	if text.Len() > 170_000 {
		t.Errorf("%d bytes", text.Len())
	}
	if strings.Contains(text.String(), "token_sha256") {
		t.Error("a credential's hash is shown")
	}
	var doc struct {
		Runs     map[string]map[string]json.RawMessage
		Events   []Event
		Results  map[string]Result
		Commands map[string]Command
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Runs) != 53 || doc.Runs["active"] == nil || doc.Runs["waiting"] == nil {
		t.Errorf("%d runs are shown, want 50 finished, 2 that are not, and 1 with an open command", len(doc.Runs))
	}
	if doc.Commands["cmd-0"].Status != needsRecovery {
		t.Error("what needs a person is not shown")
	}
	for id := range doc.Runs {
		if res := h.resultOfRun; id != "active" && id != "waiting" {
			one, _ := res.get(id)
			if got, there := doc.Results[string(one.ID())]; !there || got.Status != "applied" || got.Envelope.RunID != RunID(id) {
				t.Errorf("the result of run %s is not shown: %+v", id, got)
			}
		}
	}
	if len(doc.Events) != 200 || doc.Events[199].Sequence != h.lastEvent {
		t.Errorf("%d events are shown, want the newest 200", len(doc.Events))
	}
	whole, brief := 0, 0
	for id, r := range doc.Runs {
		if r["brief"] != nil {
			brief++
		} else if whole++; r["event_receipts"] == nil {
			t.Errorf("run %s lacks its lists", id)
		}
	}
	if whole < 5 || brief < 10 || doc.Runs["active"]["brief"] != nil {
		t.Errorf("%d runs are whole and %d in brief", whole, brief)
	}
	newest, _, err := newView(h).History("", 1)
	if err != nil || doc.Runs[string(newest[0].ID)]["brief"] != nil {
		t.Errorf("the newest finished run is in brief, %v", err)
	}
}

// A small store is shown as a whole.
func TestRecentIsTheWholeDocumentOfASmallStore(t *testing.T) {
	s := fresh(t)
	full(t, s)
	if got, want := string(s.View().Recent()), string(s.View().Document()); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got, want := string((&View{}).Recent()), string((&View{}).Document()); got != want {
		t.Errorf("empty: got %s, want %s", got, want)
	}
}

// A large question of the past is shown by title and kind; an open one, and the record itself, are whole.
func TestRecentShowsLargeQuestionsOfThePastInBrief(t *testing.T) {
	s := fresh(t)
	id := running(t, s, "0001-a").ID
	large := json.RawMessage(`{"kind":"edit","rawInput":"` + strings.Repeat("x", 250_000) + `","title":"` + strings.Repeat("é", 400) + `"}`)
	ask := func(name string, tool json.RawMessage) {
		update(t, s, func(tx *Tx) error {
			return tx.AskPermission(Permission{ID: PermissionID(name), RunID: id, ExpiresAt: 2e9, Tool: tool, Options: []Option{{OptionID: "y", Kind: "allow_once"}}})
		})
	}
	shown := func() map[string]Permission {
		var doc struct{ Permissions map[string]Permission }
		if err := json.Unmarshal(s.View().Recent(), &doc); err != nil {
			t.Fatal(err)
		}
		return doc.Permissions
	}
	ask("large", large)
	ask("small", json.RawMessage(`{"title":"t"}`))
	if got := shown(); len(got) != 2 || string(got["large"].Tool) != string(large) {
		t.Errorf("an open question is shown in part: %d bytes", len(got["large"].Tool))
	}
	update(t, s, func(tx *Tx) error {
		return errors.Join(tx.ClosePermission("large", "callback_closed"), tx.ClosePermission("small", "callback_closed"))
	})
	check := func(when string) {
		got := shown()
		want := `{"kind":"edit","title":"` + strings.Repeat("é", 128) + `"}`
		if p := got["large"]; string(p.Tool) != want || string(p.Extra["brief"]) != "true" || p.Status != "cancelled" || p.Reason != "callback_closed" || len(p.Options) != 1 {
			t.Errorf("%s: the large one is shown as %.600s, %s (%s)", when, p.Tool, p.Status, p.Reason)
		}
		if p := got["small"]; string(p.Tool) != `{"title":"t"}` || p.Extra["brief"] != nil {
			t.Errorf("%s: the small one is shown as %.600s", when, p.Tool)
		}
		if p := s.View().Permission("large"); string(p.Tool) != string(large) {
			t.Errorf("%s: the record itself holds %d bytes", when, len(p.Tool))
		}
	}
	check("while the run goes on")
	update(t, s, func(tx *Tx) error { return tx.Transition(id, "end", Completed, "turn_ended", nil) })
	check("after the run's end")
}
