package model

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// WrittenFile is the file that the developer writes with the agent's own tool, and its text.
const (
	WrittenFile = "AGENT.txt"
	WrittenText = "Written by a real agent's own tool.\n"
)

// conversation is a request in neutral form.
type conversation struct {
	texts   []string // what the user side said, in order
	results int      // tool results since the last assignment
	tools   map[string]schema
	wanted  schema // the form that the answer must have; nil for none
}

type schema map[string]any

// answer is what the model says next.
type answer struct {
	assigned bool
	text     string
	tool     string
	args     map[string]any
	custom   string // free-form input of a custom tool
}

// assignment is what the model reads of the supervisor's context.
type assignment struct {
	RunID     string   `json:"run_id"`
	Role      string   `json:"role"`
	Workspace string   `json:"workspace"`
	CLI       []string `json:"cli_argv"`
	Task      struct {
		Blocks []map[string]any `json:"blocks"`
	} `json:"task"`
}

// action is one thing that the role does, by a kind of tool.
type action struct {
	write         bool
	path, content string
	command       string
}

// next plans the answer: the role's actions one after the other, then a closing line.
func (c conversation) next() answer {
	if c.wanted != nil {
		return answer{text: encode(fill(c.wanted, action{}))} // a side request, such as routing
	}
	a, ok := c.assignment()
	if !ok {
		return answer{text: "A small sample project."}
	}
	if len(c.tools) == 0 {
		return answer{text: "Greet names everybody"} // a side request, such as a title
	}
	actions := a.actions()
	if c.results >= len(actions) {
		return answer{assigned: true, text: "My decision is submitted."}
	}
	act := actions[c.results]
	names := shellTools
	if act.write {
		names = writeTools
	}
	name, found := c.pick(names)
	if !found {
		return answer{assigned: true, text: "I miss a tool; offered are " + strings.Join(c.offered(), ", ")}
	}
	if c.tools[name]["custom"] == true {
		return answer{assigned: true, tool: name, custom: patch(act)}
	}
	return answer{assigned: true, tool: name, args: fill(c.tools[name], act)}
}

var (
	writeTools = []string{"Write", "write_file", "WriteFile", "write", "create_file", "apply_patch"}
	shellTools = []string{"Bash", "run_shell_command", "exec_command", "shell", "shell_command", "bash", "Shell"}
)

func (c conversation) pick(names []string) (string, bool) {
	for _, want := range names {
		if _, ok := c.tools[want]; ok {
			return want, true
		}
	}
	return "", false
}

