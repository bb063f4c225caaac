package runstore

import (
	"fmt"
	"strings"
	"testing"

	"greatminds/internal/refusal"
)

// E-155
func TestAClaimIsWholeAndAdmitted(t *testing.T) {
	s := fresh(t)
	conversation := "conv"
	wanted := claimOf("0001-a")
	wanted.ConversationID = &conversation
	wanted.Data = map[string]any{"retry_of": "r0"}
	var got *ClaimedRun
	update(t, s, func(tx *Tx) (err error) {
		got, _, err = tx.Claim(wanted, func(v *View) []Hold {
			if len(v.ActiveRuns()) != 0 {
				t.Error("admit sees the run that it is asked about")
			}
			return nil
		})
		return err
	})
	r := s.View().Run(got.ID)
	if r.State != Claimed || r.OwnerID != "owner1" || r.ConfigSHA256 != "c" || r.SchemaSHA256 != "s" || r.Account != "default" ||
		*r.ConversationID != "conv" || r.ProjectID != s.View().ProjectID() || r.Sequence != 1 || r.TaskRevision != "rev-0001-a" || r.Workspace != "/work" {
		t.Errorf("got %+v", r)
	}
	if e := s.View().Events(0, 1)[0]; string(e.Data) != `{"retry_of":"r0","task_id":"0001-a"}` {
		t.Errorf("got event %s", e.Data)
	}
	for name, c := range map[string]Claim{"taken id": {ID: got.ID, TaskID: "t2"}, "bad id": {ID: "a/b", TaskID: "t2"}, "no task": {}, "NUL": {TaskID: "a\x00b"}} {
		err := s.Update(t.Context(), func(tx *Tx) error { _, _, err := tx.Claim(c, nil); return err })
		if e, ok := refusal.Find(err); !ok || e.Code != refusal.CodeIdentity {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestTheCredentialIsNowhereInClear(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	c := claim(t, s, "0001-a")
	if len(c.Token) != 43 || strings.ContainsAny(string(c.Token), "+/=") {
		t.Errorf("got token %q, want 32 bytes of URL-safe base64", c.Token)
	}
	other := claim(t, s, "0002-b")
	v := s.View()
	if !v.Authorized(c.ID, string(c.Token)) || v.Authorized(other.ID, string(c.Token)) || v.Authorized(c.ID, "") ||
		v.Authorized(c.ID, v.Run(c.ID).TokenSHA256) || v.Authorized("nobody", string(c.Token)) {
		t.Error("the wrong credential is taken, or the right one is not")
	}
	if strings.Contains(string(v.Document()), "token") {
		t.Error("the document speaks of tokens")
	}
	if got := fmt.Sprint(Token(c.Token).LogValue()); strings.Contains(got, string(c.Token)) {
		t.Errorf("a log would say %s", got)
	}
	journal := readText(t, dir+"/journal.jsonl")
	move(t, s, c.ID, Cancelled)
	if s.View().Authorized(c.ID, string(c.Token)) {
		t.Error("the credential outlives its run")
	}
	closeStore(t, s)
	for _, text := range []string{journal, readText(t, dir+"/state.json")} {
		if strings.Contains(text, string(c.Token)) || !strings.Contains(text, hashText(string(c.Token))) {
			t.Error("the file holds the credential, or not its hash")
		}
	}
}

// E-159: admission holds in the claim's own transaction, and waiting runs count.
func TestParallelClaimsNeverExceedACap(t *testing.T) {
	const limit = 3
	s := fresh(t)
	waiting := toState(t, s, "0000-w", WaitingInput)
	capped := func(v *View) []Hold {
		if len(v.ActiveRuns()) >= limit {
			return []Hold{{Code: "project_capacity"}}
		}
		return nil
	}
	claims := func(from int) (made int) {
		results := make(chan int)
		for i := range 12 {
			go func() {
				n := 0
				update(t, s, func(tx *Tx) error {
					c, holds, err := tx.Claim(claimOf(fmt.Sprintf("%04d-x", from+i)), capped)
					if (c == nil) != (len(holds) == 1 && holds[0].Code == "project_capacity") {
						t.Errorf("got %v with holds %v", c, holds)
					}
					if c != nil {
						n = 1
					}
					return err
				})
				results <- n
			}()
		}
		for range 12 {
			made += <-results
		}
		return made
	}
	if got := claims(100); got != limit-1 {
		t.Errorf("%d claims beside a waiting run, want %d", got, limit-1)
	}
	move(t, s, waiting, Failed)
	if got := claims(200); got != 1 || len(s.View().ActiveRuns()) != limit {
		t.Errorf("%d claims for one free place", got)
	}
}
