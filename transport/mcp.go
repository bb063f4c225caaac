package transport

import (
	"fmt"
	"log/slog"
)

// MCPType is how the agent reaches an MCP server.
type MCPType string

// The types of ACP v1. Every agent takes stdio; the other two it must offer.
const (
	MCPStdio MCPType = "stdio"
	MCPHTTP  MCPType = "http"
	MCPSSE   MCPType = "sse"
)

// Variable is an environment variable or an HTTP header. Its value may be a secret: printed or
// logged, it shows its name alone.
type Variable struct{ Name, Value string }

// String returns the name without the value.
func (v Variable) String() string { return v.Name + "=…" }

// GoString returns the name without the value.
func (v Variable) GoString() string { return v.String() }

// LogValue returns the name without the value.
func (v Variable) LogValue() slog.Value { return slog.StringValue(v.String()) }

// MCPServer is one MCP server that the agent is to connect to in the session. Printed or
// logged, it shows its name and type alone, since arguments and URL may hold secrets too.
type MCPServer struct {
	// Name tells the servers of a session apart.
	Name string
	// Type says which of the members below count.
	Type MCPType
	// Command, Args and Env start a stdio server. Command is an absolute path.
	Command string
	Args    []string
	Env     []Variable
	// URL and Headers reach an http or sse server.
	URL     string
	Headers []Variable
}

// String returns name and type.
func (m MCPServer) String() string { return fmt.Sprintf("%s (%s)", m.Name, m.Type) }

// GoString returns name and type.
func (m MCPServer) GoString() string { return m.String() }

// LogValue returns name and type.
func (m MCPServer) LogValue() slog.Value { return slog.StringValue(m.String()) }

// mcpStdio and mcpRemote are the servers on the wire. A stdio server has no member type: agents
// of before there were others tell it by that.
type mcpStdio struct {
	Name    string      `json:"name"`
	Command string      `json:"command"`
	Args    []string    `json:"args"`
	Env     []wireNamed `json:"env"`
}

type mcpRemote struct {
	Type    MCPType     `json:"type"`
	Name    string      `json:"name"`
	URL     string      `json:"url"`
	Headers []wireNamed `json:"headers"`
}

type wireNamed struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func wireNames(variables []Variable) []wireNamed {
	named := make([]wireNamed, 0, len(variables)) // never null on the wire
	for _, v := range variables {
		named = append(named, wireNamed(v))
	}
	return named
}

// mcpServers returns the servers as they go over the wire, or why the agent cannot take one.
func (c *conn) mcpServers(agent []byte, phase Phase) ([]any, *Error) {
	servers := make([]any, 0, len(c.o.MCPServers))
	for _, m := range c.o.MCPServers {
		switch m.Type {
		case MCPStdio:
			servers = append(servers, mcpStdio{Name: m.Name, Command: m.Command,
				Args: append([]string{}, m.Args...), Env: wireNames(m.Env)})
			continue
		case MCPHTTP, MCPSSE:
			if offered(walk(agent, "mcpCapabilities."+string(m.Type))) {
				servers = append(servers, mcpRemote{Type: m.Type, Name: m.Name, URL: m.URL, Headers: wireNames(m.Headers)})
				continue
			}
		}
		return nil, &Error{Kind: Configuration, Phase: phase, What: fmt.Sprintf(
			"MCP server %q has the type %q, which the agent does not offer; remove it from the agent's mcp_servers, or set another type", m.Name, m.Type)}
	}
	return servers, nil
}

// newSession, reopenSession are the parameters of session/new, and of session/load and
// session/resume. They are written here and not by the SDK, whose union of servers writes a
// member type for stdio.
type newSession struct {
	Cwd        string `json:"cwd"`
	MCPServers []any  `json:"mcpServers"`
}

type reopenSession struct {
	Cwd        string `json:"cwd"`
	MCPServers []any  `json:"mcpServers"`
	SessionID  string `json:"sessionId"`
}
