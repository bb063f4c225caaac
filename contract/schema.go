package contract

import (
	"slices"

	"greatminds/internal/yamldoc"
)

// Schema is the workflow schema: queues, roles, transitions and everything else that the domain
// decides from. It is immutable once parsed.
type Schema struct {
	// Source is the file it was read from; "embedded" for our own.
	Source string
	// Text is the file, byte for byte; SHA256 is its lowercase hex digest.
	Text    []byte
	SHA256  string
	Version int
	// Queues, Roles, Transitions, Streams and BlockKinds stand in the order of the file.
	Queues            []QueueSpec
	Roles             []RoleSpec
	Transitions       []Transition
	SystemTransitions []SystemTransition
	Streams           []Stream
	BlockKinds        []BlockKindSpec
	// QueueAccepts lists the block kinds that a queue takes.
	QueueAccepts        map[Queue][]BlockKind
	Enums               Enums
	AssigneeRoleByScope map[string]Role
	TaskKinds           TaskKinds
	TestsValidation     TestsValidation
	Scenarios           []Scenario
	Worktrees           Worktrees
	GitPermissions      GitPermissions
	Watchdog            Watchdog
	Inbox               Inbox
	Layout              Layout
	Stand               StandSettings
	StandProfiles       StandProfiles

	// document is the tree that it was read from, for showing it as JSON.
	document *yamldoc.Node
}

// QueueKind says what a queue is for.
type QueueKind string

// Kinds of queues.
const (
	QueueActive   QueueKind = "active"
	QueueParking  QueueKind = "parking"
	QueueTerminal QueueKind = "terminal"
	QueueState    QueueKind = "state" // no tasks: a resource's own state
)

// QueueSpec is one queue of the schema.
type QueueSpec struct {
	Name Queue
	// Owner claims the queue's tasks; empty for a state queue.
	Owner Role
	// Writers may put tasks in or blocks on.
	Writers []Role
	Kind    QueueKind
}

// RoleSpec is one role of the schema.
type RoleSpec struct {
	Name Role
	// Category is product, entry or system.
	Category string
	// Lifecycle is driven (the daemon starts it) or interactive (a person does).
	Lifecycle  string
	ClaimsFrom []Queue
	// IntakeDiscipline is empty but for the planner.
	IntakeDiscipline string
	// Responsibilities and ForbiddenActions go into the agent's context as they are.
	Responsibilities, ForbiddenActions []string
	// EventTriggers lists, per event, what the role does on it. Documentation only.
	EventTriggers []EventTrigger
	// StandProfileSelection is nil for a role that selects none.
	StandProfileSelection *StandProfileSelection
}

// EventTrigger is what a role does on one event.
type EventTrigger struct {
	Event   string
	Actions []string
}

// StandProfileSelection says which stand profiles a role may select and for what.
type StandProfileSelection struct {
	MustSelectFrom string
	RequiredFor    []string
	// DefaultFor maps a need to the default_for token of the registry.
	DefaultFor     map[string]string
	AllowedUsedFor []string
}

// Wildcards of a transition's ends and author.
const (
	AnyActiveQueue   Queue = "any_active_queue"
	AnyResumeToQueue Queue = "any_resume_to_queue"
	CurrentOwner     Role  = "current_owner"
)

// Transition is one row of the transition table.
type Transition struct {
	// From is a queue or AnyActiveQueue, To a queue or AnyResumeToQueue.
	From, To Queue
	// By is a role or CurrentOwner.
	By Role
	// Requires names the checks that the move has to pass.
	Requires []string
}

// SystemTransition is a move that the daemon makes by itself.
type SystemTransition struct {
	Name     string
	From     Queue
	To       string
	Requires []string
}

// Stream is one stream of tasks: which blocks it has and where its tasks enter.
type Stream struct {
	Name   string
	Blocks []BlockKind
	Intake []Queue
}

