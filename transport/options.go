package transport

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The limits in force where [Options] leaves a field zero.
const (
	// DefaultMaxLine is the longest protocol line in bytes. An agent's 8 MiB of text with its
	// envelope passes; the SDK's own scanner would end the connection at 10 MiB.
	DefaultMaxLine = 8<<20 + 256<<10
	// DefaultRequestTimeout bounds initialize, authenticate, session/new, session/load,
	// session/resume and each setting. Spec: "ACP request: 30 s each".
	DefaultRequestTimeout = 30 * time.Second
	// DefaultCancelGrace is how long a cancelled turn may take to give its stop reason.
	DefaultCancelGrace = 2 * time.Second
	// DefaultDrainTimeout bounds reading what an ended agent left on standard output.
	DefaultDrainTimeout = 100 * time.Millisecond
	// DefaultWriteTimeout is how long the agent may leave one message unread.
	DefaultWriteTimeout = 30 * time.Second
	// DefaultCloseTimeout bounds session/close, whose answer nothing depends on.
	DefaultCloseTimeout = 2 * time.Second
	// DefaultSettleTimeout is how long one update may stay unhandled.
	DefaultSettleTimeout = 5 * time.Second
	// MaxPermissionBytes is the size of the largest permission request that is put to the
	// handler; a larger one is refused to the agent and never cut.
	// Spec: "Operator permission requests".
	MaxPermissionBytes = 256 << 10
	// MaxOpenRequests is how many requests of the agent may be open at once.
	MaxOpenRequests = 32
	// MaxStderrTail is how many bytes of standard error are kept, the last ones.
	MaxStderrTail = 32 << 10
)

// maxMaxLine leaves room for our own envelope below the SDK's limit of 10 MiB.
const maxMaxLine = 9 << 20

// Options say whom to talk to, and what the session must be like.
type Options struct {
	// Stdin, Stdout and Stderr are our ends of the child's pipes; the session owns and closes
	// them, also when Open fails. Stderr may be nil.
	Stdin, Stdout, Stderr *os.File
	// Ended is closed when the agent process itself has ended, whatever holds its pipes. Nil:
	// only end of file is seen.
	Ended <-chan struct{}
	// ClientName and ClientVersion are sent as clientInfo.
	ClientName, ClientVersion string
	// Cwd is the absolute path of the session's workspace.
	Cwd string
	// AuthMethod is the one authentication method to call; empty: none is called.
	AuthMethod string
	// Model, Mode and Reasoning must be advertised and confirmed; empty: left as they are.
	Model, Mode, Reasoning string
	// RequiredCapabilities are dotted paths into agentCapabilities ("promptCapabilities.image")
	// that must be there and not false.
	RequiredCapabilities []string
	// OptionalCapabilities are looked up in the same way; which of them the agent offers stands in
	// [Negotiated.Optional]. None is ever refused for.
	OptionalCapabilities []string
	// MCPServers are the servers that the agent connects to in the session, however it is opened.
	// One of a type that the agent does not offer is refused before the session is.
	MCPServers []MCPServer
	// LoadSession is the id of the session to load, or to resume where the agent does not offer
	// loading; empty: a new one is made.
	LoadSession string
	// InitializeOnly ends the handshake after initialize and authenticate. No session is made, and
	// [Session.Prompt] is refused.
	InitializeOnly bool
	// RequireSession fails with [SessionUnavailable] where the agent can neither load nor resume
	// LoadSession. Otherwise a new session is made, and the strategy says so.
	RequireSession bool
	// Handler receives updates and permission requests. Nil: updates are only counted, and a
	// permission request is cancelled and counted as needing input.
	Handler Handler
	// Observe is told of each stage once, from the goroutine that reached it; it must not block.
	Observe func(Stage)
	// Now stamps activity; nil leaves the times in [Stats] zero. No decision depends on it.
	Now func() time.Time
	// MaxLine, in bytes, bounds one protocol line; at most 9 MiB.
	MaxLine int
	// RequestTimeout bounds each request of the handshake.
	RequestTimeout time.Duration
	// CancelGrace bounds the wait for the stop reason after session/cancel.
	CancelGrace time.Duration
	// CloseTimeout bounds the wait for the answer to session/close.
	CloseTimeout time.Duration
	// WriteTimeout bounds how long the agent may leave one message unread.
	WriteTimeout time.Duration
	// DrainTimeout bounds reading standard output after the agent ended.
	DrainTimeout time.Duration
	// SettleTimeout is how long the handler may take for one update before the connection is
	// given up.
	SettleTimeout time.Duration
}

// filled returns the options with the defaults in place, or what is wrong with them.
func (o Options) filled() (Options, *Error) {
	if o.Stdin == nil || o.Stdout == nil {
		return o, &Error{Kind: Transport, Phase: PhasePreflight, What: "no pipes to the agent"}
	}
	if !filepath.IsAbs(o.Cwd) {
		return o, &Error{Kind: Configuration, Phase: PhasePreflight,
			What: fmt.Sprintf("workspace %q is no absolute path", o.Cwd)}
	}
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	o.MaxLine = min(o.MaxLine, maxMaxLine)
	for _, d := range []struct {
		span  *time.Duration
		usual time.Duration
	}{
		{&o.RequestTimeout, DefaultRequestTimeout}, {&o.CancelGrace, DefaultCancelGrace},
		{&o.WriteTimeout, DefaultWriteTimeout}, {&o.DrainTimeout, DefaultDrainTimeout},
		{&o.SettleTimeout, DefaultSettleTimeout}, {&o.CloseTimeout, DefaultCloseTimeout},
	} {
		if *d.span <= 0 {
			*d.span = d.usual
		}
	}
	return o, nil
}

// now returns the time for stamps, zero where nobody wants them.
func (o Options) now() time.Time {
	if o.Now == nil {
		return time.Time{}
	}
	return o.Now()
}

// Stage is a boundary that is reported once. Spec: "Durable run-stage timing".
type Stage string

// The stages, in the order in which a run meets them.
const (
	// StageProtocolReady: initialize answered with the version that we speak.
	StageProtocolReady Stage = "protocol_ready"
	// StageSessionReady: session made or loaded, every setting confirmed.
	StageSessionReady Stage = "session_ready"
	// StageFirstActivity: the first update, permission request or extension message.
	StageFirstActivity Stage = "first_protocol_activity"
	// StageFirstPromptActivity: the first such message after a prompt call began.
	StageFirstPromptActivity Stage = "first_prompt_activity"
)

// Phase names what the client was doing. Spec: "Managed protocol diagnostics".
type Phase string

// The phases.
const (
	PhasePreflight    Phase = "preflight"
	PhaseInitialize   Phase = "initialize"
	PhaseAuthenticate Phase = "authenticate"
	PhaseNew          Phase = "session_new"
	PhaseLoad         Phase = "session_load"
	PhaseResume       Phase = "session_resume"
	PhaseConfigure    Phase = "configure"
	PhaseIdle         Phase = "idle"
	PhasePrompt       Phase = "prompt"
	PhaseClose        Phase = "session_close"
)
