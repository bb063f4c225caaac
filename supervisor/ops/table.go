// Package ops is every operation of the control API, once: the daemon's socket and a command
// that runs in process under the lease perform the same table.
//
// The invariant kept: an operation checks who asks before it looks at what is asked, checks
// everything before it changes anything, and a changing operation stores its receipt under the
// caller's request id, so that the same request asked twice is done once.
// Spec: "The daemon owns the store; everyone else asks it"; design "Authority".
package ops

import (
	"context"
	"maps"
	"slices"

	"greatminds/internal/execgate"
	"greatminds/runstore"
	"greatminds/supervisor/control"
)

// Authority says who may ask for an operation.
type Authority int

// Authorities. Whoever descends from the daemon, or cannot be shown not to, is never an operator.
const (
	// Operator: a caller without a run's credential that does not descend from the daemon.
	Operator Authority = iota + 1
	// Assigned: a caller with the credential of an active run.
	Assigned
	// Either: an operator, or a caller with the credential of a run.
	Either
	// Anyone of the daemon's user: the operation only reads what operators and agents may see.
	Anyone
)

// Operation is one entry of the table.
type Operation struct {
	// Name is the wire name, such as "run.pause".
	Name string
	// Authority says who may ask for it.
	Authority Authority
	// Changing operations have an effect; their receipt is stored under the request id.
	Changing bool
	do       func(ctx context.Context, r *request) (any, error)
}

// request is one call on its way through an operation.
type request struct {
	*Env
	control.Call
	peer execgate.Peer
	// run is the caller's own run, nil for an operator.
	run *runstore.Run
	// caller ends when the caller hangs up, also where the operation's own context does not.
	caller context.Context
}

// decode reads the operation's arguments. Unknown ones are refused: a caller that misspells one
// must not get the default.
func (r *request) decode(v any) error { return decodeArgs(r.Op, r.Args, v) }

// table holds every operation once.
var table = map[string]Operation{}

func add(name string, a Authority, changing bool, do func(ctx context.Context, r *request) (any, error)) {
	if _, twice := table[name]; twice {
		panic("ops: operation listed twice: " + name)
	}
	table[name] = Operation{Name: name, Authority: a, Changing: changing, do: do}
}

func init() {
	add("run.status", Anyone, false, runStatus)
	add("run.events", Anyone, false, runEvents)
	add("run.list", Anyone, false, runList)
	add("run.show", Anyone, false, runShow)
	add("run.watch", Anyone, false, runWatch)
	add("run.pause", Operator, true, runPause)
	add("run.resume", Operator, true, runResume)
	add("run.cancel", Operator, true, runCancel)
	add("run.retry", Operator, true, runRetry)
	add("run.repair", Operator, true, runRepair)
	add("run.contract", Assigned, false, runContract)
	add("run.submit", Assigned, true, runSubmit)
	add("run.command", Assigned, true, runCommand)
	add("run.command-status", Either, false, runCommandStatus)
	add("run.command-resolve", Operator, true, runCommandResolve)
	add("run.account-resume", Operator, true, runAccountResume)
	add("run.permission", Anyone, false, runPermission)
	add("run.permissions", Anyone, false, runPermissions)
	add("run.permission-answer", Operator, true, runPermissionAnswer)
	add("task.new", Either, true, taskNew)
	add("task.mv", Operator, true, taskMove)
	add("task.append-block", Operator, true, taskAppendBlock)
	add("task.withdraw", Operator, true, taskWithdraw)
	add("task.plan", Operator, true, taskPlan)
	add("operator.check", Operator, false, operatorCheck)
}

// Lookup returns the operation of a wire name.
func Lookup(name string) (Operation, bool) {
	op, ok := table[name]
	return op, ok
}

// Names returns the wire names of all operations in alphabetical order.
func Names() []string {
	names := slices.Collect(maps.Keys(table))
	slices.Sort(names)
	return names
}
