package supervisor

import (
	"os"
	"sync"
	"testing"

	"greatminds/runstore"
	"greatminds/supervisor/activity"
)

// What a run's agent did is kept beside the record, and is there after a crash as far as it was written;
// the run itself does not need it.
func TestTheActivityOfARunIsKept(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"Read a","kind":"read","status":"completed"}},{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	must(t, h.once())
	r := last(h.read())
	d, err := activity.Read(h.file(".greatminds/.runtime"), string(r.ID))
	must(t, err)
	if d == nil || len(d.Items) != 3 || d.Items[0].Text != "at work" || d.Items[1].Title != "Read a" || d.Items[2].StopReason != "end_turn" {
		t.Fatalf("got %+v", d)
	}
	if r.State != runstore.Completed || r.Outcome.ActivityUnavailable != nil {
		t.Errorf("the run is %s, %v", r.State, r.Outcome.ActivityUnavailable)
	}
}

// A feed that cannot be kept fails no run; the outcome says that it is lacking.
func TestARunWithoutItsActivitySaysSo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`})
	must(t, os.MkdirAll(h.file(".greatminds/.runtime"), 0o700))
	must(t, os.WriteFile(h.file(".greatminds/.runtime/activity"), nil, 0o600)) // in the folder's place
	h.task("feature_dev", taskID)
	must(t, h.once())
	r := last(h.read())
	if r.State != runstore.Completed || r.Outcome.ActivityUnavailable == nil || !*r.Outcome.ActivityUnavailable {
		t.Errorf("the run is %s (%s), activity_unavailable %v", r.State, r.Reason, r.Outcome.ActivityUnavailable)
	}
	if !h.said("activity not kept") {
		t.Error("the log does not say why")
	}
}

// Watchers that never take their answers hold up neither the run nor each other.
func TestDeadWatchersHoldUpNobody(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"repeat":2000,"steps":[{"say":"word "}]},{"wait_file":"go","within_ms":60000},{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	h.start()
	r := h.prompted()
	var watchers sync.WaitGroup
	for range 20 { // each waits for news of what will never be
		watchers.Go(func() {
			args := map[string]any{"run_id": r.ID, "after": activity.Cursor{Sequence: 1 << 40}, "seen": "running  true", "wait_seconds": 60}
			if err := h.operator("run.watch", args); err != nil {
				t.Error(err)
			}
		})
	}
	must(t, os.WriteFile(h.file("agent/go-go"), nil, 0o600))
	if r := h.inState(runstore.Completed); *r.Outcome.Updates != 2001 {
		t.Errorf("%d updates", *r.Outcome.Updates)
	}
	watchers.Wait()
}
