package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/internal/sourceid"
	"greatminds/runstore"
)

// Statuses of a receipt, as the store defines them.
const (
	statusQueued        = "queued"
	statusStarting      = "starting"
	statusRunning       = "running"
	statusSucceeded     = "succeeded"
	statusFailed        = "failed"
	statusStale         = "stale"
	statusCancelled     = "cancelled"
	statusNeedsRecovery = "needs_recovery"
)

// Reasons of a receipt. Those up to preflight_failed are the original's.
const (
	reasonExit                 = "exit"
	reasonTimeout       ending = "timeout"
	reasonRunCancelled  ending = "run_cancelled"
	reasonRunEnded      ending = "run_ended"
	reasonRunNotRunning        = "run_not_running"
	reasonRestart              = "supervisor_restart"
	reasonSourceChanged        = "source_changed_during_command"
	reasonIdentity             = "identity_check_failed:"
	reasonExecution            = "execution_error:"
	reasonPreflight            = "preflight_failed"
	reasonSignal               = "signal"
	reasonOutput               = "output_error"
	reasonProcessesLeft        = "processes_left"
	reasonUnknown              = "outcome_unknown"
)

// Members of a receipt that only we have.
const (
	memberSignal = "signal"
	memberDetail = "detail"
)

// outcome is what a receipt says at the end.
type outcome struct {
	status, reason string
	exit           *int
	signal, detail string
	// cleanup tells in JSON how the command's processes were ended, see [execgate.Cleanup]; "" where
	// there were none.
	cleanup string
}

// facts is what an execution came to.
type facts struct {
	// launch is why nothing was executed.
	launch error
	// stopped is why the command was told to stop; nil when it was not.
	stopped error
	ending  execgate.Ending
	// tree is why the tree's end is not proven; output why the streams are not stored.
	tree, output  error
	before, after sourceid.Source
	identity      error
}

// judge turns facts into an outcome. A process that ended by itself before it was told to stop has
// its own outcome. Pure.
// Spec: E-084, E-100, E-110, E-111, E-116.
func judge(f facts) outcome {
	own := f.ending.How == execgate.HowExited
	switch {
	case f.tree != nil:
		return outcome{status: statusNeedsRecovery, reason: reasonProcessesLeft, detail: f.tree.Error()}
	case f.stopped != nil && (!own || f.launch != nil):
		return stopped(f.stopped)
	case f.launch != nil:
		return outcome{status: statusFailed, reason: reasonExecution + code(f.launch), detail: f.launch.Error()}
	case !f.ending.Known:
		return outcome{status: statusNeedsRecovery, reason: reasonUnknown,
			detail: "the process that watched over the command ended before it; its exit status is not known"}
	}
	o := outcome{status: statusFailed}
	if f.ending.Signal != 0 {
		o.signal = unix.SignalName(f.ending.Signal)
	} else {
		o.exit = &f.ending.Code
	}
	switch {
	case f.output != nil:
		o.reason, o.detail = reasonOutput, f.output.Error()
	case f.identity != nil:
		o.reason, o.detail = reasonIdentity+code(f.identity), f.identity.Error()
	case o.signal != "":
		o.reason = reasonSignal
	case f.ending.Code != 0:
		o.reason = reasonExit
	case f.before != f.after:
		o.status, o.reason = statusStale, reasonSourceChanged
		o.detail = fmt.Sprintf("source %.12s at commit %.12s became %.12s at commit %.12s",
			f.before.SHA256, f.before.Commit, f.after.SHA256, f.after.Commit)
	default:
		o.status, o.reason = statusSucceeded, reasonExit
	}
	return o
}

func stopped(why error) outcome {
	var reason ending
	switch {
	case !errors.As(why, &reason):
		// The daemon stops: the same as the end of the run.
		return outcome{status: statusCancelled, reason: string(reasonRunEnded)}
	case reason == reasonTimeout:
		return outcome{status: statusFailed, reason: string(reason)}
	}
	return outcome{status: statusCancelled, reason: string(reason)}
}

// code is one word for an error in a reason: a refusal's code, an errno's name, or "internal".
func code(err error) string {
	if r, ok := refusal.Find(err); ok {
		return string(r.Code)
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		if name := unix.ErrnoName(errno); name != "" {
			return name
		}
	}
	return "internal"
}

// apply writes the outcome into a receipt.
func (o outcome) apply(c *runstore.Command, at float64) {
	c.Reason, c.ExitCode, c.FinishedAt = o.reason, o.exit, &at
	setMember(c, memberSignal, o.signal)
	setMember(c, memberDetail, o.detail)
	if o.cleanup != "" {
		setRaw(c, execgate.CleanupMember, json.RawMessage(o.cleanup))
	}
}

func setMember(c *runstore.Command, name, text string) {
	if text == "" {
		return
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(fmt.Sprintf("commands: %q has no JSON form: %v", text, err)) // every string has one
	}
	setRaw(c, name, quoted)
}

func setRaw(c *runstore.Command, name string, raw json.RawMessage) {
	extra := runstore.Members{name: raw}
	for other, value := range c.Extra {
		if other != name {
			extra[other] = value
		}
	}
	c.Extra = extra
}

// detailOf returns the words on a receipt, or its reason.
func detailOf(c *runstore.Command) string {
	var detail string
	if raw, ok := c.Extra[memberDetail]; ok && json.Unmarshal(raw, &detail) == nil && detail != "" {
		return detail
	}
	return c.Reason
}
