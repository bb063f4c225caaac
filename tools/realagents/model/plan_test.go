package model

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 5, 4, 14, 0, 0, 0, time.FixedZone("", 2*60*60))

// sayWords is a command line that writes its arguments to a file, one a line.
const sayWords = "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\" >> \"$WORDS\"; done\n"

func TestEachRoleSubmitsWhatItsStageTakes(t *testing.T) {
	for _, c := range []struct {
		role     string
		commands int // requested before the submission
		to       string
		block    map[string]any
	}{
		{"DEVELOPER", 0, "feature_test", map[string]any{"kind": "implementation", "base_commit": "c0ffee", "ready_for_test": true,
			"files": []any{WrittenFile, "greeter.go"}}},
		{"TESTER", 1, "feature_review", map[string]any{"kind": "tests", "base_commit": "c0ffee", "ready_for_review": true,
			"command_request_id": "unit-tests-r1", "gate_check_at": "2026-05-04T12:00:00Z", "gate_check_commit": "c0ffee"}},
		{"ARCHITECT-REVIEWER", 0, "verified", map[string]any{"kind": "review", "outcome": "approved", "commit": "c0ffee"}},
	} {
		t.Run(c.role, func(t *testing.T) {
			dir := t.TempDir()
			a := assignmentIn(t, dir, c.role)
			actions := a.actions(noon)
			words := runs(t, dir, actions[len(actions)-1].command)
			if c.commands > 0 {
				want := []string{"run", "command", "unit-tests", "--request-id", "unit-tests-r1", "--wait", "200"}
				if got := words[:min(len(want), len(words))]; !slices.Equal(got, want) {
					t.Fatalf("the command is %q, want %q", got, want)
				}
				words = words[len(want):]
			}
			if len(words) != 4 || !slices.Equal(words[:3], []string{"run", "submit", "--json"}) {
				t.Fatalf("the submission is %q", words)
			}
			checkDecision(t, words[3], c.to, c.block)
		})
	}
	if got := (assignment{Role: "GARDENER"}).actions(noon); got != nil {
		t.Errorf("an unknown role does %v", got)
	}
}

// assignmentIn is an assignment whose words are hard to quote.
func assignmentIn(t *testing.T, dir, role string) assignment {
	t.Helper()
	workspace, cli := filepath.Join(dir, "it's $HOME; here"), filepath.Join(dir, "great minds")
	for _, err := range []error{
		os.Mkdir(workspace, 0o755), os.WriteFile(cli, []byte(sayWords), 0o755),
		os.WriteFile(filepath.Join(workspace, "greeter.go"), []byte("Join(names[1:])\n"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	a := assignment{RunID: "r1", Role: role, Workspace: workspace, CLI: []string{cli}}
	a.Task.Blocks = []map[string]any{{"kind": "triage"}, {"kind": "plan", "base_commit": "c0ffee"}}
	return a
}

// runs gives the command to a real shell and returns what the command line was called with.
func runs(t *testing.T, dir, command string) []string {
	t.Helper()
	words := filepath.Join(dir, "words")
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = []string{"WORDS=" + words, "PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	said, err := os.ReadFile(words)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(said), "\n"), "\n")
}

func checkDecision(t *testing.T, text, to string, block map[string]any) {
	t.Helper()
	var d struct {
		Decision string
		Payload  struct {
			To     string `json:"to_queue"`
			Blocks []map[string]any
		}
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if d.Decision != "handoff" || d.Payload.To != to || len(d.Payload.Blocks) != 1 {
		t.Fatalf("the decision is %s", text)
	}
	for name, want := range block {
		if got := d.Payload.Blocks[0][name]; encode(got) != encode(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

func TestTheDeveloperMendsTheSample(t *testing.T) {
	dir := t.TempDir()
	a := assignmentIn(t, dir, "DEVELOPER")
	actions := a.actions(noon)
	if len(actions) != 2 || !actions[0].write || actions[0].path != filepath.Join(a.Workspace, WrittenFile) || actions[0].content != WrittenText {
		t.Fatalf("the actions are %+v", actions)
	}
	runs(t, dir, actions[1].command)
	got, err := os.ReadFile(filepath.Join(a.Workspace, "greeter.go"))
	if err != nil || string(got) != "Join(names)\n" {
		t.Errorf("greeter.go says %q, %v", got, err)
	}
}

func TestTheFirstFittingToolIsChosen(t *testing.T) {
	write, shell := action{write: true, path: "/f", content: "a\nb"}, action{command: "true"}
	tools := func(names ...string) conversation {
		c := conversation{tools: map[string]tool{}}
		for _, name := range names {
			c.tools[name] = tool{freeform: name == "apply_patch"}
		}
		return c
	}
	for _, c := range []struct {
		name    string
		offered conversation
		act     action
		want    string
	}{
		{"gemini writes", tools("replace", "write_file", "run_shell_command"), write, "write_file"},
		{"gemini runs", tools("replace", "write_file", "run_shell_command"), shell, "run_shell_command"},
		{"opencode writes", tools("bash", "edit", "write", "read"), write, "write"},
		{"claude runs", tools("Bash", "BashOutput", "Write"), shell, "Bash"},
		{"codex writes by patch", tools("exec_command", "write_stdin", "apply_patch"), write, "apply_patch"},
		{"nothing fits", tools("read", "grep"), write, ""},
	} {
		got := c.offered.call(c.act)
		if got.tool != c.want {
			t.Errorf("%s: calls %q, want %q", c.name, got.tool, c.want)
		}
		if c.want == "" && got.text != "I miss a tool; offered are grep, read" {
			t.Errorf("%s: says %q", c.name, got.text)
		}
		if c.want == "apply_patch" && (got.args != nil || got.freeform != "*** Begin Patch\n*** Add File: /f\n+a\n+b\n*** End Patch\n") {
			t.Errorf("%s: the patch is %q", c.name, got.freeform)
		}
	}
}

func TestTheLastWholeAssignmentCounts(t *testing.T) {
	const one, two = `{"run_id":"1","cli_argv":["g"]}`, "{\n  \"run_id\": \"2\",\n  \"cli_argv\": [\"g\"]\n} and more"
	for _, c := range []struct {
		name  string
		texts []string
		want  string
	}{
		{"the last text", []string{one, two, "thanks"}, "2"},
		{"the last in one text", []string{two + one}, "1"},
		{"a cut one is passed over", []string{two, `{"run_id":"3","cli_argv":["g"`}, "2"},
		{"one without a command line is passed over", []string{one, `{"run_id":"4"}`}, "1"},
		{"none", []string{"run_id"}, ""},
	} {
		got, ok := conversation{texts: c.texts}.assignment()
		if got.RunID != c.want || ok != (c.want != "") {
			t.Errorf("%s: found %q, want %q", c.name, got.RunID, c.want)
		}
	}
}
