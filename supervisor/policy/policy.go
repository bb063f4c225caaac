// Package policy decides, from durable history alone, whether a task may be attempted
// again and when. Everything here is pure: values in, verdict out; no clock, no store.
//
// The invariant kept: a verdict depends only on what the store acknowledged, so a restart
// never changes it, and nothing after a prompt is ever repeated without a person.
// Spec: "Bounded startup retries", "Shared account startup backoff",
// "Bounded turns without workflow progress"; reference 3 for the limits that a provider tells of.
package policy

import (
	"math"
	"time"
)

// Reason says why a task is not attempted now, in the words of assignments[].reason.
type Reason string

// The reasons a verdict can give. None means: nothing here stands against an attempt.
const (
	None               Reason = ""
	ResultRejected     Reason = "result_rejected"
	HumanInput         Reason = "human_input_required"
	NoChange           Reason = "no_change_reported"
	AlreadyAttempted   Reason = "revision_already_attempted"
	NoProgressLimit    Reason = "no_progress_limit"
	NoProgressBackoff  Reason = "no_progress_backoff"
	StartupRetryLimit  Reason = "startup_retry_limit"
	RetryBackoff       Reason = "retry_backoff"
	AccountBackoff     Reason = "account_backoff"
	AccountRateLimit   Reason = "account_rate_limit"
	AccountQuota       Reason = "account_quota_exhausted"
	AccountNeedsLogin  Reason = "account_authentication_required"
	StartupRetry       Reason = "startup_retry_dispatch"
	NoProgressContinue Reason = "no_progress_continuation"
)

// Contracts are the pinned identities that must be unchanged for any automatic repeat.
type Contracts struct {
	Execution, Binding, Schema string
}

// Attempt is what the policy needs to know of one ended run.
type Attempt struct {
	RunID    string
	Queue    string
	Revision string
	// Left is the revision in which the run left its task where that was changed while the run was at
	// work; empty where it was not, or where that is not known.
	Left   string
	Pinned Contracts
	// State is the run's terminal state; Reason the run's own reason word.
	State, Reason string
	EndedAt       time.Time
	// Waited is for how long at least the run has been over by a clock that nobody can set; 0 where
	// that is not known.
	Waited time.Duration
	// PromptStarted, PrePromptActivity and LaunchFault come from the durable outcome.
	// A missing outcome counts as a started prompt: unknown effects are never repeated.
	PromptStarted, PrePromptActivity bool
	// LaunchFault is a missing executable or a permission error at exec.
	LaunchFault bool
	// HasCommand and HasResult: the run left a recorded command or a typed result.
	HasCommand, HasResult bool
	// Decision and ResultStatus describe the run's result, empty without one.
	Decision, ResultStatus string
	// Progress: an applied handoff or blocked decision moved the task.
	Progress bool
	// Interactive runs are paced by a person and never counted.
	Interactive bool
	// RetryAuthorized: the operator allowed one more attempt after this run.
	RetryAuthorized bool
}

// StartupFailure tells whether the attempt failed before any effect was possible.
// E-487..E-492.
func (a Attempt) StartupFailure() bool {
	return a.State == "failed" && (a.Reason == "transport_failure" || a.Reason == "timeout") &&
		!a.PromptStarted && !a.PrePromptActivity && !a.LaunchFault && !a.HasCommand && !a.HasResult
}

// Candidate is the task as it stands now under the current contracts.
type Candidate struct {
	Queue    string
	Revision string
	Pinned   Contracts
}

// Limits are the binding's budgets.
type Limits struct {
	MaxStartupRetries, MaxNoProgressTurns int
	RetryInitial, RetryMax                time.Duration
}

// Verdict answers whether one task may be attempted. The zero verdict allows it.
type Verdict struct {
	// Hold is None when an attempt may be made.
	Hold Reason
	// NextAt is when a backoff ends, zero where time alone changes nothing.
	NextAt time.Time
	// Dispatch is StartupRetry or NoProgressContinue where the attempt is an automatic repeat.
	Dispatch Reason
	// Failures counts startup failures of this revision, Turns the turns without progress.
	Failures, Turns int
	// RetryOf is the run that an automatic repeat repeats.
	RetryOf string
}

