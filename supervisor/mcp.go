package supervisor

import (
	"fmt"
	"strings"

	"greatminds/contract"
	"greatminds/supervisor/mcpservers"
	"greatminds/transport"
)

// mcpSubcommand is how our own MCP server is reached behind [Options.CLI].
const mcpSubcommand = "mcp"

// prepareMCP resolves the MCP servers of a run's session, before a process costs anything: programs
// to absolute paths, as the protocol wants them, and references to values. A variable that is not
// set leaves the run waiting, as one of required_env does; it is never passed on as empty.
func (d *Daemon) prepareMCP(e *execution) (ending, bool) {
	e.mcpServers = nil
	place := mcpservers.Place{Getenv: d.o.Getenv, Workspace: e.workspace, Environment: e.environment}
	if e.agent.SupervisorTools.MCP() {
		e.mcpServers = append(e.mcpServers, d.ownMCPServer(e))
	}
	for _, s := range e.agent.MCPServers {
		if missing := place.Unset(s); len(missing) > 0 {
			return e.lacksVariables(fmt.Sprintf("MCP server %s of agent %s", s.Name, e.agent.ID), missing), false
		}
		resolved, err := place.Resolve(e.agent.ID, s)
		if err != nil {
			return e.failed(configurationError, "ConfigurationError", err), false
		}
		e.mcpServers = append(e.mcpServers, resolved)
	}
	return ending{}, true
}

// ownMCPServer is the supervisor's own server. It is handed the run's credential, since nobody
// promises that an agent passes its environment on to its servers.
func (d *Daemon) ownMCPServer(e *execution) transport.MCPServer {
	argv := append(append([]string{}, d.o.CLI...), mcpSubcommand)
	s := transport.MCPServer{Name: contract.OwnMCPServer, Type: transport.MCPStdio, Command: argv[0], Args: argv[1:]}
	for _, v := range d.credential(e) {
		name, value, _ := strings.Cut(v, "=")
		s.Env = append(s.Env, transport.Variable{Name: name, Value: value})
	}
	return s
}
