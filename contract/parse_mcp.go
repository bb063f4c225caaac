package contract

import (
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"greatminds/internal/redact"
	"greatminds/internal/yamldoc"
)

// maxMCPServers bounds mcp_servers.
const maxMCPServers = 32

// mcpServers reads the MCP servers of an agent.
func (r *reader) mcpServers(into *[]MCPServer) value {
	return func(n *yamldoc.Node, path string) {
		list := []MCPServer{}
		r.entries(n, path, checkMCPName, func(name string, n *yamldoc.Node, path string) {
			list = append(list, r.mcpServer(name, n, path))
		})
		if len(list) > maxMCPServers {
			r.faults.Add(n, "keep those that the agent needs", "%s has %d entries, but %d are the limit", path, len(list), maxMCPServers)
		}
		if len(list) > 0 {
			*into = list
		}
	}
}

func (r *reader) mcpServer(name string, n *yamldoc.Node, path string) MCPServer {
	s := MCPServer{Name: name, Type: MCPStdio}
	r.object(n, path,
		field{"type", false, choice(r, &s.Type, MCPStdio, MCPHTTP, MCPSSE)},
		field{"command", false, filled(r, &s.Command, nil)},
		field{"environment", false, r.mcpEnvironment(&s.Environment)},
		field{"url", false, r.mcpURL(&s.URL)},
		field{"headers", false, r.headers(&s.Headers)},
	)
	if n.Kind != yamldoc.Mapping {
		return s
	}
	own, other := []string{"command", "environment"}, []string{"url", "headers"}
	if s.Type == MCPStdio {
		s.Environment = append([]EnvRef{}, s.Environment...)
	} else {
		s.Headers = append([]HeaderRef{}, s.Headers...)
		own, other = other, own
	}
	for _, f := range other {
		if wrong := n.Get(f); wrong != nil {
			r.faults.Add(wrong, "remove it, or set another type", "%s.%s is no field of a server of type %s", path, f, s.Type)
		}
	}
	if n.Get(own[0]) == nil {
		r.faults.Add(n, "add it", "%s.%s is missing: a server of type %s needs one", path, own[0], s.Type)
	}
	if len(s.Command) > 0 {
		r.mcpProgram(n.Get("command"), s.Command[0], path)
	}
	return s
}

// mcpProgram refuses a program that would depend on the folder in which an agent happens to be.
func (r *reader) mcpProgram(n *yamldoc.Node, program, path string) {
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		r.faults.Add(n, "write its absolute path, or a bare name that is looked up in PATH",
			"%s.command[0] %s is a relative path", path, yamldoc.Show(program))
	}
}

// mcpEnvironment reads child names and the parent names that their values come from.
func (r *reader) mcpEnvironment(into *[]EnvRef) value {
	return func(n *yamldoc.Node, path string) {
		refs := []EnvRef{}
		r.entries(n, path, checkVariable, func(child string, n *yamldoc.Node, path string) {
			refs = append(refs, EnvRef{Child: child, Parent: r.variable(n, path)})
		})
		slices.SortFunc(refs, func(a, b EnvRef) int { return strings.Compare(a.Child, b.Child) })
		*into = refs
	}
}

// headers reads header names and the variables that their values come from.
func (r *reader) headers(into *[]HeaderRef) value {
	return func(n *yamldoc.Node, path string) {
		refs, seen := []HeaderRef{}, map[string]bool{}
		r.entries(n, path, checkHeader, func(name string, n *yamldoc.Node, path string) {
			if lower := strings.ToLower(name); seen[lower] {
				r.faults.Add(n, "keep one of them", "%s is there twice: header names have no case", path)
			} else {
				seen[lower] = true
			}
			refs = append(refs, HeaderRef{Name: name, Parent: r.variable(n, path)})
		})
		slices.SortFunc(refs, func(a, b HeaderRef) int { return strings.Compare(a.Name, b.Name) })
		*into = refs
	}
}

// variable reads the name of a variable. What stands in its place may well be the secret itself,
// so it is not shown.
func (r *reader) variable(n *yamldoc.Node, path string) string {
	if n.Kind == yamldoc.String && checkVariable(n.Text) == "" {
		return n.Text
	}
	if n.Kind != yamldoc.Invalid {
		r.faults.Add(n, "write the name of the variable of the daemon's environment that holds the value",
			"%s is no name of an environment variable (letters, digits and _, no digit first)", path)
	}
	return ""
}

// mcpURL reads where a server is reached. One that is refused may hold a secret, so it is not shown.
func (r *reader) mcpURL(into *string) value {
	return func(n *yamldoc.Node, path string) {
		if n.Kind == yamldoc.Invalid {
			return
		}
		wrong, remedy := "is no http or https URL", "write it as https://host/path"
		if n.Kind == yamldoc.String {
			wrong, remedy = checkMCPURL(n.Text)
		}
		if wrong != "" {
			r.faults.Add(n, remedy, "%s %s", path, wrong)
			return
		}
		*into = n.Text
	}
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}$")

func checkHeader(s string) string {
	if !headerName.MatchString(s) {
		return "is no name of an HTTP header (such as Authorization)"
	}
	return ""
}

func checkMCPName(s string) string {
	if strings.EqualFold(s, OwnMCPServer) {
		return "is reserved for the supervisor's own server"
	}
	return checkName(s)
}

// checkMCPURL says what is wrong with a URL, "" for nothing: it leads nowhere, or would write a
// secret into a document.
func checkMCPURL(s string) (wrong, remedy string) {
	const byHeader = "send it as a header, by reference"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "is no http or https URL", "write it as https://host/path"
	case u.User != nil:
		return "holds a user or password", byHeader
	case u.Fragment != "":
		return "has a fragment, which is never sent", "remove it"
	case redact.New().Text(u.RawQuery) != u.RawQuery:
		return "holds a secret in its query", byHeader
	}
	return "", ""
}
