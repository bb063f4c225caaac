package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"greatminds/runstore"
	"greatminds/supervisor/audit"
	"greatminds/supervisor/policy"
	"greatminds/supervisor/usage"
)

const (
	// budgeted is a binding with a cost budget.
	budgeted = ", max_reported_session_cost: 1.0, reported_cost_currency: USD"
	// offers begins a session that can be loaded later, and takes the prompt.
	offers = `{"on":"session/cancel","steps":[{"end_turn":"p","reason":"cancelled"}]},{"handshake":{"agentCapabilities":{"loadSession":true}}},{"prompt":"p"},`
	// goesOn loads a session, and takes the prompt.
	goesOn   = `{"on":"session/cancel","steps":[{"end_turn":"p","reason":"cancelled"}]},` + loaded
	endsTurn = `{"end_turn":"p"}`
	hangs    = `{"hang":true}`
)

// costs is an update that reports a cost; amount is JSON.
func costs(amount, currency string) string {
	return `{"update":{"sessionUpdate":"usage_update","used":10,"size":1000,"cost":{"amount":` + amount + `,"currency":"` + currency + `"}}},`
}

func usd(amount string) string { return costs(amount, "USD") }

// used is the run's record of use.
func used(t *testing.T, r *runstore.Run) *usage.Record {
	t.Helper()
	u := usage.Read(r.Usage)
	if u == nil || u.Version != 1 || u.Source != "acp_sdk_decoded" {
		t.Fatalf("run %s (%s) has the usage %s", r.State, r.Reason, r.Usage)
	}
	return u
}

// costOf says an account in one line.
func costOf(a *policy.CostAccount) string {
	if a == nil {
		return "none"
	}
	amount, doubt := "-", "sure"
	if a.Amount != nil {
		amount = string(*a.Amount) + " " + *a.Currency
	}
	if a.Error != nil {
		doubt = string(*a.Error)
	}
	return fmt.Sprintf("%s %s, %d done, fresh %v, pending %v, %s", amount, a.Status, a.CompletedPrompts, a.Fresh, a.Pending, doubt)
}

// costHold is the outcome's usage_budget; nil where there is none.
func costHold(t *testing.T, r *runstore.Run) map[string]any {
	t.Helper()
	var b map[string]any
	if r.Outcome != nil && len(r.Outcome.UsageBudget) > 0 {
		must(t, json.Unmarshal(r.Outcome.UsageBudget, &b))
	}
	return b
}

// audited finds broken promises about cost on record.
func (h *house) audited() {
	h.t.Helper()
	for _, f := range audit.Errors(audit.Check(audit.Facts{View: h.read()})) {
		h.t.Errorf("audit: %s: %s", f.Code, f.What)
	}
}

// E-536 E-537 E-540 E-541 E-542
func TestTheLatestReportsAreKept(t *testing.T) {
	t.Parallel()
	const first = `{"update":{"sessionUpdate":"usage_update","used":900,"size":1000,"_meta":{"quota":"CANARY"},"cost":{"amount":0.25,"currency":"USD","_meta":"CANARY"}}},` +
		`{"update":{"sessionUpdate":"usage_update","used":40,"size":1000,"cost":{"amount":0.50,"currency":"USD"},"CANARY":1}},` +
		`{"reply":"p","result":{"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":20,"totalTokens":120,"_meta":{"CANARY":1}},"_meta":{"CANARY":1}}}`
	h := newHouse(t, plan{steps: offers + first, session: "resume-if-compatible"})
	h.task("feature_dev", taskID)
	began := runstore.Epoch(time.Now())
	must(t, h.once())
	r := last(h.read())
	u := used(t, r)
	if c := u.Session.Data.Context; c.Status != policy.Reported || c.Values["used"] != 40 || c.Values["size"] != 1000 {
		t.Errorf("got the context %+v", c)
	}
	if c := u.Session.Data.Cost; c.Status != policy.Reported || string(*c.Amount) != "0.50" || *c.Currency != "USD" {
		t.Errorf("got the cost %+v", c)
	}
	if got := u.Tokens.Data; got.Scope != "unknown" || got.Status != policy.Reported || got.Values["inputTokens"] != 100 || got.Values["totalTokens"] != 120 || len(got.Values) != 3 {
		t.Errorf("got the tokens %+v", got)
	}
	if u.Session.At < began || u.Tokens.At < u.Session.At || u.Tokens.At == began {
		t.Errorf("the samples are of %f and %f", u.Session.At, u.Tokens.At)
	}
	if got := costOf(u.Cost); got != "0.50 USD reported, 1 done, fresh true, pending false, sure" {
		t.Errorf("the account: %s", got)
	}

	// A second prompt's tokens take the place of the first one's.
	h.again()
	h.script(goesOn + `{"reply":"p","result":{"stopReason":"end_turn","usage":{"inputTokens":7,"thoughtTokens":1}}}`)
	must(t, h.once())
	v := h.read()
	u = used(t, last(v))
	if got := u.Tokens.Data; got.Values["inputTokens"] != 7 || got.Values["thoughtTokens"] != 1 || len(got.Values) != 2 {
		t.Errorf("got the tokens %+v of the second prompt", got)
	}
	for _, kind := range []string{"usage_session_prepared", "usage_prompt_begin", "usage_prompt_finish", "usage_observed"} {
		if e, _ := events(v, kind); e == nil {
			t.Errorf("there is no event %s", kind)
		}
	}
	must(t, filepath.WalkDir(h.file(".greatminds"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(readText(t, path), "CANARY") {
			t.Errorf("%s holds raw metadata", path)
		}
		return err
	}))
	h.audited()
}

