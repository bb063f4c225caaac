package supervisor

import (
	"testing"

	"greatminds/runstore"
	"greatminds/supervisor/status"
)

const short = ", retry_initial_seconds: 1, retry_max_seconds: 2"

// document is how `run status` tells of dispatch.
func (h *house) document() status.Dispatch {
	h.t.Helper()
	found, err := h.d.tree.Discover()
	must(h.t, err)
	return judgeIn(h.d.world(), h.d.store.View(), found)
}

// count is how often an event of a kind stands in the tail.
func count(v *runstore.View, kind string) int {
	n := 0
	for _, e := range v.Events(0, 10000) {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// E-487 E-495 E-497 E-499 E-512
func TestAFailedStartIsRepeatedWithinItsBudgetAndSaysSo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: `{"exit":{"code":1}}`, binding: short + ", max_startup_retries: 1",
		root: "account_retry_initial_seconds: 1\naccount_retry_max_seconds: 1\n"})
	h.task("feature_dev", taskID)
	h.start()
	first := h.inState(runstore.Failed)
	d := h.document()
	if a := d.Assignments[0]; a.Reason == "retry_backoff" && (a.Retry["reason"] != "retry_backoff" || a.Retry["failures"] != 1 ||
		a.Retry["max_retries"] != 1 || a.Retry["next_at"] == nil) {
		t.Errorf("got retry %v", a.Retry)
	}
	if a := d.Accounts["default"]; a.Failures != 1 || a.SourceRun != string(first.ID) || a.NextAt == nil {
		t.Errorf("got account %+v", a)
	}
	v := h.until("the budget is used up", func(v *runstore.View) bool { return len(v.Runs()) == 2 && last(v).State == runstore.Failed })
	h.left(last(v).ID)
	if n := count(v, "startup_retry_dispatch"); n != 1 {
		t.Errorf("%d events of a repeated start", n)
	}
	if gap := *last(v).EndedAt - *first.EndedAt; gap < 1 {
		t.Errorf("the start was repeated after %v s", gap)
	}
	if a := h.document().Assignments[0]; a.Reason != "startup_retry_limit" || a.Retry["failures"] != 2 || a.Remedy == "" {
		t.Errorf("got %+v", a)
	}
	must(t, h.operator("run.retry", map[string]any{"run_id": last(v).ID}))
	v = h.until("the operator's attempt has failed", func(v *runstore.View) bool { return len(v.Runs()) == 3 && last(v).State == runstore.Failed })
	h.left(last(v).ID)
	if a := h.document().Assignments[0]; a.Reason != "startup_retry_limit" || a.Retry["failures"] != 3 {
		t.Errorf("after the operator's attempt: got %+v", a)
	}
	if n := count(h.d.store.View(), "startup_retry_dispatch"); n != 1 {
		t.Errorf("the operator's attempt counts as a repeat: %d events", n)
	}
}

// E-263 E-522 E-525 E-530 E-532
func TestATurnWithoutProgressIsContinuedWithinItsBudget(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"repeat":5,"steps":[{"say":"still at it"}]},{"end_turn":"p"}`, binding: short + ", max_no_progress_turns: 2"})
	h.task("feature_dev", taskID)
	h.start()
	first := h.inState(runstore.Completed)
	if a := h.document().Assignments[0]; a.Reason == "no_progress_backoff" && (a.Progress.Turns != 1 || a.Progress.MaxTurns != 2 || a.Progress.Reason != "no_progress_backoff") {
		t.Errorf("got progress %+v", a.Progress)
	}
	v := h.until("the turn is continued", func(v *runstore.View) bool { return len(v.Runs()) == 2 && last(v).State == runstore.Completed })
	h.left(last(v).ID)
	if n := count(v, "no_progress_continuation"); n != 1 || *last(v).EndedAt-*first.EndedAt < 1 {
		t.Errorf("%d events of a continuation, %v s later", n, *last(v).EndedAt-*first.EndedAt)
	}
	if a := h.document().Assignments[0]; a.Reason != "no_progress_limit" || a.Progress.Turns != 2 || a.Progress.Reason != "no_progress_limit" || a.Remedy == "" {
		t.Errorf("got %+v", a)
	}
	must(t, h.end())
	must(t, h.once())
	if n := len(h.read().Runs()); n != 2 {
		t.Errorf("%d runs after a restart", n)
	}
}

// E-262 E-500
func TestWordsOfAnAgentDecideNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"say":"Error: rate limit exceeded, authentication failed, timeout"},{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	must(t, h.once())
	if r := last(h.read()); r.State != runstore.Completed || r.Reason != turnEnded || r.Outcome.ErrorType != "" {
		t.Errorf("got %s (%s), %+v", r.State, r.Reason, r.Outcome)
	}
	limited := newHouse(t, plan{steps: talking + `{"reply":"p","error":{"code":429,"message":"rate limit exceeded"}}`, binding: short})
	limited.task("feature_dev", taskID)
	must(t, limited.once())
	v := limited.read()
	if r := last(v); len(v.Runs()) != 1 || r.State != runstore.Failed || r.Reason != protocolError || r.Outcome.ErrorCode == nil || *r.Outcome.ErrorCode != 429 {
		t.Errorf("got %d runs, the last %s (%s)", len(v.Runs()), r.State, r.Reason)
	}
}

// E-507 E-509 E-510
func TestAStartIsReadyOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: asking})
	h.task("feature_dev", taskID)
	h.start()
	h.asked()
	ready := last(h.d.store.View()).StartupReadyAt
	if ready == nil {
		t.Fatal("a run that asks was never ready")
	}
	h.answer()
	h.inState(runstore.Completed)
	must(t, h.end())
	must(t, h.once())
	r := last(h.read())
	if *r.StartupReadyAt != *ready || r.DomainProgress != nil {
		t.Errorf("ready at %v, then at %v; progress %+v", *ready, *r.StartupReadyAt, r.DomainProgress)
	}
	if n := len(h.read().Runs()); n != 1 {
		t.Errorf("%d runs: a ready start is no progress", n)
	}
}

// E-261 E-511
func TestAnAccountsDelayTouchesNoRunningTurn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: waiting, root: "max_running: 2\naccount_retry_initial_seconds: 1\naccount_retry_max_seconds: 1\n",
		binding: short + ", max_running: 2, max_startup_retries: 0"})
	h.task("feature_dev", taskID)
	h.start()
	h.prompted()
	h.script(`{"exit":{"code":1}}`)
	h.task("feature_dev", "0002-other")
	v := h.until("the other start has failed", func(v *runstore.View) bool { r := last(v); return len(v.Runs()) == 2 && r.State == runstore.Failed })
	if r := run0(v); r.State != runstore.Running {
		t.Errorf("the first run is %s", r.State)
	}
	h.release()
	v = h.until("the first run has ended", func(v *runstore.View) bool { return run0(v).State.Terminal() })
	r := run0(v)
	o := r.Outcome
	if r.State != runstore.Completed || o == nil || *o.ContextBytes == 0 || *o.Updates != 1 || o.LastActivityAt == nil || *o.ElapsedSeconds <= 0 ||
		o.SessionStrategy != "new_context" || o.StopReason == nil || *o.StopReason != "end_turn" || !*o.PromptStarted || *o.PrePromptActivity {
		t.Errorf("got %s with outcome %+v", r.State, o)
	}
	if o := last(v).Outcome; o.ErrorType != "ConnectionError" || *o.PromptStarted || o.StopReason != nil {
		t.Errorf("the failed start has outcome %+v", o)
	}
}
