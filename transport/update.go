package transport

import "encoding/json"

// Update is one session/update of the agent, as far as it was understood.
type Update struct {
	// SessionID is the session that the agent named.
	SessionID string
	// Kind is the discriminator as on the wire, cut to 128 bytes; empty when missing.
	Kind string
	// Known says that Kind is one that this client understands and that the required fields
	// are there. Otherwise only Kind, Bytes and SHA256 are kept.
	Known bool
	// Phase is what the client was doing when the update was handled.
	Phase Phase
	// Replayed says that the update came while a session was being loaded.
	Replayed bool
	// ToolCallID, Title, ToolKind and Status are those of a tool call. Agent text.
	ToolCallID, Title, ToolKind, Status string
	// ToolReference is the tool call id, hashed with a key of this session alone.
	ToolReference string
	// ContentCount and LocationCount count a tool call's content blocks and locations.
	ContentCount, LocationCount int
	// ContentType is the type of a chunk's content block, Text its text where that is "text".
	ContentType, Text string
	// MessageID is the message that a chunk belongs to, where the agent says so.
	MessageID string
	// Mode is the mode that a current_mode_update names.
	Mode string
	// Usage is the report of a usage_update.
	Usage *UsageReport
	// Raw is the update object of a known kind; it may be kept. Not redacted.
	Raw json.RawMessage
	// Bytes is the size of the update object, SHA256 its hash in hex (unknown kinds only).
	Bytes  int
	SHA256 string
}

// Reading says whether a reported number was there and usable. Missing and invalid are
// explicit, never zero. Spec: "Reported usage observations".
type Reading string

// The readings.
const (
	Missing  Reading = "missing"
	Invalid  Reading = "invalid"
	Reported Reading = "reported"
)

// Counter is one reported whole number, not negative.
type Counter struct {
	Reading Reading
	Value   int64
}

// UsageReport is a usage_update: how full the context is, and what the session cost so far.
type UsageReport struct {
	// Used and Size are tokens of the context window; occupancy, not spend.
	Used, Size Counter
	// Cost is cumulative for the session.
	Cost Cost
}

// Cost is a reported amount of money, exactly as written by the agent.
type Cost struct {
	Reading  Reading
	Amount   json.Number
	Currency string
}

// Tokens is the usage of a prompt's answer. Whether it is per turn or cumulative is unknown.
type Tokens struct {
	// Reading is missing when the answer had no usage, invalid when no counter was usable.
	Reading                                                  Reading
	Input, Output, Total, Thought, CachedRead, CachedWritten Counter
}
