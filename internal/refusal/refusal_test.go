package refusal_test

import (
	"errors"
	"fmt"
	"testing"

	"greatminds/internal/refusal"
)

func TestEveryListedCodeHasStatusAndMeaning(t *testing.T) {
	all := refusal.All()
	if len(all) < 5 {
		t.Fatalf("got %d listed codes, want at least the general ones", len(all))
	}
	for _, e := range all {
		if e.Status < refusal.Failed || e.Status > refusal.Storage || e.Meaning == "" {
			t.Errorf("code %s: status %d, meaning %q", e.Code, e.Status, e.Meaning)
		}
	}
}

func TestStatusFollowsTheCodeThroughWrapping(t *testing.T) {
	cause := errors.New("cause")
	r := refusal.New(refusal.CodeOperatorOnly, "ask the operator", "run %s", "r1")
	r.Err = cause
	found, ok := refusal.Find(fmt.Errorf("op: %w", r))
	if !ok || found.Status() != refusal.Forbidden {
		t.Fatalf("got %v %v, want the refusal with status 3", found, ok)
	}
	if !errors.Is(found, cause) {
		t.Fatal("the cause is lost")
	}
	if got := (&refusal.Refusal{Code: "nobody_lists_this"}).Status(); got != refusal.Failed {
		t.Fatalf("unlisted code: got status %d, want 1", got)
	}
}

func TestWireKeepsEveryMember(t *testing.T) {
	r := &refusal.Refusal{Code: refusal.CodeUsage, What: "a", Remedy: "b",
		Reasons: []refusal.Reason{{Code: "x", Place: "f:1:2", What: "c", Remedy: "d"}}}
	back := refusal.FromWire(refusal.ToWire(r))
	if back.Error() != r.Error() || back.Remedy != r.Remedy || back.Status() != r.Status() {
		t.Fatalf("got %#v, want %#v", back, r)
	}
	if w := refusal.ToWire(errors.New("plain")); w.Code != refusal.CodeFailed || w.What != "plain" {
		t.Fatalf("plain error became %#v", w)
	}
}
