package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/runstore"
)

// E-650: whoever reads events is told where some are missing, and what shows how things stand.
func TestAGapInTheEventsIsToldOnATerminal(t *testing.T) {
	root := projectWithATask(t)
	p, err := contract.OpenProject(root)
	if err != nil {
		t.Fatal(err)
	}
	store, err := runstore.Open(t.Context(), runstore.Options{Dir: p.StoreDir(), Disk: durable.NewDisk(nil), Now: time.Now, MaxEvents: 100})
	if err != nil {
		t.Fatal(err)
	}
	err = store.Update(t.Context(), func(tx *runstore.Tx) error {
		for range 150 {
			tx.Emit("tick", "", nil)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	events := func(terminal bool, args ...string) (stdout, stderr string) {
		var out, err bytes.Buffer
		w := world(&out, &err, append([]string{"run", "events"}, args...)...)
		w.Cwd, w.Terminal = root, terminal
		if status := Greatminds(t.Context(), w); status != 0 {
			t.Fatalf("exit %d: %s", status, err.String())
		}
		return out.String(), err.String()
	}
	stdout, stderr := events(true, "--limit", "2")
	if !strings.Contains(stderr, "note: events up to 72 are not kept any more; `greatminds run status` shows how things stand") {
		t.Errorf("got %q", stderr)
	}
	if lines := strings.Split(strings.TrimSpace(stdout), "\n"); len(lines) != 3 || !strings.Contains(lines[0], `"kind":"events_gap"`) {
		t.Errorf("got %s", stdout)
	}
	if _, stderr = events(false, "--limit", "2"); stderr != "" {
		t.Errorf("into a pipe: %q", stderr)
	}
	if _, stderr = events(true, "--after", "72"); stderr != "" {
		t.Errorf("where nothing is missing: %q", stderr)
	}
}
