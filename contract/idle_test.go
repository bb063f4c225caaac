package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"greatminds/contract"
)

// The idle limit is ours alone: a binding without it keeps the original's fingerprint, one with it
// has its own, shows it, and is read back from what was pinned.
func TestTheIdleLimitCountsOnlyWhereItIsSet(t *testing.T) {
	without, with := parsed(t, fmt.Sprintf(root, "", "")), parsed(t, withBindingField("idle_timeout_seconds: 1799"))
	if strings.Contains(string(without.Canonical()), "idle") || without.Bindings[0].IdleTimeoutSeconds != nil {
		t.Errorf("an idle limit that nobody set: %s", without.Canonical())
	}
	if !strings.Contains(string(with.Canonical()), `"idle_timeout_seconds":1799`) ||
		!strings.Contains(string(with.Document("f", contract.EmbeddedSchema())), `"idle_timeout_seconds": 1799`) {
		t.Errorf("the limit is not shown: %s", with.Canonical())
	}
	if with.SHA256() == without.SHA256() || with.Bindings[0].SHA256() == without.Bindings[0].SHA256() || with.Agents[0].SHA256() != without.Agents[0].SHA256() {
		t.Error("the fingerprints do not tell the two apart where they differ")
	}
	for _, c := range []*contract.Contract{without, with} {
		pinned, err := contract.FromCanonical(c.Canonical())
		if err != nil {
			t.Fatal(err)
		}
		if pinned.SHA256() != c.SHA256() {
			t.Errorf("read back it is %s", pinned.Canonical())
		}
	}
}
