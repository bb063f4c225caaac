package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// maxName bounds what is kept of the agent's name and version.
const maxName = 256

// flags are the capabilities that are kept for diagnosis.
var flags = []string{
	"loadSession", "mcpCapabilities.http", "mcpCapabilities.sse", "promptCapabilities.audio",
	"promptCapabilities.embeddedContext", "promptCapabilities.image", "sessionCapabilities.close",
	"sessionCapabilities.fork", "sessionCapabilities.list", "sessionCapabilities.resume",
}

// initialize is sent raw, since the SDK's type lacks members of the protocol. File system
// and terminal are declined in so many words: some agents look into the object unasked.
type initialize struct {
	ProtocolVersion int            `json:"protocolVersion"`
	Capabilities    map[string]any `json:"clientCapabilities"`
	Client          clientInfo     `json:"clientInfo"`
}

type clientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Open makes the handshake and returns a session that is ready for a prompt: initialize,
// authenticate when configured, session/new, session/load or session/resume, then model, mode and
// reasoning, each confirmed. Each request has [Options.RequestTimeout]. With
// [Options.InitializeOnly] it ends before the session.
//
// On failure the connection is closed, but the session is returned beside the error for its
// Stats, Negotiated and StderrTail. It is nil only when the options are unusable; the pipes
// are closed in every case. The error is an [*Error].
// Spec: "Execution contract and durable run store", "Delivery status".
func Open(ctx context.Context, o Options) (*Session, error) {
	filled, wrong := o.filled()
	if wrong == nil {
		wrong = pollable(filled)
	}
	if wrong != nil {
		for _, f := range []*os.File{o.Stdin, o.Stdout, o.Stderr} {
			if f != nil {
				_ = f.Close() // nothing was written
			}
		}
		return nil, wrong
	}
	c := newConn(filled)
	c.start()
	s := &Session{conn: c}
	if err := c.handshake(ctx); err != nil {
		c.fail(err)
		// A moment of its own: the caller's time may be over.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.SettleTimeout)
		defer cancel()
		if left := c.close(last); left != nil {
			err.Err = errors.Join(err.Err, left)
		}
		return s, err
	}
	return s, nil
}

// pollable checks that the pipes take deadlines, without which nothing here is bounded.
func pollable(o Options) *Error {
	err := errors.Join(o.Stdin.SetWriteDeadline(time.Time{}), o.Stdout.SetReadDeadline(time.Time{}))
	if o.Stderr != nil {
		err = errors.Join(err, o.Stderr.SetReadDeadline(time.Time{}))
	}
	if err != nil {
		return &Error{Kind: Transport, Phase: PhasePreflight, What: "the pipes take no deadlines", Err: err}
	}
	return nil
}

func (c *conn) handshake(ctx context.Context) *Error {
	agent, err := c.initialize(ctx)
	if err != nil {
		return err
	}
	c.observe(StageProtocolReady)
	if err := c.require(agent); err != nil {
		return err
	}
	if err := c.authenticate(ctx); err != nil {
		return err
	}
	if c.o.InitializeOnly {
		return nil
	}
	session, err := c.openSession(ctx, agent)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.offer.offers(session)
	c.mu.Unlock()
	if err := c.configure(ctx, session); err != nil {
		return err
	}
	c.mu.Lock()
	c.phase = PhaseIdle
	c.mu.Unlock()
	c.observe(StageSessionReady)
	return nil
}

func (c *conn) observe(stage Stage) {
	if c.o.Observe != nil {
		c.o.Observe(stage)
	}
}

// request sends one request of the handshake and waits for its answer.
func (c *conn) request(ctx context.Context, phase Phase, method string, params any) (json.RawMessage, *Error) {
	if ctx.Err() != nil {
		return nil, ended(ctx, phase, method+" was not sent")
	}
	k, err := c.begin(phase, method, params)
	if err != nil {
		return nil, err
	}
	limit := time.NewTimer(c.o.RequestTimeout)
	defer limit.Stop()
	select {
	case <-k.done:
		return c.outcome(k)
	case <-ctx.Done():
		c.withdraw(k)
		return nil, ended(ctx, phase, method+" had no answer yet")
	case <-limit.C:
		c.withdraw(k)
		return nil, &Error{Kind: Timeout, Phase: phase,
			What: fmt.Sprintf("%s had no answer within %s", method, c.o.RequestTimeout)}
	case <-c.dead:
		select {
		case <-k.done:
			return c.outcome(k)
		default:
			return nil, c.failed(phase)
		}
	}
}

