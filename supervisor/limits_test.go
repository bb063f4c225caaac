package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/status"
)

// limiting is an agent whose manifest lists 429 as a limit for some seconds, and 402 as a quota.
func limiting(seconds int) string {
	return fmt.Sprintf(", account_limit_errors: [{code: 429, kind: rate_limit, cooldown_seconds: %d}, {code: 402, kind: quota_exhausted}]", seconds)
}

// elsewhere is one more binding, of the same agent under another account; it claims from feature_test.
const elsewhere = "  other: {role: TESTER, agent: dev, scheduling: queue, session: new, account: elsewhere}\n"

func answering(code int) string {
	return talking + fmt.Sprintf(`{"reply":"p","error":{"code":%d,"message":"usage limit reached, resets 21:20"}}`, code)
}

const fine = talking + `{"end_turn":"p"}`

// assigned is how a task stands in `run status`.
func (h *house) assigned(id string) status.Assignment {
	h.t.Helper()
	for _, a := range h.document().Assignments {
		if a.TaskID == id {
			return a
		}
	}
	h.t.Fatalf("task %s is not assigned at all", id)
	return status.Assignment{}
}

// observed wants a run to have ended for a limit that is on record everywhere, and returns its hold.
func (h *house) observed(v *runstore.View, r *runstore.Run, code int, kind string) *runstore.AccountHold {
	h.t.Helper()
	var on, out struct {
		HoldID     string  `json:"hold_id"`
		Kind       string  `json:"kind"`
		RPCCode    int     `json:"rpc_code"`
		ObservedAt float64 `json:"observed_at"`
		Account    string  `json:"account"`
	}
	must(h.t, json.Unmarshal(r.AccountLimit, &on))
	must(h.t, json.Unmarshal(r.Outcome.AccountLimit, &out))
	hold := v.AccountHold(r.Account)
	if on != out || on.Kind != kind || on.RPCCode != code || on.Account != r.Account || r.State != runstore.Failed || r.Reason != "account_"+kind ||
		*r.Outcome.ErrorCode != code || hold == nil || hold.ID != on.HoldID || hold.ObservedAt != on.ObservedAt || hold.SourceRun != r.ID || !hold.Active() {
		h.t.Fatalf("got %s (%s), observation %+v, outcome %+v, hold %+v", r.State, r.Reason, on, out, hold)
	}
	seen := 0
	for _, e := range v.Events(0, 10000) {
		if e.Kind == "account_limit_observed" && *e.RunID == r.ID {
			if seen++; string(e.Data) != string(r.AccountLimit) {
				h.t.Errorf("the event says %s, the run %s", e.Data, r.AccountLimit)
			}
		}
	}
	if seen != 1 {
		h.t.Errorf("%d events of the limit", seen)
	}
	return hold
}

// A rate limit holds its account, and no other, for its time; then it ends by itself. The run that
// met it waits for a person all the same.
func TestARateLimitHoldsItsAccountForItsTime(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: answering(429), agent: limiting(3), commands: elsewhere})
	h.task("feature_dev", taskID)
	h.start()
	first := h.inState(runstore.Failed)
	hold := h.observed(h.d.store.View(), first, 429, "rate_limit")
	if *hold.Until != hold.ObservedAt+3 {
		t.Errorf("a limit of 3 s from %v until %v", hold.ObservedAt, *hold.Until)
	}
	h.script(fine)
	h.task("feature_dev", "0002-same-account")
	h.task("feature_test", "0003-elsewhere")
	v := h.until("the other account has worked", func(v *runstore.View) bool {
		r := last(v)
		return r.TaskID == "0003-elsewhere" && r.State == runstore.Completed
	})
	if at := *last(v).EndedAt; at < *hold.Until {
		a, acc := h.assigned("0002-same-account"), h.document().Accounts["default"]
		if a.Reason != "account_rate_limit" || !strings.Contains(a.What, "429") || !strings.Contains(a.Remedy, "greatminds run account-resume default --hold-id "+hold.ID+" ") {
			t.Errorf("got %+v", a)
		}
		if acc.Reason != "account_rate_limit" || acc.Hold != "rate_limit" || acc.HoldID != hold.ID || acc.NextAt == nil || *acc.NextAt > *hold.Until+1e-3 || acc.SourceRun != string(first.ID) || acc.What == "" {
			t.Errorf("got %+v", acc)
		}
	}
	v = h.until("the account goes on", func(v *runstore.View) bool {
		r := last(v)
		return r.TaskID == "0002-same-account" && r.State == runstore.Completed
	})
	if at := last(v).CreatedAt; at < *hold.Until-1e-3 || at > *hold.Until+10 {
		t.Errorf("the limit was until %v, the account went on at %v", *hold.Until, at)
	}
	if acc := h.document().Accounts["default"]; acc.Reason != "ready" || acc.HoldID != "" || acc.What != "" {
		t.Errorf("after the limit: %+v", acc)
	}
	if a := h.assigned(taskID); a.Reason != "revision_already_attempted" || a.Remedy != "greatminds run retry "+string(first.ID) || len(v.RunsOfTask(taskID)) != 1 {
		t.Errorf("the limited run: %+v", a)
	}
	h.sane()
}

