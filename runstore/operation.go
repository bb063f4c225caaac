package runstore

import (
	"encoding/json"

	"greatminds/internal/refusal"
)

// Kinds of operations.
const (
	// ResultOperation applies a result; its id is the result's.
	ResultOperation = "result"
	// ResumeOperation resumes a task whose dependencies are met.
	ResumeOperation = "resume_dependencies"
)

// Operation is the record of one journaled operation: intent first, then its steps. Kind
// decides which members are used and where the record stands in the document: a result's
// application under `operations` by result id, everything else under `maintenance`.
// Spec: reference 5.5, "Dependency maintenance".
type Operation struct {
	ID   OperationID `json:"id"`
	Kind string      `json:"kind"`
	// Phase is prepared, committed or abandoned; for a result's application only.
	Phase string `json:"phase,omitempty"`
	// Status is prepared, applied, needs_recovery or abandoned; for maintenance only.
	Status       string          `json:"status,omitempty"`
	Version      int             `json:"version,omitempty"`
	ResultID     ResultID        `json:"result_id,omitempty"`
	RunID        RunID           `json:"run_id,omitempty"`
	TaskID       TaskID          `json:"task_id"`
	TaskRevision Revision        `json:"task_revision,omitempty"`
	Source       string          `json:"source"`
	Destination  string          `json:"destination"`
	SchemaSHA256 string          `json:"schema_sha256"`
	At           float64         `json:"at"`
	UpdatedAt    *float64        `json:"updated_at,omitempty"`
	Details      json.RawMessage `json:"details,omitempty"`

	BeforeSHA256    string          `json:"before_sha256,omitempty"`
	AfterSHA256     string          `json:"after_sha256,omitempty"`
	After           string          `json:"after,omitempty"`
	Pre             []string        `json:"pre" store:"omitnil"`
	Post            []string        `json:"post" store:"omitnil"`
	ActionStarted   *string         `json:"action_started,omitempty"`
	ActionsDone     []string        `json:"actions_done" store:"omitnil"`
	WorktreePolicy  json.RawMessage `json:"worktree_policy,omitempty"`
	Role            string          `json:"role,omitempty"`
	Decision        string          `json:"decision,omitempty"`
	Artifacts       []Artifact      `json:"artifacts" store:"omitnil"`
	Question        *string         `json:"question,omitempty"`
	CommandEvidence []string        `json:"command_evidence" store:"omitnil"`
	// Merge is the computed merge, with its id known before anything moves.
	Merge json.RawMessage `json:"merge,omitempty"`

	ContentSHA256     string          `json:"content_sha256,omitempty"`
	Dependencies      json.RawMessage `json:"dependencies,omitempty"`
	BlockedBy         string          `json:"blocked_by,omitempty"`
	RepairRequestedAt *float64        `json:"repair_requested_at,omitempty"`
	Resolution        string          `json:"resolution,omitempty"`

	Extra Members `json:"-"`
}

// Open tells whether the operation still holds its task.
func (o *Operation) Open() bool {
	return o.stage() == operationPrepared || o.stage() == needsRecovery
}

// stage is the member that says how far the operation is.
func (o *Operation) stage() string {
	if o.Kind == ResultOperation {
		return o.Phase
	}
	return o.Status
}

// Claim is what a claim transaction records about a new run.
type Claim struct {
	// ID is made where it is empty.
	ID               RunID
	OwnerID          string
	TaskID           TaskID
	TaskPath         string
	TaskRevision     Revision
	ConversationID   *string
	ConversationTask bool
	Role             string
	BindingID        string
	BindingSHA256    string
	AgentID          string
	AgentSHA256      string
	ConfigSHA256     string
	SchemaSHA256     string
	SchemaVersion    int
	Workspace        string
	Account          string
	Permission       string
	SessionID        *string
	WorkspacePlan    *WorkspacePlan
	// Data is added to the claimed event.
	Data map[string]any
}

// ClaimedRun is a new run with its credential, which is nowhere else in clear.
type ClaimedRun struct {
	*Run
	// Token is 32 random bytes, URL-safe base64.
	Token Token
}

// PutOperation stores an operation whole, in place of the one of the same id: the intent
// first, then again after each step. Kind, task and intent cannot change, nor can it leave its
// table of edges. A maintenance operation emits system_operation_STATUS with each new status,
// and system_repair_requested when a repair is asked for; the application of a result is told
// by its result's events. Spec: "Dependency maintenance", reference 5.5.
func (tx *Tx) PutOperation(o Operation) error {
	if !validName(string(o.ID)) {
		return badName("operation", string(o.ID))
	}
	if o.Kind == "" {
		return refusal.New(refusal.CodeRecordInvalid, "this is a fault of the program: report it", "operation %s has no kind", o.ID)
	}
	next, err := normal(&o)
	if err != nil {
		return unstorable("operation", string(o.ID), err)
	}
	old, was := tx.Operation(o.ID), ""
	if old != nil {
		was = old.stage()
		if old.Kind != o.Kind || old.TaskID != o.TaskID || old.ResultID != o.ResultID {
			return refusal.New(refusal.CodeIdentity, "use a new id", "operation %s already stands for %s of task %s", o.ID, old.Kind, old.TaskID)
		}
	}
	if !allowed(operationEdges, was, next.stage()) {
		return refusal.New(refusal.CodeTransition, "look at `greatminds run status`", "operation %s is %q and cannot become %q", o.ID, was, next.stage())
	}
	tx.thawOperation(o.ID)
	tx.View.h.putOperation(next)
	name := inMaintenance
	if next.Kind == ResultOperation {
		name = inOperations
	}
	tx.touch(name, string(o.ID))
	if next.Kind == ResultOperation {
		return nil
	}
	data := map[string]any{"id": next.ID, "task_id": next.TaskID}
	if was != next.stage() {
		tx.Emit("system_operation_"+next.stage(), "", data)
	}
	if next.RepairRequestedAt != nil && (old == nil || old.RepairRequestedAt == nil || *old.RepairRequestedAt != *next.RepairRequestedAt) {
		tx.Emit("system_repair_requested", "", data)
	}
	return nil
}