func (c conversation) offered() []string {
	var names []string
	for name := range c.tools {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// assignment finds the last JSON document of the supervisor in what the user said.
func (c conversation) assignment() (assignment, bool) {
	for i := len(c.texts) - 1; i >= 0; i-- {
		at := strings.LastIndex(c.texts[i], "{\n  \"run_id\"")
		if at < 0 {
			continue
		}
		var a assignment
		if err := json.NewDecoder(strings.NewReader(c.texts[i][at:])).Decode(&a); err == nil && len(a.CLI) > 0 {
			return a, true
		}
	}
	return assignment{}, false
}

func (a assignment) base() string {
	for _, b := range a.Task.Blocks {
		if b["kind"] == "plan" {
			base, _ := b["base_commit"].(string)
			return base
		}
	}
	return ""
}

// actions is what the role does with the sample project.
func (a assignment) actions() []action {
	switch a.Role {
	case "DEVELOPER":
		return []action{
			{write: true, path: filepath.Join(a.Workspace, WrittenFile), content: WrittenText},
			{command: "cd " + quote(a.Workspace) + " && sed -i 's/names\\[1:\\]/names/' greeter.go && " +
				a.submit("feature_test", map[string]any{"kind": "implementation", "base_commit": a.base(),
					"files": []string{WrittenFile, "greeter.go"}, "ready_for_test": true, "notes": "Greet joins all names."})},
		}
	case "TESTER":
		id := "unit-tests-" + a.RunID
		return []action{{command: a.call("run", "command", "unit-tests", "--request-id", id, "--wait", "200") + " > /dev/null && " +
			a.submit("feature_review", map[string]any{"kind": "tests", "base_commit": a.base(), "test_files": []string{"greeter_test.go"},
				"command_request_id": id, "gate_check_result": "n/a", "gate_check_at": time.Now().UTC().Format(time.RFC3339),
				"gate_check_commit": a.base(), "ready_for_review": true, "notes": "go test passes."})}}
	case "ARCHITECT-REVIEWER":
		return []action{{command: a.submit("verified", map[string]any{"kind": "review", "outcome": "approved", "commit": a.base(), "notes": "Small and tested."})}}
	}
	return nil
}

func (a assignment) call(args ...string) string {
	words := make([]string, 0, len(a.CLI)+len(args))
	for _, w := range append(append([]string{}, a.CLI...), args...) {
		words = append(words, quote(w))
	}
	return strings.Join(words, " ")
}

func (a assignment) submit(to string, block map[string]any) string {
	return a.call("run", "submit", "--json", encode(map[string]any{"decision": "handoff",
		"payload": map[string]any{"to_queue": to, "blocks": []any{block}}}))
}

// quote makes one word of a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// patch is an action in the patch language of agents whose only writing tool takes one.
func patch(act action) string {
	if !act.write {
		return act.command
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*** Begin Patch\n*** Add File: %s\n", act.path)
	for _, line := range strings.Split(strings.TrimSuffix(act.content, "\n"), "\n") {
		b.WriteString("+" + line + "\n")
	}
	return b.String() + "*** End Patch\n"
}

// fill makes arguments that fit the tool's own schema.
func fill(s schema, act action) map[string]any {
	out := map[string]any{}
	props, _ := s["properties"].(map[string]any)
	required := map[string]bool{}
	if list, ok := s["required"].([]any); ok {
		for _, name := range list {
			if text, ok := name.(string); ok {
				required[text] = true
			}
		}
	}
	for name, raw := range props {
		prop, _ := raw.(map[string]any)
		if v, ok := known(name, prop, act); ok {
			out[name] = v
		} else if required[name] {
			out[name] = placeholder(prop)
		}
	}
	return out
}

func known(name string, prop map[string]any, act action) (any, bool) {
	switch lower := strings.ToLower(name); {
	case act.write && (lower == "file_path" || lower == "path" || lower == "filepath" || lower == "absolute_path"):
		return act.path, true
	case act.write && (lower == "content" || lower == "contents" || lower == "text"):
		return act.content, true
	case act.write && (lower == "input" || lower == "patch"):
		return patch(act), true
	case !act.write && (lower == "command" || lower == "cmd"):
		if kind(prop) == "array" {
			return []string{"bash", "-lc", act.command}, true
		}
		return act.command, true
	case !act.write && (lower == "with_escalated_permissions"):
		return true, true
	case !act.write && lower == "sandbox_permissions":
		return "require_escalated", true
	case !act.write && (lower == "timeout" || lower == "timeout_ms" || lower == "yield_time_ms"):
		return 240000, true
	case !act.write && (lower == "justification" || lower == "description"):
		return "Take the task to its next stage.", true
	}
	return nil, false
}

func kind(prop map[string]any) string {
	switch t := prop["type"].(type) {
	case string:
		return strings.ToLower(t)
	case []any:
		for _, one := range t {
			if s, ok := one.(string); ok && s != "null" {
				return strings.ToLower(s)
			}
		}
	}
	return "string"
}

func placeholder(prop map[string]any) any {
	if list, ok := prop["enum"].([]any); ok && len(list) > 0 {
		return list[0]
	}
	switch kind(prop) {
	case "boolean":
		return false
	case "number", "integer":
		return 1
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return "sample"
}
