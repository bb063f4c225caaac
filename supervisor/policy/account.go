package policy

import "time"

// AccountRun is what the shared backoff needs to know of one run of an account.
type AccountRun struct {
	RunID string
	// ClaimedAt is by the wall clock, like the other times; the order of the runs is not.
	ClaimedAt, EndedAt time.Time
	// Waited is as in [Attempt].
	Waited time.Duration
	// Failed marks a recognized startup failure (see Attempt.StartupFailure).
	Failed bool
	// ReadyAt is the run's immutable startup_ready_at, zero without one.
	ReadyAt time.Time
	// WaitingAuth: the run waits for a login.
	WaitingAuth bool
}

// AccountVerdict is one account's entry in `run status`.
type AccountVerdict struct {
	Hold     Reason
	Failures int
	NextAt   time.Time
	// SourceRun is the run that the hold comes from; without a hold, the last that failed.
	SourceRun string
	// Limit is the limit that holds the account, also where another hold is told first; else zero.
	Limit Limit
}

// Account judges one account by all of its runs, in the order of their claims.
//
// Failures after the newest startup_ready_at form the streak; the end of the last of them starts
// the delay. A run without the marker resets nothing. Where the clock was set back between two
// claims their times do not compare, and the order of the claims counts. Spec: "Shared account startup backoff".
func Account(runs []AccountRun, initial, max time.Duration, now time.Time) AccountVerdict {
	for _, r := range runs {
		if r.WaitingAuth {
			return AccountVerdict{Hold: AccountNeedsLogin, SourceRun: r.RunID}
		}
	}
	byTime, byClaim := lastReady(runs)
	ready := byTime
	if byClaim.ClaimedAt.Before(byTime.ClaimedAt) {
		ready = byClaim // the clock was set back between the two
	}
	var v AccountVerdict
	var last time.Time
	var waited time.Duration
	later, past := ready.RunID == "", byClaim.RunID != "" // whether the run was claimed after ready, and before byClaim
	for _, r := range runs {
		after := r.EndedAt.After(ready.ReadyAt)
		if setBack := later == r.ClaimedAt.Before(ready.ClaimedAt) && !r.ClaimedAt.Equal(ready.ClaimedAt); setBack {
			after = later
		}
		// Before both, it has left the store or will (runstore.View.AccountRuns), and must not count until then.
		after = after && !(past && r.EndedAt.Before(byTime.ReadyAt))
		later, past = later || r.RunID == ready.RunID, past && r.RunID != byClaim.RunID
		if !r.Failed || !after {
			continue
		}
		v.Failures++
		// One that ended before the clock was set back must not hide those that came after.
		if !r.EndedAt.Before(last) || last.Sub(now) > skew {
			last, waited, v.SourceRun = r.EndedAt, r.Waited, r.RunID
		}
	}
	if v.Failures == 0 {
		return v
	}
	if next := Until(last, waited, Backoff(v.Failures, initial, max), now); now.Before(next) {
		v.Hold, v.NextAt = AccountBackoff, next
	}
	return v
}

// lastReady are the runs that were ready last, by the time and by the claim, zero where none was. They
// are two only where the clock was set back, or runs overlap; the store keeps both, so that they are
// the same however much of the history has left.
func lastReady(runs []AccountRun) (byTime, byClaim AccountRun) {
	for _, r := range runs {
		if r.ReadyAt.IsZero() {
			continue
		}
		if byClaim = r; !r.ReadyAt.Before(byTime.ReadyAt) {
			byTime = r
		}
	}
	return byTime, byClaim
}

// With is the verdict under a limit that the account's provider has told of. A login comes before
// it, and it comes before the delay after failed starts (reference 3).
func (v AccountVerdict) With(limit Limit, now time.Time) AccountVerdict {
	held, next := limit.Holds(now)
	if held == None {
		return v
	}
	v.Limit = limit
	if v.Hold != AccountNeedsLogin {
		v.Hold, v.NextAt, v.SourceRun = held, next, limit.SourceRun
	}
	return v
}
