package transport

import (
	"context"
	"encoding/json"
)

// Handler is what the session's owner does with what the agent says.
type Handler interface {
	// Update is called for every update in the order of the wire, one at a time; it must not
	// block. An error (or a panic) means that recording the observation failed: the turn is
	// then not reported as processed. Spec: "Managed protocol diagnostics".
	Update(Update) error
	// Permission is called once for each valid permission request, in a goroutine of its own,
	// after the updates sent before the request were handled. ctx ends with the turn, a
	// cancel, the request's withdrawal by the agent (its cause is then [ErrWithdrawn]), or the
	// session; the answer then counts no more. What it answers is checked against the offered options.
	Permission(ctx context.Context, r PermissionRequest) PermissionAnswer
}

// PermissionRequest is one question of the agent.
type PermissionRequest struct {
	// ID is unique in this session; it is ours, not the wire's.
	ID string
	// SessionID is the session asked for, always this one.
	SessionID string
	// ToolCallID, Title, ToolKind and Status describe the tool call, from the request or, where
	// it leaves them out, from the updates before it. Agent text: escape before showing.
	ToolCallID, Title, ToolKind, Status string
	// ToolCall is the tool call as a JSON object, the request's members over those of earlier
	// updates. Not redacted.
	ToolCall json.RawMessage
	// Options are the offered options in the order of the wire.
	Options []Option
	// Bytes is the size of the request's parameters on the wire.
	Bytes int
}

// Option is one offered answer.
type Option struct {
	// ID and Name are the agent's; Kind is as on the wire.
	ID, Name, Kind string
	// Selectable says that the option may be chosen: only allow_once and reject_once may.
	Selectable bool
}

// PermissionAnswer is the handler's answer; the zero value is outcome cancelled.
type PermissionAnswer struct {
	// OptionID is the chosen option, empty for cancelled.
	OptionID string
	// Delivered, when not nil, is called once after the answer was handed to the writer (true)
	// or found withdrawn, invalid or late and replaced by cancelled (false). Must not block.
	Delivered func(bool)
}
