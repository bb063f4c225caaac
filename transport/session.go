package transport

import (
	"context"
	"slices"
	"time"
)

// Session is one ACP session over one agent process. Its methods may be called from any
// goroutine, and after Close.
type Session struct{ conn *conn }

// Negotiated is what the handshake agreed on.
// Spec: "Managed protocol diagnostics".
type Negotiated struct {
	// ProtocolVersion is 1, or what the agent answered when the handshake failed for it.
	ProtocolVersion int
	// AgentName and AgentVersion are the agent's own words, cut to 256 bytes.
	AgentName, AgentVersion string
	// Capabilities holds the flags of an allowlist, by dotted path into agentCapabilities.
	Capabilities map[string]bool
	// Optional says of each of [Options.OptionalCapabilities] whether the agent offers it.
	Optional map[string]bool
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
	NewContext Strategy = "new_context"
	Loaded     Strategy = "loaded"
	// Resumed: the agent went on with the session without sending its history again.
	Resumed Strategy = "resumed"
	// NewLoadUnavailable: a session was to be loaded, but the agent offers neither loading nor
	// resuming.
	NewLoadUnavailable Strategy = "new_load_unavailable"
)

// ID returns the session's id, empty until the agent gave one.
func (s *Session) ID() string { return s.conn.session() }

// Negotiated returns what the handshake agreed on, as far as it came.
func (s *Session) Negotiated() Negotiated {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.negotiated
	n.AuthMethods = slices.Clone(n.AuthMethods)
	return n
}

// Stats returns a copy of the counters.
func (s *Session) Stats() Stats {
	st := s.conn.stats.snapshot()
	_, st.StderrBytes = s.conn.errTail.bytes()
	return st
}

// Spoke returns when the agent's last update, request or extension message came, with a monotonic
// reading; zero when none did.
func (s *Session) Spoke() time.Time {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spoke
}

// StderrTail returns the last 32 KiB of the agent's standard error. Not redacted, and not
// safe to show on a terminal.
func (s *Session) StderrTail() []byte {
	kept, _ := s.conn.errTail.bytes()
	return kept
}

// Done is closed when the connection is dead: the agent ended, broke the protocol, stopped
// reading, or the session was closed. [Session.Err] says why.
func (s *Session) Done() <-chan struct{} { return s.conn.dead }

// Err returns why the connection is dead, nil while it is not.
func (s *Session) Err() error {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		return nil
	}
	return c.cause
}

// CloseSession ends the session in order: session/close where the agent offers it, at most once,
// never while a turn is open or its answer awaited, and never after the connection has failed. It
// returns with the answer, after [Options.CloseTimeout] or when ctx ends; a failure is counted in
// [Stats.CloseFailed] and nothing else. No prompt can be sent afterwards.
func (s *Session) CloseSession(ctx context.Context) {
	c := s.conn
	if c.openTurn() == nil {
		c.questions.wait(ctx) // answers of the last turn may be on their way
	}
	c.closeSession(ctx)
}

// CloseInput ends the session as [Session.CloseSession] does, and then the agent's standard input,
// which asks it to end, and goes on reading what it still says. What is queued is written first, at
// most until ctx ends.
func (s *Session) CloseInput(ctx context.Context) error {
	s.CloseSession(ctx)
	c := s.conn
	err := c.out.flush(ctx)
	c.out.shut()
	return err
}

// Close ends the connection and returns when all its goroutines have ended. It takes at most
// a few times [Options.DrainTimeout], or until ctx ends when a handler does not return,
// which is an error. An open turn ends with a failure, its questions with cancelled. What an
// ended agent has left in its pipes is read first; of a living one nothing more is.
func (s *Session) Close(ctx context.Context) error { return s.conn.close(ctx) }

func (c *conn) session() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessionID
}
