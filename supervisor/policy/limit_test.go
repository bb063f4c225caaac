package policy_test

import (
	"testing"
	"time"

	"greatminds/supervisor/policy"
)

func second(n int) time.Time { return t0.Add(time.Duration(n) * time.Second) }

// rate is a limit that was seen at a second and told to end at another; quota is one without an end.
func rate(id string, seen, until int) policy.Limit {
	return policy.Limit{ID: id, Kind: "rate_limit", Code: 429, SourceRun: "run-" + id, ObservedAt: second(seen), Until: second(until)}
}

func quota(id string, seen int) policy.Limit {
	return policy.Limit{ID: id, Kind: "quota_exhausted", Code: 402, SourceRun: "run-" + id, ObservedAt: second(seen)}
}

func TestALimitHoldsItsTimeAndNoLonger(t *testing.T) {
	waited := func(l policy.Limit, seconds int) policy.Limit {
		l.Waited = time.Duration(seconds) * time.Second
		return l
	}
	ended := func(l policy.Limit) policy.Limit { l.Ended = true; return l }
	for _, c := range []struct {
		name string
		l    policy.Limit
		at   int
		want policy.Reason
		next int // 0 for never
	}{
		{"none", policy.Limit{}, 5, policy.None, 0},
		{"a rate limit", rate("a", 0, 60), 0, policy.AccountRateLimit, 60},
		{"a moment before its end", rate("a", 0, 60), 59, policy.AccountRateLimit, 60},
		{"at its end", rate("a", 0, 60), 60, policy.None, 0},
		{"ended by an operator", ended(rate("a", 0, 60)), 5, policy.None, 0},
		{"a quota", quota("a", 0), 1_000_000, policy.AccountQuota, 0},
		{"a quota ended by an operator", ended(quota("a", 0)), 5, policy.None, 0},
		{"a quota when the clock was set back", quota("a", 0), -100_000, policy.AccountQuota, 0},
		{"the clock was set back: nobody knows how long it was", rate("a", 0, 60), -3600, policy.None, 0},
		{"readings that seem to run backward", rate("a", 0, 60), -1, policy.AccountRateLimit, 59},
		{"the clock was set forward", rate("a", 0, 60), 100_000, policy.None, 0},
		{"waited in full, whatever the clock says", waited(rate("a", 0, 60), 60), 1, policy.None, 0},
		{"waited in part", waited(rate("a", 0, 60), 50), 1, policy.AccountRateLimit, 11},
		{"a rate limit without an end waits for a person", quota("a", 0), 5, policy.AccountQuota, 0},
		{"an end before its beginning", rate("a", 60, 0), 61, policy.None, 0},
	} {
		got, next := c.l.Holds(second(c.at))
		if want := second(c.next); got != c.want || c.next == 0 && !next.IsZero() || c.next != 0 && !next.Equal(want) {
			t.Errorf("%s: got %q until %v, want %q until %d", c.name, got, next, c.want, c.next)
		}
	}
}

func TestALaterLimitEndsNoEarlierOne(t *testing.T) {
	resumed := quota("a", 0)
	resumed.Ended = true
	for _, c := range []struct {
		name     string
		old, new policy.Limit
		kind     string
		source   string
		until    int // 0 for no end
	}{
		{"the first", policy.Limit{}, rate("b", 5, 65), "rate_limit", "run-b", 65},
		{"a longer one extends", rate("a", 0, 60), rate("b", 5, 65), "rate_limit", "run-b", 65},
		{"a shorter one leaves the end", rate("a", 0, 600), rate("b", 5, 65), "rate_limit", "run-b", 600},
		{"one after the end of the first", rate("a", 0, 4), rate("b", 5, 65), "rate_limit", "run-b", 65},
		{"a quota after a rate limit", rate("a", 0, 600), quota("b", 5), "quota_exhausted", "run-b", 0},
		{"a rate limit does not end a quota", quota("a", 0), rate("b", 5, 65), "quota_exhausted", "run-a", 0},
		{"a quota after a quota", quota("a", 0), quota("b", 5), "quota_exhausted", "run-b", 0},
		{"a rate limit after a quota that was ended", resumed, rate("b", 5, 65), "rate_limit", "run-b", 65},
		{"the clock was set back by an hour meanwhile", rate("a", 3600, 4200), rate("b", 5, 65), "rate_limit", "run-b", 65},
	} {
		got := c.old.With(c.new, second(5))
		if got.ID != "b" || !got.ObservedAt.Equal(second(5)) || got.Kind != c.kind || got.SourceRun != c.source ||
			(c.until == 0) != got.Until.IsZero() || c.until != 0 && !got.Until.Equal(second(c.until)) {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}

// A login comes before a limit, a limit before the delay after failed starts, and the streak of
// failures is told all the same.
func TestALimitHasItsPlaceAmongTheHoldsOfAnAccount(t *testing.T) {
	failed := policy.AccountRun{RunID: "f", EndedAt: t0, Failed: true}
	login := policy.AccountRun{RunID: "l", WaitingAuth: true}
	for _, c := range []struct {
		name   string
		runs   []policy.AccountRun
		limit  policy.Limit
		want   policy.Reason
		next   int
		source string
	}{
		{"a limit alone", nil, rate("a", 0, 60), policy.AccountRateLimit, 60, "run-a"},
		{"a limit and a delay", []policy.AccountRun{failed}, rate("a", 0, 60), policy.AccountRateLimit, 60, "run-a"},
		{"a quota and a delay", []policy.AccountRun{failed}, quota("a", 0), policy.AccountQuota, 0, "run-a"},
		{"a limit and a login", []policy.AccountRun{login}, rate("a", 0, 60), policy.AccountNeedsLogin, 0, "l"},
		{"a delay that outlasts the limit", []policy.AccountRun{failed}, rate("a", -60, 0), policy.AccountBackoff, 5, "f"},
	} {
		v := policy.Account(c.runs, 5*time.Second, time.Minute, second(1)).With(c.limit, second(1))
		if v.Hold != c.want || v.SourceRun != c.source || (c.next == 0) != v.NextAt.IsZero() || c.next != 0 && !v.NextAt.Equal(second(c.next)) {
			t.Errorf("%s: got %+v", c.name, v)
		}
		if held, _ := c.limit.Holds(second(1)); (held != policy.None) != (v.Limit.ID != "") {
			t.Errorf("%s: the limit that holds is %+v", c.name, v.Limit)
		}
		if want := map[bool]int{true: 1}[len(c.runs) == 1 && c.runs[0].Failed]; v.Failures != want {
			t.Errorf("%s: %d failures, want %d", c.name, v.Failures, want)
		}
	}
}
