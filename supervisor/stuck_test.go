package supervisor

import (
	"os"
	"strings"
	"testing"
	"time"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

const noChange = `{"cli":["run","submit","--json","{\"decision\":\"no_change\",\"payload\":{}}"]},`

// journalWrites matches what every commit of the store needs.
func journalWrites(s durable.Step) bool {
	return s.Op == durable.OpWrite && strings.HasSuffix(s.Path, "journal.jsonl")
}

// A result that waits to be tried again, and is then given up, must not keep the loop awake.
func TestAResultThatWasGivenUpLeavesNothingToWaitFor(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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

// What would be claimed if there were room says so, and goes on by itself.
func TestAFullDiskIsToldOfWhatWaitsForIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: fine})
	h.start()
	h.hears("coordd ready")
	h.disk.Plan(faultdisk.On(journalWrites, faultdisk.FailFrom(1, errNoSpace)))
	h.task("feature_dev", taskID)
	h.hears("could not be looked at")
	a := judgeIn(h.d.told(), h.d.store.View(), h.found()).Assignments[0]
	if a.Reason != "store_write_failed" || !strings.Contains(a.What, errNoSpace.Error()) || !strings.Contains(a.Remedy, "free space") || a.NextAt == nil {
		t.Errorf("got %+v", a)
	}
	h.disk.Heal()
	h.inState(runstore.Completed)
	if a := judgeIn(h.d.told(), h.d.store.View(), h.found()).Assignments[0]; a.Reason != "no_progress_limit" {
		t.Errorf("then %+v", a)
	}
}

// The same for a run whose end finds no room: it stays active, and its task says what that waits for.
func TestAnEndThatFindsNoRoomSaysWhatHelps(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: waiting})
	h.task("feature_dev", taskID)
	h.start()
	h.prompted()
	h.disk.Plan(faultdisk.On(journalWrites, faultdisk.FailFrom(1, errNoSpace)))
	h.release()
	h.hears("run not ended")
	a := h.assigned(taskID)
	if a.Reason != endUnrecorded || !strings.Contains(a.What, errNoSpace.Error()) || a.Remedy != mendDisk || a.NextAt == nil {
		t.Errorf("got %+v", a)
	}
	h.disk.Heal()
	h.inState(runstore.Completed)
}

// found are the tasks as they stand now.
func (h *house) found() []tasks.Found {
	h.t.Helper()
	found, err := h.d.tree.Discover()
	must(h.t, err)
	return found
}

// A store that can be written no more ends the daemon, which leaves nothing running; the next one
// goes on from what was acknowledged. E-167, E-240
func TestAStoreThatFailsEndsTheDaemonAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]func(h *house){
		"in the turn":         func(h *house) { h.prompted() },
		"at the end of a run": func(h *house) { h.prompted(); h.release() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, plan{steps: waiting})
			h.task("feature_dev", taskID)
			h.start()
			when(h)
			h.disk.Plan(faultdisk.On(func(s durable.Step) bool { return strings.Contains(s.Path, "/.runtime/") }, faultdisk.FailFrom(1, errNoSpace)))
			err := h.operator("run.pause", nil)
			if err == nil {
				t.Fatal("a store that cannot be written took a pause")
			}
			select {
			case <-h.ended:
			case <-h.limit().Done():
				t.Fatal("the daemon goes on without a store")
			}
			if r, ok := refusal.Find(h.end()); !ok || r.Code != refusal.CodeStoreFailed || r.Status() != refusal.Storage {
				t.Errorf("the daemon ended with %v", h.err)
			}
			h.nobody()
			h.disk.Heal()
			must(t, h.once())
			h.atRest()
			if r := last(h.read()); !r.State.Terminal() {
				t.Errorf("after the restart the run is %s (%s)", r.State, r.Reason)
			}
		})
	}
}

// A claim, an observation or an end that finds no room must not cost the other agents their turn.
func TestADaemonLivesThroughAFullDiskAtEachCommit(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		h := newHouse(t, plan{steps: talking + noChange + `{"end_turn":"p"}`})
		h.task("feature_dev", taskID)
		h.open()
		h.disk.Plan(faultdisk.On(journalWrites, faultdisk.FailAt(n, errNoSpace)))
		h.run()
		v := h.until("the run has ended", func(v *runstore.View) bool {
			r := last(v)
			return r != nil && r.State.Terminal() && len(v.OpenResults()) == 0
		})
		h.left(last(v).ID)
		must(t, h.end())
		h.atRest()
		if !h.disk.Reached() {
			t.Logf("%d commits were made to fail", n-1)
			return
		}
	}
}

