package supervisor

import (
	"testing"

	"greatminds/runstore"
)

// An agent that asks and takes back, over and over, fills neither the store with questions that nobody
// could have answered, nor the events with them: those of other runs stay.
func TestWithdrawnQuestionsDoNotFillTheRecord(t *testing.T) {
	t.Parallel()
	const times = 600
	h := newHouse(t, plan{root: "max_runtime_events: 1000\n", binding: ", permission: ask", steps: `{"handshake":{}},{"prompt":"p"},{"repeat":600,"steps":[{"ask":"q","id":"q-${n}"},{"sleep_ms":5},` +
		`{"notify":"$/cancel_request","params":{"requestId":"q-${n}"}},{"await":"q","within_ms":60000}]},` + noChange + `{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	must(t, h.once())
	v := h.read()
	r := last(v)
	if r.State != runstore.Completed || r.Reason != turnEnded {
		t.Errorf("the run is %s (%s)", r.State, r.Reason)
	}
	if n := len(v.PermissionsOfRun(r.ID)); n == 0 || n > times/2 {
		t.Errorf("%d questions are on record", n)
	}
	if e, _ := events(v, "claimed"); e == nil {
		t.Error("the run's claim has left the events")
	}
	if counts(t, r)["rejected_requests"] == 0 {
		t.Error("the outcome does not say that requests were refused")
	}
}
