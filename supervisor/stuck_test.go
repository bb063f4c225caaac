package supervisor

import (
	"os"
	"strings"
	"testing"
	"time"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
	"greatminds/runstore"
)

const noChange = `{"cli":["run","submit","--json","{\"decision\":\"no_change\",\"payload\":{}}"]},`

// journalWrites matches what every commit of the store needs.
func journalWrites(s durable.Step) bool {
	return s.Op == durable.OpWrite && strings.HasSuffix(s.Path, "journal.jsonl")
}

// A result that waits to be tried again, and is then given up, must not keep the loop awake.
func TestAResultThatWasGivenUpLeavesNothingToWaitFor(t *testing.T) {
	h := newHouse(t, plan{steps: talking + noChange + `{"wait_file":"go","within_ms":60000},{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	h.start()
	h.until("the decision is received", func(v *runstore.View) bool { return len(v.OpenResults()) == 1 })
	h.task("feature_test", taskID) // which of the two is meant nobody can tell
	h.release()
	v := h.until("the result is held", func(v *runstore.View) bool {
		return len(v.OpenResults()) == 1 && v.OpenResults()[0].Hold() != nil
	})
	must(t, h.operator("run.repair", map[string]any{"operation_id": string(v.OpenResults()[0].ID()), "abandon": true, "reason": "test"}))
	must(t, os.Remove(h.file(".greatminds/feature_test/"+taskID+".yaml")))
	h.pass(3 * time.Second) // past the time at which it was to be tried again
	h.rests(t, 2*time.Second)
}

// A full disk is waited out: nothing spins, nothing ends the daemon, and what was to be recorded
// is recorded once there is room.
func TestAFullDiskIsWaitedOut(t *testing.T) {
	h := newHouse(t, plan{steps: talking + noChange + `{"wait_file":"go","within_ms":60000},{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	h.start()
	h.until("the decision is received", func(v *runstore.View) bool { return len(v.OpenResults()) == 1 })
	h.disk.Plan(faultdisk.On(journalWrites, faultdisk.FailFrom(1, errNoSpace)))
	h.release()
	h.pass(3 * time.Second)
	looks := h.looks.Load()
	h.pass(2 * time.Second)
	if n := h.looks.Load() - looks; n > 100 {
		t.Errorf("the clock was read %d times in 2 s on a full disk", n)
	}
	h.disk.Heal()
	v := h.until("the result is applied", func(v *runstore.View) bool { return len(v.OpenResults()) == 0 })
	if r := run0(v); r.State != runstore.Completed || r.Outcome == nil || *r.Outcome.PromptStarted != true {
		t.Errorf("got run %s (%s), outcome %+v", r.State, r.Reason, r.Outcome)
	}
	must(t, h.end())
}
