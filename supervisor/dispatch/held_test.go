package dispatch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
	"greatminds/tasks"
)

// A task whose decision waits under a hold says which, and what helps.
func TestATaskBehindAHeldResultSaysWhatHelps(t *testing.T) {
	l := newLab(t)
	one := found("feature_review", "0001-one")
	run := l.claim(found("feature_dev", "0001-one"), "dev")
	l.to(run.ID, runstore.Starting, runstore.Running)
	result := runstore.ResultID(string(run.ID) + "-result")
	l.update(func(tx *runstore.Tx) error {
		_, _, err := tx.Receive(run.ID, runstore.Envelope{ResultID: result, RunID: run.ID, TaskID: "0001-one",
			TaskRevision: run.TaskRevision, SchemaSHA256: run.SchemaSHA256, Decision: "no_change", Payload: json.RawMessage(`{}`)})
		return err
	})
	l.to(run.ID, runstore.Completed)
	judged := func() dispatch.Judgement {
		b, _ := l.world.Contract.Binding("dev")
		return dispatch.Judge(l.world, l.store.View(), dispatch.Candidate{Task: one.Ref, Binding: b})
	}
	if j := judged(); j.Reason != "domain_result_unresolved" || !strings.Contains(j.What, "received") {
		t.Fatalf("got %s, %q", j.Reason, j.What)
	}
	l.update(func(tx *runstore.Tx) error {
		return tx.HoldResult(result, &runstore.ResultHold{Code: "checkout_overlap", What: "a.txt is in the way", Remedy: "move it away"})
	})
	if j := judged(); j.Reason != "domain_result_unresolved" || j.Remedy != "move it away" ||
		!strings.Contains(j.What, "checkout_overlap") || !strings.Contains(j.What, "a.txt is in the way") {
		t.Errorf("got %s, %q, remedy %q", j.Reason, j.What, j.Remedy)
	}
	l.update(func(tx *runstore.Tx) error {
		if err := tx.SetResult(result, "needs_recovery", nil); err != nil {
			return err
		}
		return tx.HoldResult(result, &runstore.ResultHold{Code: "checkout_overlap", What: "a.txt is in the way", Remedy: "move it away"})
	})
	if j := judged(); j.Reason != "domain_result_unresolved" || !strings.Contains(j.Remedy, "move it away") || !strings.Contains(j.Remedy, "run repair --operation "+string(result)) ||
		!strings.Contains(j.What, "checkout_overlap") || !strings.Contains(j.What, "a.txt is in the way") {
		t.Errorf("got %s, %q, remedy %q", j.Reason, j.What, j.Remedy)
	}
	// One that is uncertain names what has to be done before its repair can help.
	l.update(func(tx *runstore.Tx) error {
		if err := tx.HoldResult(result, nil); err != nil {
			return err
		}
		if err := tx.SetResult(result, "applying", nil); err != nil {
			return err
		}
		return tx.SetResult(result, "needs_recovery", func(r *runstore.Result) {
			r.Details = &runstore.ResultDetails{Error: "index.lock exists", Extra: runstore.Members{"remedy": json.RawMessage(`"remove index.lock"`)}}
		})
	})
	if j := judged(); !strings.HasPrefix(j.Remedy, "remove index.lock; then greatminds run repair --operation "+string(result)) || !strings.Contains(j.What, "index.lock exists") {
		t.Errorf("got %q, remedy %q", j.What, j.Remedy)
	}
}

// What a session's budget holds back is led on by what the remedy names before the retry. E-556
func TestABudgetsHoldNamesWhatLeadsOn(t *testing.T) {
	for _, c := range []struct{ reason, session, want, lacks string }{
		{"reported_usage_budget", "resume-if-compatible", "set `session: new` for binding dev, or revise max_reported_session_cost and reported_cost_currency, restart coordd where you changed coordination/execution.yaml, then greatminds run retry", ""},
		{"reported_usage_budget", "new", "a new session begins with greatminds run retry", "session: new"},
		{"input_budget_exceeded", "resume-if-compatible", "max_session_input_bytes, restart coordd where you changed coordination/execution.yaml, then greatminds run retry", ""},
		{"session_load_unavailable", "resume-if-compatible", "set `session: new` for binding dev, restart coordd, then greatminds run retry", ""},
		{"session_load_unavailable", "new", "greatminds run retry", "session"},
		{"input_budget_exceeded", "new", "raise max_prompt_bytes or max_session_input_bytes of binding dev and restart coordd, then greatminds run retry", "session: new"},
		{"configuration_error", "resume-if-compatible", "mend what it names, restart coordd where that was in coordination/execution.yaml, then greatminds run retry", "session"},
	} {
		l := newLab(t)
		one := found("feature_dev", "0001-one")
		run := l.claim(one, "dev")
		l.to(run.ID, runstore.Starting)
		l.update(func(tx *runstore.Tx) error {
			return tx.Transition(run.ID, runstore.NewID(), runstore.Failed, c.reason, nil)
		})
		b, _ := l.world.Contract.Binding("dev")
		b.Session = c.session
		j := dispatch.Judge(l.world, l.store.View(), dispatch.Candidate{Task: one.Ref, Binding: b})
		if j.Reason != "revision_already_attempted" || !strings.Contains(j.Remedy, c.want+" "+string(run.ID)) || c.lacks != "" && strings.Contains(j.Remedy, c.lacks) {
			t.Errorf("%s, session %s: got %s, remedy %q", c.reason, c.session, j.Reason, j.Remedy)
		}
	}
}

