// Package mcpservers makes the MCP servers of an agent's manifest into those of a session, for a run
// and for a probe alike: programs become absolute paths, as the protocol wants them, and references
// become values. It starts nothing and connects to nothing.
package mcpservers

import (
	"fmt"
	"os"
	"strings"

	"greatminds/contract"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/transport"
)

// Place is where servers are resolved.
type Place struct {
	// Getenv is the environment that references are taken from.
	Getenv func(string) string
	// Workspace and Environment are the agent's, which finds a program by them.
	Workspace   string
	Environment []string
}

// Unset names the variables that a server refers to and that are not set. None of them is passed on
// as empty.
func (p Place) Unset(s contract.MCPServer) (missing []string) {
	for _, name := range s.Variables() {
		if p.Getenv(name) == "" {
			missing = append(missing, name)
		}
	}
	return missing
}

// Resolve resolves one server of the agent with this id. Its variables are all set, see [Place.Unset].
// It refuses a program that is not there, and a value that no header can hold.
func (p Place) Resolve(agent string, s contract.MCPServer) (transport.MCPServer, error) {
	out := transport.MCPServer{Name: s.Name, Type: transport.MCPType(s.Type), URL: s.URL}
	if s.Type == contract.MCPStdio {
		program, err := p.program(agent, s)
		if err != nil {
			return out, err
		}
		out.Command, out.Args = program, s.Command[1:]
		for _, v := range s.Environment {
			out.Env = append(out.Env, transport.Variable{Name: v.Child, Value: p.Getenv(v.Parent)})
		}
		return out, nil
	}
	for _, h := range s.Headers {
		value := p.Getenv(h.Parent)
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return out, refusal.New(refusal.CodeMCPServer, "", "the variable %s cannot be sent as header %s of MCP server %s: it holds a line break or "+
				"another control character; set it without, where the daemon is started", h.Parent, h.Name, s.Name)
		}
		out.Headers = append(out.Headers, transport.Variable{Name: h.Name, Value: value})
	}
	return out, nil
}

// program is the absolute path of a server's program, as the agent would find it.
func (p Place) program(agent string, s contract.MCPServer) (string, error) {
	program, err := execgate.LookPath(s.Command[0], p.Workspace, p.Environment)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(program); err == nil && (!info.Mode().IsRegular() || info.Mode()&0o111 == 0) {
			err = fmt.Errorf("%s is no program", program)
		}
	}
	if err != nil {
		return "", &refusal.Refusal{Code: refusal.CodeMCPServer, Err: err, What: fmt.Sprintf(
			"MCP server %s of agent %s cannot be started: %v; install it, or mend agents.%s.mcp_servers.%s.command in coordination/execution.yaml",
			s.Name, agent, err, agent, s.Name)}
	}
	return program, nil
}
