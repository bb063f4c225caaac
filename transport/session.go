package transport

import (
	"context"
	"errors"
	"time"
)

// Session is one open ACP session. Its methods may be called from any goroutine.
type Session struct{}

// Negotiated is what the handshake agreed on.
type Negotiated struct {
	// ProtocolVersion is always 1.
	ProtocolVersion int
	// AgentName and AgentVersion are the agent's own words, cut to 256 bytes.
	AgentName, AgentVersion string
	// Capabilities holds the flags of an allowlist, by dotted path.
	Capabilities map[string]bool
	// AuthMethods are the advertised method ids, AuthMethod the one that was called.
	AuthMethods []string
	AuthMethod  string
	// Strategy says where the session came from.
	Strategy Strategy
	// Model, Mode and Reasoning are the confirmed settings, empty where none was asked for.
	Model, Mode, Reasoning string
}

// Strategy is how the session was made.
type Strategy string

// The strategies, as the run's outcome records them.
const (
	NewContext         Strategy = "new_context"
	Loaded             Strategy = "loaded"
	NewLoadUnavailable Strategy = "new_load_unavailable"
)

// Turn is what is known of a prompt turn, also when it failed.
type Turn struct {
	// StopReason is the agent's, cut to 128 bytes; empty when none came.
	StopReason string
	// Known says that StopReason is one of protocol version 1.
	Known bool
	// Tokens is the usage in the answer.
	Tokens Tokens
	// Updates, Chunks, TextBytes and Gaps count what came during the turn: all updates, the
	// agent's message chunks, the bytes of their text, and messages lost for their size.
	Updates, Chunks int
	TextBytes       int64
	Gaps            int
	// CancelSent says that session/cancel was sent.
	CancelSent bool
	// Took is the time from the request to its answer or failure.
	Took time.Duration
}

// ToolObservation is one tool call or update, without any of the agent's text.
type ToolObservation struct {
	At                          time.Time
	Phase                       Phase
	Update                      string
	Reference                   string
	ToolKind, Status            string
	ContentCount, LocationCount int
}

// Stats is a copy of the session's counters.
type Stats struct {
	// Updates counts all updates, Replayed those of a load, PromptUpdates those of turns, and
	// LateUpdates those after the last turn's answer.
	Updates, Replayed, PromptUpdates, LateUpdates int64
	// Unknown counts updates of unknown kind or form, Extensions other notifications.
	Unknown, Extensions int64
	// GarbageLines and GarbageBytes count what was no protocol message.
	GarbageLines, GarbageBytes int64
	// Gaps counts notifications lost because they were too large.
	Gaps int64
	// Repaired counts envelopes that were put right, StrayReplies answers to nothing.
	Repaired, StrayReplies int64
	// Rejected counts requests of the agent that were answered with an error.
	Rejected int64
	// Permissions counts questions put to the handler; InputNeeded those that had no handler.
	Permissions, InputNeeded int64
	// Panics counts recovered panics of the handler.
	Panics int64
	// PrePromptActivity says that something came before the first prompt.
	PrePromptActivity bool
	// LastActivity is when the last message came; zero when none.
	LastActivity time.Time
	// Tools are the first 64 distinct tool observations; ToolsTruncated says there were more.
	Tools          []ToolObservation
	ToolsTruncated bool
	// Usage is the last usage_update; nil when there was none.
	Usage   *UsageReport
	UsageAt time.Time
}

var errNotBuilt = errors.New("transport: not built yet")

// Open makes the handshake and returns a session that is ready for a prompt.
func Open(ctx context.Context, o Options) (*Session, error) { return nil, errNotBuilt }

// ID returns the session's id.
func (s *Session) ID() string { return "" }

// Negotiated returns what the handshake agreed on.
func (s *Session) Negotiated() Negotiated { return Negotiated{} }

// Stats returns a copy of the counters.
func (s *Session) Stats() Stats { return Stats{} }

// Prompt runs one turn.
func (s *Session) Prompt(ctx context.Context, text string) (Turn, error) { return Turn{}, errNotBuilt }

// Cancel asks the agent to end the turn.
func (s *Session) Cancel(ctx context.Context) error { return errNotBuilt }

// Close ends the connection.
func (s *Session) Close(ctx context.Context) error { return errNotBuilt }

// StderrTail returns the last bytes of standard error.
func (s *Session) StderrTail() []byte { return nil }
