package audit_test

import (
	"strings"
	"testing"

	"greatminds/supervisor/audit"
)

// E-551 E-552 E-553 E-554
func TestACostAccountThatWasSetBackIsFound(t *testing.T) {
	type doc = map[string]any
	dir := finished(t)
	record := func(sequence int, change doc) doc {
		cost := doc{"amount": 0.5, "completed_prompts": 1, "currency": "USD", "error": nil, "fresh": true, "pending": false, "status": "reported"}
		for k, v := range change {
			cost[k] = v
		}
		return doc{"version": 1, "source": "acp_sdk_decoded", "ledger_sequence": sequence, "cost_accounting": cost}
	}
	outcome := func(started, stopped bool) doc {
		o := doc{"prompt_started": started, "stop_reason": nil}
		if stopped {
			o["stop_reason"] = "end_turn"
		}
		return o
	}
	for name, c := range map[string]struct {
		one, two         doc // accounts of two runs of one session
		started, stopped bool
		want             string
	}{
		"as it should be":      {nil, doc{"amount": 0.6, "completed_prompts": 2}, true, true, ""},
		"an uncertain send":    {nil, doc{"pending": true}, true, false, ""},
		"no prompt":            {nil, nil, false, false, ""},
		"pending after a stop": {nil, doc{"pending": true}, true, true, "cost_account_unsettled"},
		"settled by nobody":    {nil, nil, true, false, "cost_account_unsettled"},
		"a lower amount":       {nil, doc{"amount": 0.4}, true, true, "cost_account_reset"},
		"another currency":     {nil, doc{"currency": "EUR"}, true, true, "cost_account_reset"},
		"no amount":            {nil, doc{"amount": nil, "currency": nil}, true, true, "cost_account_reset"},
		"fewer prompts":        {nil, doc{"completed_prompts": 0}, true, true, "cost_account_reset"},
		"a doubt is gone":      {doc{"error": "cost_regressed"}, nil, true, true, "cost_account_reset"},
		"a doubt stays":        {doc{"error": "cost_regressed"}, doc{"error": "cost_regressed"}, true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := edited(t, dir, func(d doc) {
				r := member(d, "runs", "r1")
				r["session_id"], r["usage"], r["outcome"] = "s", record(5, c.one), outcome(true, true)
				r = clone(d, "runs", "r1", "r2")
				r["id"], r["sequence"], r["usage"], r["outcome"] = "r2", 99, record(9, c.two), outcome(c.started, c.stopped)
			})
			var got []string
			for _, f := range audit.Check(audit.Facts{View: v}) {
				if strings.HasPrefix(f.Code, "cost_") {
					got = append(got, f.Code+" "+f.Severity+" "+f.Place)
				}
			}
			want := ""
			if c.want != "" {
				want = c.want + " error run r2"
			}
			if strings.Join(got, "; ") != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
