package supervisor

import (
	"strings"
	"testing"

	"greatminds/runstore"
)

// What only we note of a run, its cause in words and what the guard left out, stands in the outcome of
// the run that has ended, in its event, and in the words of the held task.
func TestAnEndedRunKeepsItsCauseAndCounts(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: `{"raw":"no protocol\n"},` + talking + `{"end_turn":"p"}`, binding: ", mode: plan"})
	h.task("feature_dev", taskID)
	must(t, h.once())
	v := h.read()
	r := last(v)
	if r.State != runstore.Failed || r.Reason != configurationError {
		t.Fatalf("got %s (%s)", r.State, r.Reason)
	}
	what, counts := string(r.Outcome.Extra["error_what"]), string(r.Outcome.Extra["protocol_counts"])
	if !strings.Contains(what, "plan") || !strings.Contains(counts, `"garbage_lines":1`) {
		t.Errorf("the outcome says %s and %s", what, counts)
	}
	if e, _ := events(v, "failed"); e == nil || !strings.Contains(string(e.Data), what) {
		t.Errorf("the event says %+v", e)
	}
	h.open()
	a := h.document().Assignments[0]
	h.shut()
	if !strings.Contains(a.What, "no option of category mode") {
		t.Errorf("held with %q", a.What)
	}
}
