package supervisor

import (
	"context"
	"encoding/json"

	"greatminds/contract"
	"greatminds/runstore"
	"greatminds/transport"
)

// sessionOptions say what the agent's session must be like. A background run goes on without its
// saved session where the agent can neither load nor resume one, and the strategy says so. E-249.
func (d *Daemon) sessionOptions(e *execution) transport.Options {
	return transport.Options{Stdin: e.ownEnds[0], Stdout: e.ownEnds[1], Stderr: e.ownEnds[2], Ended: e.child.Ended(),
		ClientName: "greatminds", ClientVersion: d.o.Version, Cwd: e.workspace, AuthMethod: text(e.agent.AuthMethod),
		Model: text(e.binding.Model), Mode: text(e.binding.Mode), Reasoning: text(e.binding.Reasoning),
		RequiredCapabilities: e.agent.RequiredCapabilities, OptionalCapabilities: e.agent.OptionalCapabilities,
		LoadSession: e.saved, MCPServers: e.mcpServers, Handler: handler{d, e}, Observe: func(s transport.Stage) { d.observe(e, s) }, Now: d.o.Now}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// findSession looks for the session that the run goes on with. Where the history cannot be read,
// there may be one, and a new one must not take its place.
func (d *Daemon) findSession(_ context.Context, e *execution) (ending, bool) {
	saved, err := savedSession(d.store.View().Apart(), e)
	if err != nil {
		return e.failed(sessionUnavailable, "HistoryError", err), false
	}
	if saved != nil {
		e.saved, e.reopens = *saved.SessionID, reopens(saved)
	}
	return ending{}, true
}

// savedSession finds the run that left the session to go on with: an earlier one of the same task
// with the same agent, binding and workspace, also one that has left for the history; nil where
// there is none. How that run ended does not matter: its process is gone, and what the agent has
// kept of the session is the agent's to say. E-248, E-250.
func savedSession(v *runstore.View, e *execution) (*runstore.Run, error) {
	if e.binding.Session != contract.SessionResume {
		return nil, nil
	}
	history := v.RunsOfTask(e.run.TaskID)
	if err := v.HistoryFault(); err != nil {
		return nil, err
	}
	for i := len(history) - 1; i >= 0; i-- {
		r := history[i]
		if r.ID != e.run.ID && r.SessionID != nil && r.AgentSHA256 == e.run.AgentSHA256 &&
			r.BindingSHA256 == e.run.BindingSHA256 && r.Workspace == e.workspace && !neverPrompted(r) {
			return r, nil
		}
	}
	return nil, nil
}

// reopens tells whether a run's agent offered to go on with a saved session.
func reopens(r *runstore.Run) bool {
	var protocol struct {
		Negotiated struct {
			Data struct {
				Capabilities map[string]bool `json:"capabilities"`
			} `json:"data"`
		} `json:"negotiated"`
	}
	// A record of another form tells of no offer.
	_ = json.Unmarshal(r.Protocol, &protocol)
	offers := protocol.Negotiated.Data.Capabilities
	return offers["loadSession"] || offers["sessionCapabilities.resume"]
}

// neverPrompted says that a run is known to have sent its session nothing. An agent has nothing to
// keep of such a session, and many keep none: to load it would fail, and to leave it loses nothing.
func neverPrompted(r *runstore.Run) bool {
	return r.Outcome != nil && r.Outcome.PromptStarted != nil && !*r.Outcome.PromptStarted
}
