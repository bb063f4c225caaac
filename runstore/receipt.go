package runstore

import "encoding/json"

// Envelope is a decision as an agent submitted it, with every member.
type Envelope struct {
	ResultID     ResultID        `json:"result_id"`
	RunID        RunID           `json:"run_id"`
	TaskID       TaskID          `json:"task_id"`
	TaskRevision Revision        `json:"task_revision"`
	SchemaSHA256 string          `json:"schema_sha256"`
	Decision     string          `json:"decision"`
	Payload      json.RawMessage `json:"payload"`
	Extra        Members         `json:"-"`
}

// Artifact is one file that a result names, with the hash of its bytes.
type Artifact struct {
	Path   string  `json:"path"`
	SHA256 string  `json:"sha256"`
	Extra  Members `json:"-"`
}

// ResultDetails says what an application came to: the destination where applied, otherwise
// the error.
type ResultDetails struct {
	// Destination is the task's file below the runtime folder after the application, as TaskPath is
	// before; in receipts of an earlier version it is the queue alone.
	Destination         string   `json:"destination,omitempty"`
	Decision            string   `json:"decision,omitempty"`
	DestinationRevision Revision `json:"destination_revision,omitempty"`
	// Artifacts, Question and CommandEvidence are written, empty or null, where there is a
	// Decision.
	Artifacts       []Artifact `json:"artifacts" store:"omitnil"`
	Question        *string    `json:"question,omitempty"`
	CommandEvidence []string   `json:"command_evidence" store:"omitnil"`
	Error           string     `json:"error,omitempty"`
	Extra           Members    `json:"-"`
}

// nullMember implements nuller.
func (d *ResultDetails) nullMember() string {
	if d.Decision != "" {
		return "question"
	}
	return ""
}

// Validation measures the latest preparation attempt. CompletedAt, Seconds and Valid are nil
// while it runs and after a crash in it.
type Validation struct {
	AttemptID   string   `json:"attempt_id"`
	Attempts    int      `json:"attempts"`
	StartedAt   float64  `json:"started_at"`
	CompletedAt *float64 `json:"completed_at"`
	// Seconds is the monotonic duration.
	Seconds *float64 `json:"seconds"`
	Valid   *bool    `json:"valid"`
	Extra   Members  `json:"-"`
}

// ResultTimings are wall times of a receipt; an interval is nil where it is missing or went
// backward.
type ResultTimings struct {
	ApplicationStartedAt        *float64 `json:"application_started_at,omitempty"`
	ResolutionAt                *float64 `json:"resolution_at,omitempty"`
	ReceivedToResolutionSeconds *float64 `json:"received_to_resolution_seconds"`
	ApplicationElapsedSeconds   *float64 `json:"application_elapsed_seconds"`
	Extra                       Members  `json:"-"`
}

// Result is the receipt of one decision. A run has at most one.
type Result struct {
	// Status is received, applying, applied, rejected, needs_recovery or abandoned.
	Status     string         `json:"status"`
	SHA256     string         `json:"sha256"`
	Envelope   Envelope       `json:"envelope"`
	Role       string         `json:"role"`
	At         float64        `json:"at"`
	UpdatedAt  *float64       `json:"updated_at,omitempty"`
	Details    *ResultDetails `json:"details,omitempty"`
	Validation *Validation    `json:"validation,omitempty"`
	Timings    *ResultTimings `json:"timings,omitempty"`
	// Held says why the result does not go on now, nil where nothing is known to be in its way.
	Held  *ResultHold `json:"hold,omitempty"`
	Extra Members     `json:"-"`
}

// ID returns the receipt's identity.
func (r *Result) ID() ResultID { return r.Envelope.ResultID }

// SourceID is the identity of a source tree at one moment.
type SourceID struct {
	Commit       string  `json:"commit"`
	SourceSHA256 string  `json:"source_sha256"`
	Extra        Members `json:"-"`
}

// EnvironmentID is the identity of a command's environment and executable.
type EnvironmentID struct {
	EnvironmentHMAC  string  `json:"environment_hmac"`
	Executable       string  `json:"executable"`
	ExecutableSHA256 string  `json:"executable_sha256"`
	Extra            Members `json:"-"`
}

// Stream describes one captured output stream.
type Stream struct {
	Path        string  `json:"path"`
	SHA256      string  `json:"sha256"`
	Bytes       int64   `json:"bytes"`
	StoredBytes int64   `json:"stored_bytes"`
	Truncated   bool    `json:"truncated"`
	Extra       Members `json:"-"`
}

// Output describes both captured streams of a command.
type Output struct {
	Stdout Stream  `json:"stdout"`
	Stderr Stream  `json:"stderr"`
	Extra  Members `json:"-"`
}

