package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/transport"
)

// Reasons of ended and waiting runs, as `run status` shows them.
const (
	turnEnded           = "turn_ended"
	timeoutReason       = "timeout"
	transportFailure    = "transport_failure"
	protocolError       = "protocol_error"
	configurationError  = "configuration_error"
	sessionUnavailable  = "session_load_unavailable"
	inputBudget         = "input_budget_exceeded"
	usageBudget         = "reported_usage_budget"
	authRequired        = "authentication_required"
	permissionRequired  = "permission_required"
	operatorCancelled   = "operator_cancelled"
	agentCancelled      = "agent_cancelled"
	supervisorStopped   = "supervisor_stopped"
	recordFailed        = "store_write_failed"
	agentStop           = "agent_stop_"
	authRequiredRPCCode = -32000
)

// ending is how a run ends, or what it waits for.
type ending struct {
	state  runstore.State
	reason string
	// cause is for the log only; agent text never enters it.
	cause error
}

func (e *execution) failed(reason, errorType string, cause error) ending {
	if e.outcome.errorType == "" {
		e.outcome.errorType = errorType
	}
	if r, ok := refusal.Find(cause); ok {
		e.outcome.what = r.What
	}
	return ending{runstore.Failed, reason, cause}
}

// passing are faults of the machine, or of an agent that is being replaced, which time alone may mend.
var passing = []syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETXTBSY}

// launchFailed tells a fault of the configuration, which only a person can mend, from one of
// the machine. E-489.
func (e *execution) launchFailed(err error) ending {
	var exec *execgate.ExecError
	if !errors.As(err, &exec) {
		return e.notStarted(err)
	}
	kind := "OSError"
	switch {
	case slices.Contains(passing, exec.Errno):
		return e.notStarted(err)
	case errors.Is(exec.Errno, fs.ErrNotExist):
		kind = "FileNotFoundError"
	case errors.Is(exec.Errno, fs.ErrPermission):
		kind = "PermissionError"
	}
	return e.failed(configurationError, kind, refusal.New(refusal.CodeLaunch,
		"mend agents."+e.agent.ID+".argv in coordination/execution.yaml, restart coordd, then greatminds run retry "+string(e.run.ID),
		"%s cannot be started: %v", exec.Path, exec.Errno))
}

// told returns the ending of a run that was told to stop, whatever else went wrong.
func (e *execution) told(ctx context.Context) (ending, bool) {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errOperatorCancel):
		return ending{runstore.Cancelled, operatorCancelled, nil}, true
	case errors.Is(cause, errShutdown) && e.unanswered.Load():
		return ending{runstore.WaitingInput, permissionRequired, nil}, true
	case errors.Is(cause, errShutdown):
		return ending{runstore.Interrupted, supervisorStopped, nil}, true
	case errors.Is(cause, errStore):
		return ending{runstore.Interrupted, recordFailed, cause}, true
	}
	return ending{}, false
}

// sessionFailed maps a failed handshake or turn to the run's state and reason.
func (e *execution) sessionFailed(err error) ending {
	if end, ok := e.limited(err); ok {
		return end
	}
	var te *transport.Error
	if !errors.As(err, &te) {
		return e.failed(transportFailure, "ConnectionError", err)
	}
	te = e.masked(te)
	err = te
	e.outcome.errorCode, e.outcome.what = te.Code, te.What
	switch te.Kind {
	case transport.AuthRequired:
		return ending{runstore.WaitingAuth, authRequired, err}
	case transport.Timeout:
		return e.failed(timeoutReason, "TimeoutError", err)
	case transport.Protocol:
		return e.failed(protocolError, "RequestError", err)
	case transport.Configuration:
		return e.failed(configurationError, "ConfigurationError", err)
	case transport.SessionUnavailable:
		e.outcome.what = te.What + "; for a new one set `session: new` for binding " + e.binding.ID
		return e.failed(sessionUnavailable, "RequestError", err)
	case transport.Cancelled:
		return ending{runstore.Cancelled, agentCancelled, err}
	}
	return e.failed(transportFailure, "ConnectionError", err)
}

// masked is a failure as it may be kept and logged: in our own words, which may quote a name or a value
// that the agent gave.
func (e *execution) masked(te *transport.Error) *transport.Error {
	shown := *te
	shown.What = e.secrets.Text(te.What)
	return &shown
}

// turnEnded maps the end of the prompt turn. A stop reason says nothing about the task: only a
// decision moves it.
func (e *execution) turnEnded(ctx context.Context, turn transport.Turn, err error) ending {
	if u := (*unsent)(nil); errors.As(err, &u) {
		return e.notSent(u.err)
	}
	e.outcome.stopReason = e.secrets.Text(turn.StopReason)
	e.hearAll()
	limit, limited := e.limited(err) // seen also where the run was told to stop
	if end, ok := e.told(ctx); ok {
		return end
	}
	if limited {
		return limit
	}
	completed := err == nil && turn.Gaps == 0 && turn.StopReason == "end_turn" && e.unrecorded.Load() == nil && !e.unanswered.Load()
	if end, ok := e.costEnded(completed); ok {
		return end
	}
	if e.unanswered.Load() {
		return ending{runstore.WaitingInput, permissionRequired, err}
	}
	switch {
	case errors.Is(err, errIdle):
		return e.idled(err)
	case err != nil:
		return e.sessionFailed(err)
	case e.unrecorded.Load() != nil:
		return e.failed(protocolError, "RecordingError", *e.unrecorded.Load())
	case turn.Gaps > 0:
		e.outcome.what = fmt.Sprintf("%d messages of the agent were too large and are lost", turn.Gaps)
		return e.failed(transportFailure, "MessageTooLarge", nil)
	case turn.StopReason == "end_turn":
		return ending{runstore.Completed, turnEnded, nil}
	case turn.StopReason == "cancelled":
		return ending{runstore.Cancelled, agentCancelled, nil}
	}
	return ending{runstore.Failed, agentStop + e.outcome.stopReason, nil}
}

// storeFailed ends an execution whose store did not take what it did; nothing more is tried.
func storeFailed(err error) ending {
	return ending{runstore.Interrupted, recordFailed, fmt.Errorf("%w: %w", errStore, err)}
}
