package supervisor

import (
	"encoding/json"
	"testing"
	"time"

	"greatminds/runstore"
)

const idleIn2 = ", idle_timeout_seconds: 2, timeout_seconds: 60"

// idled wants the newest run to have ended for its agent's silence, and returns it.
func (h *house) idled() *runstore.Run {
	h.t.Helper()
	r := h.inState(runstore.Failed)
	var idle struct {
		IdleSeconds    float64  `json:"idle_seconds"`
		LastActivityAt *float64 `json:"last_activity_at"`
	}
	must(h.t, json.Unmarshal(r.Outcome.Extra["idle"], &idle))
	if r.Reason != idleTimeout || idle.IdleSeconds != 2 || (idle.LastActivityAt == nil) != (r.Outcome.LastActivityAt == nil) || !*r.Outcome.PromptStarted {
		h.t.Errorf("got %s (%s), outcome %+v, idle %+v", r.State, r.Reason, r.Outcome, idle)
	}
	return r
}

// An agent that says nothing is asked to stop in its own protocol, its run waits for a person, and
// the next is not.
func TestASilentAgentEndsItsTurn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"expect":"session/cancel","within_ms":30000},{"reply":"p","result":{"stopReason":"cancelled"}}`, binding: idleIn2})
	h.task("feature_dev", taskID)
	h.start()
	r := h.idled()
	if took := r.Timings["cleanup_complete"] - r.Timings["first_prompt_activity"]; took < 2 || took > 20 {
		t.Errorf("it took %.1f s", took)
	}
	if a := h.document().Assignments[0]; a.Reason != "revision_already_attempted" || a.Remedy != "greatminds run retry "+string(r.ID) || a.What == "" {
		t.Errorf("got %+v", a)
	}
	must(t, h.end())
	must(t, h.once())
	if n := len(h.read().Runs()); n != 1 {
		t.Errorf("%d runs after a restart", n)
	}
	h.script(talking + `{"end_turn":"p"}`)
	h.start()
	must(t, h.operator("run.retry", map[string]any{"run_id": r.ID}))
	h.until("the operator's attempt is over", func(v *runstore.View) bool { return len(v.Runs()) == 2 && last(v).State == runstore.Completed })
}

// An agent that has never said anything, and one that does not hear session/cancel.
func TestADeafAgentEndsItsTurnToo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: `{"handshake":{}},{"prompt":"p"},{"hang":true}`, binding: idleIn2})
	h.task("feature_dev", taskID)
	h.start()
	h.idled()
}

// Words of every kind are activity: updates, requests that are refused, extension messages.
func TestAnAgentThatSaysAnythingIsNotIdle(t *testing.T) {
	t.Parallel()
	for name, word := range map[string]string{
		"update": `{"say":"still at it"}`, "extension": `{"notify":"_vendor/retrying","params":{}}`,
		"request": `{"request":"fs/read_text_file","id":"r${n}","params":{"path":"x"}}`, "unknown update": `{"update":{"sessionUpdate":"from_tomorrow"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: talking + `{"repeat":7,"steps":[{"sleep_ms":600},` + word + `]},{"end_turn":"p"}`, binding: idleIn2})
			h.task("feature_dev", taskID)
			h.start()
			if r := h.inState(runstore.Completed); r.Outcome.Extra["idle"] != nil {
				t.Errorf("got %+v", r.Outcome)
			}
		})
	}
}

// The time of a question and of a configured command is not the agent's.
func TestAnAgentThatWaitsForSomebodyIsNotIdle(t *testing.T) {
	t.Parallel()
	t.Run("question", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t, plan{steps: asking, binding: idleIn2})
		h.task("feature_dev", taskID)
		h.start()
		h.asked()
		h.pass(3500 * time.Millisecond)
		h.answer()
		h.inState(runstore.Completed)
	})
	t.Run("silent after its answer", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t, plan{steps: `{"handshake":{}},{"prompt":"p"},{"ask":"q"},{"await":"q","within_ms":60000},{"hang":true}`, binding: idleIn2})
		h.task("feature_dev", taskID)
		h.start()
		h.asked()
		h.answer()
		h.idled()
	})
	t.Run("command", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t, plan{steps: talking + `{"cli":["run","command","slow","--request-id","one","--wait","60"]},{"end_turn":"p"}`,
			commands: "commands: {slow: {argv: [sleep, \"4\"], roles: [DEVELOPER]}}\n", binding: idleIn2})
		h.task("feature_dev", taskID)
		h.start()
		r := h.inState(runstore.Completed)
		if c := h.d.store.View().Command("one"); c == nil || c.Status != "succeeded" || *c.FinishedAt-*c.StartedAt < 4 || r.Reason != turnEnded {
			t.Errorf("got command %+v of %s", c, r.Reason)
		}
	})
}

// A wall clock that is set ends no turn and prolongs none.
func TestAClockThatIsSetEndsNoTurn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: waiting, binding: ", idle_timeout_seconds: 30"})
	h.task("feature_dev", taskID)
	h.start()
	h.prompted()
	for _, by := range []time.Duration{24 * time.Hour, -48 * time.Hour} {
		h.shift.Add(int64(by))
		h.pass(300 * time.Millisecond)
	}
	h.release()
	if r := h.inState(runstore.Completed); r.Reason != turnEnded {
		t.Errorf("got %s", r.Reason)
	}
}

// A decision that was received before the silence counts.
func TestASilentAgentsDecisionIsApplied(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + noChange + `{"hang":true}`, binding: idleIn2})
	h.task("feature_dev", taskID)
	h.start()
	r := h.idled()
	h.until("the decision is applied", func(v *runstore.View) bool { res := v.ResultOfRun(r.ID); return res != nil && res.Status == "applied" })
}