// E-053 E-054
func TestAQuestionThatNobodyAnswersLeavesAHold(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: asking, binding: ", timeout_seconds: 5"})
	h.task("feature_dev", taskID)
	h.start()
	h.asked()
	h.until("the question is over", func(v *runstore.View) bool { return len(v.OpenPermissions()) == 0 && last(v).Process == nil })
	h.left(last(h.d.store.View()).ID)
	if r := last(h.d.store.View()); r.State != runstore.WaitingInput || r.Reason != permissionRequired {
		t.Errorf("got %s (%s)", r.State, r.Reason)
	}
	h.sane()
}

// E-261
func TestACrashedTurnShowsWhatWasCountedOfIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: `{"handshake":{}},{"prompt":"p"},{"repeat":2,"steps":[{"say":"word"}]},` +
		`{"update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"secret title","kind":"edit","status":"pending"}},{"wait_file":"go","within_ms":60000},{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	h.start()
	v := h.until("the prompt is sent", func(v *runstore.View) bool {
		r := last(v)
		return r != nil && r.Outcome != nil && *r.Outcome.PromptStarted
	})
	if o := last(v).Outcome; *o.Updates != 0 || *o.InputBytesReserved == 0 || o.SessionStrategy != "new_context" {
		t.Errorf("at its start the turn shows %+v", o)
	}
	h.until("the turn is sampled", func(v *runstore.View) bool { return *last(v).Outcome.Updates == 3 })
	h.disk.Crash() // nothing more gets through
	h.halt()
	<-h.ended
	h.d = nil
	h.o.Seam = nil
	must(t, h.once())
	r := last(h.read())
	if r.State != runstore.Interrupted || r.Reason != "supervisor_restart" || r.Outcome == nil || *r.Outcome.Updates != 3 ||
		r.Outcome.LastActivityAt == nil || r.Outcome.ElapsedSeconds != nil || r.Timings["cleanup_complete"] != 0 {
		t.Errorf("got %s (%s), outcome %+v", r.State, r.Reason, r.Outcome)
	}
	if p := string(r.Protocol); !strings.Contains(p, `"kind":"edit"`) || !strings.Contains(p, "negotiated") || strings.Contains(p, "secret") {
		t.Errorf("got protocol record %s", p)
	}
}

// E-670
func TestATurnThatWasNotObservedIsNoCompletedTurn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	reached, let := h.holdAt("walk.first_prompt_activity")
	h.start()
	h.comes(reached)
	h.disk.Plan(faultdisk.On(journalWrites, faultdisk.FailAt(1, errNoSpace)))
	let()
	if r := h.inState(runstore.Failed); r.Reason != protocolError {
		t.Errorf("got %s (%s)", r.State, r.Reason)
	}
}

// A command's end that finds no room is recorded once there is some, in the run's own turn.
func TestACommandsEndIsRecordedOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"cli":["run","command","short","--request-id","one","--wait","20"]},{"end_turn":"p"}`,
		commands: "commands: {short: {argv: [sleep, \"1\"], roles: [DEVELOPER]}}\n"})
	h.task("feature_dev", taskID)
	h.start()
	h.until("the command runs", func(v *runstore.View) bool { c := v.Command("one"); return c != nil && c.Status == "running" })
	h.disk.Plan(faultdisk.On(journalWrites, faultdisk.FailFrom(1, errNoSpace)))
	h.pass(3 * time.Second)
	h.disk.Heal()
	h.inState(runstore.Completed)
	if c := h.d.store.View().Command("one"); c.Status != "succeeded" || c.Output == nil {
		t.Errorf("the command is %s (%s)", c.Status, c.Reason)
	}
}

// E-670
func TestAQuestionThatWasNotRecordedIsNoRefusal(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: asking})
	h.task("feature_dev", taskID)
	h.disk.Plan(faultdisk.On(func(s durable.Step) bool {
		return journalWrites(s) && strings.Contains(string(s.Data), `"permission_requested"`)
	}, faultdisk.FailAt(1, errNoSpace)))
	h.start()
	if r := h.inState(runstore.Failed); r.Reason != protocolError || r.Outcome.ErrorType != "RecordingError" {
		t.Errorf("got %s (%s), %+v", r.State, r.Reason, r.Outcome)
	}
	h.sane()
}
