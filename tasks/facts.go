package tasks

import (
	"time"

	"greatminds/contract"
)

// Facts is everything that the checks know about the world. They look nothing up themselves: a
// fact that was not gathered is a fact that is missing, and a check that needs it fails.
type Facts struct {
	// Now is the time that blocks are dated with.
	Now time.Time
	// Role decides.
	Role contract.Role
	// RunID and ResultID go into the provenance of new blocks; both are empty for an operator's
	// command, whose blocks carry no provenance.
	RunID, ResultID string
	// SchemaSHA256 is the hash of the schema that the decision is judged by.
	SchemaSHA256 string
	// Workspace is the folder that the role worked in, for messages.
	Workspace string
	// InWorktree says that Workspace is the task's own worktree or lies inside it.
	InWorktree bool
	// Worktrees is the project's effective policy; nil means the schema's.
	Worktrees *contract.Worktrees
	// Files, Artifacts and Commands answer what [Needs] asked, by the names given there.
	Files     map[string]FileFact
	Artifacts map[string]ArtifactFact
	Commands  map[string]CommandFact
	// ValidationCommands lists the ids of the validation commands configured for the role.
	ValidationCommands []string
	// Fingerprint identifies the workspace's uncommitted changes; empty where git could not say.
	Fingerprint string
	// Dependencies answers for the declared dependencies of the task, by their path.
	Dependencies map[string]DependencyFact
	// Gate is what is known about the stand.
	Gate GateFact
	// BaseProblem says why no task branch can start at the commit that [FactNeeds] names; empty
	// when one can.
	BaseProblem string
}

// FileFact is what the workspace says about one file that an implementation block names.
type FileFact struct {
	// InGit says that the workspace is a git work tree.
	InGit bool
	// Changed says that git knows a pending change of the path: modified, added, deleted,
	// renamed or untracked. It counts only InGit.
	Changed bool
	// Exists says that something stands at the path. It counts only outside git.
	Exists bool
	// Problem says why the file could not be looked at; empty when it could.
	Problem string
}

// ArtifactFact is one artifact file as it was found.
type ArtifactFact struct {
	// SHA256 is the lowercase hex digest of its bytes; empty when Problem is not.
	SHA256 string
	// Problem says why the file does not count: missing, outside the workspace, no regular file.
	Problem string
}

// CommandFact is one recorded command request, as evidence.
type CommandFact struct {
	RequestID string
	// RunID is the run that requested it.
	RunID string
	// CommandID, Argv and Purpose are those of the configured command.
	CommandID string
	Argv      []string
	Purpose   string
	// Completed says that the command ended by itself and its end is on record. A timeout, a
	// cancelled and an uncertain execution are not completed.
	Completed bool
	// ExitCode counts only when Completed.
	ExitCode int
	// Status and Reason are those of the receipt, for messages.
	Status, Reason string
	// Stale says why the evidence no longer counts: source, environment, executable or output
	// changed. Empty while it is fresh.
	Stale string
}

// DependencyStatus is the verdict over one declared dependency.
type DependencyStatus string

// Verdicts over a dependency.
const (
	DependencySatisfied     DependencyStatus = "satisfied"
	DependencyMissing       DependencyStatus = "missing"
	DependencyWaiting       DependencyStatus = "waiting"
	DependencyActive        DependencyStatus = "active_dependency"
	DependencyWrongTerminal DependencyStatus = "wrong_terminal"
	DependencyAmbiguous     DependencyStatus = "ambiguous"
	DependencyMalformed     DependencyStatus = "malformed"
	DependencyMigration     DependencyStatus = "migration_required"
)

// DependencyFact is one declared dependency as it stands.
type DependencyFact struct {
	Status DependencyStatus
	// Path and Revision are those of the dependency's file when it is satisfied.
	Path     string
	Revision Revision
}

// StandReceipt is the state of the deployment that stand evidence points at.
type StandReceipt string

// States of a deployment receipt.
const (
	StandUnknown    StandReceipt = ""           // nobody looked
	StandMissing    StandReceipt = "missing"    // no deployment of that lease is on record
	StandUnresolved StandReceipt = "unresolved" // its outcome is not known
	StandStale      StandReceipt = "stale"      // its inputs, output or task have changed
	StandFresh      StandReceipt = "fresh"
)

// GateFact is what is known about the stand deployment that the latest tests block cites.
type GateFact struct {
	Receipt StandReceipt
	// Reason says more about a receipt that does not count.
	Reason string
}

// FactNeeds says which facts [Effect] is going to ask for. Names are as the decision gives
// them; each stands once, in the order of its first mention. Names that are refused whatever
// the facts are (absolute paths, "..") are left out, so that nobody looks at them.
type FactNeeds struct {
	// Files are paths of implementation blocks, Artifacts those of the decision.
	Files, Artifacts []string
	// Commands are command request ids.
	Commands []string
	// Fingerprint says that the workspace's fingerprint goes into a block.
	Fingerprint bool
	// Dependencies are paths "<queue>/<id>.yaml".
	Dependencies []string
	// StandLease is the lease whose deployment the gate asks about; empty when it does not.
	StandLease string
	// BaseCommit is where a plan wants the task's branch to start; empty for nowhere.
	BaseCommit string
}
