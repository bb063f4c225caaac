package policy

import "time"

// Limit is a limit of an account that its provider has told of, as it is on record. The zero Limit
// is none.
type Limit struct {
	// ID names the observation, Kind is its word: rate_limit or quota_exhausted.
	ID, Kind string
	// Code is the JSON-RPC error code by which it was told, SourceRun the run that was told.
	Code      int
	SourceRun string
	// ObservedAt and Until are by the wall clock. A zero Until is ended by an operator alone.
	ObservedAt, Until time.Time
	// Waited is for how long at least that has been, by a clock that nobody can set; 0 where that is
	// not known.
	Waited time.Duration
	// Ended: an operator has ended it.
	Ended bool
}

// Holds tells why nothing new runs under the account now, and when time alone ends that: zero for
// never. It returns None where the limit is over, or was none. As with every delay, no clock that is
// set makes it longer than it was meant to be (see [Until]). A limit without an end is none that
// time can end, whatever its kind says.
func (l Limit) Holds(now time.Time) (Reason, time.Time) {
	switch {
	case l.ID == "" || l.Ended:
		return None, time.Time{}
	case l.Until.IsZero():
		return AccountQuota, time.Time{}
	}
	if next := Until(l.ObservedAt, l.Waited, l.Until.Sub(l.ObservedAt), now); now.Before(next) {
		return AccountRateLimit, next
	}
	return None, time.Time{}
}

// With is what is on record once another limit was seen: seen, which is new, and of this one what
// still holds. A quota is not used less because a rate was limited later, and a shorter limit ends
// no longer one. The id is always that of what was seen last: whoever ends a limit has looked at it.
func (l Limit) With(seen Limit, now time.Time) Limit {
	held, next := l.Holds(now)
	switch {
	case held == AccountQuota && !seen.Until.IsZero():
		seen.Kind, seen.Code, seen.SourceRun, seen.Until = l.Kind, l.Code, l.SourceRun, time.Time{}
	case held == AccountRateLimit && !seen.Until.IsZero() && next.After(seen.Until):
		seen.Until = next
	}
	return seen
}