// Repeat judges a task by its ended runs, oldest first, of background and interactive kind alike.
// Spec: "Bounded startup retries", "Bounded turns without workflow progress".
func Repeat(history []Attempt, c Candidate, l Limits, now time.Time) Verdict {
	v := Verdict{Failures: startupFailures(history, c.Revision), Turns: turnsWithoutProgress(history, c.Queue)}
	if len(history) == 0 {
		return v
	}
	last := history[len(history)-1]
	if last.RetryAuthorized {
		return v
	}
	if last.Progress {
		// The task has moved since, or was resumed: that is workflow progress. E-151, E-520.
		return v
	}
	if last.Queue != c.Queue {
		return v // another stage: an operator's transition is progress too
	}
	same := last.Revision == c.Revision
	if hold := decisionHold(last, same); hold != None {
		v.Hold = hold
		return v
	}
	if same && last.StartupFailure() {
		return startupVerdict(v, last, c, l, now)
	}
	if v.Turns > 0 {
		return progressVerdict(v, last, c, l, now)
	}
	if same || last.Left == c.Revision && !last.StartupFailure() {
		v.Hold = AlreadyAttempted // an agent that edits its task must not give itself another attempt
	}
	return v
}

// decisionHold is the explicit hold of the last decision; needs_input and no_change outlast
// an edit of the task (E-528), a rejection only concerns the revision it was made for.
func decisionHold(last Attempt, same bool) Reason {
	switch {
	case last.ResultStatus == "rejected" && same:
		return ResultRejected
	case last.ResultStatus == "abandoned" && same:
		return AlreadyAttempted
	case last.ResultStatus == "applied" && last.Decision == "needs_input":
		return HumanInput
	case last.ResultStatus == "applied" && last.Decision == "no_change":
		return NoChange
	}
	return None
}

func startupVerdict(v Verdict, last Attempt, c Candidate, l Limits, now time.Time) Verdict {
	switch {
	case last.Pinned != c.Pinned:
		v.Hold = AlreadyAttempted // a contract change authorizes no replay, E-493
	case v.Failures > l.MaxStartupRetries:
		v.Hold = StartupRetryLimit
	default:
		return after(v, last, Backoff(v.Failures, l.RetryInitial, l.RetryMax), RetryBackoff, StartupRetry, now)
	}
	return v
}

func progressVerdict(v Verdict, last Attempt, c Candidate, l Limits, now time.Time) Verdict {
	switch {
	case v.Turns >= l.MaxNoProgressTurns:
		v.Hold = NoProgressLimit
	case last.State != "completed" || last.Reason != "turn_ended" || last.HasResult || last.Pinned != c.Pinned:
		v.Hold = AlreadyAttempted
	default:
		return after(v, last, l.RetryInitial, NoProgressBackoff, NoProgressContinue, now)
	}
	return v
}

func after(v Verdict, last Attempt, delay time.Duration, hold, dispatch Reason, now time.Time) Verdict {
	v.RetryOf = last.RunID
	if next := Until(last.EndedAt, last.Waited, delay, now); now.Before(next) {
		v.Hold, v.NextAt = hold, next
		return v
	}
	v.Dispatch = dispatch
	return v
}

// Backoff is the delay after the n-th failure: initial doubled n-1 times, capped at max.
func Backoff(failures int, initial, max time.Duration) time.Duration {
	if failures < 1 {
		return 0
	}
	doublings := min(failures-1, 20)
	if float64(initial)*math.Pow(2, float64(doublings)) >= float64(max) {
		return max
	}
	return initial << doublings
}

// skew is how far two readings of one clock may seem to run backward without meaning anything.
const skew = time.Second

// Until is when a delay after an ended run is over. Where the run ended in what is now the future,
// the clock was set back and nobody knows how much time has passed: then it is over at once, since
// a bound that moved along with the clock would be waited for until the clock has caught up. And
// what was waited counts, whatever the clock was set to meanwhile.
func Until(ended time.Time, waited, delay time.Duration, now time.Time) time.Time {
	if ended.Sub(now) > skew || waited >= delay {
		return now
	}
	next := ended.Add(delay)
	if left := now.Add(delay - waited); left.Before(next) {
		return left
	}
	return next
}

func startupFailures(history []Attempt, revision string) int {
	n := 0
	for _, a := range history {
		if a.Revision == revision && a.StartupFailure() {
			n++
		}
	}
	return n
}

// turnsWithoutProgress counts completed background turns in the same queue stage, newest first,
// back to the last accepted transition or another stage.
func turnsWithoutProgress(history []Attempt, queue string) int {
	n := 0
	for i := len(history) - 1; i >= 0; i-- {
		a := history[i]
		if a.Queue != queue || a.Progress {
			break
		}
		if a.State == "completed" && !a.Interactive {
			n++
		}
	}
	return n
}
