package model

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// conversation is a request in neutral form.
type conversation struct {
	// texts is what the user's side said, in order.
	texts []string
	// results are the outputs of the tools called since the last assignment.
	results []string
	tools   map[string]tool
	// searched says that the last assignment's model has looked for tools that were kept back.
	searched bool
	// form is the schema that the answer's text must have; nil for none.
	form map[string]any
}

// tool is one tool that the agent offers to its model.
type tool struct {
	// schema describes the arguments.
	schema map[string]any
	// freeform tools take plain text instead.
	freeform bool
	// namespace is the group that the tool stands in, for the API that has groups.
	namespace string
}

// answer is what the model says next: words, or one call of a tool.
type answer struct {
	// number tells the calls of one conversation apart.
	number   int64
	assigned bool
	// part is what the assignment's task names.
	part      Part
	text      string
	tool      string
	namespace string
	args      map[string]any
	freeform  string
}

// assignmentHead is how the supervisor's JSON document begins.
var assignmentHead = regexp.MustCompile(`\{\s*"run_id"`)

// said adds a text of the user. An assignment begins the list of results anew.
func (c *conversation) said(s string) {
	c.texts = append(c.texts, s)
	if assignmentHead.MatchString(s) {
		c.results, c.searched = nil, false
	}
}

// next plans the answer: the role's actions one after the other, then a closing line. What
// carries no assignment, or offers no tools, is a side request such as one for a title.
func (c conversation) next(now time.Time) answer {
	if c.form != nil {
		return answer{text: encode(sampleOf(c.form))}
	}
	a, ok := c.assignment()
	if !ok || len(c.tools) == 0 {
		return answer{text: "Greet names everybody"}
	}
	out := c.act(a, now)
	out.assigned, out.part = true, a.part
	return out
}

// act is the next action of an assignment.
func (c conversation) act(a assignment, now time.Time) answer {
	finished, session := c.progress()
	if _, offered := c.tools[pollTool]; offered && session > 0 {
		return answer{tool: pollTool, args: map[string]any{"session_id": session, "yield_time_ms": pollTime.Milliseconds()}}
	}
	actions := a.actions(now)
	switch {
	case finished < len(actions):
		return c.call(actions[finished])
	case len(actions) == 0:
		return answer{text: "There is nothing to do for me."}
	}
	return answer{text: "My decision is submitted."}
}

// call performs one action with the first fitting tool on offer.
func (c conversation) call(act action) answer {
	name, ok := c.toolFor(act)
	if !ok {
		if a, ok := c.through(act); ok && act.mcp != "" {
			return a
		}
		if a, ok := c.search(act.mcp); ok && act.mcp != "" {
			return a
		}
		return answer{text: "I miss a tool; offered are " + strings.Join(c.offered(), ", ")}
	}
	a := answer{tool: name, namespace: c.tools[name].namespace}
	if t := c.tools[a.tool]; t.freeform {
		a.freeform = patch(act)
	} else {
		a.args = arguments(t.schema, act)
	}
	return a
}

// toolFor chooses the tool for an action.
func (c conversation) toolFor(act action) (string, bool) {
	if act.mcp != "" {
		return c.toolOver(act.mcp)
	}
	names := shellTools
	if act.write {
		names = writeTools
	}
	i := slices.IndexFunc(names, func(name string) bool { _, ok := c.tools[name]; return ok })
	if i < 0 {
		return "", false
	}
	return names[i], true
}

// The tools that write a file or run a shell command, as the agents call them.
var (
	writeTools = []string{"Write", "write_file", "WriteFile", "write", "create_file", "apply_patch"}
	shellTools = []string{"Bash", "run_shell_command", "exec_command", "shell", "shell_command", "bash", "Shell"}
)

// Codex gives a command back after at most 30 s, still running, to be polled with another tool.
const (
	pollTool = "write_stdin"
	pollTime = 20 * time.Second
)

var stillRunning = regexp.MustCompile(`Process running with session ID ([0-9]+)`)

// progress counts the actions that are finished. session is the number of the one that the last
// result says still runs, 0 for none.
func (c conversation) progress() (finished int, session int64) {
	for _, text := range c.results {
		session = 0
		if m := stillRunning.FindStringSubmatch(text); m != nil {
			session, _ = strconv.ParseInt(m[1], 10, 64) // digits alone; too many give the largest number
			continue
		}
		finished++
	}
	return finished, session
}

func (c conversation) offered() []string {
	names := make([]string, 0, len(c.tools))
	for name := range c.tools {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// assignment finds the last JSON document of the supervisor in what the user's side said.
func (c conversation) assignment() (assignment, bool) {
	for _, text := range slices.Backward(c.texts) {
		heads := assignmentHead.FindAllStringIndex(text, -1)
		for _, head := range slices.Backward(heads) {
			if a, ok := decode(text[head[0]:]); ok {
				return a, true
			}
		}
	}
	return assignment{}, false
}
