package transport

import (
	"encoding/json"
	"errors"
	"fmt"

	"greatminds/internal/refusal"
)

// Kind says what a caller must do about an [Error].
type Kind string

// The kinds.
const (
	// Transport: the connection or the agent process failed.
	Transport Kind = "transport"
	// Timeout: a request or a turn did not end within its limit.
	Timeout Kind = "timeout"
	// AuthRequired: the agent wants a login that only the operator can give.
	AuthRequired Kind = "auth_required"
	// Protocol: the agent answered with an error, or broke the protocol.
	Protocol Kind = "protocol"
	// Configuration: what the binding asks for is not offered or was not confirmed.
	Configuration Kind = "configuration"
	// Cancelled: the caller's context was cancelled or Cancel was called.
	Cancelled Kind = "cancelled"
	// SessionUnavailable: the wanted session could not be loaded or resumed.
	SessionUnavailable Kind = "session_unavailable"
)

// ErrWithdrawn is the cause of the end of a question's context when the agent has withdrawn its
// request: by $/cancel_request, or by a second one of the same id.
var ErrWithdrawn = errors.New("the agent has withdrawn its request")

// Error is every failure that this package returns. Data and Message are agent text.
type Error struct {
	// Kind decides what happens next.
	Kind Kind
	// Phase is what the client was doing.
	Phase Phase
	// Code is the JSON-RPC code that the agent sent; nil when the failure is local.
	Code *int
	// What says what failed, with the value; in our words.
	What string
	// Message and Data are the agent's error, at most 1 KiB and 4 KiB. Not redacted.
	Message string
	Data    json.RawMessage
	// Err is the local cause.
	Err error
}

// Error returns phase and cause in our own words; the agent's message is left out, since it
// may hold secrets.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s", e.Phase, e.What)
	if e.Code != nil {
		s += fmt.Sprintf(" (JSON-RPC code %d)", *e.Code)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the local cause.
func (e *Error) Unwrap() error { return e.Err }

// remedy is a refusal code, which is also a run's reason, and what to do about it.
type remedy struct {
	code refusal.Code
	text string
}

var remedies = map[Kind]remedy{
	Transport:          {refusal.CodeTransportFailure, "look at the end of the agent's standard error, then retry"},
	Timeout:            {refusal.CodeTimeout, "check that the agent works by itself, or raise the binding's timeout_seconds"},
	AuthRequired:       {refusal.CodeAuthenticationRequired, "log in with the agent's own command, then retry"},
	Protocol:           {refusal.CodeProtocolError, "check the agent's version against the ones that are known to work"},
	Configuration:      {refusal.CodeConfigurationError, "change the binding or the agent manifest in coordination/execution.yaml"},
	Cancelled:          {refusal.CodeTurnCancelled, "retry when the work is wanted after all"},
	SessionUnavailable: {refusal.CodeSessionLoadUnavailable, "start a new session; the agent no longer has the old one"},
}

// Refusal returns the failure as an operator sees it. The agent's own words stay out.
func (e *Error) Refusal() *refusal.Refusal {
	r := remedies[e.Kind]
	return &refusal.Refusal{Code: r.code, What: e.Error(), Remedy: r.text, Err: e}
}
