package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"greatminds/contract"
)

const contractText = `version: 1
agents: {a: {transport: acp, argv: [agent], adapter_version: "1", harness_version: "1"}}
bindings: {dev: {role: DEVELOPER, agent: a, scheduling: queue}}
`

const taskText = `id: 0001-one
stream: product
title: "red \e[31malert"
reporter: ARCHITECT-PLANNER
opened_at: '2026-01-02T03:04:05Z'
priority: normal
kind: feature
scope: backend
blocks: []
`

// projectWithATask is a project as setup leaves it, with one queued task.
func projectWithATask(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{"coordination/execution.yaml": contractText, ".greatminds/feature_dev/0001-one.yaml": taskText}
	for _, q := range contract.EmbeddedSchema().TaskQueues() {
		if err := os.MkdirAll(filepath.Join(root, ".greatminds", string(q)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func statusOf(t *testing.T, root string, terminal bool, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	var out, err bytes.Buffer
	w := world(&out, &err, append([]string{"run", "status"}, args...)...)
	w.Cwd, w.Terminal = root, terminal
	exit = Greatminds(t.Context(), w)
	return out.String(), err.String(), exit
}

func TestStatusIsForPeopleOnATerminalAndJSONElsewhere(t *testing.T) {
	root := projectWithATask(t)
	text, complaints, exit := statusOf(t, root, true)
	if exit != 0 || complaints != "" {
		t.Fatalf("exit %d, stderr %q", exit, complaints)
	}
	for _, part := range []string{"No daemon serves this project", "RUNS\n  none", "0001-one", "dev", "default_branch_missing", "commit once on it", `red \x1b[31malert`} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("an escape sequence reaches the terminal: %q", text)
	}
	piped, _, _ := statusOf(t, root, false)
	asked, _, _ := statusOf(t, root, true, "--json")
	if piped != asked || !strings.HasPrefix(piped, "{\n  \"") || !strings.Contains(piped, `"task_id": "0001-one"`) {
		t.Fatalf("into a pipe:\n%s\nwith --json:\n%s", piped, asked)
	}
	if _, err := os.Lstat(filepath.Join(root, ".greatminds", ".runtime")); err == nil {
		t.Error("looking made a runtime folder")
	}
}

func TestABadContractIsTold(t *testing.T) {
	root := projectWithATask(t)
	if err := os.WriteFile(filepath.Join(root, "coordination", "execution.yaml"), []byte("version: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, complaints, exit := statusOf(t, root, true)
	if exit != 2 || out != "" || !strings.Contains(complaints, "execution.yaml:1:") {
		t.Fatalf("exit %d, stdout %q, stderr %q", exit, out, complaints)
	}
}
