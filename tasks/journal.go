package tasks

// JournalLine is one line of the task journal. Its keys are written in this order; empty ones
// are left out, but for intent_id, which stands on every line that has no operation of the
// daemon's behind it.
type JournalLine struct {
	// T is UTC, "YYYY-MM-DDTHH:MM:SSZ".
	T string `json:"t"`
	// Actor is the role that acted, SYSTEM for the daemon.
	Actor string `json:"actor"`
	// ActorKind is "system" for the daemon.
	ActorKind string `json:"actor_kind,omitempty"`
	// DecisionBy is the role whose decision was applied.
	DecisionBy string `json:"decision_by,omitempty"`
	Task       string `json:"task"`
	From       string `json:"from"`
	To         string `json:"to"`
	Reason     string `json:"reason"`
	IntentID   string `json:"intent_id,omitempty"`
	// OperationID makes the line unique: it is written once.
	OperationID        string               `json:"operation_id,omitempty"`
	RunID              string               `json:"run_id,omitempty"`
	SchemaSHA256       string               `json:"schema_sha256,omitempty"`
	BlockedBy          string               `json:"blocked_by,omitempty"`
	DependencyEvidence []DependencyEvidence `json:"dependency_evidence,omitempty"`
}

// DependencyEvidence is one dependency that a mechanical resume relied on.
type DependencyEvidence struct {
	Path         string   `json:"path"`
	TaskRevision Revision `json:"task_revision"`
}

// AppendJournal appends one line durably.
func (t *Tree) AppendJournal(e JournalLine) error { return errNotYet }

// Journal reads the whole journal.
func (t *Tree) Journal() ([]JournalLine, error) { return nil, errNotYet }

// HasOperation reports whether a line with this operation id is in the journal.
func (t *Tree) HasOperation(id string) (bool, error) { return false, errNotYet }
