package tasks_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

func TestPlanGoesTheWholeWayOrNowhere(t *testing.T) {
	l := newDesk(t)
	good := tasks.PlanTask{Scope: "backend", AssigneeRole: "DEVELOPER", BaseCommit: "1234567", PlanKind: "full", Mode: "A", Body: "do\nit"}
	with := func(id string, f func(*tasks.PlanTask)) tasks.PlanTask { a := good; a.ID = id; f(&a); return a }
	none := func(*tasks.PlanTask) {}
	l.newTask("One", "feature", "backend")
	before := l.everything()
	cases := map[string]struct {
		a    tasks.PlanTask
		role contract.Role
		code refusal.Code
	}{
		"role":         {with("1", none), "DEVELOPER", refusal.CodeTransitionRole},
		"unknown":      {with("9", none), "ARCHITECT-PLANNER", refusal.CodeTaskNotFound},
		"scope":        {with("1", func(a *tasks.PlanTask) { a.Scope, a.AssigneeRole = "ui", "UI-DEVELOPER" }), "ARCHITECT-PLANNER", refusal.CodeScopeMismatch},
		"scope word":   {with("1", func(a *tasks.PlanTask) { a.Scope = "all" }), "ARCHITECT-PLANNER", refusal.CodeUsage},
		"assignee":     {with("1", func(a *tasks.PlanTask) { a.AssigneeRole = "TESTER" }), "ARCHITECT-PLANNER", refusal.CodeBlockField},
		"audit":        {with("1", func(a *tasks.PlanTask) { a.AuditOnly = true }), "ARCHITECT-PLANNER", refusal.CodeScopeMismatch},
		"plan kind":    {with("1", func(a *tasks.PlanTask) { a.PlanKind = "half" }), "ARCHITECT-PLANNER", refusal.CodeBlockField},
		"no commit":    {with("1", func(a *tasks.PlanTask) { a.BaseCommit = "" }), "ARCHITECT-PLANNER", refusal.CodeBlockField},
		"stand reason": {with("1", func(a *tasks.PlanTask) { a.StandRequired = true }), "ARCHITECT-PLANNER", refusal.CodeBlockField},
	}
	for name, c := range cases {
		_, err := l.tree.Plan(bg, as(c.role), c.a)
		if r, ok := refusal.Find(err); !ok || r.Code != c.code {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
	}
	if after := l.everything(); !maps.Equal(before, after) {
		t.Errorf("refused plans left %v, before %v", after, before)
	}

	p, err := l.tree.Plan(bg, as("ARCHITECT-PLANNER"), with("1", none))
	if err != nil || p.Queue != "feature_dev" || !slices.Equal(p.Steps, []string{"append triage", "mv feature_plan", "append plan", "mv feature_dev"}) {
		t.Fatalf("got %+v, %v", p, err)
	}
	task, err := l.tree.ReadCurrent("0001-one")
	if err != nil || task.Latest("triage").Text("notes") != "triaged for planning (scope:backend)" || task.Latest("plan").Text("body") != "do\nit" ||
		task.Latest("plan").Text("base_commit") != "1234567" {
		t.Errorf("got %+v, %v", task, err)
	}
	_, err = l.tree.Plan(bg, as("ARCHITECT-PLANNER"), with("1", none))
	refused(t, err, refusal.CodeNotReady)

	feedback := l.must(l.tree.New(bg, as("USER"), tasks.NewTask{Stream: "product", Title: "Wish", Kind: "docs", Scope: "docs", InQueue: "user_feedback"}))
	p, err = l.tree.Plan(bg, as("ARCHITECT-PLANNER"), with(string(feedback.ID), func(a *tasks.PlanTask) {
		a.Scope, a.AssigneeRole, a.AuditOnly, a.Triage = "docs", "TECHNICAL-WRITER", true, "worth it"
	}))
	if err != nil || p.Queue != "feature_docs_review" || len(p.Steps) != 5 {
		t.Errorf("got %+v, %v", p, err)
	}

	// What stopped on the way is taken up where it stands.
	l.newTask("Three", "feature", "backend")
	p, err = l.tree.Plan(bg, as("ARCHITECT-PLANNER"), with("3", func(a *tasks.PlanTask) { a.StopAtPlan = true }))
	if err != nil || p.Queue != "feature_plan" {
		t.Fatalf("got %+v, %v", p, err)
	}
	op := as("ARCHITECT-PLANNER")
	op.Hooks = &hooks{fail: map[tasks.WorktreeAction]error{"create": errors.New("no git here")}}
	_, err = l.tree.Plan(bg, op, with("3", none))
	if err == nil || !strings.Contains(err.Error(), "mv feature_dev") || !strings.Contains(err.Error(), "no git here") {
		t.Errorf("got %v, want the step and its cause", err)
	}
	p, err = l.tree.Plan(bg, as("ARCHITECT-PLANNER"), with("3", none))
	if err != nil || p.Queue != "feature_dev" {
		t.Errorf("got %+v, %v", p, err)
	}
	task, err = l.tree.ReadCurrent("0003-three")
	if err != nil || len(task.Blocks) != 2 {
		t.Errorf("got %+v, %v, want each block once", task, err)
	}
}
