package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"greatminds/internal/durable"
	"greatminds/internal/refusal"
	"greatminds/runstore"
)

// moment is a state in which a run stands when something is asked of it.
type moment struct {
	name string
	plan plan
	// reach brings a started daemon there.
	reach func(h *house)
	// rests says that the run has ended, or waits without a process.
	rests bool
}

const asking = `{"handshake":{}},{"prompt":"p"},{"ask":"q"},{"await":"q","within_ms":60000},{"end_turn":"p"}`

var moments = []moment{
	{name: "handshake", plan: plan{steps: `{"expect":"initialize"},{"hang":true}`}, reach: func(h *house) {
		h.until("the agent is started", func(v *runstore.View) bool { r := last(v); return r != nil && r.Process != nil })
	}},
	{name: "prompt", plan: plan{steps: waiting}, reach: func(h *house) { h.prompted() }},
	{name: "decided", plan: plan{steps: talking + noChange + `{"wait_file":"go","within_ms":60000},{"end_turn":"p"}`}, reach: func(h *house) {
		h.until("the decision is received", func(v *runstore.View) bool { return len(v.OpenResults()) == 1 })
	}},
	{name: "question", plan: plan{steps: asking}, reach: (*house).asked},
	{name: "answered by an agent that hangs", plan: plan{steps: strings.Replace(asking, `{"end_turn":"p"}`, `{"hang":true}`, 1)}, reach: func(h *house) {
		h.asked()
		h.answer()
		h.until("the answer is delivered", func(v *runstore.View) bool { return last(v).State == runstore.Running })
	}},
	{name: "command", plan: plan{steps: talking + `{"cli":["run","command","slow","--request-id","one","--wait","60"]},{"end_turn":"p"}`,
		commands: "commands: {slow: {argv: [sleep, \"60\"], roles: [DEVELOPER]}}\n"}, reach: func(h *house) {
		h.until("the command runs", func(v *runstore.View) bool { c := v.Command("one"); return c != nil && c.Status == "running" })
	}},
	{name: "question of an earlier daemon", plan: plan{steps: asking}, rests: true, reach: func(h *house) {
		h.asked()
		must(h.t, h.end())
		h.start()
		h.inState(runstore.WaitingInput)
	}},
	{name: "login", plan: plan{steps: waiting, agent: ", required_env: [NOBODY_SETS_THIS]"}, rests: true, reach: func(h *house) { h.inState(runstore.WaitingAuth) }},
	{name: "completed", plan: plan{steps: talking + `{"end_turn":"p"}`}, rests: true, reach: func(h *house) { h.inState(runstore.Completed) }},
	{name: "failed", plan: plan{steps: talking + `{"exit":{"code":3}}`}, rests: true, reach: func(h *house) { h.inState(runstore.Failed) }},
}

func (h *house) asked() {
	h.until("the question is open", func(v *runstore.View) bool {
		return len(v.OpenPermissions()) == 1 && last(v).State == runstore.WaitingInput
	})
}

func (h *house) answer() {
	p := h.d.store.View().OpenPermissions()[0]
	must(h.t, h.operator("run.permission-answer", map[string]any{"request_id": p.ID, "option_id": "ok"}))
}

// at brings a daemon to a moment.
func at(t *testing.T, m moment) *house {
	t.Helper()
	h := newHouse(t, m.plan)
	h.task("feature_dev", taskID)
	h.start()
	m.reach(h)
	return h
}

// E-055 E-256 E-258
func TestACancelEndsARunAtEveryMoment(t *testing.T) {
	for _, m := range moments {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			h := at(t, m)
			run := last(h.d.store.View())
			err := h.operator("run.cancel", map[string]any{"run_id": run.ID})
			if run.State.Terminal() {
				h.refused(err, refusal.CodeRunEnded)
				return
			}
			must(t, err)
			h.until("the run is cancelled", func(v *runstore.View) bool { return v.Run(run.ID).State.Terminal() })
			h.left(run.ID)
			got := h.d.store.View().Run(run.ID)
			if got.State != runstore.Cancelled || got.Reason != operatorCancelled {
				t.Errorf("got %s (%s)", got.State, got.Reason)
			}
			h.sane()
		})
	}
}

