package transport

import (
	"sync"
	"time"
)

// maxToolObservations is how many tool observations are kept.
// Spec: "Managed protocol diagnostics".
const maxToolObservations = 64

// ToolObservation is one tool call or update, without any of the agent's text.
// Spec: "Managed protocol diagnostics".
type ToolObservation struct {
	// At is when it was handled; zero without [Options.Now].
	At time.Time
	// Phase is what the client was doing.
	Phase Phase
	// Update is tool_call or tool_call_update.
	Update string
	// Reference is the tool call's id, hashed with a key of this session alone.
	Reference string
	// ToolKind and Status are those of the protocol, "other" for words it does not have, and
	// empty where the agent gave none.
	ToolKind, Status string
	// ContentCount and LocationCount count blocks and locations.
	ContentCount, LocationCount int
}

// Stats is a copy of the session's counters.
type Stats struct {
	// Updates counts all updates, Replayed those of a load, PromptUpdates those of turns, and
	// LateUpdates those after a turn's answer and before the next prompt.
	Updates, Replayed, PromptUpdates, LateUpdates int64
	// Unknown counts updates of unknown kind or form, Foreign those of another session, which
	// the handler does not see, Extensions other notifications.
	Unknown, Foreign, Extensions int64
	// GarbageLines and GarbageBytes count what was no protocol message.
	GarbageLines, GarbageBytes int64
	// Gaps counts messages lost because they were too large.
	Gaps int64
	// Repaired counts envelopes that were put right, StrayReplies answers to nothing.
	Repaired, StrayReplies int64
	// Rejected counts requests of the agent that were answered with an error.
	Rejected int64
	// Permissions counts questions put to the handler, InputNeeded those that had no handler,
	// InvalidAnswers answers of the handler that were not among the selectable options, Unasked
	// those cancelled at once because they belong to no open turn or to another session.
	Permissions, InputNeeded, InvalidAnswers, Unasked int64
	// CloseFailed says that session/close was sent and not answered with success in time.
	CloseFailed bool
	// Panics counts recovered panics of the handler.
	Panics int64
	// LateStopReason is the stop reason of a turn that had been given up before it came.
	LateStopReason string
	// PrePromptActivity says that something came before the first prompt.
	PrePromptActivity bool
	// LastActivity is when the last update, request or extension message came; zero when none.
	LastActivity time.Time
	// Tools are the first 64 distinct tool observations; ToolsTruncated says there were more.
	Tools          []ToolObservation
	ToolsTruncated bool
	// Usage is the last usage_update; nil when there was none. UsageAt is when it came.
	Usage   *UsageReport
	UsageAt time.Time
	// StderrBytes counts all of standard error.
	StderrBytes int64
}

// recorder guards the counters.
type recorder struct {
	mu sync.Mutex
	s  Stats
}

func (r *recorder) add(f func(*Stats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.s)
}

func (r *recorder) snapshot() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.s
	s.Tools = append([]ToolObservation(nil), s.Tools...)
	if s.Usage != nil {
		usage := *s.Usage
		s.Usage = &usage
	}
	return s
}

// tool keeps an observation unless the same facts stand already.
func (r *recorder) tool(o ToolObservation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.s.ToolsTruncated {
		return
	}
	for _, old := range r.s.Tools {
		old.At = o.At // the time is no fact of its own
		if old == o {
			return
		}
	}
	if len(r.s.Tools) == maxToolObservations {
		r.s.ToolsTruncated = true
		return
	}
	r.s.Tools = append(r.s.Tools, o)
}

// awaitsTurn says that a prompt has no answer yet.
func (c *conn) awaitsTurn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.call != nil && c.call.phase == PhasePrompt && !c.call.isAnswered
}

// active notes that the agent said something, in a prompt turn or not, and reports the first time.
func (c *conn) active(inPrompt bool) (at time.Time, prompted bool) {
	at = c.o.now()
	c.mu.Lock()
	prompted = c.prompted
	first, firstInPrompt := !c.seen, inPrompt && !c.seenInPrompt
	c.seen, c.spoke = true, time.Now()
	c.seenInPrompt = c.seenInPrompt || inPrompt
	c.mu.Unlock()
	c.stats.mu.Lock()
	c.stats.s.LastActivity = at
	c.stats.s.PrePromptActivity = c.stats.s.PrePromptActivity || !prompted
	c.stats.mu.Unlock()
	if first {
		c.observe(StageFirstActivity)
	}
	if firstInPrompt {
		c.observe(StageFirstPromptActivity)
	}
	return at, prompted
}

// gap counts a message that was lost for its size.
func (c *conn) gap() {
	c.active(c.awaitsTurn())
	c.stats.add(func(s *Stats) { s.Gaps++ })
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn != nil && !c.turn.wasOver {
		c.turn.sum.Gaps++
	}
}