// Whenever a report comes, it is told once, in the event and in the record.
//
// E-536
func TestAReportIsToldOnce(t *testing.T) {
	t.Parallel()
	const opens = `{"handshake":{"stop_after":"initialize"}},{"expect":"session/new","save":"n"},`
	for name, steps := range map[string]string{
		"before the session": opens + usd("0.1") + `{"reply":"n","result":{"sessionId":"sess-1"}},{"prompt":"p"},` + endsTurn,
		"in the turn":        opens + `{"reply":"n","result":{"sessionId":"sess-1"}},{"prompt":"p"},` + usd("0.1") + endsTurn,
	} {
		h := newHouse(t, plan{steps: steps})
		h.task("feature_dev", taskID)
		must(t, h.once())
		told := 0
		for _, e := range h.read().Events(0, 10000) {
			if e.Kind == "usage_observed" && strings.Contains(string(e.Data), `"session"`) && strings.Contains(string(e.Data), "0.1") {
				told++
			}
		}
		if u := used(t, last(h.read())); told != 1 || u.Session == nil || string(*u.Session.Data.Cost.Amount) != "0.1" {
			t.Errorf("%s: told %d times, on record %+v", name, told, u.Session)
		}
	}
}

// E-539
func TestWhatIsNotReportedIsNeverZero(t *testing.T) {
	t.Parallel()
	update := func(members string) string { return `{"update":{"sessionUpdate":"usage_update"` + members + `}},` }
	for name, c := range map[string]struct {
		steps                 string
		context, cost, tokens policy.Reading
		values                string // of context and tokens
		account               policy.Reading
	}{
		"no report":        {endsTurn, "", "", policy.Missing, "map[] map[]", policy.Missing},
		"only the context": {update(`,"used":1,"size":2`) + endsTurn, policy.Reported, policy.Missing, policy.Missing, "map[size:2 used:1] map[]", policy.Missing},
		"half a context":   {update(`,"used":1`) + endsTurn, policy.Missing, policy.Missing, policy.Missing, "map[used:1] map[]", policy.Missing},
		"negative":         {update(`,"used":-1,"size":2,"cost":{"amount":-1,"currency":"USD"}`) + endsTurn, policy.Invalid, policy.Invalid, policy.Missing, "map[size:2] map[]", policy.Invalid},
		"text":             {update(`,"used":"1","size":2,"cost":{"amount":"1","currency":"USD"}`) + endsTurn, policy.Invalid, policy.Invalid, policy.Missing, "map[size:2] map[]", policy.Invalid},
		"no currency":      {update(`,"used":0,"size":0,"cost":{"amount":1}`) + endsTurn, policy.Reported, policy.Invalid, policy.Missing, "map[size:0 used:0] map[]", policy.Invalid},
		"NaN": {`{"raw":"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"sess-1\",\"update\":{\"sessionUpdate\":\"usage_update\",\"used\":1,\"size\":2,\"cost\":{\"amount\":1e999,\"currency\":\"USD\"}}}}\n"},` + endsTurn,
			policy.Reported, policy.Invalid, policy.Missing, "map[size:2 used:1] map[]", policy.Invalid},
		"invalid tokens": {`{"reply":"p","result":{"stopReason":"end_turn","usage":{"inputTokens":-1,"outputTokens":"x"}}}`, "", "", policy.Invalid, "map[] map[]", policy.Missing},
		"some tokens":    {`{"reply":"p","result":{"stopReason":"end_turn","usage":{"inputTokens":-1,"outputTokens":3}}}`, "", "", policy.Reported, "map[] map[outputTokens:3]", policy.Missing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: offers + c.steps})
			h.task("feature_dev", taskID)
			must(t, h.once())
			r := last(h.read())
			if r.State != runstore.Completed {
				t.Errorf("without a budget nothing is held: got %s (%s)", r.State, r.Reason)
			}
			u := used(t, r)
			var s usage.Session
			if u.Session != nil {
				s = u.Session.Data
			}
			values := fmt.Sprint(s.Context.Values, u.Tokens.Data.Values)
			if s.Context.Status != c.context || s.Cost.Status != c.cost || u.Tokens.Data.Status != c.tokens || values != c.values || u.Cost.Status != c.account {
				t.Errorf("got %s", r.Usage)
			}
			if c.account != policy.Reported && (u.Cost.Amount != nil || !strings.Contains(string(r.Usage), `"amount":null`)) {
				t.Errorf("an amount that nobody reported: %s", r.Usage)
			}
		})
	}
}

