package tasks_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

var testSchema = contract.EmbeddedSchema()

// stage builds a task that stands in a queue with blocks on it, each "kind key: value; …".
type stage struct {
	queue       contract.Queue
	kind, scope string
	blocks      []string
}

func (s stage) task(t interface {
	Helper()
	Fatalf(string, ...any)
}) *tasks.Task {
	t.Helper()
	text := strings.NewReplacer("kind: research", "kind: "+s.kind, "scope: backend", "scope: "+s.scope).Replace(sampleTask)
	if len(s.blocks) > 0 {
		text = strings.Replace(text, "blocks: []\n", "blocks:\n", 1)
	}
	for _, block := range s.blocks {
		for i, field := range strings.Split(block, "; ") {
			if i == 0 {
				text += "- kind: " + field + "\n  by: " + authors[field] + "\n  at: '2026-01-05T09:00:00Z'\n"
				continue
			}
			text += "  " + field + "\n"
		}
	}
	task, err := tasks.Parse(testSchema, s.queue, tasks.FileOf(s.queue, "0001-sample"), []byte(text))
	if err != nil {
		t.Fatalf("the stage is no valid task: %v\n%s", err, text)
	}
	return task
}

var authors = map[string]string{"triage": "ARCHITECT-PLANNER", "plan": "ARCHITECT-PLANNER", "implementation": "DEVELOPER",
	"tests": "TESTER", "reader_review": "READER", "review": "ARCHITECT-REVIEWER", "blocked": "DEVELOPER",
	"rollback": "ARCHITECT-REVIEWER", "session_iteration": "EXPLORER"}

const (
	plannedBlock = "plan; base_commit: abc1234; assignee_role: DEVELOPER; stand_required: false; plan_kind: full; mode: A; ready_for_implementation: true"
	standBlock   = "plan; base_commit: abc1234; assignee_role: DEVELOPER; stand_required: true; stand_reason: ui; plan_kind: full; mode: A; ready_for_implementation: true"
	implBlock    = "implementation; base_commit: abc1234; files: [a.go]; ready_for_test: true"
	testsBlock   = "tests; base_commit: abc1234; test_files: [a_test.go]; test_command: go test; test_result: pass; gate_check_result: n/a; " +
		"gate_check_at: '2026-01-05T09:00:00Z'; gate_check_commit: abc1234; ready_for_review: true"
)

func sampleFor(t interface {
	Helper()
	Fatalf(string, ...any)
}) *tasks.Task {
	t.Helper()
	return stage{queue: "feature_dev", kind: "feature", scope: "backend", blocks: []string{plannedBlock}}.task(t)
}

// decide reads a decision as an agent submits it.
func decide(t *testing.T, kind, payload string) tasks.Decision {
	t.Helper()
	e, err := tasks.DecodeDecision([]byte(`{"decision":"` + kind + `","payload":` + payload + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return e.Decision
}

// facts are those of a run in which everything is in order.
func facts(role contract.Role) tasks.Facts {
	passed := tasks.CommandFact{RequestID: "c1", RunID: "run1", CommandID: "unit", Argv: []string{"go", "test", "./..."},
		Purpose: "validation", Completed: true, Status: "succeeded", Reason: "exit"}
	failed := passed
	failed.RequestID, failed.ExitCode, failed.Status = "c2", 3, "failed"
	return tasks.Facts{Now: time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC), Role: role, RunID: "run1", ResultID: "run1-result",
		SchemaSHA256: "5c", Workspace: "/p/.worktrees/0001-sample", InWorktree: true, Fingerprint: "f00d",
		Files:     map[string]tasks.FileFact{"a.go": {InGit: true, Changed: true}},
		Artifacts: map[string]tasks.ArtifactFact{"out/log.txt": {SHA256: "ab"}},
		Commands:  map[string]tasks.CommandFact{"c1": passed, "c2": failed}}
}

const (
	implPayload  = `{"kind":"implementation","base_commit":"abc1234","files":["a.go"],"ready_for_test":true,"notes":"done"}`
	testsPayload = `{"kind":"tests","base_commit":"abc1234","test_files":["a_test.go"],"test_command":"go test","test_result":"pass",` +
		`"gate_check_result":"n/a","gate_check_at":"2026-01-05T09:30:00Z","gate_check_commit":"abc1234","ready_for_review":true}`
)

func accepted(t *testing.T, task *tasks.Task, d tasks.Decision, f tasks.Facts) (tasks.Planned, *tasks.Task) {
	t.Helper()
	planned, reasons := checkEffect(t, task, d, f)
	if len(reasons) > 0 {
		t.Fatalf("got %v, want a plan", reasons)
	}
	after, err := tasks.Parse(testSchema, planned.Destination, tasks.FileOf(planned.Destination, task.ID), planned.After)
	if err != nil {
		t.Fatal(err)
	}
	return planned, after
}

// rejected wants a decision to be rejected with exactly these codes among its reasons.
func rejected(t *testing.T, task *tasks.Task, d tasks.Decision, f tasks.Facts, want ...refusal.Code) []refusal.Reason {
	t.Helper()
	_, reasons := checkEffect(t, task, d, f)
	for _, code := range want {
		if !slices.ContainsFunc(reasons, func(r refusal.Reason) bool { return r.Code == code }) {
			t.Errorf("got %v, want a reason with code %s", reasons, code)
		}
	}
	if len(reasons) == 0 {
		t.Error("the decision was accepted")
	}
	return reasons
}
