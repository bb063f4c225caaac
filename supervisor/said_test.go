package supervisor

import (
	"encoding/json"
	"strings"
	"testing"

	"greatminds/runstore"
)

// What is said of a failure stands in the run's outcome once it has ended, and in the words of the
// hold that it leaves; what was left out of the conversation is counted there.
func TestAnEndedRunStillSaysWhatFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan         plan
		member, word string
	}{
		"configuration": {plan{steps: `{"handshake":{}},{"prompt":"p"},{"end_turn":"p"}`, binding: ", model: none-such"}, "error_what", "none-such"},
		"prompt budget": {plan{steps: `{"handshake":{}}`, binding: ", max_prompt_bytes: 10"}, "error_what", "allows 10"},
		"login":         {plan{steps: `{"handshake":{}}`, agent: ", required_env: [NOBODY_SETS_THIS]"}, "error_what", "NOBODY_SETS_THIS"},
		"left out":      {plan{steps: talking + `{"raw":"no protocol\n"},{"exit":{"code":3}}`}, "protocol_counts", `"garbage_lines":1`},
		"no answer":     {plan{steps: talking + `{"raw":"{\"jsonrpc\":\"2.0\",\"id\":3}\n"},{"until_eof":true}`}, "error_what", "cannot be used: it has neither a result nor an error"},
		"capability":    {plan{steps: `{"handshake":{}}`, agent: ", required_capabilities: [a.b]"}, "error_what", "a.b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, c.plan)
			h.task("feature_dev", taskID)
			must(t, h.once())
			v := h.read()
			r := last(v)
			if got := string(r.Outcome.Extra[c.member]); !strings.Contains(got, c.word) {
				t.Errorf("%s (%s): got %q", r.State, r.Reason, got)
			}
			var what string
			if said := r.Outcome.Extra["error_what"]; r.State == runstore.Failed && said != nil {
				must(t, json.Unmarshal(said, &what))
				h.start()
				if a := h.document().Assignments[0]; !strings.Contains(a.What, what) {
					t.Errorf("the hold says %q, and not %q", a.What, what)
				}
			}
		})
	}
}
