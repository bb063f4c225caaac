package contract_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// refusedWith checks the code and that the refusal, its reasons and remedies hold these words.
func refusedWith(t *testing.T, err error, code refusal.Code, words ...string) {
	t.Helper()
	r, ok := refusal.Find(err)
	if !ok || r.Code != code {
		t.Fatalf("got %v, want a refusal with code %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(r.Error()+"\n"+r.Remedy, w) {
			t.Errorf("refusal\n%s\nwith remedy %q does not say %q", r.Error(), r.Remedy, w)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func parsed(t *testing.T, text string) *contract.Contract {
	t.Helper()
	c, err := contract.Parse("c.yaml", []byte(text), contract.EmbeddedSchema())
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return c
}

func parseError(t *testing.T, text string) error {
	t.Helper()
	c, err := contract.Parse("c.yaml", []byte(text), contract.EmbeddedSchema())
	if err == nil {
		t.Fatalf("accepted:\n%s\nas %s", text, c.Canonical())
	}
	return err
}