// Command is the receipt of one configured command. Spec: "Configured commands and evidence".
type Command struct {
	ID               CommandID `json:"id"`
	RunID            RunID     `json:"run_id"`
	TaskID           TaskID    `json:"task_id"`
	TaskRevision     Revision  `json:"task_revision"`
	CommandID        string    `json:"command_id"`
	DefinitionSHA256 string    `json:"definition_sha256"`
	ConfigSHA256     string    `json:"config_sha256"`
	SchemaSHA256     string    `json:"schema_sha256"`
	Workspace        string    `json:"workspace"`
	// Status is queued, starting, running, succeeded, failed, stale, cancelled,
	// needs_recovery or resolved.
	Status              string         `json:"status"`
	RequestedAt         float64        `json:"requested_at"`
	OwnerID             string         `json:"owner_id,omitempty"`
	StartedAt           *float64       `json:"started_at,omitempty"`
	Argv                []string       `json:"argv,omitempty"`
	Cwd                 string         `json:"cwd,omitempty"`
	Process             *Process       `json:"process,omitempty"`
	SourceBefore        *SourceID      `json:"source_before,omitempty"`
	SourceAfter         *SourceID      `json:"source_after,omitempty"`
	EnvironmentIdentity *EnvironmentID `json:"environment_identity,omitempty"`
	Reason              string         `json:"reason,omitempty"`
	ExitCode            *int           `json:"exit_code,omitempty"`
	FinishedAt          *float64       `json:"finished_at,omitempty"`
	Output              *Output        `json:"output,omitempty"`
	Resolution          string         `json:"resolution,omitempty"`
	ResolvedAt          *float64       `json:"resolved_at,omitempty"`
	Extra               Members        `json:"-"`
}

// Option is one answer that an agent offered.
type Option struct {
	OptionID string  `json:"optionId"`
	Name     string  `json:"name"`
	Kind     string  `json:"kind"`
	Extra    Members `json:"-"`
}

// Once tells whether the option holds for its one question alone. No other may be chosen.
func (o Option) Once() bool { return o.Kind == "allow_once" || o.Kind == "reject_once" }

// Permission is one permission request of an agent. Spec: "Operator permission requests".
type Permission struct {
	ID           PermissionID `json:"id"`
	RunID        RunID        `json:"run_id"`
	OwnerID      string       `json:"owner_id"`
	SessionID    string       `json:"session_id"`
	TaskRevision Revision     `json:"task_revision"`
	// Status is pending, answered, consumed or cancelled.
	Status     string          `json:"status"`
	CreatedAt  float64         `json:"created_at"`
	ExpiresAt  float64         `json:"expires_at"`
	Tool       json.RawMessage `json:"tool"`
	Options    []Option        `json:"options"`
	OptionID   string          `json:"option_id,omitempty"`
	AnsweredAt *float64        `json:"answered_at,omitempty"`
	ConsumedAt *float64        `json:"consumed_at,omitempty"`
	ClosedAt   *float64        `json:"closed_at,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Extra      Members         `json:"-"`
}

// Event is one entry of the ordered event tail.
type Event struct {
	Sequence uint64  `json:"sequence"`
	At       float64 `json:"at"`
	Kind     string  `json:"kind"`
	// RunID is nil for an event of no run.
	RunID *RunID          `json:"run_id"`
	Data  json.RawMessage `json:"data"`
	Extra Members         `json:"-"`
}

// Observation is the first sight of one queued task revision.
type Observation struct {
	TaskRevision    Revision `json:"task_revision"`
	FirstObservedAt float64  `json:"first_observed_at"`
	// Source is accepted_transition where an applied result put the task there.
	Source string  `json:"source,omitempty"`
	Extra  Members `json:"-"`
}

// Hold is a reason why something does not proceed now.
type Hold struct {
	// Code is the reason, such as active_run; reference 3 lists them.
	Code string `json:"code"`
	// What says it in words, with the value.
	What string `json:"what,omitempty"`
	// Remedy says what helps; empty where waiting does.
	Remedy string `json:"remedy,omitempty"`
	// RunID names the run at fault, where one is.
	RunID RunID `json:"run_id,omitempty"`
	// NextAt is when the hold clears by itself, in seconds of the Unix epoch.
	NextAt *float64 `json:"next_at,omitempty"`
}

// Open tells whether the result still holds its task: it is neither applied, rejected nor
// abandoned.
func (r *Result) Open() bool {
	return r.Status == resultReceived || r.Status == resultApplying || r.Status == needsRecovery
}

// Open tells whether the command has no outcome that can be relied on.
func (c *Command) Open() bool {
	switch c.Status {
	case commandQueued, commandStarting, commandRunning, needsRecovery:
		return true
	}
	return false
}

// Open tells whether the request still waits for an answer or for its delivery.
func (p *Permission) Open() bool {
	return p.Status == permissionPending || p.Status == permissionAnswered
}

// Request is the receipt of one changing request: what was answered, under the caller's id.
type Request struct {
	ID      string          `json:"id"`
	At      float64         `json:"at"`
	Receipt json.RawMessage `json:"receipt"`
	Extra   Members         `json:"-"`
}
