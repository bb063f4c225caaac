package tasks

import (
	"errors"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

var errNotYet = errors.New("tasks: not built yet")

// WorktreeAction is what happens to a task's worktree around a move.
type WorktreeAction string

// Worktree actions.
const (
	WorktreeCreate WorktreeAction = "create"
	WorktreeMerge  WorktreeAction = "merge"
	WorktreeRemove WorktreeAction = "remove"
)

// Artifact is a file that a decision hands over.
type Artifact struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Planned is the whole effect of a decision, computed before anything is touched.
type Planned struct {
	// Destination is the queue that the task ends in; its own for a decision that does not move.
	Destination contract.Queue
	// Moves says that Destination is another queue than the task's.
	Moves bool
	// After is the whole new file. For a decision that adds no block it equals the task's bytes.
	After []byte
	// Pre happens before the task file is touched, Post after the journal line.
	Pre, Post []WorktreeAction
	// Question is the text of needs_input, empty otherwise.
	Question string
	// Artifacts are the decision's files with their hashes. Never nil.
	Artifacts []Artifact
	// Commands are the command request ids that the decision relies on. Never nil.
	Commands []string
}

// Needs says which facts Effect will ask for.
func Needs(s *contract.Schema, t *Task, d Decision) FactNeeds { return FactNeeds{} }

// Effect plans a decision, or returns every reason against it.
func Effect(s *contract.Schema, t *Task, d Decision, f Facts) (Planned, []refusal.Reason) {
	return Planned{}, []refusal.Reason{{What: errNotYet.Error()}}
}

// Handback plans the return of a task whose verified work does not merge.
func Handback(s *contract.Schema, t *Task, to contract.Queue, why string, f Facts) (Planned, []refusal.Reason) {
	return Planned{}, []refusal.Reason{{What: errNotYet.Error()}}
}

// AllowedMove is one move that a role may make out of a queue, for the agent's context.
type AllowedMove struct {
	To       contract.Queue `json:"to"`
	By       contract.Role  `json:"by"`
	Requires []string       `json:"requires"`
}

// AllowedTransitions lists the moves that a role may make out of a queue.
func AllowedTransitions(s *contract.Schema, queue contract.Queue, role contract.Role) []AllowedMove {
	return nil
}

// DecisionFields lists, per decision, the accepted payload keys in alphabetical order.
func DecisionFields() map[string][]string { return nil }

// GeneratedFields lists, per block kind, the fields that the daemon sets.
func GeneratedFields() map[string][]string { return nil }
