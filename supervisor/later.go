package supervisor

import (
	"sync"
	"time"
)

// Pauses between two tries of something that did not work out: the first, and the longest.
const (
	firstPause = time.Second
	mostPause  = 30 * time.Second
)

// later says when what did not work out is tried again. It knows nothing of what that is; a key
// names it. What it forgets may be tried at once.
type later struct {
	mu     sync.Mutex
	pauses map[string]pause
}

type pause struct {
	until time.Time
	span  time.Duration
	tries int // in a row
}

// off puts key off, twice as long each time in a row, and returns until when and how often.
func (l *later) off(key string, now time.Time) (until time.Time, tries int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pauses[key]
	p.span = min(max(2*p.span, firstPause), mostPause)
	p.until, p.tries = now.Add(p.span), p.tries+1
	l.put(key, p)
	return p.until, p.tries
}

// to puts key off until a time that somebody else has chosen.
func (l *later) to(key string, until, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(key, pause{until: until, span: until.Sub(now), tries: l.pauses[key].tries + 1})
}

func (l *later) put(key string, p pause) {
	if l.pauses == nil {
		l.pauses = map[string]pause{}
	}
	l.pauses[key] = p
}

// waits tells whether key is put off, and until when. No clock that was set back makes a pause
// longer than it was meant to be.
func (l *later) waits(key string, now time.Time) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, off := l.pauses[key]
	left := p.until.Sub(now)
	return p.until, off && left > 0 && left <= p.span
}

// tries is how often key was put off in a row.
func (l *later) tries(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pauses[key].tries
}

// forget ends the row of tries.
func (l *later) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pauses, key)
}

// earliest is the first of the times that are set, zero where none is.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}
