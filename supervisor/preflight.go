package supervisor

import (
	"context"
	"fmt"
	"strings"

	"greatminds/internal/redact"
	"greatminds/runstore"
)

// preflight finds what would fail after a process was started, and costs none.
func (d *Daemon) preflight(_ context.Context, e *execution) (ending, bool) {
	e.environment, e.secrets = d.agentEnvironment(e)
	var missing []string
	for _, name := range e.agent.RequiredEnv {
		if !d.has(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return e.lacksVariables("agent "+e.agent.ID, missing), false
	}
	if end, ok := d.prepareMCP(e); !ok {
		return end, false
	}
	return d.admitContext(e)
}

// lacksVariables is the ending of a run that needs variables which the daemon's environment lacks.
// It waits as for a login: whoever sets them has to start the daemon again.
func (e *execution) lacksVariables(who string, names []string) ending {
	code := authRequiredRPCCode
	e.outcome.errorCode, e.outcome.missing = &code, names
	e.outcome.what = fmt.Sprintf("%s needs the variable %s, which the daemon's environment lacks", who, strings.Join(names, ", "))
	return ending{runstore.WaitingAuth, authRequired, nil}
}

func (d *Daemon) has(name string) bool { return d.o.Getenv(name) != "" }

// agentEnvironment is what the agent's process gets, and what masks the values in it that are secret.
func (d *Daemon) agentEnvironment(e *execution) ([]string, *redact.Redactor) {
	env, secrets := e.agent.Environ(d.o.Getenv)
	return append(env, d.credential(e)...), redact.New(append(secrets, string(e.token))...)
}

// credential is what lets a process of the run call the supervisor.
func (d *Daemon) credential(e *execution) []string {
	return []string{"GREATMINDS_PROJECT_DIR=" + d.o.Project.Root, "GREATMINDS_ROLE=" + string(e.binding.Role),
		"GREATMINDS_RUN_ID=" + string(e.run.ID), "GREATMINDS_RUN_TOKEN=" + string(e.token)}
}
