package policy_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"greatminds/supervisor/policy"
)

// A wait that has begun never lasts longer than its delay, whatever the wall clock is set to meanwhile, and is over when
// either clock says so.
func TestNoClockThatIsSetStretchesAWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := func(name string, most time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, name))
		}
		delay, waited := 1+span("delay", 24*time.Hour), span("waited", 48*time.Hour)
		now := t0.Add(span("now", 800*24*time.Hour) - 400*24*time.Hour)
		next := policy.Until(t0, waited, delay, now)
		if left := next.Sub(now); left > max(0, delay-waited) {
			t.Errorf("%v to wait at %v, of a delay of %v after %v", left, now.Sub(t0), delay, waited)
		}
		if over := !now.Before(t0.Add(delay)); over && next.After(now) {
			t.Errorf("over by the wall clock, and still %v to wait", next.Sub(now))
		}
		if unset := t0.Add(waited); policy.Until(t0, waited, delay, unset).After(t0.Add(delay)) && waited < delay {
			t.Errorf("without a jump the delay of %v is another one", delay)
		}
	})
}

// A backoff of a run and one of an account both count what was waited.
func TestWhatWasWaitedCounts(t *testing.T) {
	run, account := failedStart(t0), policy.AccountRun{RunID: "x", EndedAt: t0, Failed: true}
	for _, c := range []struct{ waited, left time.Duration }{{0, 5 * time.Second}, {2 * time.Second, 3 * time.Second}, {5 * time.Second, 0}, {time.Hour, 0}} {
		run.Waited, account.Waited = c.waited, c.waited
		v := policy.Repeat([]policy.Attempt{run}, now, limits, t0)
		a := policy.Account([]policy.AccountRun{account}, 5*time.Second, time.Minute, t0)
		if c.left == 0 {
			if v.Hold != policy.None || v.Dispatch != policy.StartupRetry || a.Hold != policy.None || a.Failures != 1 {
				t.Errorf("waited %v: got %+v, account %+v", c.waited, v, a)
			}
			continue
		}
		if !v.NextAt.Equal(t0.Add(c.left)) || !a.NextAt.Equal(t0.Add(c.left)) {
			t.Errorf("waited %v: next at %v and %v, want %v", c.waited, v.NextAt.Sub(t0), a.NextAt.Sub(t0), c.left)
		}
	}
}

// A streak is counted by the order of the claims where the clock was set back since the account was ready, and ends with the next
// run that is ready, whatever its time says.
func TestAStreakOutlastsAClockThatIsSetBack(t *testing.T) {
	back := t0.Add(-24 * time.Hour)
	ready := policy.AccountRun{RunID: "ready", ClaimedAt: t0, ReadyAt: t0.Add(time.Second), EndedAt: t0.Add(time.Minute)}
	failed := func(id string, at time.Time) policy.AccountRun {
		return policy.AccountRun{RunID: id, ClaimedAt: at, EndedAt: at.Add(time.Second), Failed: true}
	}
	before := failed("before", t0.Add(-time.Minute))
	runs := []policy.AccountRun{before, ready, failed("f1", back), failed("f2", back.Add(10*time.Second))}
	now := back.Add(11 * time.Second)
	if v := policy.Account(runs, 5*time.Second, time.Minute, now); v.Failures != 2 || v.SourceRun != "f2" || !v.NextAt.Equal(now.Add(10*time.Second)) {
		t.Errorf("got %+v, want two failures and 10s to wait", v)
	}
	again := policy.AccountRun{RunID: "again", ClaimedAt: back.Add(time.Minute), ReadyAt: back.Add(61 * time.Second), EndedAt: back.Add(2 * time.Minute)}
	if v := policy.Account(append(runs, again), 5*time.Second, time.Minute, back.Add(3*time.Minute)); v.Failures != 0 {
		t.Errorf("ready again, and got %+v", v)
	}
	if v := policy.Account(append(runs, again, failed("f3", back.Add(4*time.Minute))), 5*time.Second, time.Minute, back.Add(5*time.Minute)); v.Failures != 1 {
		t.Errorf("one failure after it, and got %+v", v)
	}
}
