package explore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A start tells of what is not as it should be, and goes on.
func TestAStartTellsOfABrokenPromise(t *testing.T) {
	w := newWorld(t)
	research(w)
	nothing := func(*life) error { return nil }
	must(t, w.live(newAgents(), w.options(nil), nil, nothing))
	if said := w.log.String(); strings.Contains(said, "not as it should be") {
		t.Fatalf("without a fault: %s", said)
	}
	text := w.read(".greatminds/feature_dev/" + task0 + ".yaml")
	must(t, os.WriteFile(filepath.Join(w.root, ".greatminds/feature_test/"+task0+".yaml"), []byte(text), 0o644))
	must(t, w.live(newAgents(), w.options(nil), nil, nothing))
	if said := w.log.String(); !strings.Contains(said, "code=task_in_two_queues") || !strings.Contains(said, "remedy=") {
		t.Errorf("the start said %s", said)
	}
}

// Remedies are held against the real command line.
func TestOnlyCommandsOfOursAreKnown(t *testing.T) {
	for line, want := range map[string]bool{"greatminds run retry": true, "greatminds run retry tries": true, "greatminds run repair": true, "greatminds plan": true,
		"greatminds task show": true, "greatminds run": false, "greatminds wake-check": false, "greatminds run undo": false} {
		if got := command(line); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}
