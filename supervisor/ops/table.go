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
	"encoding/json"

	"greatminds/internal/execgate"
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

// request is one authorized call on its way through an operation.
type request struct {
	*Env
	control.Call
	peer execgate.Peer
}

// decode reads the operation's arguments. Unknown ones are refused: a caller that misspells
// one must not get the default.
func (r *request) decode(v any) error { return decodeArgs(r.Op, r.Args, v) }

// Answer is the JSON text that an operation prints as it is, kept as it was encoded.
type Answer = json.RawMessage
