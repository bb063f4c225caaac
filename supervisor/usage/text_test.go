package usage_test

import (
	"encoding/json"
	"strings"
	"testing"

	"greatminds/supervisor/usage"
)

// What a person reads of a run's use never makes an amount more certain than it is.
//
// E-537 E-538 E-539 E-542
func TestTextOfARunsUse(t *testing.T) {
	const sure = `"cost_accounting":{"amount":0.42,"completed_prompts":1,"currency":"USD","error":null,"fresh":true,"pending":false,"status":"reported"}`
	for _, c := range []struct{ record, want string }{
		{``, ""},
		{`{"version":2,` + sure + `}`, ""},
		{`{"version":1,"session":{"at":1,"data":{"context":{"status":"reported","values":{"used":12345,"size":200000}},"cost":{"status":"reported"}}},` + sure + `}`,
			"context 12k of 200k tokens (occupancy); reported session cost 0.42 USD (as the agent reports it, not a bill)"},
		{`{"version":1,` + strings.Replace(sure, `"pending":false`, `"pending":true`, 1) + `}`,
			"reported session cost 0.42 USD (as the agent reports it, not a bill), a prompt is pending"},
		{`{"version":1,` + strings.Replace(sure, `"error":null`, `"error":"cost_regressed"`, 1) + `}`,
			"reported session cost 0.42 USD (as the agent reports it, not a bill), in doubt: cost_regressed"},
		{`{"version":1,"cost_accounting":{"amount":null,"completed_prompts":0,"currency":null,"error":null,"fresh":false,"pending":false,"status":"missing"}}`,
			"session cost not reported"},
		{`{"version":1,"cost_accounting":{"amount":null,"completed_prompts":0,"currency":null,"error":"invalid_cost","fresh":false,"pending":false,"status":"invalid"}}`,
			"session cost invalid, in doubt: invalid_cost"},
		{`{"version":1,"session":{"at":1,"data":{"context":{"status":"invalid"},"cost":{"status":"missing"}}},"tokens":{"at":1,"data":{"scope":"unknown","status":"invalid"}}}`,
			"context invalid (occupancy); last prompt's tokens invalid"},
		{`{"version":1,"tokens":{"at":1,"data":{"scope":"unknown","status":"reported","values":{"inputTokens":5,"totalTokens":12000000}}}}`,
			"last prompt's tokens as reported: 5 in, 12M total"},
	} {
		if got := usage.Text(json.RawMessage(c.record)); got != c.want {
			t.Errorf("%s:\ngot  %q\nwant %q", c.record, got, c.want)
		}
	}
}
