package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/refusal"
	"greatminds/runstore"
)

const loaded = `{"expect":"initialize"},{"reply":"initialize","result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}},` +
	`{"expect":"session/load"},{"reply":"session/load","result":{}},{"prompt":"p"},`

// E-559
func TestInputLimitsArePositive(t *testing.T) {
	text := "version: 1\nagents: {a: {transport: acp, argv: [x], adapter_version: \"1\", harness_version: \"1\"}}\nbindings:\n  b: {role: DEVELOPER, agent: a%s}\n"
	for _, key := range []string{"max_prompt_bytes", "max_session_input_bytes"} {
		for _, value := range []string{"0", "-1", "1.5", "true", `"9"`} {
			_, err := contract.Parse("x", []byte(fmt.Sprintf(text, ", "+key+": "+value)), contract.EmbeddedSchema())
			if r, ok := refusal.Find(err); !ok || r.Status() != refusal.Invalid || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: %s: got %v", key, value, err)
			}
		}
	}
	c, err := contract.Parse("x", []byte(fmt.Sprintf(text, "")), contract.EmbeddedSchema())
	must(t, err)
	if b := c.Bindings[0]; b.MaxPromptBytes != 262144 || b.MaxSessionInputBytes != 1048576 {
		t.Errorf("got %d and %d by default", b.MaxPromptBytes, b.MaxSessionInputBytes)
	}
}

// budget is the outcome's input_budget.
func budget(t *testing.T, r *runstore.Run) map[string]any {
	t.Helper()
	var b map[string]any
	if r.Outcome == nil || len(r.Outcome.InputBudget) == 0 {
		t.Fatalf("run %s (%s) has no input_budget", r.State, r.Reason)
	}
	must(t, json.Unmarshal(r.Outcome.InputBudget, &b))
	return b
}

// prompts are the texts that the agent was sent, by launch.
func (h *house) prompts() []string {
	h.t.Helper()
	files, err := filepath.Glob(h.file("agent/prompt-*.txt"))
	must(h.t, err)
	var texts []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		must(h.t, err)
		texts = append(texts, string(text))
	}
	return texts
}

// edit changes the contract while no daemon runs.
func (h *house) edit(old, with string) {
	h.t.Helper()
	file := h.file("coordination/execution.yaml")
	text, err := os.ReadFile(file)
	must(h.t, err)
	if !strings.Contains(string(text), old) {
		h.t.Fatalf("the contract has no %q", old)
	}
	must(h.t, os.WriteFile(file, []byte(replace(string(text), old, with)), 0o600))
}

