package supervisor

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"greatminds/runstore"
)

// allStages are the stages of a normal run, in the order in which they come.
var allStages = []string{"workspace_ready", "context_ready", "process_recorded", "protocol_ready", "session_ready",
	"first_prompt_started", "first_protocol_activity", "first_prompt_activity", "cleanup_complete"}

// E-580 E-585 E-586 E-590 E-591 E-592
func TestARunTellsWhenItCameToEachStage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`})
	h.start()
	must(t, h.operator("run.pause", nil))
	h.task("feature_dev", taskID)
	h.hears("reason=dispatch_paused")
	h.pass(2 * time.Second) // in the queue, which is none of the run's time
	must(t, h.operator("run.resume", nil))
	r := h.inState(runstore.Completed)
	before := 0.0
	for _, stage := range allStages {
		at, seen := r.Timings[stage]
		if !seen || at < before {
			t.Errorf("%s is at %v, after %v: %v", stage, at, before, r.Timings)
		}
		before = at
	}
	if r.Timings["workspace_ready"] > 1.5 || len(r.Timings) != len(allStages) {
		t.Errorf("got %v", r.Timings)
	}
	if took := *r.Outcome.ElapsedSeconds; took < r.Timings["cleanup_complete"] {
		t.Errorf("the run took %v s, its clean-up ended after %v", took, r.Timings["cleanup_complete"])
	}
	if q := r.QueueObservation; q == nil || q.WaitSeconds == nil || *q.WaitSeconds < 1.5 || q.Scope != "observed_revision_wait" {
		t.Errorf("got queue observation %+v", q)
	}
	if n := count(h.d.store.View(), "run_stage_observed"); n != len(allStages) {
		t.Errorf("%d events of %d stages", n, len(allStages))
	}
	_, recorded := events(h.d.store.View(), "process_recorded")
	_, ready := events(h.d.store.View(), "workspace_ready")
	if recorded == 0 || ready == 0 || ready > recorded {
		t.Errorf("the process was recorded by event %d, the workspace ready by %d", recorded, ready)
	}
}

// events returns the first event of a kind and its sequence.
func events(v *runstore.View, kind string) (*runstore.Event, uint64) {
	for _, e := range v.Events(0, 10000) {
		if e.Kind == kind {
			return e, e.Sequence
		}
	}
	return nil, 0
}

// E-581
func TestAClockThatIsSetBackChangesNoStage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: waiting})
	h.task("feature_dev", taskID)
	h.start()
	h.prompted()
	h.shift.Store(int64(-time.Hour))
	h.release()
	r := h.inState(runstore.Completed)
	if r.Timings["cleanup_complete"] < r.Timings["first_prompt_activity"] || *r.Outcome.ElapsedSeconds <= 0 || *r.Outcome.ElapsedSeconds > 60 {
		t.Errorf("got %v, took %v", r.Timings, *r.Outcome.ElapsedSeconds)
	}
}

// E-587 E-588 E-589
func TestAStageThatWasNotReachedIsAbsent(t *testing.T) {
	const load = `{"expect":"initialize"},{"reply":"initialize","result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}},{"expect":"session/load"},` +
		`{"say":"what was said before"},{"reply":"session/load","result":{}},{"prompt":"p"},{"end_turn":"p"}`
	for _, c := range []struct {
		name     string
		plan     plan
		reached  string // the last of allStages that is there
		reason   string
		activity bool // something came before the prompt
	}{
		{"E-587 another version", plan{steps: `{"handshake":{"protocolVersion":9}}`}, "process_recorded", protocolError, false},
		{"E-587 a model that is not offered", plan{steps: `{"handshake":{}},{"until_eof":true}`, binding: ", model: nobody-has-it"}, "protocol_ready", configurationError, false},
		{"E-588 no input left", plan{steps: `{"handshake":{}},{"until_eof":true}`, binding: ", max_session_input_bytes: 10"}, "session_ready", inputBudget, false},
		{"E-589 only history", plan{steps: load, session: "resume-if-compatible"}, "first_protocol_activity", turnEnded, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, c.plan)
			h.task("feature_dev", taskID)
			if c.activity {
				h.resumes(load)
			}
			must(t, h.once())
			r := last(h.read())
			if r.Reason != c.reason {
				t.Fatalf("got %s (%s)", r.State, r.Reason)
			}
			there := true
			for _, stage := range allStages[:len(allStages)-1] {
				if _, seen := r.Timings[stage]; seen != there {
					t.Errorf("%s is there: %v, want %v (%v)", stage, seen, there, r.Timings)
				}
				there = there && stage != c.reached
			}
			if *r.Outcome.PrePromptActivity != c.activity {
				t.Errorf("activity before the prompt: %v", *r.Outcome.PrePromptActivity)
			}
		})
	}
}

// resumes lets a first run leave a session, and authorizes a second one that plays steps.
func (h *house) resumes(steps string) {
	h.t.Helper()
	h.script(`{"handshake":{"agentCapabilities":{"loadSession":true}}},{"prompt":"p"},{"say":"a word"},{"end_turn":"p"}`)
	must(h.t, h.once())
	h.again()
	h.script(steps)
}

// again authorizes one more attempt after the newest run, while no daemon runs.
func (h *house) again() {
	h.t.Helper()
	h.open()
	must(h.t, h.operator("run.retry", map[string]any{"run_id": last(h.d.store.View()).ID}))
	h.shut()
}

// E-596 E-604
func TestWhatIsMeasuredOfQueueAndValidation(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"cli":["run","command","slow","--request-id","one","--wait","20"]},` + noChange + `{"end_turn":"p"}`,
		commands: "commands: {slow: {argv: [sleep, \"1\"], roles: [DEVELOPER]}}\n"})
	h.task("feature_dev", taskID) // its opened_at is long ago
	old := time.Now().Add(-24 * time.Hour)
	must(t, os.Chtimes(h.file(".greatminds/feature_dev/"+taskID+".yaml"), old, old))
	must(t, h.once())
	v := h.read()
	r := last(v)
	if q := r.QueueObservation; q == nil || *q.WaitSeconds > 60 {
		t.Errorf("got %+v", q)
	}
	res := v.ResultOfRun(r.ID)
	if res == nil || res.Validation == nil || *res.Validation.Seconds > 0.9 || *r.Outcome.ElapsedSeconds < 1 {
		raw, _ := json.Marshal(res) // only for the message
		t.Errorf("got %s after %v s", raw, *r.Outcome.ElapsedSeconds)
	}
}