// A used-up quota holds its account over restarts, roll-overs and an operator's retry, until an
// operator resumes it. E-500
func TestAQuotaWaitsForTheOperator(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: answering(402), agent: limiting(1), root: "max_running: 4\n"})
	h.o.EagerHistory, h.o.MinJournal = true, 1
	h.task("feature_dev", taskID)
	must(t, h.once())
	r := last(h.read())
	hold := h.observed(h.read(), r, 402, "quota_exhausted")
	if hold.Until != nil {
		t.Errorf("a quota until %v", *hold.Until)
	}
	h.script(fine)
	h.start()
	must(t, h.operator("run.retry", map[string]any{"run_id": r.ID}))
	waits := func() {
		t.Helper()
		a, acc := h.assigned(taskID), h.document().Accounts["default"]
		if a.Reason != "account_quota_exhausted" || !strings.Contains(a.Remedy, hold.ID) || acc.HoldID != hold.ID || acc.NextAt != nil || acc.SourceRun != string(r.ID) {
			t.Errorf("got %+v, %+v", a, acc)
		}
		if n := len(h.d.store.View().RunsOfTask(taskID)); n != 1 {
			t.Errorf("%d runs", n)
		}
	}
	waits()
	for _, by := range []time.Duration{48 * time.Hour, -96 * time.Hour} {
		h.shift.Add(int64(by))
		h.d.Wake()
		h.pass(200 * time.Millisecond)
		waits()
	}
	must(t, h.end())
	must(t, h.once())
	h.start()
	waits()

	resume := func(id, why string) error {
		return h.operator("run.account-resume", map[string]any{"account": "default", "hold_id": id, "reason": why})
	}
	h.refused(resume("0123", "x"), refusal.CodeAccountHold)
	for _, nothing := range []string{"", "  ", strings.Repeat("é", 1001)} {
		h.refused(resume(hold.ID, nothing), refusal.CodeUsage)
	}
	waits()
	must(t, resume(hold.ID, strings.Repeat("é", 1000)))
	must(t, resume(hold.ID, strings.Repeat("é", 1000)))
	h.refused(resume(hold.ID, "another"), refusal.CodeAccountHold)
	v := h.until("the retry has run", func(v *runstore.View) bool { x := last(v); return x.ID != r.ID && x.State == runstore.Completed })
	if n := count(v, "account_resumed"); n != 1 {
		t.Errorf("%d events of the resume", n)
	}
	h.sane()
}

// The code decides in every part of the handshake, whatever else the answer says; a code that is
// not listed is a fault of the protocol.
func TestALimitIsToldByItsCodeInEveryAnswer(t *testing.T) {
	t.Parallel()
	const options = `"configOptions":[{"id":"m","name":"M","category":"model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]`
	refusing := func(method, code string) string {
		return `{"expect":"` + method + `","save":"x","within_ms":30000},{"reply":"x","error":{"code":` + code + `,"message":"m","data":{"retryAfter":600}}}`
	}
	hello := `{"expect":"initialize","save":"i","within_ms":30000},{"reply":"i","result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"key","name":"Key"}]}},`
	for name, c := range map[string]plan{
		"initialize":   {steps: refusing("initialize", "%d")},
		"authenticate": {steps: hello + refusing("authenticate", "%d"), agent: ", auth_method: key"},
		"session/new":  {steps: hello + refusing("session/new", "%d")},
		"setting": {steps: hello + `{"expect":"session/new","save":"n","within_ms":30000},{"reply":"n","result":{"sessionId":"s",` + options + `}},` +
			refusing("session/set_config_option", "%d"), binding: ", model: b"},
		"prompt": {steps: `{"handshake":{}},` + refusing("session/prompt", "%d")},
	} {
		for _, code := range []int{429, 430} {
			t.Run(fmt.Sprintf("%s/%d", name, code), func(t *testing.T) {
				t.Parallel()
				p := c
				p.steps, p.agent = strings.Replace(p.steps, "%d", fmt.Sprint(code), 1), p.agent+limiting(60)
				h := newHouse(t, p)
				h.task("feature_dev", taskID)
				must(t, h.once())
				v := h.read()
				r := last(v)
				if code == 429 {
					h.observed(v, r, code, "rate_limit")
					if prompted := name == "prompt"; *r.Outcome.PromptStarted != prompted {
						t.Errorf("prompt_started is %v", *r.Outcome.PromptStarted)
					}
				} else if strings.HasPrefix(r.Reason, "account_") || r.State != runstore.Failed || len(v.AccountHolds()) != 0 || r.AccountLimit != nil {
					t.Errorf("got %s (%s), holds %v", r.State, r.Reason, v.AccountHolds())
				}
				must(t, h.once())
				if n := len(h.read().Runs()); n != 1 {
					t.Errorf("%d runs: a limit is repeated", n)
				}
			})
		}
	}
}

