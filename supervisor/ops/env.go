package ops

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/activity"
	"greatminds/supervisor/status"
	"greatminds/tasks"
)

// Env is what operations work on. One Env serves a daemon's whole life, or one call in process.
// It is the control API's handler. All members but Log are needed.
type Env struct {
	Project  contract.Project
	Contract *contract.Contract
	Schema   *contract.Schema
	Store    *runstore.Store
	Tree     *tasks.Tree
	Now      func() time.Time
	Log      *slog.Logger
	// OwnerID is the identity under which this process has claimed runs.
	OwnerID string
	// Daemon is the process that performs the call.
	Daemon Daemon
	// Commands requests configured commands.
	Commands Commands
	// Results judges decisions and repairs their application.
	Results Results
	// Brief compiles a run's assigned context from its pinned documents.
	Brief func(run *runstore.Run) (any, error)
	// DecisionSchema is the JSON Schema of the decisions that a run may submit.
	DecisionSchema func(run *runstore.Run) (any, error)
	// Dispatch judges every task and account as the daemon would now.
	Dispatch func(v *runstore.View, found []tasks.Found) status.Dispatch
	// Step performs a named durable step, so that a test can stop before and after it; nil only
	// performs it.
	Step func(name string, f func() error) error
	// Hooks and Evidence serve the operator's task commands.
	Hooks    tasks.Hooks
	Evidence tasks.Evidence

	// files is what was read of a store that another process may hold; nil where Store is open.
	files *runstore.View

	mu sync.Mutex
	// inWork holds the request ids of changing calls in work; a second call of the same id waits
	// for the first and then finds its receipt.
	inWork map[string]chan struct{}
}

// view is the last durable state.
func (e *Env) view() *runstore.View {
	if e.files != nil {
		return e.files.Apart()
	}
	return e.Store.View().Apart()
}

// Daemon is what an operation asks of the process that performs it. None of the calls waits for
// an agent.
type Daemon interface {
	// Wake makes the daemon look at its work again at once. It does nothing outside a daemon.
	Wake()
	// Live reports whether this process drives the run now, from its claim to its end.
	Live(run runstore.RunID) bool
	// Waits reports whether the agent's callback still waits for the answer to a question, by this
	// process's own clock.
	Waits(question runstore.PermissionID) bool
	// Activity is what the agent of a live run is seen doing; nil where there is nothing to see yet,
	// and for every run that this process does not drive.
	Activity(run runstore.RunID) *activity.Feed
	// Cancel carries out the pending cancel control of a live run, bounded in time.
	Cancel(run runstore.RunID)
}

// Commands is the service of configured commands.
type Commands interface {
	// Admit checks a request of a run's role for a command of its pinned contract and stores its
	// receipt, or returns the receipt that the same request already has.
	Admit(ctx context.Context, run *runstore.Run, c contract.Command, requestID runstore.CommandID) (*runstore.Command, error)
	// Preview returns the bounded text of a receipt's output by stream, after checking the files
	// against the receipt.
	Preview(c *runstore.Command, limit int) (any, error)
}

// Results is the service of typed results.
type Results interface {
	// Check judges a new decision with the rules that apply it later, and returns every reason
	// against it. It changes nothing.
	Check(ctx context.Context, run *runstore.Run, e runstore.Envelope) ([]refusal.Reason, error)
	// Repair reconciles an operation that needs recovery and returns its record.
	Repair(ctx context.Context, id string) (any, error)
	// Abandon gives an operation that needs recovery up and returns its record.
	Abandon(ctx context.Context, id, reason string) (any, error)
}

// receipt is what is stored under the id of a changing request.
type receipt struct {
	Op string `json:"op"`
	// Caller and SHA256 identify who asked for what; another request must not get this answer.
	Caller string `json:"caller,omitempty"`
	SHA256 string `json:"sha256"`
	// State is "begun" before the effect, then "done", or "refused" where nothing was done.
	State string `json:"state"`
	// Result is the answer's JSON as text: the store sorts the members of what it keeps.
	Result string `json:"result,omitempty"`
}

func (e *Env) step(name string, f func() error) error {
	if e.Step == nil {
		return f()
	}
	return e.Step(name, f)
}
