package supervisor

import (
	"maps"
	"sync"

	"greatminds/runstore"
	"greatminds/supervisor/policy"
	"greatminds/supervisor/usage"
)

// sessionKey names one agent session of the project, over all tasks: what its budgets follow.
// Spec: "Bounded client input", "Reported usage observations".
type sessionKey struct{ agentSHA256, workspace, id string }

func (k sessionKey) holds(r *runstore.Run) bool {
	return r.SessionID != nil && *r.SessionID == k.id && r.AgentSHA256 == k.agentSHA256 && r.Workspace == k.workspace
}

// sessionFacts is what the runs of a session have on record. Facts of the same session can be
// joined in any order, and more than once.
type sessionFacts struct {
	known bool // some run had the session
	// sent is how many bytes were sent to it, sentUnknown that some may be on no record.
	sent        int64
	sentUnknown bool
	// cost is the newest account of its cost, written by run writer with the event costAt; 0 where
	// there is none.
	cost   policy.CostAccount
	costAt uint64
	writer runstore.RunID
}

func (f sessionFacts) join(g sessionFacts) sessionFacts {
	if g.costAt > f.costAt {
		f.cost, f.costAt, f.writer = g.cost, g.costAt, g.writer
	}
	f.known, f.sentUnknown = f.known || g.known, f.sentUnknown || g.sentUnknown
	f.sent = max(f.sent, g.sent)
	return f
}

// account is the account that a further run goes on from; loaded tells whether the run has loaded
// the session, which then has a past even where none is on record.
func (f sessionFacts) account(loaded bool) policy.CostAccount {
	switch {
	case f.costAt > 0:
		return f.cost.Opened()
	case loaded && !f.known:
		return policy.UnknownCostAccount()
	}
	return policy.NewCostAccount()
}

// factsOf reads one run of the session. A run that may have sent something of which it has no record,
// as of an older store, leaves the session's history unknown.
func factsOf(v *runstore.View, r *runstore.Run) sessionFacts {
	f := sessionFacts{known: true}
	for _, sent := range v.Reservations(r.ID) {
		f.sent = max(f.sent, sent.UsedBytes)
	}
	prompted := r.Outcome == nil || r.Outcome.PromptStarted == nil || *r.Outcome.PromptStarted
	f.sentUnknown = prompted && f.sent == 0
	record := usage.Read(r.Usage)
	switch {
	case record != nil && record.Cost != nil:
		// The original's records have no ledger_sequence; every event of the run came later than its claim.
		f.cost, f.costAt, f.writer = *record.Cost, max(record.LedgerSequence, r.Sequence), r.ID
	case prompted:
		f.cost, f.costAt, f.writer = policy.UnknownCostAccount(), r.Sequence, r.ID
	}
	return f
}

// maxSessions bounds how many sessions are remembered. What is forgotten is read again.
const maxSessions = 4096

// sessions remembers what the finished runs of a session have on record, so that a session with many
// of them is read once. Every run that ends in this process is noted; an earlier process's are read.
//
// Transactions ask it under the store's lock, so that no file is read with mu held.
type sessions struct {
	mu  sync.Mutex
	mem map[sessionKey]*remembered
}

// remembered is what is known of one session: what was noted of it, and once it is read all of it.
type remembered struct {
	sessionFacts
	read bool
}

// past joins the session's runs on record, also those in the history, unless they are remembered.
// It fails where one cannot be read: what it did is not known then.
func (s *sessions) past(view func() *runstore.View, k sessionKey) (sessionFacts, error) {
	known, read := s.remember(k)
	if read {
		return s.facts(known), nil
	}
	// What ends from now on is noted, whatever the view shows of it.
	v, facts := view().Apart(), sessionFacts{}
	for _, r := range v.RunsOfSession(k.id) {
		if k.holds(r) {
			facts = facts.join(factsOf(v, r))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := v.HistoryFault(); err != nil {
		delete(s.mem, k)
		return facts, err
	}
	known.sessionFacts, known.read = known.join(facts), true
	return known.sessionFacts, nil
}

// remember begins to note the runs of a session, and tells whether it was read before. Where it is
// full, what was read is forgotten; what is being read now is not.
func (s *sessions) remember(k sessionKey) (known *remembered, read bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.mem[k]; known != nil {
		return known, known.read
	}
	if len(s.mem) >= maxSessions {
		maps.DeleteFunc(s.mem, func(_ sessionKey, r *remembered) bool { return r.read })
	}
	if s.mem == nil {
		s.mem = map[sessionKey]*remembered{}
	}
	s.mem[k] = &remembered{}
	return s.mem[k], false
}

func (s *sessions) facts(r *remembered) sessionFacts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.sessionFacts
}

// now joins what was read of the session with what came since: its runs in the hot state of v, and
// those that were noted.
func (s *sessions) now(v *runstore.View, k sessionKey, past sessionFacts) sessionFacts {
	facts := past
	s.mu.Lock()
	if known := s.mem[k]; known != nil {
		facts = facts.join(known.sessionFacts)
	}
	s.mu.Unlock()
	for _, r := range v.Runs() {
		if k.holds(r) {
			facts = facts.join(factsOf(v, r))
		}
	}
	return facts
}

// note remembers a run that has ended. One that has left the hot state already, and cannot be read, is
// read again with its session.
func (s *sessions) note(v *runstore.View, id runstore.RunID) {
	v = v.Apart()
	r := v.Run(id)
	if r == nil || r.SessionID == nil {
		return
	}
	k, facts := sessionKey{r.AgentSHA256, r.Workspace, *r.SessionID}, factsOf(v, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch known := s.mem[k]; {
	case known == nil:
	case v.HistoryFault() != nil:
		delete(s.mem, k)
	default:
		known.sessionFacts = known.join(facts)
	}
}
