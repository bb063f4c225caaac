package supervisor

import (
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
func (d *Daemon) findSession(e *execution) (ending, bool) {
	saved, err := savedSession(d.store.View().Apart(), e)
	if err != nil {
		return e.failed(sessionUnavailable, "HistoryError", err), false
	}
	e.saved = saved
	return ending{}, true
}

// savedSession finds the session of an earlier run of the same task with the same agent, binding
// and workspace, also of one that has left for the history; empty where there is none. How that
// run ended does not matter: its process is gone, and what the agent has kept of the session is
// the agent's to say. E-248, E-250.
func savedSession(v *runstore.View, e *execution) (string, error) {
	if e.binding.Session != contract.SessionResume {
		return "", nil
	}
	history := v.RunsOfTask(e.run.TaskID)
	if err := v.HistoryFault(); err != nil {
		return "", err
	}
	for i := len(history) - 1; i >= 0; i-- {
		r := history[i]
		if r.ID != e.run.ID && r.SessionID != nil && r.AgentSHA256 == e.run.AgentSHA256 &&
			r.BindingSHA256 == e.run.BindingSHA256 && r.Workspace == e.workspace && !neverPrompted(r) {
			return *r.SessionID, nil
		}
	}
	return "", nil
}

// neverPrompted says that a run is known to have sent its session nothing. An agent has nothing to
// keep of such a session, and many keep none: to load it would fail, and to leave it loses nothing.
func neverPrompted(r *runstore.Run) bool {
	return r.Outcome != nil && r.Outcome.PromptStarted != nil && !*r.Outcome.PromptStarted
}
