package policy_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"greatminds/supervisor/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	t0     = time.Unix(1_700_000_000, 0)
	pinned = policy.Contracts{Execution: "e", Binding: "b", Schema: "s"}
	now    = policy.Candidate{Queue: "feature_dev", Revision: "r1", Pinned: pinned}
	limits = policy.Limits{MaxStartupRetries: 2, MaxNoProgressTurns: 1, RetryInitial: 5 * time.Second, RetryMax: 60 * time.Second}
)

func failedStart(at time.Time) policy.Attempt {
	return policy.Attempt{RunID: "x", Queue: "feature_dev", Revision: "r1", Pinned: pinned,
		State: "failed", Reason: "transport_failure", EndedAt: at}
}

func turn(at time.Time) policy.Attempt {
	a := failedStart(at)
	a.State, a.Reason, a.PromptStarted = "completed", "turn_ended", true
	return a
}

// E-485 E-486 E-487 E-490 E-491 E-492
func TestRepeatAfterAFailedStart(t *testing.T) {
	alter := func(f func(*policy.Attempt)) []policy.Attempt {
		a := failedStart(t0)
		f(&a)
		return []policy.Attempt{a}
	}
	three := []policy.Attempt{failedStart(t0), failedStart(t0.Add(10 * time.Second)), failedStart(t0.Add(40 * time.Second))}
	for _, c := range []struct {
		name    string
		history []policy.Attempt
		limits  policy.Limits
		at      time.Duration
		hold    policy.Reason
		next    time.Duration
	}{
		{"E-485 first failure waits the initial delay", []policy.Attempt{failedStart(t0)}, limits, 0, policy.RetryBackoff, 5 * time.Second},
		{"E-485 second failure waits twice as long", three[:2], limits, 10 * time.Second, policy.RetryBackoff, 20 * time.Second},
		{"a backoff that has passed allows", []policy.Attempt{failedStart(t0)}, limits, 5 * time.Second, policy.None, 0},
		{"the third failure exhausts two retries", three, limits, 400 * time.Second, policy.StartupRetryLimit, 0},
		{"E-486 zero retries", []policy.Attempt{failedStart(t0)}, policy.Limits{MaxNoProgressTurns: 1}, time.Hour, policy.StartupRetryLimit, 0},
		{"E-487 a started prompt", alter(func(a *policy.Attempt) { a.PromptStarted = true }), limits, time.Hour, policy.AlreadyAttempted, 0},
		{"E-488 activity before the prompt", alter(func(a *policy.Attempt) { a.PrePromptActivity = true }), limits, time.Hour, policy.AlreadyAttempted, 0},
		{"E-489 a missing executable", alter(func(a *policy.Attempt) { a.LaunchFault = true }), limits, time.Hour, policy.AlreadyAttempted, 0},
		{"E-490 a configuration failure", alter(func(a *policy.Attempt) { a.Reason = "configuration_error" }), limits, time.Hour, policy.AlreadyAttempted, 0},
		{"E-491 an interrupted run", alter(func(a *policy.Attempt) { a.State = "interrupted" }), limits, time.Hour, policy.AlreadyAttempted, 0},
		{"E-492 a recorded command", alter(func(a *policy.Attempt) { a.HasCommand = true }), limits, time.Hour, policy.AlreadyAttempted, 0},
		{"E-493 a changed contract", alter(func(a *policy.Attempt) { a.Pinned.Execution = "other" }), limits, time.Hour, policy.AlreadyAttempted, 0},
		{"a changed task is a new revision", alter(func(a *policy.Attempt) { a.Revision = "r0" }), limits, 0, policy.None, 0},
		{"a task that its run has changed", alter(func(a *policy.Attempt) { a.Revision, a.Left, a.PromptStarted = "r0", "r1", true }), limits, time.Hour, policy.AlreadyAttempted, 0},
		{"a task that was changed since", alter(func(a *policy.Attempt) { a.Revision, a.Left, a.PromptStarted = "r0", "r2", true }), limits, 0, policy.None, 0},
		{"a task that was changed before a faulty session", alter(func(a *policy.Attempt) { a.Revision, a.Left, a.Reason = "r0", "r1", "protocol_error" }), limits, time.Hour, policy.AlreadyAttempted, 0},
		{"a task that was changed during a failed start", alter(func(a *policy.Attempt) { a.Revision, a.Left = "r0", "r1" }), limits, 0, policy.None, 0},
		{"E-499 an operator's retry", alter(func(a *policy.Attempt) { a.RetryAuthorized = true }), limits, 0, policy.None, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := policy.Repeat(c.history, now, c.limits, t0.Add(c.at))
			if got.Hold != c.hold {
				t.Fatalf("got hold %q, want %q", got.Hold, c.hold)
			}
			if c.next != 0 && !got.NextAt.Equal(t0.Add(c.next)) {
				t.Fatalf("got next %v, want %v", got.NextAt.Sub(t0), c.next)
			}
		})
	}
}

