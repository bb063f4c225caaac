package tasks

// The four decisions.
const (
	DecisionHandoff    = "handoff"
	DecisionBlocked    = "blocked"
	DecisionNeedsInput = "needs_input"
	DecisionNoChange   = "no_change"
)

// Decision is what a run decided about its task.
// Spec: "Lifecycle and result receipts" (the four decision payloads).
type Decision struct {
	// Kind is handoff, blocked, needs_input or no_change.
	Kind string
	// Payload is the decision's own object, numbers as json.Number.
	Payload map[string]any
}

// Envelope is a submitted decision with what else its author wrote around it. Empty members
// were not given; the daemon fills them from the run.
type Envelope struct {
	ResultID     string
	RunID        string
	TaskID       string
	TaskRevision string
	SchemaSHA256 string
	Decision     Decision
}

// DecodeDecision reads a submitted decision: strict JSON, compact ({decision, payload}) or full.
func DecodeDecision(data []byte) (Envelope, error) { return Envelope{}, errNotYet }