// A blocked task says that somebody has to move it on, who, and with which command.
func TestABlockedTaskSaysWhoMovesItOn(t *testing.T) {
	l := newLab(t)
	for _, j := range dispatch.Plan(l.world, l.store.View(), []tasks.Found{found("feature_blocked", "0001-one")}) {
		if j.Reason != "waiting_for_dependencies" || !strings.Contains(j.What, "not resumed by itself") ||
			!strings.Contains(j.Remedy, "`greatminds task show 0001-one`") || !strings.Contains(j.Remedy, "`GREATMINDS_ROLE=ARCHITECT-REVIEWER greatminds task mv 0001-one QUEUE`") {
			t.Errorf("got %s, %q, remedy %q", j.Reason, j.What, j.Remedy)
		}
	}
}

// A run that waits says why, whatever it waits for; what its record does not say is not made up. E-242
func TestAWaitingRunSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		state                runstore.State
		reason, cause, extra string
		what, remedy         string
	}{
		"a login":         {runstore.WaitingAuth, "authentication_required", `"the agent wants a login"`, "", "(authentication_required): the agent wants a login", "log the agent in, then greatminds run retry "},
		"no words":        {runstore.WaitingAuth, "authentication_required", `7`, `{}`, "is waiting_auth (authentication_required)", "log the agent in, then greatminds run retry "},
		"variables":       {runstore.WaitingAuth, "authentication_required", `"x"`, `["A","B"]`, "(authentication_required): x", "set A, B in the environment of coordd and start it again, then greatminds run retry "},
		"a left question": {runstore.WaitingInput, "permission_required", "", "", "(permission_required): a question of its agent was not answered in time", "greatminds run retry "},
	} {
		l := newLab(t)
		one, two := found("feature_dev", "0001-one"), found("feature_dev", "0002-two")
		run := l.claim(one, "dev")
		l.to(run.ID, runstore.Starting)
		details := map[string]any{}
		if c.cause != "" {
			details["error_what"] = json.RawMessage(c.cause)
		}
		if c.extra != "" {
			details["missing_environment"] = json.RawMessage(c.extra)
		}
		if c.state == runstore.WaitingInput {
			l.to(run.ID, runstore.Running)
		}
		l.update(func(tx *runstore.Tx) error {
			return tx.Transition(run.ID, runstore.NewID(), c.state, c.reason, map[string]any{"details": details})
		})
		b, _ := l.world.Contract.Binding("dev")
		j := dispatch.Judge(l.world, l.store.View(), dispatch.Candidate{Task: one.Ref, Binding: b})
		if j.Reason != "active_run" || !strings.Contains(j.What, c.what) || j.Remedy != c.remedy+string(run.ID) {
			t.Errorf("%s: got %s, %q, remedy %q", name, j.Reason, j.What, j.Remedy)
		}
		if c.state != runstore.WaitingAuth {
			continue
		}
		j = dispatch.Judge(l.world, l.store.View(), dispatch.Candidate{Task: two.Ref, Binding: b})
		if j.Reason != "account_authentication_required" || !strings.Contains(j.What, c.what) || j.Remedy != c.remedy+string(run.ID) {
			t.Errorf("%s, of its account: got %s, %q, remedy %q", name, j.Reason, j.What, j.Remedy)
		}
	}
}

// A task that its last decision holds says where that decision is to be read, and nothing of the
// agent's text: holds are logged.
func TestADecisionThatHoldsItsTaskSaysWhereItIsRead(t *testing.T) {
	for _, c := range []struct{ decision, payload, end, reason, want, remedy string }{
		{"needs_input", `{"question":"CANARY which port?"}`, "applied", "human_input_required", "asked you a question", "write the answer into the task's file, then greatminds run retry "},
		{"no_change", `{"reason":"CANARY done"}`, "applied", "no_change_reported", "nothing is to be changed", "greatminds run retry "},
		{"handoff", `{"to_queue":"feature_test"}`, "rejected", "result_rejected", "does not count", "greatminds run retry "},
		{"handoff", `{"to_queue":"feature_test"}`, "abandoned", "revision_already_attempted", "was given up", "greatminds run retry "},
	} {
		l := newLab(t)
		one := found("feature_dev", "0001-one")
		run := l.claim(one, "dev")
		l.to(run.ID, runstore.Starting, runstore.Running)
		result := runstore.ResultID(string(run.ID) + "-result")
		l.update(func(tx *runstore.Tx) error {
			_, _, err := tx.Receive(run.ID, runstore.Envelope{ResultID: result, RunID: run.ID, TaskID: "0001-one",
				TaskRevision: run.TaskRevision, SchemaSHA256: run.SchemaSHA256, Decision: c.decision, Payload: json.RawMessage(c.payload)})
			return err
		})
		l.to(run.ID, runstore.Completed)
		steps := map[string][]string{"applied": {"applying", "applied"}, "rejected": {"rejected"}, "abandoned": {"applying", "needs_recovery", "abandoned"}}
		for _, s := range steps[c.end] {
			l.update(func(tx *runstore.Tx) error {
				return tx.SetResult(result, s, func(r *runstore.Result) { r.Details = &runstore.ResultDetails{Error: "CANARY"} })
			})
		}
		j := l.judge(one, "dev")
		if j.Reason != c.reason || !strings.Contains(j.What, c.want) || !strings.Contains(j.What, "`greatminds run show "+string(run.ID)+"`") ||
			!strings.HasPrefix(j.Remedy, c.remedy+string(run.ID)) || strings.Contains(j.What+j.Remedy, "CANARY") {
			t.Errorf("%s %s: got %s, %q, remedy %q", c.decision, c.end, j.Reason, j.What, j.Remedy)
		}
	}
}
