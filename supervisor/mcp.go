package supervisor

import (
	"fmt"
	"os"
	"strings"

	"greatminds/contract"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/transport"
)

// mcpSubcommand is how our own MCP server is reached behind [Options.CLI].
const mcpSubcommand = "mcp"

// prepareMCP resolves the MCP servers of a run's session, before a process costs anything: programs
// to absolute paths, as the protocol wants them, and references to values. A variable that is not
// set leaves the run waiting, as one of required_env does; it is never passed on as empty.
func (d *Daemon) prepareMCP(e *execution) (ending, bool) {
	e.mcpServers = nil
	if e.agent.SupervisorTools.MCP() {
		e.mcpServers = append(e.mcpServers, d.ownMCPServer(e))
	}
	for _, s := range e.agent.MCPServers {
		if missing := d.unsetOf(s); len(missing) > 0 {
			code := authRequiredRPCCode
			e.outcome.errorCode = &code
			e.outcome.what = fmt.Sprintf("MCP server %s of agent %s needs the variable %s, which the daemon's environment lacks",
				s.Name, e.agent.ID, strings.Join(missing, ", "))
			return ending{runstore.WaitingAuth, authRequired, nil}, false
		}
		resolved, err := d.mcpServer(e, s)
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

// unsetOf names the variables that a server refers to and that are not set.
func (d *Daemon) unsetOf(s contract.MCPServer) (missing []string) {
	for _, name := range s.Variables() {
		if !d.has(name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// mcpServer resolves one server whose variables are all set.
func (d *Daemon) mcpServer(e *execution, s contract.MCPServer) (transport.MCPServer, error) {
	out := transport.MCPServer{Name: s.Name, Type: transport.MCPType(s.Type), URL: s.URL}
	if s.Type == contract.MCPStdio {
		program, err := e.mcpProgram(s)
		if err != nil {
			return out, err
		}
		out.Command, out.Args = program, s.Command[1:]
		for _, v := range s.Environment {
			out.Env = append(out.Env, transport.Variable{Name: v.Child, Value: d.o.Getenv(v.Parent)})
		}
		return out, nil
	}
	for _, h := range s.Headers {
		value := d.o.Getenv(h.Parent)
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return out, refusal.New(refusal.CodeMCPServer, "", "the variable %s cannot be sent as header %s of MCP server %s: it holds a line break or "+
				"another control character; set it without, where the daemon is started", h.Parent, h.Name, s.Name)
		}
		out.Headers = append(out.Headers, transport.Variable{Name: h.Name, Value: value})
	}
	return out, nil
}

// mcpProgram is the absolute path of a server's program, as the agent would find it.
func (e *execution) mcpProgram(s contract.MCPServer) (string, error) {
	program, err := execgate.LookPath(s.Command[0], e.workspace, e.environment)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(program); err == nil && (!info.Mode().IsRegular() || info.Mode()&0o111 == 0) {
			err = fmt.Errorf("%s is no program", program)
		}
	}
	if err != nil {
		return "", &refusal.Refusal{Code: refusal.CodeMCPServer, Err: err, What: fmt.Sprintf(
			"MCP server %s of agent %s cannot be started: %v; install it, or mend agents.%s.mcp_servers.%s.command in coordination/execution.yaml",
			s.Name, e.agent.ID, err, e.agent.ID, s.Name)}
	}
	return program, nil
}
