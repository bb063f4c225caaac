package contract

// MCPServer is an MCP server that an agent is told to use in its sessions. It holds names of
// environment variables, never a value. Spec: "Secret values".
type MCPServer struct {
	// Name is what the agent calls it; never the reserved "greatminds".
	Name string
	// Type is MCPStdio, MCPHTTP or MCPSSE.
	Type string
	// Command is the argv of an MCPStdio server, empty for the others. Its first word is an
	// absolute path, or a name that is looked up in PATH at launch.
	Command []string
	// Environment names the variables that an MCPStdio server is given; sorted by child name.
	Environment []EnvRef
	// URL is where an MCPHTTP or MCPSSE server is reached: http or https, without a password.
	URL string
	// Headers names the variables that hold the values of its HTTP headers; sorted by name.
	Headers []HeaderRef
}

// Variables names the variables of the daemon's environment that the server refers to.
func (s MCPServer) Variables() []string {
	var names []string
	for _, v := range s.Environment {
		names = append(names, v.Parent)
	}
	for _, h := range s.Headers {
		names = append(names, h.Parent)
	}
	return names
}

// HeaderRef sends the variable Parent of the daemon's environment as the HTTP header Name.
type HeaderRef struct{ Name, Parent string }

// Types of an MCP server.
const (
	MCPStdio = "stdio"
	MCPHTTP  = "http"
	MCPSSE   = "sse"
)

// OwnMCPServer is the name of the supervisor's own MCP server, which no configured one may have.
const OwnMCPServer = "greatminds"

// SupervisorTools says how an agent reaches the supervisor from inside a run.
type SupervisorTools string

// Ways to the supervisor's tools.
const (
	// ToolsMCP: by the supervisor's own MCP server, which is passed to the session.
	ToolsMCP SupervisorTools = "mcp"
	// ToolsCLI: by the command line alone; no server of ours is passed.
	ToolsCLI SupervisorTools = "cli"
	// ToolsBoth: the agent is told of both. The default.
	ToolsBoth SupervisorTools = "both"
)

// MCP reports whether the supervisor's own MCP server is passed to the agent.
func (t SupervisorTools) MCP() bool { return t != ToolsCLI }