// The samples of a turn become durable while it goes on, and its prompt is on record before it is sent.
//
// E-551 E-552
func TestAPromptIsPendingBeforeItIsSent(t *testing.T) {
	t.Parallel()
	for _, budget := range []string{budgeted, ""} {
		h := newHouse(t, plan{steps: offers + usd("0.25") + `{"mark":"reported"},` + hangs, session: "resume-if-compatible", binding: budget})
		h.task("feature_dev", taskID)
		h.start()
		h.prompted()
		v := h.d.store.View()
		_, begun := events(v, "usage_prompt_begin")
		_, reserved := events(v, "prompt_input_reserved")
		if u := used(t, last(v)); begun == 0 || reserved == 0 || !u.Cost.Pending {
			t.Errorf("%d begun, %d reserved, the account: %s", begun, reserved, costOf(u.Cost))
		}
		if budget != "" { // what was reported becomes durable while the turn goes on
			h.until("the turn is sampled", func(v *runstore.View) bool { return used(t, last(v)).Session != nil })
		}
		h.disk.Crash()
		h.halt()
		<-h.ended
		h.d, h.o.Seam = nil, nil

		h.script(goesOn + usd("0.50") + endsTurn)
		must(t, h.once())
		if u := used(t, last(h.read())); !u.Cost.Pending {
			t.Errorf("after the crash: %s", costOf(u.Cost))
		}
		h.again()
		must(t, h.once())
		r := last(h.read())
		if budget == "" {
			// E-557: the doubt is on record, and holds nothing.
			if got := costOf(used(t, r).Cost); r.State != runstore.Completed || !strings.HasSuffix(got, "session_history_unknown") {
				t.Errorf("without a budget: got %s (%s), the account: %s", r.State, r.Reason, got)
			}
		} else if b := costHold(t, r); r.Reason != usageBudget || r.Process != nil || b["reason"] != "session_history_unknown" || b["amount"] != 0.25 || h.received("session/prompt") != 1 {
			t.Errorf("got %s (%s), process %v, budget %v, %d prompts", r.State, r.Reason, r.Process, b, h.received("session/prompt"))
		}
		h.audited()
	}
}

