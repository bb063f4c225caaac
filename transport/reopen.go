package transport

import (
	"context"
	"encoding/json"
	"fmt"

	acp "github.com/coder/acp-go-sdk"
)

// openSession loads or resumes the wanted session where the agent offers that, and makes a new
// one where it does not. A load that fails is a failure: nobody's context is replaced unasked.
func (c *conn) openSession(ctx context.Context, agent []byte) (json.RawMessage, *Error) {
	switch {
	case c.o.LoadSession == "":
		return c.makeSession(ctx, agent, NewContext)
	case string(member(agent, "loadSession")) == "true":
		return c.reopen(ctx, agent, PhaseLoad, acp.AgentMethodSessionLoad, Loaded)
	case offered(walk(agent, "sessionCapabilities.resume")):
		return c.reopen(ctx, agent, PhaseResume, acp.AgentMethodSessionResume, Resumed)
	case c.o.RequireSession:
		return nil, &Error{Kind: SessionUnavailable, Phase: PhaseLoad,
			What: "the agent offers neither session/load nor session/resume"}
	}
	return c.makeSession(ctx, agent, NewLoadUnavailable)
}

func (c *conn) makeSession(ctx context.Context, agent []byte, strategy Strategy) (json.RawMessage, *Error) {
	servers, err := c.mcpServers(agent, PhaseNew)
	if err != nil {
		return nil, err
	}
	answer, err := c.request(ctx, PhaseNew, acp.AgentMethodSessionNew, newSession{Cwd: c.o.Cwd, MCPServers: servers})
	if err != nil {
		return nil, err
	}
	id := text(member(answer, "sessionId"))
	if id == "" || len(id) > maxID {
		return nil, &Error{Kind: Protocol, Phase: PhaseNew, What: "the agent gave no usable session id"}
	}
	c.opened(id, strategy)
	return answer, nil
}

// reopen loads or resumes the wanted session, and takes no other for it. The protocol's answer
// has no session id, but some agents name the session in it.
func (c *conn) reopen(ctx context.Context, agent []byte, phase Phase, method string, strategy Strategy) (json.RawMessage, *Error) {
	servers, err := c.mcpServers(agent, phase)
	if err != nil {
		return nil, err
	}
	c.opened(c.o.LoadSession, "") // what is replayed comes before the answer
	answer, err := c.request(ctx, phase, method, reopenSession{Cwd: c.o.Cwd, MCPServers: servers, SessionID: c.o.LoadSession})
	if err != nil {
		return nil, err
	}
	for m := (members{b: answer}); m.next(); {
		if string(m.key) == "sessionId" && !isNull(m.value) && text(m.value) != c.o.LoadSession {
			return nil, &Error{Kind: SessionUnavailable, Phase: phase,
				What: fmt.Sprintf("the agent answered %s with another session", method)}
		}
	}
	c.opened(c.o.LoadSession, strategy)
	return answer, nil
}

func (c *conn) opened(id string, strategy Strategy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessionID, c.negotiated.Strategy = id, strategy
}
