package supervisor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// uncertain is a project whose daemon was killed while a command of its one run was at work.
// before are the agent's steps before it asks for the command.
func uncertain(t *testing.T, before string) *lab {
	t.Helper()
	l := newLab(t, `{"handshake":{}},{"prompt":"p"},`+before+`{"cli":["run","command","slow","--request-id","one-${launch}"]},`+
		`{"mark":"ready"},{"wait_file":"go","within_ms":90000},{"end_turn":"p"}`, "", "")
	file := filepath.Join(l.project, "coordination", "execution.yaml")
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, append(text, "commands:\n  slow: {argv: [sleep, \"600\"], roles: [DEVELOPER], timeout_seconds: 900}\n"...), 0o600))
	l.killAt(t, "after:command.open")
	return l
}

// command is the receipt of the one command.
func (l *lab) command(t *testing.T) (status string) {
	t.Helper()
	var doc struct {
		Commands map[string]struct{ Status string }
	}
	must(t, json.Unmarshal([]byte(l.run(t, "", "run", "status", "--json", "--project-dir", l.project)), &doc))
	for _, c := range doc.Commands {
		status = c.Status
	}
	return status
}

// A command whose effects nobody knows holds its task until a person says what they found, and
// then the task still waits for the person's word.
//
// E-116 E-117 E-118 E-119 E-121
func TestAnUncertainCommandHoldsItsTaskForAPerson(t *testing.T) {
	t.Parallel()
	l := uncertain(t, "")
	l.once(t)
	if got := l.command(t); got != "needs_recovery" {
		t.Fatalf("the command is %s", got)
	}
	run := ""
	for id, r := range l.status(t).Runs {
		run = id
		if r.State != "interrupted" || r.Process != nil {
			t.Errorf("the run is %s with process %v", r.State, r.Process)
		}
	}
	_, remedy := l.held(t)
	if !strings.Contains(remedy, "run command-resolve one-0 --reason") {
		t.Errorf("the task's remedy is %q", remedy)
	}
	code, out, stderr := l.attempt(l.env(), "run", "retry", run)
	if code != 2 || out != "" || !strings.Contains(stderr, "one-0") || !strings.Contains(stderr, "command-resolve") {
		t.Errorf("run retry: got %d, %q, %q, want a refusal that names the command", code, out, stderr)
	}
	for _, args := range [][]string{{}, {"--reason", ""}, {"--reason", " "}} {
		if code, out, stderr := l.attempt(l.env(), append([]string{"run", "command-resolve", "one-0"}, args...)...); code != 2 || out != "" {
			t.Errorf("command-resolve %q: got %d, %q, %q, want 2", args, code, out, stderr)
		}
	}
	if got := l.command(t); got != "needs_recovery" {
		t.Errorf("after refusals the command is %s", got)
	}
	l.run(t, "", "run", "command-resolve", "one-0", "--reason", "it left no trace")
	if got := l.command(t); got != "resolved" {
		t.Errorf("after its assessment the command is %s", got)
	}
	if code, _, _ := l.attempt(l.env(), "run", "command-resolve", "one-0", "--reason", "again"); code != 1 {
		t.Errorf("resolving again: got %d, want 1", code)
	}
	l.once(t)
	if n, runs := l.launches(t), l.status(t).Runs; n != 1 || len(runs) != 1 {
		t.Fatalf("%d launches and %d runs before anybody asked for one", n, len(runs))
	}
	l.run(t, "", "run", "retry", run)
	l.start(t)
	l.traced(t, func(e map[string]any) bool { return e["kind"] == "start" && e["launch"] == 1.0 })
}