// E-257
func TestARetryIsOneMoreRunOrARefusalAtEveryMoment(t *testing.T) {
	for _, m := range moments {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			h := at(t, m)
			run := last(h.d.store.View())
			err := h.operator("run.retry", map[string]any{"run_id": run.ID})
			if !m.rests {
				h.refused(err, refusal.CodeRunActive)
				h.sane()
				return
			}
			must(t, err)
			v := h.until("there is one more run", func(v *runstore.View) bool { return len(v.RunsOfTask(taskID)) == 2 })
			if first := v.Run(run.ID); !first.State.Terminal() || !first.RetryAuthorized {
				t.Errorf("the first run is %s (%s), authorized %v", first.State, first.Reason, first.RetryAuthorized)
			}
			h.sane()
		})
	}
}

// E-222 E-223 E-242
func TestADaemonStopsCleanlyAtEveryMoment(t *testing.T) {
	for _, m := range moments {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			h := at(t, m)
			before := last(h.d.store.View())
			began := time.Now()
			must(t, h.end())
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("stopping took %v", took)
			}
			h.atRest()
			after := last(h.read())
			want, reason := runstore.Interrupted, supervisorStopped
			switch {
			case m.rests:
				want, reason = before.State, before.Reason
			case m.name == "question":
				want, reason = runstore.WaitingInput, permissionRequired
			}
			if after.State != want || after.Reason != reason {
				t.Errorf("got %s (%s), want %s (%s)", after.State, after.Reason, want, reason)
			}
			must(t, h.once())
			h.atRest()
			if runs := h.read().Runs(); len(runs) != 1 {
				t.Errorf("%d runs after a restart", len(runs))
			}
		})
	}
}

// steps are moments between two durable facts, at which the daemon is held up while it is asked.
var steps = []string{"walk.launch", "walk.protocol_ready", "walk.session_ready", "walk.first_protocol_activity", "walk.first_prompt_activity"}

// E-256
func TestACancelBetweenTwoFactsOfARun(t *testing.T) {
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: waiting})
			h.task("feature_dev", taskID)
			reached, let := h.holdAt(step)
			h.start()
			h.comes(reached)
			run := last(h.d.store.View())
			must(t, h.operator("run.cancel", map[string]any{"run_id": run.ID}))
			h.until("the cancel is taken up", func(v *runstore.View) bool { return v.Run(run.ID).Control.Status != "pending" })
			let()
			if got := h.inState(runstore.Cancelled); got.Reason != operatorCancelled {
				t.Errorf("got reason %s", got.Reason)
			}
			h.sane()
		})
	}
}

// E-222 E-223 E-238
func TestADaemonStopsBetweenTwoFactsOfARun(t *testing.T) {
	for _, step := range append([]string{"result.receive"}, steps...) {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: talking + `` + noChange + `{"wait_file":"go","within_ms":60000},{"end_turn":"p"}`})
			h.task("feature_dev", taskID)
			reached, let := h.holdAt(step)
			h.start()
			h.comes(reached)
			h.halt()
			let()
			must(t, h.end())
			h.atRest()
			if r := last(h.read()); r.State != runstore.Interrupted || r.Reason != supervisorStopped {
				t.Errorf("got %s (%s)", r.State, r.Reason)
			}
			must(t, h.once())
			h.atRest()
		})
	}
}