// An agent that is asked to stop may only then tell of the limit that it has waited for. It counts
// whatever has ended the turn; an operator's cancel stays a cancel.
func TestALimitThatAnswersACancel(t *testing.T) {
	t.Parallel()
	const late = `{"expect":"session/cancel","within_ms":30000},{"reply":"p","error":{"code":429,"message":"m"}}`
	for name, c := range map[string]struct {
		steps, binding string
		by             func(h *house)
		reason         string
	}{
		"idle":     {late, idleIn2, nil, "account_rate_limit"},
		"timeout":  {late, ", timeout_seconds: 2", nil, "account_rate_limit"},
		"cost":     {usd("2") + late, budgeted, nil, "account_rate_limit"},
		"operator": {late, "", func(h *house) { must(h.t, h.operator("run.cancel", map[string]any{"run_id": h.prompted().ID})) }, operatorCancelled},
		"stopped":  {late, "", func(h *house) { h.prompted(); must(h.t, h.end()) }, supervisorStopped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: talking + c.steps, binding: c.binding, agent: limiting(600)})
			h.task("feature_dev", taskID)
			h.start()
			if c.by != nil {
				c.by(h)
			}
			if name != "stopped" {
				h.until("the run has ended", func(v *runstore.View) bool { return last(v) != nil && last(v).State.Terminal() })
				must(t, h.end())
			}
			v := h.read()
			r, hold := last(v), v.AccountHold("default")
			if r.Reason != c.reason || len(r.AccountLimit) == 0 || hold == nil || hold.Kind != "rate_limit" || hold.SourceRun != r.ID {
				t.Errorf("got %s (%s), observation %s, hold %+v", r.State, r.Reason, r.AccountLimit, hold)
			}
			h.audited()
		})
	}
}

// No clock that is set makes a limit longer than it was meant to be, in the process that has seen
// it and in the next.
func TestAClockThatIsSetProlongsNoLimit(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"forward": 2 * time.Hour, "back": -2 * time.Hour} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/restarted=%v", name, restarted), func(t *testing.T) {
				t.Parallel()
				h := newHouse(t, plan{steps: answering(429), agent: limiting(3600)})
				h.task("feature_dev", taskID)
				h.start()
				h.inState(runstore.Failed)
				h.script(fine)
				h.task("feature_dev", "0002-next")
				h.until("the next is seen", func(v *runstore.View) bool { return len(v.Observations()) == 2 })
				if restarted {
					must(t, h.end())
				}
				h.shift.Add(int64(by))
				if restarted {
					h.start()
				}
				h.d.Wake()
				h.until("the next has run", func(v *runstore.View) bool {
					r := last(v)
					return r.TaskID == "0002-next" && r.State == runstore.Completed
				})
			})
		}
	}
}

// Two runs of one account meet limits: what holds longer stays, and the newest id is the one to
// resume.
func TestTwoLimitsOfOneAccountAreHeldTogether(t *testing.T) {
	t.Parallel()
	const slow = `{"handshake":{}},{"prompt":"p"},{"wait_file":"%[1]d","within_ms":60000},{"reply":"p","error":{"code":%[1]d,"message":"m"}}`
	h := newHouse(t, plan{steps: fmt.Sprintf(slow, 402), agent: limiting(600), binding: ", max_running: 2"})
	h.task("feature_dev", taskID)
	h.start()
	h.until("the first is prompted", func(v *runstore.View) bool { r := last(v); return r != nil && r.Timings["first_prompt_started"] > 0 })
	h.script(fmt.Sprintf(slow, 429))
	h.task("feature_dev", "0002-second")
	h.until("both are prompted", func(v *runstore.View) bool { return len(v.Runs()) == 2 && last(v).Timings["first_prompt_started"] > 0 })
	h.releases("402")
	v := h.until("the first has ended", func(v *runstore.View) bool { return run0(v).State.Terminal() })
	quota := h.observed(v, run0(v), 402, "quota_exhausted")
	h.releases("429")
	v = h.until("the second has ended", func(v *runstore.View) bool { return last(v).State.Terminal() })
	hold := v.AccountHold("default")
	if last(v).Reason != "account_rate_limit" || hold.ID == quota.ID || hold.Kind != "quota_exhausted" || hold.Until != nil || hold.RPCCode != 402 || hold.SourceRun != run0(v).ID ||
		!strings.Contains(string(last(v).AccountLimit), hold.ID) {
		t.Errorf("got %s, hold %+v, observation %s", last(v).Reason, hold, last(v).AccountLimit)
	}
}

// releases lets an agent that waits for a file go on.
func (h *house) releases(name string) { must(h.t, os.WriteFile(h.file("agent/go-"+name), nil, 0o644)) }
