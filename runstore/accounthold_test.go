package runstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"greatminds/internal/refusal"
)

// An operator ends the hold that they have looked at, once, and no other.
func TestOnlyTheHoldOnRecordIsResumed(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	until := 99.0
	update(t, s, func(tx *Tx) error {
		return tx.HoldAccount(AccountHold{Account: "a", ID: "h1", Kind: "rate_limit", ObservedAt: 9, RPCCode: 429, Until: &until})
	})
	resume := func(account, id, reason string) func(tx *Tx) error {
		return func(tx *Tx) error { _, err := tx.ResumeAccount(account, id, reason); return err }
	}
	before := everything(s.View())
	for _, other := range []func(tx *Tx) error{resume("b", "h1", "x"), resume("a", "h2", "x"), resume("a", "", "x")} {
		refused(t, s.Update(t.Context(), other), refusal.CodeAccountHold)
	}
	if got := everything(s.View()); got != before {
		t.Error("a refusal changed something")
	}
	update(t, s, resume("a", "h1", "waited long enough"))
	resumed := everything(s.View())
	update(t, s, resume("a", "h1", "waited long enough"))
	if got := everything(s.View()); got != resumed {
		t.Errorf("the same again changed something:\n%s\n%s", resumed, got)
	}
	refused(t, s.Update(t.Context(), resume("a", "h1", "another reason")), refusal.CodeAccountHold)
	if h := s.View().AccountHold("a"); h.Active() || h.Resolution != "waited long enough" || h.ResolvedAt == nil || *h.Until != 99 {
		t.Errorf("got %+v", h)
	}
	// What is observed later has an id of its own, and the old one ends it no more.
	update(t, s, func(tx *Tx) error {
		return tx.HoldAccount(AccountHold{Account: "a", ID: "h3", Kind: "quota_exhausted", Status: "resolved", Resolution: "left over"})
	})
	refused(t, s.Update(t.Context(), resume("a", "h1", "waited long enough")), refusal.CodeAccountHold)
	closeStore(t, s)
	v, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if h := v.AccountHold("a"); !h.Active() || h.Resolution != "" || len(v.AccountHolds()) != 1 {
		t.Errorf("got %+v", h)
	}
}

// The original's holds, as it writes them, come along with everything in them.
func TestTheOriginalsAccountHoldsAreTakenOver(t *testing.T) {
	const holds = `{"local":{"account":"local","id":"a38fe5cbc231401fbb3c3036a181ccf3","kind":"rate_limit","observed_at":1796070535.1012752,` +
		`"rpc_code":429,"source_run":"aa8aad614a79496a9f9ac9294509a5a2","status":"active","until":1796070565.1012752},` +
		`"spent":{"account":"spent","from_tomorrow":[1],"id":"a6521601df244c22a1afd6379789a7dc","kind":"quota_exhausted","observed_at":1796070538.5746863,` +
		`"resolution":"bought more","resolved_at":1796070555.9921956,"rpc_code":402,"source_run":"79dd7d0b3dee4bb8861381ce8498826b","status":"resolved","until":null}}`
	state := func(holds string) string {
		return `{"account_holds":` + holds + `,"events":[],"paused":false,"project_id":"0123456789abcdef0123456789abcdef","results":{},"runs":{},"version":1}`
	}
	write := func(t *testing.T, holds string) string {
		dir := storeDir(t)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte(state(holds)), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	s := openStore(t, options(write(t, holds), nil))
	if h := s.View().AccountHold("local"); h == nil || !h.Active() || *h.Until != 1796070565.1012752 {
		t.Errorf("got %+v", h)
	}
	if h := s.View().AccountHold("spent"); h == nil || h.Active() || h.Until != nil {
		t.Errorf("got %+v", h)
	}
	if got := string(s.View().Document()); !strings.Contains(got, `"account_holds":`+holds) {
		t.Errorf("got %s", got)
	}
	closeStore(t, s)
	for _, bad := range []string{
		strings.Replace(holds, `"account":"local"`, `"account":"other"`, 1), strings.Replace(holds, `"active"`, `"perhaps"`, 1),
		strings.Replace(holds, `1796070565.1012752`, `"soon"`, 1), strings.Replace(holds, `"a38fe5cbc231401fbb3c3036a181ccf3"`, `""`, 1),
	} {
		dir := write(t, bad)
		_, err := Open(t.Context(), options(dir, nil))
		if r, ok := refusal.Find(err); !ok || r.Code != refusal.CodeStoreMalformed || !strings.Contains(r.What, "account_holds.local") {
			t.Errorf("%s: got %v", bad, err)
		}
		if after, err := os.ReadFile(filepath.Join(dir, "state.json")); err != nil || string(after) != state(bad) {
			t.Errorf("the refused store was touched: %v", err)
		}
	}
}
