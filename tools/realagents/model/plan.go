package model

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// WrittenFile is the file that the developer writes with the agent's own writing tool, and
// WrittenText what stands in it.
const (
	WrittenFile = "AGENT.txt"
	WrittenText = "Written by a real agent's own tool.\n"
)

// assignment is what the model reads of the supervisor's context.
type assignment struct {
	RunID     string   `json:"run_id"`
	Role      string   `json:"role"`
	Workspace string   `json:"workspace"`
	CLI       []string `json:"cli_argv"`
	Task      struct {
		Blocks []map[string]any `json:"blocks"`
	} `json:"task"`

	part Part // that the task names; empty for the role's own
}

// action is one thing that the role does, by a kind of tool: write a file, run a command, or call
// a tool of the supervisor's over MCP.
type action struct {
	write         bool
	path, content string
	command       string
	mcp           string
	decision      map[string]any
}

// actions is what the role does with the sample project, or what the task's part wants.
func (a assignment) actions(now time.Time) []action {
	if a.part != "" {
		return a.part.actions(a)
	}
	switch a.Role {
	case "DEVELOPER":
		return []action{
			{write: true, path: filepath.Join(a.Workspace, WrittenFile), content: WrittenText},
			{command: "cd " + quote(a.Workspace) + " && sed -i 's/names\\[1:\\]/names/' greeter.go && " +
				a.submit("feature_test", a.implementation(WrittenFile, "greeter.go"))},
		}
	case "TESTER":
		id := "unit-tests-" + a.RunID
		return []action{{command: a.call("run", "command", "unit-tests", "--request-id", id, "--wait", "200") + " > /dev/null && " +
			a.submit("feature_review", map[string]any{"kind": "tests", "base_commit": a.base(), "test_files": []string{"greeter_test.go"},
				"command_request_id": id, "gate_check_result": "n/a", "gate_check_at": now.UTC().Format(time.RFC3339),
				"gate_check_commit": a.base(), "ready_for_review": true, "notes": "go test passes."})}}
	case "ARCHITECT-REVIEWER":
		return []action{{command: a.submit("verified", map[string]any{"kind": "review", "outcome": "approved",
			"commit": a.base(), "notes": "Small and tested."})}}
	}
	return nil
}

// base is the commit that the task was planned from, empty where no plan says it.
func (a assignment) base() string {
	for _, b := range a.Task.Blocks {
		if b["kind"] == "plan" {
			return text(b["base_commit"])
		}
	}
	return ""
}

// call is a shell command that reaches the assigned command line.
func (a assignment) call(args ...string) string {
	words := make([]string, 0, len(a.CLI)+len(args))
	for _, w := range append(append([]string{}, a.CLI...), args...) {
		words = append(words, quote(w))
	}
	return strings.Join(words, " ")
}

func (a assignment) submit(to string, block map[string]any) string {
	return a.call("run", "submit", "--json", encode(handoff(to, block)))
}

// handoff is the decision that moves the task on.
func handoff(to string, block map[string]any) map[string]any {
	return map[string]any{"decision": "handoff", "payload": map[string]any{"to_queue": to, "blocks": []any{block}}}
}

// implementation is the developer's block, with the files that were changed.
func (a assignment) implementation(files ...string) map[string]any {
	return map[string]any{"kind": "implementation", "base_commit": a.base(), "files": append([]string{}, files...),
		"ready_for_test": true, "notes": "Greet joins all names."}
}

// quote makes one word of a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// patch is an action in the patch language of agents whose only writing tool takes one. A shell
// command is itself.
func patch(act action) string {
	if !act.write {
		return act.command
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*** Begin Patch\n*** Add File: %s\n", act.path)
	for line := range strings.Lines(act.content) {
		b.WriteString("+" + strings.TrimSuffix(line, "\n") + "\n")
	}
	b.WriteString("*** End Patch\n")
	return b.String()
}