// E-517 E-518 E-519 E-520 E-521 E-523
func TestTurnsWithoutProgress(t *testing.T) {
	edit := func(a policy.Attempt, f func(*policy.Attempt)) policy.Attempt { f(&a); return a }
	two := policy.Limits{MaxNoProgressTurns: 2, RetryInitial: 5 * time.Second, RetryMax: time.Minute}
	for _, c := range []struct {
		name    string
		history []policy.Attempt
		limits  policy.Limits
		at      time.Duration
		hold    policy.Reason
		turns   int
	}{
		{"E-524 one turn at the default", []policy.Attempt{turn(t0)}, limits, time.Hour, policy.NoProgressLimit, 1},
		{"E-525 a larger budget waits first", []policy.Attempt{turn(t0)}, two, time.Second, policy.NoProgressBackoff, 1},
		{"E-525 and then goes on", []policy.Attempt{turn(t0)}, two, 5 * time.Second, policy.None, 1},
		{"E-521 an edit alone resets nothing", []policy.Attempt{edit(turn(t0), func(a *policy.Attempt) { a.Revision = "r0" })}, limits, time.Hour, policy.NoProgressLimit, 1},
		{"E-519 progress ends the count", []policy.Attempt{turn(t0), edit(turn(t0), func(a *policy.Attempt) { a.Progress = true })}, limits, 0, policy.None, 0},
		{"E-520 another stage ends the count", []policy.Attempt{turn(t0), edit(turn(t0), func(a *policy.Attempt) { a.Queue = "feature_test"; a.Revision = "r9" })}, limits, 0, policy.None, 0},
		{"E-527 failed work after a prompt", []policy.Attempt{turn(t0), edit(turn(t0), func(a *policy.Attempt) { a.State = "failed" })}, two, time.Hour, policy.AlreadyAttempted, 1},
		{"E-528 a question outlasts an edit", []policy.Attempt{edit(turn(t0), func(a *policy.Attempt) {
			a.HasResult, a.ResultStatus, a.Decision, a.Revision = true, "applied", "needs_input", "r0"
		})}, two, time.Hour, policy.HumanInput, 1},
		{"a rejected decision", []policy.Attempt{edit(turn(t0), func(a *policy.Attempt) { a.HasResult, a.ResultStatus = true, "rejected" })}, two, time.Hour, policy.ResultRejected, 1},
		{"E-533 an operator's retry keeps the count", []policy.Attempt{edit(turn(t0), func(a *policy.Attempt) { a.RetryAuthorized = true })}, limits, 0, policy.None, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := policy.Repeat(c.history, now, c.limits, t0.Add(c.at))
			if got.Hold != c.hold || got.Turns != c.turns {
				t.Fatalf("got %q with %d turns, want %q with %d", got.Hold, got.Turns, c.hold, c.turns)
			}
		})
	}
}

