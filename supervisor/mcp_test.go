package supervisor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// toolCalls are the calls of MCP tools that the agent made, in order.
func (l *lab) toolCalls(t *testing.T) (calls []toolCall) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(l.script("dev")), "trace.jsonl"))
	must(t, err)
	for _, line := range strings.Split(string(data), "\n") {
		var e struct {
			Kind, Tool, Out string
			IsError         bool `json:"is_error"`
		}
		if json.Unmarshal([]byte(line), &e) != nil || e.Kind != "mcp" {
			continue
		}
		c := toolCall{Tool: e.Tool, IsError: e.IsError, Text: e.Out}
		must(t, json.Unmarshal([]byte(e.Out), &c.Answer))
		calls = append(calls, c)
	}
	return calls
}

type toolCall struct {
	Tool    string
	IsError bool
	Text    string
	Answer  struct {
		Status    string
		RequestID string         `json:"request_id"`
		Output    map[string]any `json:"output_preview"`
		Error     struct {
			Code    string
			Reasons []struct{ Code, Place, What, Remedy string }
		}
	}
}

// bare is a JSON text without white space.
func bare(text string) string { return strings.Join(strings.Fields(text), "") }

// A decision that is submitted over MCP is judged, stored and applied as one of the command line,
// once: the wrong one is refused with its reasons and mended in the turn, and the same one over the
// command line gets the receipt that is there. Whether the server is the agent's own child, or was
// left behind by a wrapper in a session of its own, is all one.
//
// E-178 E-180 E-191 E-213
func TestADecisionOverMCPIsAppliedOnce(t *testing.T) {
	const wrong = `{"mcp":"greatminds","call":"submit","arguments":{"decision":"handoff","payload":{"to_queue":"verified","blocks":[{"kind":"review","outcome":"approved"}]}}VIA}`
	const right = `{"mcp":"greatminds","call":"submit","arguments":{"decision":"handoff","payload":{"to_queue":"verified","blocks":[` +
		`{"kind":"review","outcome":"approved","commit":"${base}","notes":"fine"}]}}}`
	for name, via := range map[string]string{"child": "", "left behind": `,"via":["setsid","-f"]`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReview(t, "main", strings.Replace(wrong, "VIA", via, 1), right)
			r.once(t)
			r.merged(t)
			r.nothingLeft(t)
			calls := r.toolCalls(t)
			if len(calls) != 2 || !calls[0].IsError || calls[1].IsError {
				t.Fatalf("got the calls %+v", calls)
			}
			refused := calls[0].Answer.Error
			if refused.Code != "decision_refused" || len(refused.Reasons) == 0 || !strings.Contains(refused.Reasons[0].What, "review.commit") ||
				refused.Reasons[0].Place != "payload.blocks[0].commit" || refused.Reasons[0].Code == "" || refused.Reasons[0].Remedy == "" {
				t.Errorf("the wrong decision was refused with %+v", refused)
			}
			again := r.traced(t, func(e map[string]any) bool { return e["kind"] == "cli" })
			// The trace holds the end of what the command line printed, which is the same JSON indented.
			if rc, out := again["rc"], bare(again["out"].(string)); rc != 0.0 || len(out) < 200 || !strings.HasSuffix(bare(calls[1].Text), out) {
				t.Errorf("the tool's receipt is %s, the command line's ends with %v %s", calls[1].Text, rc, out)
			}
			if calls[1].Answer.Status != "received" {
				t.Errorf("the receipt is %+v", calls[1].Answer)
			}
			if results := r.status(t).Results; len(results) != 1 {
				t.Errorf("%d results are on record", len(results))
			}
		})
	}
}
