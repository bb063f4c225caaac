package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"greatminds/contract"
	"greatminds/internal/execgate"
	"greatminds/internal/redact"
	"greatminds/runstore"
	"greatminds/supervisor/brief"
	"greatminds/supervisor/permission"
	"greatminds/tasks"
	"greatminds/transport"
)

// Why an execution is told to stop.
var (
	errOperatorCancel = errors.New("the operator cancelled the run")
	errShutdown       = errors.New("the daemon is stopping")
	errStore          = errors.New("the store failed")
)

// stopLadder is how long an agent may take to leave once its session is closed.
var stopLadder = execgate.Grace{Term: 2 * time.Second, Kill: 5 * time.Second}

// execution is one run while this process drives it. Only its own goroutine writes to it, but
// for the member below mu and the atomics.
type execution struct {
	run     *runstore.Run
	token   runstore.Token
	task    *tasks.Task
	binding contract.Binding
	agent   contract.Agent
	began   time.Time
	stop    context.CancelCauseFunc
	ended   chan struct{} // closed when nobody drives the run any more

	workspace   string
	saved       string // the session of an earlier run to go on with, empty for a new one
	reopens     bool   // the agent of that run offered to go on with it
	document    brief.Document
	prompt      string
	environment []string
	mcpServers  []transport.MCPServer
	secrets     *redact.Redactor
	ownEnds     [3]*os.File // our ends of stdin, stdout, stderr
	agentEnds   [3]*os.File
	child       *execgate.Child
	gone        bool            // nothing of the child is left, which is proven
	died        execgate.Ending // how it ended; zero until then
	oomKills    uint64          // of the machine, when the child was started
	left        *string         // the task's revision once that was proven; nil before, and where it cannot be read
	cleanup     json.RawMessage // how it was ended, an [execgate.Cleanup]; nil where there was no child
	session     *transport.Session
	outcome     outcome
	usage       usageWatch   // what the agent reports of its use
	past        sessionFacts // what the session's other runs had on record when this one began

	unanswered atomic.Bool           // a question was left: nobody answered in time, or the daemon stops
	unrecorded atomic.Pointer[error] // the first observation that the store did not take
	activity   chan struct{}         // the agent said something; holds one notice
	silence    silence               // how long it says nothing
	limit      *limitSeen            // the limit of its account that it has answered with
	feed       feed                  // what it is seen doing, for people

	mu         sync.Mutex
	promptEnds time.Time
	asking     int           // questions that a handler is at
	heard      chan struct{} // closed when the last of them has ended
}

// ask notes that a handler is at a question until done is called.
func (e *execution) ask() (done func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asking == 0 {
		e.heard = make(chan struct{})
	}
	e.asking++
	answered := e.silence.wait()
	return func() {
		answered()
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.asking--; e.asking == 0 {
			close(e.heard)
		}
	}
}

// hearAll waits until no handler is at a question. The transport waits for none of them at the end
// of a turn, and each still has to say what became of its question; what it does then is bounded.
func (e *execution) hearAll() {
	e.mu.Lock()
	asking, heard := e.asking, e.heard
	e.mu.Unlock()
	if asking > 0 {
		<-heard
	}
}

func (e *execution) setPromptEnds(t time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.promptEnds = t
}

func (e *execution) promptEndsAt() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.promptEnds
}

// pipes makes the three pipes between the daemon and the agent.
func (e *execution) pipes() error {
	for i := range e.ownEnds {
		r, w, err := os.Pipe()
		if err != nil {
			e.closePipes()
			return err
		}
		if i == 0 {
			e.agentEnds[i], e.ownEnds[i] = r, w
		} else {
			e.ownEnds[i], e.agentEnds[i] = r, w
		}
	}
	return nil
}

// closePipes closes our ends, and the agent's where Start never took them over. Closing a file
// twice only returns an error that says so.
func (e *execution) closePipes() {
	for i := range e.ownEnds {
		for _, f := range []*os.File{e.ownEnds[i], e.agentEnds[i]} {
			if f != nil {
				_ = f.Close() // ours alone, nothing is buffered
			}
		}
	}
}

// Update notes that the agent said something; the transport keeps the counters.
func (e *execution) Update(u transport.Update) error {
	e.feed.update(u)
	select {
	case e.activity <- struct{}{}:
	default: // a notice is already waiting
	}
	if err := e.unrecorded.Load(); err != nil {
		return *err
	}
	return nil
}

// handler answers the agent's questions for one execution.
type handler struct {
	d *Daemon
	*execution
}

// Permission asks policy and operator, and remembers a question that nobody answered in time.
func (h handler) Permission(ctx context.Context, r transport.PermissionRequest) transport.PermissionAnswer {
	defer h.ask()()
	answered := h.d.broker.Ask(ctx, permission.Asked{Run: h.run, Policy: h.binding.Permission, Workspace: h.workspace,
		SessionID: r.SessionID, PromptEnds: h.promptEndsAt(), Secrets: h.secrets, Request: r, Progress: h.feed.question(r)})
	if answered.TimedOut {
		h.unanswered.Store(true)
	}
	if err := answered.Unrecorded; err != nil {
		h.unrecorded.CompareAndSwap(nil, &err)
	}
	return answered.PermissionAnswer
}
