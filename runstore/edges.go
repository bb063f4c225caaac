package runstore

// The state machines of the store, each one table. What is not in a table is refused.

// edge says who may take an edge of the run table.
type edge int

const (
	// byRun edges are taken by whoever drives the run.
	byRun edge = iota + 1
	// byControl edges are taken only while a control of the run is open: it ends the run
	// whatever it was doing.
	byControl
)

// runEdges is the life cycle of a run. Spec: "Lifecycle and result receipts", reference 2.
// The permission broker's edges between running and waiting_input are ordinary ones; so is
// the recovery edge into interrupted.
var runEdges = map[State]map[State]edge{
	Claimed:      {Starting: byRun, Cancelled: byRun, Interrupted: byRun},
	Starting:     {Running: byRun, WaitingAuth: byRun, WaitingInput: byRun, Failed: byRun, Cancelling: byRun, Interrupted: byRun, Cancelled: byControl},
	Running:      {WaitingInput: byRun, WaitingAuth: byRun, Completed: byRun, Failed: byRun, Cancelling: byRun, Interrupted: byRun, Cancelled: byControl},
	WaitingInput: {Running: byRun, Cancelling: byRun, Failed: byRun, Interrupted: byRun, Cancelled: byControl},
	WaitingAuth:  {Starting: byRun, Cancelling: byRun, Failed: byRun, Interrupted: byRun, Cancelled: byControl},
	Cancelling:   {Cancelled: byRun, Failed: byRun, Interrupted: byRun},
	Completed:    {},
	Failed:       {},
	Cancelled:    {},
	Interrupted:  {},
}

// needsRecovery is the status of everything whose effect is unknown.
const needsRecovery = "needs_recovery"

// Statuses of a result.
const (
	resultReceived  = "received"
	resultApplying  = "applying"
	resultApplied   = "applied"
	resultRejected  = "rejected"
	resultAbandoned = "abandoned"
)

// resultEdges: a result is validated, then applied in steps. One whose way is blocked before the
// first step needs a person as much as one whose outcome is uncertain. From needs_recovery it is
// taken up again, found applied, or given up by the operator.
var resultEdges = map[string][]string{
	resultReceived:  {resultApplying, resultRejected, needsRecovery},
	resultApplying:  {resultApplied, resultRejected, needsRecovery},
	needsRecovery:   {resultApplying, resultApplied, resultRejected, resultAbandoned},
	resultApplied:   nil,
	resultRejected:  nil,
	resultAbandoned: nil,
}

// Statuses of a command.
const (
	commandQueued    = "queued"
	commandStarting  = "starting"
	commandRunning   = "running"
	commandSucceeded = "succeeded"
	commandFailed    = "failed"
	commandStale     = "stale"
	commandCancelled = "cancelled"
	commandResolved  = "resolved"
)

// commandEdges: before the gate opens a command may still be cancelled or fail its preflight
// without any effect; once it runs without a known end only a person resolves it.
var commandEdges = map[string][]string{
	commandQueued:    {commandStarting, commandFailed, commandCancelled},
	commandStarting:  {commandRunning, commandFailed, commandStale, commandCancelled, needsRecovery},
	commandRunning:   {commandSucceeded, commandFailed, commandStale, commandCancelled, needsRecovery},
	needsRecovery:    {commandResolved},
	commandSucceeded: nil,
	commandFailed:    nil,
	commandStale:     nil,
	commandCancelled: nil,
	commandResolved:  nil,
}

// Statuses of a permission request.
const (
	permissionPending   = "pending"
	permissionAnswered  = "answered"
	permissionConsumed  = "consumed"
	permissionCancelled = "cancelled"
)

// permissionEdges: consumed means handed to the agent's callback, which happens once.
var permissionEdges = map[string][]string{
	permissionPending:   {permissionAnswered, permissionCancelled},
	permissionAnswered:  {permissionConsumed, permissionCancelled},
	permissionConsumed:  nil,
	permissionCancelled: nil,
}

// Statuses of a control.
const (
	controlPending    = "pending"
	controlProcessing = "processing"
	controlCompleted  = "completed"
)

var controlEdges = map[string][]string{
	controlPending:    {controlProcessing, controlCompleted},
	controlProcessing: {controlCompleted},
	controlCompleted:  nil,
}

// Phases and statuses of an operation.
const (
	operationPrepared  = "prepared"
	operationCommitted = "committed"
	operationApplied   = "applied"
	operationAbandoned = "abandoned"
)

// operationEdges is the table of both kinds: a result's application by phase, maintenance by
// status. An operation may be put again in the state it is in, with more steps done.
var operationEdges = map[string][]string{
	"":                 {operationPrepared},
	operationPrepared:  {operationPrepared, operationCommitted, operationApplied, needsRecovery, operationAbandoned},
	needsRecovery:      {needsRecovery, operationPrepared, operationApplied, operationAbandoned},
	operationCommitted: {operationCommitted},
	operationApplied:   {operationApplied},
	operationAbandoned: {operationAbandoned},
}
