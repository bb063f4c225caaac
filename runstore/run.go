package runstore

import (
	"encoding/json"
	"maps"

	"greatminds/internal/execgate/proc"
)

// Identifiers that travel. Run, permission, control and event ids are 32 hex digits made by
// NewID; result and command ids may be supplied by a caller and are simple names.
type (
	// RunID names one run.
	RunID string
	// TaskID names one task.
	TaskID string
	// ResultID names one result receipt.
	ResultID string
	// CommandID names one command receipt: the caller's request id.
	CommandID string
	// PermissionID names one permission request.
	PermissionID string
	// OperationID names one journaled operation.
	OperationID string
	// Revision is the hash of a task's queue path and bytes.
	Revision string
)

// Members holds JSON members that this version does not know, by name. They are written back
// as they were read.
type Members = map[string]json.RawMessage

// Process is the recorded identity of one process.
type Process = proc.Process

// Control is the operator's request to cancel or retry a run. At most one is open per run.
type Control struct {
	ID     string  `json:"id"`
	Kind   string  `json:"kind"`
	Status string  `json:"status"`
	At     float64 `json:"at"`
	Extra  Members `json:"-"`
}

// QueueWait is the copy of a queue observation that a claim makes.
// Spec: "Queue, validation and accepted transitions".
type QueueWait struct {
	FirstObservedAt float64  `json:"first_observed_at"`
	TaskRevision    Revision `json:"task_revision"`
	// Scope is observed_revision_wait or accepted_transition_wait.
	Scope string `json:"scope"`
	// Source is accepted_transition in the latter scope, else empty.
	Source string `json:"source,omitempty"`
	// WaitSeconds is nil where the clock went backward.
	WaitSeconds *float64 `json:"wait_seconds"`
	Extra       Members  `json:"-"`
}

// WorkspacePlan says how a run's workspace is prepared.
type WorkspacePlan struct {
	// Kind is task_worktree, binding or conversation.
	Kind   string          `json:"kind"`
	Path   string          `json:"path"`
	Policy json.RawMessage `json:"policy,omitempty"`
	Extra  Members         `json:"-"`
}

// WorkspaceIdentity is the Git identity a run started from.
type WorkspaceIdentity struct {
	Head         string  `json:"head"`
	Branch       string  `json:"branch"`
	GitCommonDir string  `json:"git_common_dir"`
	Extra        Members `json:"-"`
}

// Progress records that a run's decision moved its task.
type Progress struct {
	ResultID             ResultID `json:"result_id"`
	AcceptedTransitionAt float64  `json:"accepted_transition_at"`
	// ClaimToTransitionSeconds is nil where the clock went backward.
	ClaimToTransitionSeconds *float64 `json:"claim_to_transition_seconds"`
	Extra                    Members  `json:"-"`
}

// Reservation is the durable debit of one prompt's bytes. Spec: "Bounded client input".
type Reservation struct {
	RequestedBytes int64   `json:"requested_bytes"`
	UsedBytes      int64   `json:"used_bytes"`
	LimitBytes     int64   `json:"limit_bytes"`
	Extra          Members `json:"-"`
}

// Outcome is what a run came to, set with the transition into a waiting or terminal state.
// Members that are absent were not observed.
type Outcome struct {
	ContextBytes              *int64          `json:"context_bytes,omitempty"`
	Updates                   *int64          `json:"updates,omitempty"`
	StopReason                *string         `json:"stop_reason"`
	PromptStarted             *bool           `json:"prompt_started,omitempty"`
	PrePromptActivity         *bool           `json:"pre_prompt_activity,omitempty"`
	SessionStrategy           string          `json:"session_strategy,omitempty"`
	InputBytesReserved        *int64          `json:"input_bytes_reserved,omitempty"`
	SessionInputBytesReserved *int64          `json:"session_input_bytes_reserved,omitempty"`
	LastActivityAt            *float64        `json:"last_activity_at,omitempty"`
	ElapsedSeconds            *float64        `json:"elapsed_seconds,omitempty"`
	ErrorType                 string          `json:"error_type,omitempty"`
	ErrorCode                 *int            `json:"error_code,omitempty"`
	AuthenticationMethod      *string         `json:"authentication_method,omitempty"`
	ActivityUnavailable       *bool           `json:"activity_unavailable,omitempty"`
	InputBudget               json.RawMessage `json:"input_budget,omitempty"`
	UsageBudget               json.RawMessage `json:"usage_budget,omitempty"`
	AccountAdmission          json.RawMessage `json:"account_admission,omitempty"`
	AccountLimit              json.RawMessage `json:"account_limit,omitempty"`
	Extra                     Members         `json:"-"`
}

