package tasks

import (
	"fmt"
	"slices"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// Queues that checks know by name. The table of moves itself is the schema's.
const (
	queueInbox      contract.Queue = "feature_inbox"
	queuePlan       contract.Queue = "feature_plan"
	queueBlocked    contract.Queue = "feature_blocked"
	queueDev        contract.Queue = "feature_dev"
	queueUIDev      contract.Queue = "feature_ui_dev"
	queueDocs       contract.Queue = "feature_docs"
	queueTest       contract.Queue = "feature_test"
	queueDocsReview contract.Queue = "feature_docs_review"
	queueLive       contract.Queue = "feature_live"
	queueReview     contract.Queue = "feature_review"
	queueVerified   contract.Queue = "verified"
	queueArchive    contract.Queue = "archive"
	queueFeedback   contract.Queue = "user_feedback"
)

// Roles that checks know by name.
const (
	rolePlanner contract.Role = "ARCHITECT-PLANNER"
	roleLive    contract.Role = "LIVE-DEVELOPER"
)

// covers reports whether a row of the transition table speaks of a move. any_active_queue means
// queues of kind active only: neither a parked nor a finished task is blocked again.
func covers(s *contract.Schema, row contract.Transition, from, to contract.Queue) bool {
	if row.From == contract.AnyActiveQueue {
		if spec, ok := s.Queue(from); !ok || spec.Kind != contract.QueueActive {
			return false
		}
	} else if row.From != from {
		return false
	}
	if row.To == contract.AnyResumeToQueue {
		spec, ok := s.Queue(to)
		return ok && spec.Kind == contract.QueueActive
	}
	return row.To == to
}

// authorises reports whether a row lets a role make the move. The current owner is the queue's
// owner or one of its writers.
func authorises(s *contract.Schema, row contract.Transition, from contract.Queue, role contract.Role) bool {
	if row.By != contract.CurrentOwner {
		return row.By == role
	}
	spec, ok := s.Queue(from)
	return ok && role != "" && (spec.Owner == role || slices.Contains(spec.Writers, role))
}

// AllowedMove is one move that a role may make out of a queue, for the agent's context.
type AllowedMove struct {
	// From is the queue; To is a queue, or any_resume_to_queue for the declared resume_to.
	From contract.Queue `json:"from"`
	To   contract.Queue `json:"to"`
	// By is the role or current_owner, as the schema's row has it.
	By contract.Role `json:"by"`
	// Requires names the checks of the row. Never nil.
	Requires []string `json:"requires"`
}

// AllowedTransitions lists the moves that a role may make out of a queue, in the schema's
// order, the routes to the blocked queue included. Never nil.
func AllowedTransitions(s *contract.Schema, queue contract.Queue, role contract.Role) []AllowedMove {
	moves := []AllowedMove{}
	for _, row := range s.Transitions {
		to := row.To
		if to == contract.AnyResumeToQueue {
			to = queueDev // any active queue shows whether the row covers this source
		}
		if covers(s, row, queue, to) && authorises(s, row, queue, role) {
			moves = append(moves, AllowedMove{From: queue, To: row.To, By: row.By,
				Requires: append([]string{}, row.Requires...)})
		}
	}
	return moves
}

// move is one intended move of a task, with everything its checks look at.
type move struct {
	s *contract.Schema
	// task is the task with the new blocks that come with the move.
	task     *Task
	from, to contract.Queue
	role     contract.Role
	facts    Facts
}

// check judges the whole move: transition and role, scope, readiness, and the named checks of
// the schema's row. Where several rows let the role make the move, one row whose checks all
// hold is enough: the planner may block its own queue like any owner, and withdraw like a planner.
func (m *move) check() []refusal.Reason {
	rows, faults := m.rows()
	if len(faults) > 0 {
		return faults
	}
	var best []refusal.Reason
	for i, row := range rows {
		found := m.required(row.Requires)
		if i == 0 || len(found) < len(best) {
			best = found
		}
		if len(best) == 0 {
			break
		}
	}
	return distinct(scopeFirst(append(m.readiness(), best...)))
}

// rows returns the rows that let the role make the move, or why there is none.
func (m *move) rows() ([]contract.Transition, []refusal.Reason) {
	if !isTaskQueue(m.s, m.to) {
		return nil, []refusal.Reason{m.fault(refusal.CodeQueueUnknown, "name one of "+queueNames(m.s),
			"the destination %q is no queue", m.to)}
	}
	if m.from == m.to {
		return nil, []refusal.Reason{m.fault(refusal.CodeTaskThere, "name another queue",
			"the task is in %s already", m.to)}
	}
	var rows []contract.Transition
	var others []string
	for _, row := range m.s.Transitions {
		switch {
		case !covers(m.s, row, m.from, m.to):
		case authorises(m.s, row, m.from, m.role):
			rows = append(rows, row)
		case !slices.Contains(others, string(row.By)):
			others = append(others, string(row.By))
		}
	}
	switch {
	case len(rows) > 0:
		return rows, nil
	case len(others) > 0:
		return nil, []refusal.Reason{m.fault(refusal.CodeTransitionRole, "leave the move to that role",
			"the move %s → %s belongs to %s, not to %s", m.from, m.to, strings.Join(others, " or "), m.role)}
	}
	return nil, []refusal.Reason{m.fault(refusal.CodeNoTransition, m.destinations(),
		"the schema has no move %s → %s", m.from, m.to)}
}

// destinations says where the role may go instead.
func (m *move) destinations() string {
	var names []string
	for _, a := range AllowedTransitions(m.s, m.from, m.role) {
		if !slices.Contains(names, string(a.To)) {
			names = append(names, string(a.To))
		}
	}
	if len(names) == 0 {
		return fmt.Sprintf("%s may move nothing out of %s", m.role, m.from)
	}
	return fmt.Sprintf("from %s, %s may go to %s", m.from, m.role, strings.Join(names, ", "))
}

func (m *move) fault(code refusal.Code, remedy, format string, args ...any) refusal.Reason {
	return refusal.Reason{Code: code, Remedy: remedy, What: fmt.Sprintf(format, args...)}
}

// required runs the named checks of one row.
func (m *move) required(names []string) []refusal.Reason {
	var faults []refusal.Reason
	for _, name := range names {
		check, ok := checks[name]
		if !ok {
			faults = append(faults, m.fault(refusal.CodeCheckFailed, "use a schema that this version knows",
				"the schema requires the unknown check %q for %s → %s", name, m.from, m.to))
			continue
		}
		faults = append(faults, check(m)...)
	}
	return faults
}

// scopeFirst puts scope mismatches in front, as the reference judges them first.
func scopeFirst(faults []refusal.Reason) []refusal.Reason {
	rank := func(f refusal.Reason) int {
		if f.Code == refusal.CodeScopeMismatch {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(faults, func(a, b refusal.Reason) int { return rank(a) - rank(b) })
	return faults
}

// distinct drops reasons that say the same again.
func distinct(faults []refusal.Reason) []refusal.Reason {
	var out []refusal.Reason
	for _, f := range faults {
		if !slices.ContainsFunc(out, func(o refusal.Reason) bool { return o.What == f.What && o.Place == f.Place }) {
			out = append(out, f)
		}
	}
	return out
}

func queueNames(s *contract.Schema) string {
	var names []string
	for _, q := range s.TaskQueues() {
		names = append(names, string(q))
	}
	return strings.Join(names, ", ")
}
