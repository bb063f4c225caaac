package tasks_test

import (
	"slices"
	"strings"
	"testing"

	"greatminds/contract"
	"greatminds/tasks"
)

const planPayload = `{"kind":"plan","base_commit":"abc1234","assignee_role":"DEVELOPER","stand_required":false,"plan_kind":"full","mode":"A","ready_for_implementation":true}`

// The whole way of a task, stage by stage, through the destinations of every role.
func TestATaskGoesFromPlanToVerified(t *testing.T) {
	review := `{"kind":"review","outcome":"approved","commit":"abc1234"}`
	ways := map[string]struct {
		kind, scope string
		steps       [][3]string // role, destination, block
	}{
		"feature": {"feature", "backend", [][3]string{
			{"ARCHITECT-PLANNER", "feature_plan", `{"kind":"triage","notes":"yes"}`}, {"ARCHITECT-PLANNER", "feature_dev", planPayload},
			{"DEVELOPER", "feature_test", implPayload}, {"TESTER", "feature_dev", strings.Replace(testsPayload, `"pass"`, `"fail"`, 1)},
			{"DEVELOPER", "feature_test", implPayload}, {"TESTER", "feature_review", testsPayload},
			{"ARCHITECT-REVIEWER", "feature_dev", `{"kind":"review","outcome":"changes_requested"}`}, {"DEVELOPER", "feature_test", implPayload},
			{"TESTER", "feature_review", testsPayload}, {"ARCHITECT-REVIEWER", "verified", review}}},
		"ui": {"bugfix", "ui", [][3]string{
			{"ARCHITECT-PLANNER", "feature_plan", `{"kind":"triage","notes":"yes"}`}, {"ARCHITECT-PLANNER", "feature_ui_dev", planPayload},
			{"UI-DEVELOPER", "feature_test", implPayload}, {"TESTER", "feature_ui_dev", strings.Replace(testsPayload, `"pass"`, `"partial"`, 1)},
			{"UI-DEVELOPER", "feature_test", implPayload}, {"TESTER", "feature_review", testsPayload}, {"ARCHITECT-REVIEWER", "verified", review}}},
		"docs": {"docs", "docs", [][3]string{
			{"ARCHITECT-PLANNER", "feature_plan", `{"kind":"triage","notes":"yes"}`}, {"ARCHITECT-PLANNER", "feature_docs", planPayload},
			{"TECHNICAL-WRITER", "feature_docs_review", implPayload}, {"READER", "feature_docs", `{"kind":"reader_review","outcome":"fail","stand_checked":false,"ready_for_architect":false}`},
			{"TECHNICAL-WRITER", "feature_docs_review", implPayload}, {"READER", "feature_review", `{"kind":"reader_review","outcome":"pass","stand_checked":false,"ready_for_architect":true}`},
			{"ARCHITECT-REVIEWER", "verified", review}}},
		"audit": {"docs", "docs", [][3]string{
			{"ARCHITECT-PLANNER", "feature_plan", `{"kind":"triage","notes":"yes"}`}, {"ARCHITECT-PLANNER", "feature_docs_review", strings.Replace(planPayload, `"mode"`, `"audit_only":true,"mode"`, 1)},
			{"READER", "feature_review", `{"kind":"reader_review","outcome":"pass","stand_checked":false,"ready_for_architect":true}`}, {"ARCHITECT-REVIEWER", "verified", review}}},
		"verify only": {"research", "backend", [][3]string{
			{"ARCHITECT-PLANNER", "feature_plan", `{"kind":"triage","notes":"yes"}`}, {"ARCHITECT-PLANNER", "feature_test", strings.Replace(planPayload, `"mode"`, `"verify_only":true,"mode"`, 1)},
			{"TESTER", "feature_review", testsPayload}, {"ARCHITECT-REVIEWER", "verified", review}}},
		"scenario C": {"feature", "ui", [][3]string{
			{"ARCHITECT-PLANNER", "feature_plan", `{"kind":"triage","notes":"yes"}`}, {"ARCHITECT-PLANNER", "feature_live", strings.Replace(planPayload, `"mode":"A"`, `"interactive":true,"mode":"C"`, 1)},
			{"LIVE-DEVELOPER", "feature_review", implPayload}, {"ARCHITECT-REVIEWER", "verified", review}}},
		"feedback": {"feature", "backend", [][3]string{{"ARCHITECT-PLANNER", "feature_inbox", `{"kind":"triage","notes":"yes"}`}, {"ARCHITECT-PLANNER", "archive", ""}}},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			start := contract.Queue("feature_inbox")
			if name == "feedback" {
				start = "user_feedback"
			}
			task := stage{queue: start, kind: way.kind, scope: way.scope}.task(t)
			for _, step := range way.steps {
				d := decide(t, "handoff", `{"to_queue":"`+step[1]+`","blocks":[`+step[2]+`]}`)
				planned, after := accepted(t, task, d, facts(contract.Role(step[0])))
				wantPre, wantPost := actionsFor(way.kind, step[1])
				if !slices.Equal(planned.Pre, wantPre) || !slices.Equal(planned.Post, wantPost) {
					t.Errorf("to %s: got the actions %v and %v, want %v and %v", step[1], planned.Pre, planned.Post, wantPre, wantPost)
				}
				task = after
			}
		})
	}
}

// actionsFor is the reference's table of worktree actions.
func actionsFor(kind, to string) (pre, post []tasks.WorktreeAction) {
	if kind == "research" {
		return nil, nil
	}
	switch to {
	case "feature_dev", "feature_ui_dev", "feature_docs":
		return []tasks.WorktreeAction{tasks.WorktreeCreate}, nil
	case "verified":
		return []tasks.WorktreeAction{tasks.WorktreeMerge}, []tasks.WorktreeAction{tasks.WorktreeRemove}
	case "archive":
		return nil, []tasks.WorktreeAction{tasks.WorktreeRemove}
	}
	return nil, nil
}

func TestHandbackReturnsTheTaskToItsImplementer(t *testing.T) {
	for scope, want := range map[string]contract.Queue{"backend": "feature_dev", "ui": "feature_ui_dev"} {
		task := stage{queue: "feature_review", kind: "feature", scope: scope, blocks: []string{plannedBlock, implBlock, testsBlock}}.task(t)
		planned, reasons := tasks.Handback(testSchema, task, "feature_dev", "main and the task both changed a.go", facts("ARCHITECT-REVIEWER"))
		if len(reasons) > 0 || planned.Destination != want || !planned.Moves || !slices.Equal(planned.Pre, []tasks.WorktreeAction{tasks.WorktreeCreate}) {
			t.Fatalf("%s: got %+v, %v", scope, planned, reasons)
		}
		after, err := tasks.Parse(testSchema, want, tasks.FileOf(want, task.ID), planned.After)
		if err != nil {
			t.Fatal(err)
		}
		block := after.Latest("review")
		if block.Text("outcome") != "changes_requested" || !strings.Contains(block.Text("notes"), "a.go") || block.By != "ARCHITECT-REVIEWER" || !block.Fields.Has("provenance") {
			t.Errorf("got the block %+v", block)
		}
	}
	_, reasons := tasks.Handback(testSchema, sampleFor(t), "feature_dev", "x", facts("ARCHITECT-REVIEWER"))
	if len(reasons) == 0 {
		t.Error("a task that is not in review was handed back")
	}
}