// Run is one supervised execution of an agent. A published Run never changes; EditRun puts a
// new one in its place. Times are seconds of the Unix epoch. Spec: "Persistence and
// ownership", reference 4.
type Run struct {
	ID               RunID    `json:"id"`
	ProjectID        string   `json:"project_id"`
	OwnerID          string   `json:"owner_id"`
	TaskID           TaskID   `json:"task_id"`
	TaskPath         string   `json:"task_path"`
	TaskRevision     Revision `json:"task_revision"`
	ConversationID   *string  `json:"conversation_id"`
	ConversationTask bool     `json:"conversation_task"`
	Role             string   `json:"role"`
	BindingID        string   `json:"binding_id"`
	BindingSHA256    string   `json:"binding_sha256"`
	AgentID          string   `json:"agent_id"`
	AgentSHA256      string   `json:"agent_sha256"`
	ConfigSHA256     string   `json:"config_sha256"`
	SchemaSHA256     string   `json:"schema_sha256"`
	SchemaVersion    int      `json:"schema_version"`
	Workspace        string   `json:"workspace"`
	Account          string   `json:"account"`
	Permission       string   `json:"permission"`
	State            State    `json:"state"`
	Reason           string   `json:"reason"`
	CreatedAt        float64  `json:"created_at"`
	UpdatedAt        float64  `json:"updated_at"`
	// Sequence is the sequence of the run's claimed event.
	Sequence       uint64   `json:"sequence"`
	SessionID      *string  `json:"session_id"`
	StartupReadyAt *float64 `json:"startup_ready_at,omitempty"`
	// EndedAt is when the run came into its terminal state. What is recorded of it later moves
	// UpdatedAt, but not this.
	EndedAt *float64 `json:"ended_at,omitempty"`
	// TokenSHA256 is the hash of the run's credential; it stays out of Document.
	TokenSHA256       string             `json:"token_sha256,omitempty"`
	QueueObservation  *QueueWait         `json:"queue_observation,omitempty"`
	WorkspacePlan     *WorkspacePlan     `json:"workspace_plan,omitempty"`
	WorkspaceIdentity *WorkspaceIdentity `json:"workspace_identity,omitempty"`
	// Process is the agent's process; nil before the gate and again after recovery.
	Process *Process `json:"process,omitempty"`
	// Timings maps a stage to seconds since the execution began; absent means unobserved.
	Timings map[string]float64 `json:"timings,omitempty"`
	// Protocol is the sanitized, bounded record of the conversation, written when the session is
	// ready and at the end. Spec: "Managed protocol diagnostics".
	Protocol json.RawMessage `json:"protocol,omitempty"`
	// Usage is what the agent reported. Spec: "Reported usage observations".
	Usage           json.RawMessage `json:"usage,omitempty"`
	Outcome         *Outcome        `json:"outcome,omitempty"`
	Control         *Control        `json:"control,omitempty"`
	RetryAuthorized bool            `json:"retry_authorized,omitempty"`
	DomainProgress  *Progress       `json:"domain_progress,omitempty"`
	AccountLimit    json.RawMessage `json:"account_limit_observation,omitempty"`
	Extra           Members         `json:"-"`

	// processNull is set where the process is known to be gone, rather than not yet there.
	processNull bool
}

// CancelAsked tells whether an operator's cancel of the run is still to be carried out.
func (r *Run) CancelAsked() bool {
	return r.Control != nil && r.Control.Kind == "cancel" && r.Control.Status != controlCompleted
}

// nullMember implements nuller.
func (r *Run) nullMember() string {
	if r.processNull && r.Process == nil {
		return "process"
	}
	return ""
}

// clone returns a copy of which every part may be changed. Raw JSON is shared: it is replaced,
// never written into.
func (r *Run) clone() *Run {
	c := *r
	c.ConversationID, c.SessionID = copied(r.ConversationID), copied(r.SessionID)
	c.StartupReadyAt, c.EndedAt = copied(r.StartupReadyAt), copied(r.EndedAt)
	c.QueueObservation, c.WorkspacePlan = copied(r.QueueObservation), copied(r.WorkspacePlan)
	c.WorkspaceIdentity, c.Process = copied(r.WorkspaceIdentity), copied(r.Process)
	c.Outcome, c.Control, c.DomainProgress = copied(r.Outcome), copied(r.Control), copied(r.DomainProgress)
	c.Timings, c.Extra = maps.Clone(r.Timings), maps.Clone(r.Extra)
	return &c
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
