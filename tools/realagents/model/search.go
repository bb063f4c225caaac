package model

import "strings"

// Some agents keep the tools of MCP servers back until their model looks for them, with a tool of
// its own: by name in the messages API, as a type of its own in the responses API.
const (
	searchByName = "ToolSearch"
	searchByType = "tool_search"
)

// Others have one tool that calls the rest, by name or from a program.
const (
	callByName   = "tool_call"
	callByScript = "run_typescript"
)

// through calls a tool of the supervisor's MCP server through another tool.
func (c conversation) through(act action) (answer, bool) {
	if t, ok := c.tools[callByName]; ok {
		args := map[string]any{}
		for name, prop := range object(t.schema["properties"]) {
			if kindOf(object(prop)) == "object" {
				args[name] = act.decision
			} else if requires(t.schema, name) {
				args[name] = "mcp__greatminds__" + act.mcp
			}
		}
		return answer{tool: callByName, args: args}, true
	}
	if _, ok := c.tools[callByScript]; ok {
		return answer{tool: callByScript, args: map[string]any{"code": "async function main() { return await tools.mcp_greatminds." +
			act.mcp + "(" + encode(act.decision) + "); }"}}, true
	}
	return answer{}, false
}

// search looks for a tool of the supervisor's MCP server, once.
func (c conversation) search(name string) (answer, bool) {
	if c.searched {
		return answer{}, false
	}
	for _, tool := range []string{searchByName, searchByType} {
		if t, ok := c.tools[tool]; ok {
			args := map[string]any{}
			for name, prop := range object(t.schema["properties"]) {
				if requires(t.schema, name) {
					args[name] = sampleOf(object(prop))
				}
			}
			args["query"] = query(tool, name)
			return answer{tool: tool, args: args}, true
		}
	}
	return answer{}, false
}

// query is what each kind of search takes: a name, or words.
func query(tool, name string) string {
	if tool == searchByName {
		return "select:mcp__greatminds__" + name
	}
	return strings.Join([]string{"greatminds", name}, " ")
}