// BlockKindSpec is one kind of block.
type BlockKindSpec struct {
	Kind    BlockKind
	Authors []Role
	// BodyField is the field that free text goes into.
	BodyField string
	// Allowed lists the values of enumerated fields, by the schema's key such as
	// allowed_test_results.
	Allowed map[string][]string
}

// Enums are the enumerated header and plan fields of product tasks.
type Enums struct {
	Kinds, Scopes, Priorities, PlanKinds, Modes []string
}

// TaskKinds documents the required fields of headers and blocks, by the schema's key.
type TaskKinds struct {
	Product, ReviewSession map[string][]string
}

// TestsValidation says when a tests block must carry stand evidence.
type TestsValidation struct {
	RequiredSubfields []string
	RequiredWhen      string
	RequiredForScopes map[string][]string
	ExemptScopes      []string
	ScopeProbesWhen   string
}

// Scenario is one of the letters A, B, C: which roles take part and which stand profile they use.
type Scenario struct {
	Letter, Name string
	Roles        []Role
	StandProfile string
}

// Worktrees is the policy of per-task worktrees and their merge.
type Worktrees struct {
	BasePath             string
	BranchPrefix         string
	DefaultBranch        string
	MergeStrategy        string
	CleanupOnArchive     bool
	CleanupOnVerified    bool
	ConflictHandbackTo   Queue
	RequiredForTaskKinds []string
}

// Requires reports whether tasks of this kind work in a worktree of their own.
func (w Worktrees) Requires(kind string) bool { return slices.Contains(w.RequiredForTaskKinds, kind) }

// GitPermissions says which roles may commit and push, and which verbs nobody may use.
type GitPermissions struct {
	Commit, Push   []Role
	ForbiddenVerbs []string
}

// Watchdog holds the ages, in seconds, from which something counts as stale.
type Watchdog struct {
	IntentOrphanSeconds           int
	TaskStaleInActiveQueueSeconds int
	TaskStaleInReviewQueueSeconds int
}

// Inbox says which messages an inbox takes.
type Inbox struct{ AllowedKinds []string }

// Layout names files inside the runtime folder.
type Layout struct{ Journal, IntentDir, InboxDir, StandStatus string }

// StandSettings describes the stand resource.
type StandSettings struct {
	States           []string
	LeaseTTLSeconds  int
	LeaseWarnSeconds int
	AutoRelease      bool
	StateFile        string
	NotifyOnDown     Role
}

// StandProfiles says where stand profiles lie and which words their registry may use.
type StandProfiles struct {
	RegistryPath, Directory           string
	Environments, UsedFor, DefaultFor []string
	RequiredFields, OptionalFields    []string
}

// Queue returns the queue with this name.
func (s *Schema) Queue(q Queue) (QueueSpec, bool) {
	for _, spec := range s.Queues {
		if spec.Name == q {
			return spec, true
		}
	}
	return QueueSpec{}, false
}

// Role returns the role with this name.
func (s *Schema) Role(r Role) (RoleSpec, bool) {
	for _, spec := range s.Roles {
		if spec.Name == r {
			return spec, true
		}
	}
	return RoleSpec{}, false
}

// BlockKind returns the block kind with this name.
func (s *Schema) BlockKind(k BlockKind) (BlockKindSpec, bool) {
	for _, spec := range s.BlockKinds {
		if spec.Kind == k {
			return spec, true
		}
	}
	return BlockKindSpec{}, false
}

// Stream returns the stream with this name.
func (s *Schema) Stream(name string) (Stream, bool) {
	for _, st := range s.Streams {
		if st.Name == name {
			return st, true
		}
	}
	return Stream{}, false
}

// Accepts reports whether a queue takes blocks of this kind.
func (s *Schema) Accepts(q Queue, k BlockKind) bool { return slices.Contains(s.QueueAccepts[q], k) }

// TaskQueues lists the queues that hold tasks, in the order of the file.
func (s *Schema) TaskQueues() []Queue {
	var names []Queue
	for _, q := range s.Queues {
		if q.Kind != QueueState {
			names = append(names, q.Name)
		}
	}
	return names
}