// E-546 E-547 E-548 E-549 E-553 E-554 E-555
func TestAReportThatTheBudgetDoesNotAllowEndsThePrompt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps   string
		reason  string // of outcome.usage_budget; empty where the run completes
		cancels int
		words   []string // of the outcome's error_what
	}{
		"E-548 a first report":           {usd("0.4") + endsTurn, "", 0, nil},
		"E-547 just below":               {usd("0.4") + usd("0.99999999999999999") + endsTurn, "", 0, nil},
		"E-547 at the threshold":         {usd("0.4") + usd("0.99") + usd("1.0") + hangs, "cost_limit_reached", 1, []string{"1.0 USD", "sess-1"}},
		"above it":                       {usd("70") + hangs, "cost_limit_reached", 1, []string{"70 USD"}},
		"E-555 another currency":         {costs("0.1", "EUR") + hangs, "currency_mismatch", 1, []string{"0.1 EUR", "1.0 USD", "nothing is converted"}},
		"E-554 a currency change":        {usd("0.1") + costs("0.2", "EUR") + hangs, "currency_changed", 1, []string{"0.1 USD"}},
		"E-554 a counter that goes back": {usd("0.5") + usd("0.4") + hangs, "cost_regressed", 1, []string{"0.5 USD"}},
		"E-553 an invalid cost":          {usd("-1") + hangs, "invalid_cost", 1, nil},
		"E-549 no report":                {endsTurn, "cost_unavailable", 0, []string{"nothing yet"}},
		"a report without a cost":        {`{"update":{"sessionUpdate":"usage_update","used":10,"size":1000}},` + endsTurn, "cost_unavailable", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: offers + c.steps, binding: budgeted, session: "resume-if-compatible"})
			h.task("feature_dev", taskID)
			must(t, h.once())
			r := last(h.read())
			b := costHold(t, r)
			if c.reason == "" {
				if r.State != runstore.Completed || b != nil {
					t.Errorf("got %s (%s), %v", r.State, r.Reason, b)
				}
				return
			}
			if r.State != runstore.Failed || r.Reason != usageBudget || b["reason"] != c.reason || b["limit"] != 1.0 || b["required_currency"] != "USD" || b["session_id"] != "sess-1" {
				t.Errorf("got %s (%s), %v", r.State, r.Reason, b)
			}
			for _, word := range c.words {
				if !strings.Contains(string(r.Outcome.Extra["error_what"]), word) {
					t.Errorf("%s does not say %q", r.Outcome.Extra["error_what"], word)
				}
			}
			if n := h.received("session/cancel"); n != c.cancels {
				t.Errorf("%d cancels", n)
			}
			// E-556: a retry alone, and what would be reported then, changes nothing; no process is started for it.
			h.script(goesOn + usd("0.01") + endsTurn)
			h.again()
			must(t, h.once())
			r = last(h.read())
			if again := costHold(t, r); r.Reason != usageBudget || r.Process != nil || again["reason"] != c.reason || again["amount"] != b["amount"] || h.received("session/prompt") != 1 {
				t.Errorf("retried: %s (%s), process %v, %v", r.State, r.Reason, r.Process, again)
			}
			h.audited()
		})
	}
}

// E-556
func TestWhatLeadsOutOfACostBudget(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(h *house){
		"a new session":     func(h *house) { h.edit("resume-if-compatible", "new") },
		"a revised budget":  func(h *house) { h.edit("max_reported_session_cost: 1.0", "max_reported_session_cost: 2.0") },
		"no budget at all":  func(h *house) { h.edit(budgeted, "") },
		"another agent":     func(h *house) { h.edit(`adapter_version: "1"`, `adapter_version: "2"`) },
		"the same amounts":  nil,
		"the same id again": func(h *house) { h.edit("resume-if-compatible", "new") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: offers + usd("1.2") + hangs, binding: budgeted, session: "resume-if-compatible"})
			h.task("feature_dev", taskID)
			must(t, h.once())
			if r := last(h.read()); r.Reason != usageBudget {
				t.Fatalf("got %s (%s)", r.State, r.Reason)
			}
			// What a person reads names the way out.
			h.open()
			a := h.document().Assignments[0]
			h.shut()
			if !strings.Contains(a.Remedy, "session: new") || !strings.Contains(a.Remedy, "max_reported_session_cost") || !strings.Contains(a.What, "1.2 USD") {
				t.Errorf("held with %q, %q", a.What, a.Remedy)
			}
			id := "sess-2"
			if strings.Contains(name, "same") {
				id = "sess-1"
			}
			h.script(`{"handshake":{"sessionId":"` + id + `"}},{"prompt":"p"},` + usd("1.3") + endsTurn)
			if name == "a new session" || name == "another agent" {
				h.script(`{"handshake":{"sessionId":"` + id + `"}},{"prompt":"p"},` + usd("0.3") + endsTurn)
			}
			if edit != nil {
				edit(h)
			}
			h.again()
			must(t, h.once())
			r := last(h.read())
			if strings.Contains(name, "same") {
				if r.Reason != usageBudget || h.received("session/prompt") != 1 || costHold(t, r)["amount"] != 1.2 {
					t.Errorf("got %s (%s) after %d prompts: %v", r.State, r.Reason, h.received("session/prompt"), costHold(t, r))
				}
			} else if r.State != runstore.Completed || h.received("session/prompt") != 2 {
				t.Errorf("got %s (%s) after %d prompts: %v", r.State, r.Reason, h.received("session/prompt"), costHold(t, r))
			}
		})
	}
}

// E-558
func TestABudgetTakesNoDecisionBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: offers + noChange + usd("1.0") + hangs, binding: budgeted})
	h.task("feature_dev", taskID)
	must(t, h.once())
	v := h.read()
	r := last(v)
	if res := v.ResultOfRun(r.ID); r.Reason != usageBudget || res == nil || res.Status != "applied" {
		t.Errorf("got %s (%s) with the result %+v", r.State, r.Reason, res)
	}
}