// E-502 E-505 E-508 E-509 E-511
func TestAccountBackoff(t *testing.T) {
	fail := func(s int) policy.AccountRun {
		return policy.AccountRun{RunID: "f", EndedAt: t0.Add(time.Duration(s) * time.Second), Failed: true}
	}
	ready := policy.AccountRun{RunID: "ok", EndedAt: t0.Add(time.Hour), ReadyAt: t0.Add(15 * time.Second)}
	initial, max := 5*time.Second, 60*time.Second
	for _, c := range []struct {
		name     string
		runs     []policy.AccountRun
		at       int
		hold     policy.Reason
		failures int
	}{
		{"none", nil, 0, policy.None, 0},
		{"one failure", []policy.AccountRun{fail(0)}, 4, policy.AccountBackoff, 1},
		{"waited out", []policy.AccountRun{fail(0)}, 5, policy.None, 1},
		{"E-502 doubled", []policy.AccountRun{fail(0), fail(10)}, 19, policy.AccountBackoff, 2},
		{"E-508 reset at its own time", []policy.AccountRun{fail(0), fail(10), ready}, 16, policy.None, 0},
		{"E-508 later failures count again", []policy.AccountRun{fail(0), ready, fail(20)}, 24, policy.AccountBackoff, 1},
		{"a login is its own hold", []policy.AccountRun{{RunID: "w", WaitingAuth: true}}, 0, policy.AccountNeedsLogin, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := policy.Account(c.runs, initial, max, t0.Add(time.Duration(c.at)*time.Second))
			if got.Hold != c.hold || got.Failures != c.failures {
				t.Fatalf("got %q after %d failures, want %q after %d", got.Hold, got.Failures, c.hold, c.failures)
			}
		})
	}
}

// waited lets time go by as the daemon does, from one next time to the other, and returns how long
// that took in all. It gives up after a day.
func waited(from time.Time, next func(time.Time) time.Time) time.Duration {
	now := from
	for now.Sub(from) < 24*time.Hour {
		at := next(now)
		if !now.Before(at) {
			break
		}
		now = at
	}
	return now.Sub(from)
}

func TestNoClockJumpMakesAWaitLongerThanItsMaximum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		failures := rapid.IntRange(1, 40).Draw(t, "failures")
		jump := time.Duration(rapid.Int64Range(-86400, 86400).Draw(t, "jump")) * time.Second
		after := time.Duration(rapid.Int64Range(0, 60).Draw(t, "after")) * time.Second
		from := t0.Add(after + jump)
		history, runs := make([]policy.Attempt, failures), make([]policy.AccountRun, failures)
		for i := range history {
			history[i], runs[i] = failedStart(t0), policy.AccountRun{EndedAt: t0, Failed: true}
		}
		l := limits
		l.MaxStartupRetries = 50
		if took := waited(from, func(at time.Time) time.Time { return policy.Repeat(history, now, l, at).NextAt }); took > l.RetryMax+time.Second {
			t.Fatalf("a retry waited %v after %d failures and a jump of %v", took, failures, jump)
		}
		if took := waited(from, func(at time.Time) time.Time { return policy.Account(runs, time.Second, time.Minute, at).NextAt }); took > time.Minute+time.Second {
			t.Fatalf("an account waited %v after %d failures and a jump of %v", took, failures, jump)
		}
	})
}

// E-502
func TestAFailureAfterTheClockWasSetBackDelaysToo(t *testing.T) {
	runs := []policy.AccountRun{{RunID: "before", EndedAt: t0.Add(2 * time.Hour), Failed: true}, {RunID: "after", EndedAt: t0, Failed: true}}
	v := policy.Account(runs, 5*time.Second, time.Minute, t0.Add(time.Second))
	if v.Hold != policy.AccountBackoff || v.SourceRun != "after" || !v.NextAt.Equal(t0.Add(10*time.Second)) {
		t.Fatalf("got %+v", v)
	}
}