// E-223
func TestAStubbornAgentHoldsNoDaemonUp(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: `{"ignore_signals":["TERM","INT","HUP"]},` + talking +
		`{"spawn":{"name":"child","setsid":true,"ignore_signals":["TERM"],"keep_stdout":true}},` +
		`{"cli":["run","command","deaf","--request-id","one"]},{"stop_reading":true},{"hang":true}`,
		commands: "commands: {deaf: {argv: [sh, -c, \"trap '' TERM; sleep 60\"], roles: [DEVELOPER]}}\n"})
	h.task("feature_dev", taskID)
	h.start()
	h.until("the command runs", func(v *runstore.View) bool { c := v.Command("one"); return c != nil && c.Status == "running" })
	began := time.Now()
	must(t, h.end())
	if took := time.Since(began); took > 12*time.Second {
		t.Errorf("stopping took %v", took)
	}
	h.atRest()
}

// E-203 E-214
func TestADaemonThatStopsWhileItAppliesGoesOnAtItsNextStart(t *testing.T) {
	h := newHouse(t, plan{steps: talking + `{"cli":["run","submit","--json","{\"decision\":\"needs_input\",\"payload\":{\"question\":\"which?\"}}"]},{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	must(t, os.MkdirAll(h.file(".greatminds/.locks"), 0o700))
	journal, err := durable.TryLock(h.file(".greatminds/.locks/journal.lock"), "1\n")
	must(t, err)
	h.start()
	h.until("the decision is being applied", func(v *runstore.View) bool {
		return len(v.OpenResults()) == 1 && v.OpenResults()[0].Status == "applying"
	})
	h.halt()
	must(t, journal.Unlock())
	must(t, h.end())
	must(t, h.once())
	h.atRest()
	res := h.read().ResultOfRun(last(h.read()).ID)
	if res.Status != "applied" {
		t.Errorf("got %s: %+v", res.Status, res.Details)
	}
	lines, err := os.ReadFile(h.file(".greatminds/journal.ndjson"))
	must(t, err)
	if n := strings.Count(string(lines), "\n"); n != 1 {
		t.Errorf("%d lines in the journal: %s", n, lines)
	}
}

// refused checks that an operation was refused with what helps.
func (h *house) refused(err error, code refusal.Code) {
	h.t.Helper()
	r, ok := refusal.Find(err)
	if !ok || r.Code != code || r.Remedy == "" {
		h.t.Errorf("got %v, want the refusal %s with a remedy", err, code)
	}
}

// sane ends the daemon, runs another one, and checks what is left.
func (h *house) sane() {
	h.t.Helper()
	must(h.t, h.end())
	h.atRest()
	h.release()
	must(h.t, h.once())
	h.atRest()
}

func (h *house) read() *runstore.View {
	h.t.Helper()
	v, err := runstore.Read(h.file(".greatminds/.runtime"))
	must(h.t, err)
	return v
}

// atRest checks that without a daemon nothing is under way: every run has ended or waits without
// a process, nothing is asked, requested or running, and no process of the project lives.
func (h *house) atRest() {
	h.t.Helper()
	v := h.read()
	for _, r := range v.ActiveRuns() {
		if r.State != runstore.WaitingInput && r.State != runstore.WaitingAuth || r.Process != nil {
			h.t.Errorf("run %s rests as %s (%s), process %+v", r.ID, r.State, r.Reason, r.Process)
		}
	}
	for _, r := range v.OpenControls() {
		h.t.Errorf("control %+v of run %s is open", r.Control, r.ID)
	}
	for _, p := range v.OpenPermissions() {
		h.t.Errorf("question %s is %s", p.ID, p.Status)
	}
	for _, c := range v.OpenCommands() {
		h.t.Errorf("command %s is %s (%s)", c.ID, c.Status, c.Reason)
	}
	h.nobody()
}

// nobody checks that no process lives that was started for the project.
func (h *house) nobody() {
	h.t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	must(h.t, err)
	for _, e := range entries {
		data, err := os.ReadFile(e)
		if err == nil && strings.Contains(string(data), "GREATMINDS_PROJECT_DIR="+h.root+"\x00") {
			h.t.Errorf("%s is left", filepath.Dir(e))
		}
	}
}