// initialize offers protocol version 1 and takes no other for an answer: in later versions
// the same messages mean something else.
func (c *conn) initialize(ctx context.Context) (json.RawMessage, *Error) {
	answer, err := c.request(ctx, PhaseInitialize, acp.AgentMethodInitialize, initialize{
		ProtocolVersion: acp.ProtocolVersionNumber,
		Capabilities: map[string]any{
			"fs": map[string]bool{"readTextFile": false, "writeTextFile": false}, "terminal": false,
		},
		Client: clientInfo{Name: c.o.ClientName, Version: c.o.ClientVersion},
	})
	if err != nil {
		return nil, err
	}
	raw := member(answer, "protocolVersion")
	version, ok := wholeNumber(string(raw))
	agent := member(answer, "agentCapabilities")
	c.mu.Lock()
	c.negotiated = introduced(answer, agent)
	c.negotiated.ProtocolVersion = int(version)
	c.negotiated.Optional = offers(agent, c.o.OptionalCapabilities)
	c.offer.describes(answer)
	c.mu.Unlock()
	switch {
	case !ok:
		return nil, &Error{Kind: Protocol, Phase: PhaseInitialize,
			What: fmt.Sprintf("the agent answered protocolVersion %s", orAbsent(raw))}
	case int(version) != acp.ProtocolVersionNumber:
		return nil, &Error{Kind: Protocol, Phase: PhaseInitialize, What: fmt.Sprintf(
			"the agent speaks protocol version %d, this client %d", int(version), acp.ProtocolVersionNumber)}
	}
	return agent, nil
}

// introduced keeps what the agent says of itself, bounded.
func introduced(answer, agent []byte) Negotiated {
	info := member(answer, "agentInfo")
	n := Negotiated{
		AgentName:    cut(text(member(info, "name")), maxName),
		AgentVersion: cut(text(member(info, "version")), maxName),
		Capabilities: map[string]bool{},
	}
	for e := (elements{b: member(answer, "authMethods")}); e.next(); {
		if id := text(member(e.value, "id")); id != "" && len(n.AuthMethods) < maxOptions {
			n.AuthMethods = append(n.AuthMethods, cut(id, maxID))
		}
	}
	for _, path := range flags {
		if v := walk(agent, path); v != nil {
			n.Capabilities[path] = offered(v)
		}
	}
	return n
}

func orAbsent(raw []byte) string {
	if raw == nil {
		return "(absent)"
	}
	return fmt.Sprintf("%q", cut(string(raw), maxWord))
}

// walk follows a dotted path through objects; nil when it leads nowhere.
func walk(raw []byte, path string) []byte {
	for _, name := range strings.Split(path, ".") {
		raw = member(raw, name)
	}
	return raw
}

// offered says that a capability's value means yes: objects are markers, even when empty.
func offered(raw []byte) bool { return !isNull(raw) && string(raw) != "false" }

// offers says of each path whether the agent offers it; nil for none.
func offers(agent []byte, paths []string) map[string]bool {
	var found map[string]bool
	for _, path := range paths {
		if found == nil {
			found = map[string]bool{}
		}
		found[path] = offered(walk(agent, path))
	}
	return found
}

// require checks the capabilities that the manifest needs.
func (c *conn) require(agent []byte) *Error {
	var missing []string
	for _, path := range c.o.RequiredCapabilities {
		if !offered(walk(agent, path)) {
			missing = append(missing, path)
		}
	}
	if len(missing) > 0 {
		return &Error{Kind: Configuration, Phase: PhaseInitialize,
			What: "the agent does not offer the required " + strings.Join(missing, ", ")}
	}
	return nil
}

// authenticate calls the configured method, and none otherwise. Whatever login the method
// asks for is between the agent and the operator.
func (c *conn) authenticate(ctx context.Context) *Error {
	id := c.o.AuthMethod
	if id == "" {
		return nil
	}
	c.mu.Lock()
	methods := c.negotiated.AuthMethods
	c.mu.Unlock()
	if !slices.Contains(methods, id) {
		return &Error{Kind: Configuration, Phase: PhaseAuthenticate,
			What: fmt.Sprintf("auth_method %q is not among the advertised %q", id, methods)}
	}
	_, err := c.request(ctx, PhaseAuthenticate, acp.AgentMethodAuthenticate,
		acp.AuthenticateRequest{MethodId: id})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.negotiated.AuthMethod = id
	c.mu.Unlock()
	return nil
}
