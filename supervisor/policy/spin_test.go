package policy_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"greatminds/supervisor/policy"
)

// Whatever an agent does in its runs, edits of its task included, it is prompted no more often than the
// binding's budget of turns says, until a person or an accepted decision comes. E-245 E-491 E-518 E-527
func TestNoAgentGivesItselfAnotherPrompt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := policy.Limits{MaxStartupRetries: rapid.IntRange(0, 3).Draw(t, "startups"), MaxNoProgressTurns: rapid.IntRange(1, 4).Draw(t, "turns"),
			RetryInitial: 5 * time.Second, RetryMax: time.Minute}
		at, revision, prompts, faults := t0, 0, 0, 0
		var history []policy.Attempt
		for n := range 40 {
			at = at.Add(time.Hour)
			c := policy.Candidate{Queue: "feature_dev", Revision: fmt.Sprint(revision), Pinned: pinned}
			if policy.Repeat(history, c, l, at).Hold != policy.None {
				break
			}
			a := policy.Attempt{RunID: fmt.Sprint(n), Queue: c.Queue, Revision: c.Revision, Pinned: pinned, EndedAt: at,
				State: rapid.SampledFrom([]string{"completed", "failed", "cancelled", "interrupted"}).Draw(t, "state")}
			switch a.State {
			case "completed":
				a.Reason, a.PromptStarted = "turn_ended", true
			case "failed":
				a.Reason = rapid.SampledFrom([]string{"transport_failure", "timeout", "protocol_error", "account_rate_limit"}).Draw(t, "reason")
				a.PromptStarted = rapid.Bool().Draw(t, "prompted")
			default:
				a.PromptStarted = true
			}
			if a.PromptStarted && rapid.Bool().Draw(t, "decides") {
				a.HasResult = true
				a.ResultStatus = rapid.SampledFrom([]string{"applied", "rejected", "abandoned"}).Draw(t, "result")
				a.Decision = rapid.SampledFrom([]string{"needs_input", "no_change"}).Draw(t, "decision")
			}
			if rapid.Bool().Draw(t, "edits") {
				revision++
				a.Left = fmt.Sprint(revision)
			}
			switch {
			case a.PromptStarted:
				prompts++
			case !a.StartupFailure():
				faults++ // without a pause: failed starts wait for their account
			}
			history = append(history, a)
		}
		if prompts > l.MaxNoProgressTurns || faults > 1 {
			t.Fatalf("prompted %d times with a budget of %d turns, and %d faulty sessions", prompts, l.MaxNoProgressTurns, faults)
		}
	})
}
