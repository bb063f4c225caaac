package transport

import (
	"encoding/json"
	"fmt"
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
	// SessionUnavailable: the session to load could not be loaded.
	SessionUnavailable Kind = "session_unavailable"
)

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
