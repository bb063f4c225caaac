package tasks

import (
	"context"

	"greatminds/contract"
)

// Operator is who asks for a change of a task from the command line, and what the change may
// lean on.
type Operator struct {
	// Role is the caller's role; it must be one of the schema's.
	Role contract.Role
	// Busy refuses while an operation of the daemon on the task is open; nil asks nobody.
	Busy func(ID) error
	// Hooks does what belongs to a move in the task's worktree; nil does nothing.
	Hooks Hooks
	// Evidence looks at the workspace for block evidence; nil knows nothing.
	Evidence Evidence
}

// Hooks performs worktree actions around an operator's move.
type Hooks interface {
	// Worktree performs one action for a task. An error before the move stops it; one after it
	// is only reported.
	Worktree(ctx context.Context, t *Task, action WorktreeAction) error
}

// Evidence gathers the facts that a new block or a move asks for.
type Evidence interface {
	// Gather fills the facts that needs names, and Workspace, InWorktree and Worktrees.
	Gather(ctx context.Context, t *Task, needs FactNeeds, f *Facts) error
}

// NewTask is the arguments of `task new`. Empty members were not given.
type NewTask struct {
	Stream, Title, Reporter, Priority, Kind, Scope, Mode string
	TargetFunctionality, Description                     string
	Scenarios, Hosts, EvidenceFor                        []string
	InQueue                                              contract.Queue
	Seq, Reason                                          string
}

// New files a task.
func (t *Tree) New(ctx context.Context, op Operator, a NewTask) (Ref, error) {
	return Ref{}, errNotYet
}

// Moved is a finished move.
type Moved struct {
	// From and To are where the task was and is.
	From, To Ref
	// Warning says what went wrong after the move; empty when nothing did.
	Warning string
}

// Mv moves a task by an operator's hand.
func (t *Tree) Mv(ctx context.Context, op Operator, id string, to contract.Queue, reason string) (Moved, error) {
	return Moved{}, errNotYet
}

// NewBlock is the arguments of `task append-block`.
type NewBlock struct {
	ID   string
	Kind contract.BlockKind
	// Fields are as the caller gave them, in that order, already typed (see ParseFieldFlag).
	Fields Fields
	// Body goes into the kind's body field; nil when not given.
	Body *string
}

// AppendBlock files a block on a task.
func (t *Tree) AppendBlock(ctx context.Context, op Operator, a NewBlock) (Ref, error) {
	return Ref{}, errNotYet
}

// Withdraw parks a task for good with a withdrawn reason.
func (t *Tree) Withdraw(ctx context.Context, op Operator, id, reason string) (Moved, error) {
	return Moved{}, errNotYet
}

// PlanTask is the arguments of `plan ID`.
type PlanTask struct {
	ID, Scope, AssigneeRole, BaseCommit, PlanKind, Mode string
	StandRequired                                       bool
	StandReason, Body, Triage                           string
	// StopAtPlan leaves the task in feature_plan with its plan filed.
	StopAtPlan, AuditOnly bool
}

// Planning is what `plan ID` has done.
type Planning struct {
	Ref
	// Steps names what was done, in order.
	Steps []string
}

// Plan takes a task from its intake through triage and plan to the assignee's queue.
func (t *Tree) Plan(ctx context.Context, op Operator, a PlanTask) (Planning, error) {
	return Planning{}, errNotYet
}

// Validate checks one task of the tree.
func (t *Tree) Validate(id string) (Ref, error) { return Ref{}, errNotYet }

// ValidateFile checks a task file wherever it lies.
func (t *Tree) ValidateFile(path string) error { return errNotYet }

// Listed is one line of `task list`.
type Listed struct {
	ID    string         `json:"id"`
	Title string         `json:"title"`
	Queue contract.Queue `json:"queue"`
	File  string         `json:"file"`
}

// List lists the task files of a queue by name.
func (t *Tree) List(queue contract.Queue) ([]Listed, error) { return nil, errNotYet }

// Show returns a task's place and its file as it is.
func (t *Tree) Show(id string) (Ref, []byte, error) { return Ref{}, nil, errNotYet }

// Paths are the places that `task paths` prints; absolute.
type Paths struct{ Coord, Canon, IntentDir, Journal string }

// Paths returns the places of the tree.
func (t *Tree) Paths() Paths { return Paths{} }