// E-560 E-561 E-563 E-572 E-576
func TestAPromptBeyondItsLimitCostsNoProcess(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`, binding: ", max_prompt_bytes: 200000"})
	h.task("feature_dev", taskID)
	must(t, h.once())
	n := len(h.prompts()[0])

	limit := func(n int) string { return fmt.Sprintf("max_prompt_bytes: %d", n) }
	h.edit(limit(200000), limit(n)) // the whole prompt, to the byte
	h.again()
	must(t, h.once())
	if r := last(h.read()); r.State != runstore.Completed || len(h.prompts()[1]) != n || *r.Outcome.ContextBytes != int64(n) {
		t.Fatalf("got %s (%s) with a prompt of %d bytes", r.State, r.Reason, len(h.prompts()[1]))
	}

	h.edit(limit(n), limit(n-1))
	h.again()
	must(t, h.once())
	must(t, h.once())
	v := h.read()
	r := last(v)
	b := budget(t, r)
	if r.State != runstore.Failed || r.Reason != inputBudget || r.Process != nil || b["budget"] != "prompt" || b["used_bytes"] != 0.0 ||
		b["limit_bytes"] != float64(n-1) || b["requested_bytes"] != float64(n) {
		t.Errorf("got %s (%s), process %v, budget %v", r.State, r.Reason, r.Process, b)
	}
	if len(v.Runs()) != 3 || len(h.prompts()) != 2 {
		t.Errorf("%d runs, %d prompts", len(v.Runs()), len(h.prompts()))
	}
}

// E-564 E-566 E-568 E-577 E-578 E-671
func TestASessionsInputIsCountedOverItsRuns(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{session: "resume-if-compatible"})
	h.task("feature_dev", taskID)
	// What the agent says counts for nothing.
	h.resumes(loaded + `{"repeat":50,"steps":[{"say":"` + strings.Repeat("word ", 2000) + `"}]},{"end_turn":"p"}`)
	must(t, h.once())
	first, second := run0(h.read()), last(h.read())
	texts := h.prompts()
	if len(texts) != 2 || !strings.Contains(texts[1], "cli_argv") || second.Outcome.SessionStrategy != "loaded" {
		t.Fatalf("got %d prompts, strategy %s", len(texts), second.Outcome.SessionStrategy)
	}
	one, two := int64(len(texts[0])), int64(len(texts[1]))
	for i, c := range []struct {
		o           *runstore.Outcome
		sent, total int64
	}{{first.Outcome, one, one}, {second.Outcome, two, one + two}} {
		if *c.o.ContextBytes != c.sent || *c.o.InputBytesReserved != c.sent || *c.o.SessionInputBytesReserved != c.total {
			t.Errorf("run %d: context %d, reserved %d, in all %d; sent %d, in all %d", i+1, *c.o.ContextBytes, *c.o.InputBytesReserved,
				*c.o.SessionInputBytesReserved, c.sent, c.total)
		}
	}
}

// E-565 E-569
func TestASendOfUnknownOutcomeKeepsItsDebit(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: replace(waiting, `{"handshake":{}}`, `{"handshake":{"agentCapabilities":{"loadSession":true}}}`), session: "resume-if-compatible"})
	h.task("feature_dev", taskID)
	h.start()
	sent := h.prompted()
	_, reserved := events(h.d.store.View(), "prompt_input_reserved")
	if reserved == 0 {
		t.Fatal("the prompt was sent without a reservation")
	}
	h.disk.Crash()
	h.halt()
	<-h.ended
	h.d, h.o.Seam = nil, nil
	n := int64(len(h.prompts()[0]))
	if o := sent.Outcome; *o.InputBytesReserved != n {
		t.Errorf("reserved %d of %d bytes", *o.InputBytesReserved, n)
	}
	h.script(loaded + `{"end_turn":"p"}`)
	must(t, h.once())
	h.again()
	must(t, h.once())
	if r := last(h.read()); r.State != runstore.Completed || *r.Outcome.SessionInputBytesReserved != n+*r.Outcome.InputBytesReserved {
		t.Fatalf("got %s (%s), %+v", r.State, r.Reason, r.Outcome)
	}
}

// E-571 E-572 E-576
func TestASessionThatIsFullTakesNoMore(t *testing.T) {
	t.Parallel()
	const limit = 20000
	h := newHouse(t, plan{session: "resume-if-compatible", binding: fmt.Sprintf(", max_session_input_bytes: %d", limit)})
	h.task("feature_dev", taskID)
	h.resumes(loaded + `{"end_turn":"p"}`)
	n := int64(len(h.prompts()[0]))
	sent := int64(1)
	for ; (sent+1)*n <= limit; sent++ {
		must(t, h.once())
		if r := last(h.read()); r.State != runstore.Completed || *r.Outcome.SessionInputBytesReserved != (sent+1)*n {
			t.Fatalf("prompt %d: got %s (%s), %+v", sent+1, r.State, r.Reason, r.Outcome)
		}
		h.again()
	}
	must(t, h.once())
	must(t, h.once())
	r := last(h.read())
	b := budget(t, r)
	if r.Reason != inputBudget || r.Process != nil || b["session_id"] != "sess-1" || b["budget"] != "session" || b["used_bytes"] != float64(sent*n) ||
		b["requested_bytes"] != float64(n) || b["limit_bytes"] != float64(limit) || int64(len(h.prompts())) != sent {
		t.Errorf("got %s (%s), process %v, budget %v after %d prompts", r.State, r.Reason, r.Process, b, len(h.prompts()))
	}

	h.edit("resume-if-compatible", "new") // nobody but the operator takes another session
	h.again()
	h.script(`{"handshake":{"sessionId":"sess-2"}},{"prompt":"p"},{"end_turn":"p"}`)
	must(t, h.once())
	if r := last(h.read()); r.State != runstore.Completed || *r.SessionID != "sess-2" || *r.Outcome.SessionInputBytesReserved != n {
		t.Errorf("got %s (%s), %+v", r.State, r.Reason, r.Outcome)
	}
}

// E-573
func TestASessionOfUnknownHistoryIsNotTakenForAnEmptyOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: loaded + `{"end_turn":"p"}`, session: "resume-if-compatible"})
	h.task("feature_dev", taskID)
	h.open()
	d := h.d
	task, err := d.tree.ReadCurrent(taskID)
	must(t, err)
	session := "sess-1"
	must(t, d.store.Update(t.Context(), func(tx *runstore.Tx) error {
		run, err := h.running(tx, task)
		if err != nil {
			return err
		}
		if err := tx.Transition(run.ID, runstore.NewID(), runstore.Completed, "turn_ended", nil); err != nil {
			return err
		}
		return tx.EditRun(run.ID, func(r *runstore.Run) { r.SessionID, r.RetryAuthorized = &session, true })
	}))
	h.shut()
	must(t, h.once())
	r := last(h.read())
	got := budget(t, r)
	if r.Reason != inputBudget || got["reason"] != "session_history_unknown" || got["used_bytes"] != nil || got["budget"] != "session" || len(h.prompts()) != 0 {
		t.Errorf("got %s (%s), budget %v, %d prompts", r.State, r.Reason, got, len(h.prompts()))
	}
}

// E-573: a daemon that dies between session and prompt has sent nothing, and its record says so. No
// agent has anything of such a session, so that the next run makes one of its own.
func TestASessionWithoutAPromptHasAKnownHistory(t *testing.T) {
	t.Parallel()
	for step := 1; ; step++ {
		h := newHouse(t, plan{steps: `{"handshake":{"agentCapabilities":{"loadSession":true}}},{"prompt":"p"},{"end_turn":"p"}`, session: "resume-if-compatible"})
		h.task("feature_dev", taskID)
		// The daemon dies at the nth step from the one after the write of the session to the write of the
		// prompt's reservation.
		var begun, over bool
		h.disk.Plan(faultdisk.On(func(s durable.Step) bool {
			here := begun && !over
			begun = begun || strings.Contains(string(s.Data), `"session_id":"sess-1"`)
			over = over || strings.Contains(string(s.Data), "prompt_input_reserved")
			return here
		}, faultdisk.CrashAt(step)))
		err := h.once()
		if !h.disk.Crashed() {
			must(t, err)
			if step < 3 {
				t.Fatalf("there are only %d steps between session and prompt", step-1)
			}
			return
		}
		h.o.Seam = nil
		steps, strategy := `{"handshake":{}},{"prompt":"p"},`, "new_context"
		if o := last(h.read()).Outcome; o != nil && *o.PromptStarted { // as far as the record says
			steps, strategy = loaded, "loaded"
		}
		h.script(steps + `{"end_turn":"p"}`)
		must(t, h.once())
		if r := last(h.read()); r.State == runstore.Interrupted {
			h.again()
			must(t, h.once())
		}
		if r := last(h.read()); r.State != runstore.Completed || r.Outcome.SessionStrategy != strategy {
			t.Errorf("died at step %d after the session: got %s (%s), %s, %s", step, r.State, r.Reason, r.Outcome.SessionStrategy, r.Outcome.InputBudget)
		}
	}
}

// E-579
func TestAReservationHoldsNoText(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	path := h.file(".greatminds/feature_dev/" + taskID + ".yaml")
	text, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, []byte(replace(string(text), "Sample task", "CANARY in the title")), 0o644))
	must(t, h.once())
	if !strings.Contains(h.prompts()[0], "CANARY") {
		t.Fatal("the title is not in the prompt")
	}
	v := h.read()
	e, _ := events(v, "prompt_input_reserved")
	if e == nil || !strings.Contains(string(e.Data), "requested_bytes") || !strings.Contains(string(e.Data), "request_id") {
		t.Errorf("got event %+v", e)
	}
	for _, e := range v.Events(0, 10000) {
		if strings.Contains(string(e.Data), "CANARY") {
			t.Errorf("event %s holds text of the prompt", e.Kind)
		}
	}
}

func replace(text, old, with string) string { return strings.Replace(text, old, with, 1) }
