package tasks_test

import (
	"context"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

var bg = context.Background()

func TestNewWritesTheReferencesHeader(t *testing.T) {
	l := newDesk(t)
	ref := l.must(l.tree.New(bg, as("TESTER"), tasks.NewTask{Stream: "product", Title: "Add Login: 'now'", Kind: "feature", Scope: "backend",
		Description: "two\nlines", Hosts: []string{"h1", "h2"}, EvidenceFor: []string{"0003-x"}}))
	want := `id: 0001-add-login-now
stream: product
title: 'Add Login: ''now'''
reporter: TESTER
opened_at: '2026-01-05T09:00:00Z'
priority: normal
kind: feature
scope: backend
description: |-
  two
  lines
hosts:
- h1
- h2
evidence_for:
- 0003-x
blocks: []
`
	if got := l.read("feature_inbox", "0001-add-login-now.yaml"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if ref.File != "feature_inbox/0001-add-login-now.yaml" || ref.Revision != tasks.RevisionOf(ref.File, []byte(want)) {
		t.Errorf("got %+v", ref)
	}
	lines, err := l.tree.Journal()
	if err != nil || len(lines) != 1 || lines[0].From != "_new" || lines[0].To != "feature_inbox" || lines[0].Reason != "new product task" ||
		lines[0].Task != "0001-add-login-now" || lines[0].Actor != "TESTER" || lines[0].T != "2026-01-05T09:00:00Z" {
		t.Errorf("got the journal %+v, %v", lines, err)
	}
	session := l.must(l.tree.New(bg, as("ARCHITECT-PLANNER"), tasks.NewTask{Stream: "review_session", Title: "Look", TargetFunctionality: "login", Scenarios: []string{"a", "0x10"}, Reason: "why"}))
	if got := l.read("review_sessions", "0002-look.yaml"); session.ID != "0002-look" || !strings.Contains(got, "kind: review_session\nmode: B\ntarget_functionality: login\nscenarios:\n- a\n- '0x10'\nblocks: []\n") {
		t.Errorf("got\n%s", got)
	}
	if other := l.must(l.tree.New(bg, as("USER"), tasks.NewTask{Stream: "product", Title: "é", Kind: "docs", Scope: "docs", InQueue: "user_feedback", Reporter: "me", Priority: "high"})); !strings.HasPrefix(string(other.ID), "0003-task-") {
		t.Errorf("a title without letters gives %s", other.ID)
	}
}

// A refused call takes no number and leaves nothing behind.
func TestNewBurnsNoNumberWhenRefused(t *testing.T) {
	l := newDesk(t)
	l.newTask("First", "feature", "backend")
	before := l.everything()
	good := tasks.NewTask{Stream: "product", Title: "x", Kind: "feature", Scope: "ui"}
	with := func(f func(*tasks.NewTask)) tasks.NewTask { a := good; f(&a); return a }
	cases := map[string]struct {
		a      tasks.NewTask
		role   contract.Role
		code   refusal.Code
		status refusal.Status
	}{
		"no role":        {good, "", refusal.CodeRoleUnknown, 1},
		"unknown role":   {good, "FOO", refusal.CodeRoleUnknown, 1},
		"stream":         {with(func(a *tasks.NewTask) { a.Stream = "other" }), "TESTER", refusal.CodeUsage, 2},
		"no kind":        {with(func(a *tasks.NewTask) { a.Kind = "" }), "TESTER", refusal.CodeIntake, 1},
		"no title":       {with(func(a *tasks.NewTask) { a.Title = " " }), "TESTER", refusal.CodeIntake, 1},
		"long title":     {with(func(a *tasks.NewTask) { a.Title = strings.Repeat("x", 201) }), "TESTER", refusal.CodeIntake, 1},
		"queue":          {with(func(a *tasks.NewTask) { a.InQueue = "verified" }), "TESTER", refusal.CodeIntake, 1},
		"seq form":       {with(func(a *tasks.NewTask) { a.Seq = "12" }), "TESTER", refusal.CodeIntake, 1},
		"seq taken":      {with(func(a *tasks.NewTask) { a.Seq = "0001" }), "TESTER", refusal.CodeTaskExists, 1},
		"kind word":      {with(func(a *tasks.NewTask) { a.Kind = "zzz" }), "TESTER", refusal.CodeTaskInvalid, 2},
		"scope word":     {with(func(a *tasks.NewTask) { a.Scope = "zzz" }), "TESTER", refusal.CodeTaskInvalid, 2},
		"priority":       {with(func(a *tasks.NewTask) { a.Priority = "urgent" }), "TESTER", refusal.CodeTaskInvalid, 2},
		"no UTF-8":       {with(func(a *tasks.NewTask) { a.Description = "\xff" }), "TESTER", refusal.CodeIntake, 1},
		"session, empty": {tasks.NewTask{Stream: "review_session", Title: "x"}, "TESTER", refusal.CodeIntake, 1},
		"session mode":   {tasks.NewTask{Stream: "review_session", Title: "x", TargetFunctionality: "x", Scenarios: []string{"a"}, Mode: "D"}, "TESTER", refusal.CodeTaskInvalid, 2},
	}
	for name, c := range cases {
		_, err := l.tree.New(bg, as(c.role), c.a)
		if r := refused(t, err, c.code); r.Status() != c.status || r.Remedy == "" {
			t.Errorf("%s: got status %d and remedy %q, want %d", name, r.Status(), r.Remedy, c.status)
		}
	}
	if after := l.everything(); !maps.Equal(before, after) {
		t.Errorf("refused calls left %v, before %v", after, before)
	}
	if ref := l.newTask("Second", "feature", "backend"); ref.ID != "0002-second" {
		t.Errorf("the next task is %s, want 0002-second", ref.ID)
	}
}

func TestNumbersAreNeverGivenTwice(t *testing.T) {
	l := newDesk(t)
	ref := l.must(l.tree.New(bg, as("TESTER"), tasks.NewTask{Stream: "product", Title: "x", Kind: "feature", Scope: "ui", Seq: "0050"}))
	if err := os.Remove(l.tree.PathOf(ref)); err != nil {
		t.Fatal(err)
	}
	if next := l.newTask("y", "feature", "ui"); next.ID != "0051-y" {
		t.Errorf("after a deleted 0050 comes %s", next.ID)
	}
	l.put("archive", "0070-old.md", "#")
	if next := l.newTask("z", "feature", "ui"); next.ID != "0071-z" {
		t.Errorf("after an archived 0070 comes %s", next.ID)
	}
	l.put("", ".id_counter", "9999")
	_, err := l.tree.New(bg, as("TESTER"), tasks.NewTask{Stream: "product", Title: "x", Kind: "feature", Scope: "ui"})
	refused(t, err, refusal.CodeIntake)
	l.put("", ".id_counter", "many")
	_, err = l.tree.New(bg, as("TESTER"), tasks.NewTask{Stream: "product", Title: "x", Kind: "feature", Scope: "ui"})
	refused(t, err, refusal.CodeTaskStorage)
}

func TestMvRefusesInTheReferencesOrderAndStatuses(t *testing.T) {
	l := newDesk(t)
	l.newTask("One", "feature", "backend")
	l.put("feature_dev", "0002-old.md", "# old")
	before := l.everything()
	busy := as("ARCHITECT-PLANNER")
	busy.Busy = func(id tasks.ID) error {
		return refusal.New(refusal.CodeTaskBusy, "wait", "task %s has an open operation", id)
	}
	cases := []struct {
		name   string
		op     tasks.Operator
		id, to string
		code   refusal.Code
		status refusal.Status
	}{
		{"unknown queue", as("ARCHITECT-PLANNER"), "9", "nowhere", refusal.CodeQueueUnknown, 1},
		{"unknown task", as("ARCHITECT-PLANNER"), "9", "feature_plan", refusal.CodeTaskNotFound, 1},
		{"no role", as(""), "1", "feature_plan", refusal.CodeRoleUnknown, 1},
		{"same queue", as("ARCHITECT-PLANNER"), "1", "feature_inbox", refusal.CodeTaskThere, 1},
		{"legacy", as("ARCHITECT-PLANNER"), "2", "feature_test", refusal.CodeTaskLegacy, 2},
		{"role", as("TESTER"), "1", "feature_plan", refusal.CodeTransitionRole, 3},
		{"no transition", as("ARCHITECT-PLANNER"), "1", "verified", refusal.CodeNoTransition, 3},
		{"readiness", as("ARCHITECT-PLANNER"), "1", "feature_plan", refusal.CodeNotReady, 2},
		{"busy, short id", busy, "1", "archive", refusal.CodeTaskBusy, 4},
		{"busy, full id", busy, "0001-one", "archive", refusal.CodeTaskBusy, 4},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := l.tree.Mv(bg, c.op, c.id, contract.Queue(c.to), "")
			if r := refused(t, err, c.code); r.Status() != c.status || r.Remedy == "" {
				t.Errorf("got status %d and remedy %q, want %d", r.Status(), r.Remedy, c.status)
			}
		})
	}
	if after := l.everything(); !maps.Equal(before, after) {
		t.Errorf("refused moves left %v, before %v", after, before)
	}
}

func TestMvMovesJournalsAndCallsTheHooks(t *testing.T) {
	l := newDesk(t)
	ref := l.planned("feature", "backend", "DEVELOPER")
	h := &hooks{fail: map[tasks.WorktreeAction]error{}}
	op := as("DEVELOPER")
	op.Hooks = h
	if _, err := l.tree.AppendBlock(bg, op, tasks.NewBlock{ID: "1", Kind: "implementation", Fields: tasks.Fields{{Key: "base_commit", Value: "1234567"}, {Key: "files", Value: "a.go"}, {Key: "ready_for_test", Value: "true"}}}); err != nil {
		t.Fatal(err)
	}
	moved, err := l.tree.Mv(bg, op, "1", "feature_test", strings.Repeat("r", 250))
	if err != nil || moved.From.Queue != "feature_dev" || moved.To.Queue != "feature_test" || moved.Warning != "" {
		t.Fatalf("got %+v, %v", moved, err)
	}
	lines, err := l.tree.Journal()
	if err != nil {
		t.Fatal(err)
	}
	last := lines[len(lines)-1]
	if last.Task != string(ref.ID) || last.From != "feature_dev" || last.To != "feature_test" || last.Actor != "DEVELOPER" || len(last.Reason) != 200 || len(last.IntentID) != 32 {
		t.Errorf("got the line %+v", last)
	}
	if raw := strings.Split(strings.TrimSpace(l.read("journal.ndjson")), "\n"); !strings.HasPrefix(raw[len(raw)-1], `{"t":"2026-01-05T09:00:00Z","actor":"DEVELOPER","task":"`) || !strings.Contains(raw[len(raw)-1], `","from":"feature_dev","to":"feature_test","reason":"rrr`) {
		t.Errorf("got the bytes %s", raw[len(raw)-1])
	}
	if names, err := os.ReadDir(filepath.Join(l.project.Runtime, "intent")); err != nil || len(names) != 0 {
		t.Errorf("intents are left: %v, %v", names, err)
	}
	if _, err := os.Stat(filepath.Join(l.project.Runtime, "heartbeat.developer")); err != nil {
		t.Error(err)
	}

	// A failing action before the move stops it and leaves no intent; one after it is reported.
	tester, reviewer := as("TESTER"), as("ARCHITECT-REVIEWER")
	reviewer.Hooks = h
	fields := tasks.Fields{{Key: "base_commit", Value: "a"}, {Key: "test_files", Value: "a"}, {Key: "test_command", Value: "x"}, {Key: "test_result", Value: "pass"}, {Key: "gate_check_result", Value: "n/a"},
		{Key: "gate_check_at", Value: "2026-01-05T09:00:00Z"}, {Key: "gate_check_commit", Value: "a"}, {Key: "ready_for_review", Value: "true"}}
	if _, err := l.tree.AppendBlock(bg, tester, tasks.NewBlock{ID: "1", Kind: "tests", Fields: fields}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.tree.Mv(bg, tester, "1", "feature_review", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := l.tree.AppendBlock(bg, reviewer, tasks.NewBlock{ID: "1", Kind: "review", Fields: tasks.Fields{{Key: "outcome", Value: "approved"}, {Key: "commit", Value: "a"}}}); err != nil {
		t.Fatal(err)
	}
	h.done, h.fail["merge"] = nil, refusal.New(refusal.CodeMergeConflict, "mend it", "a.go conflicts")
	before := l.everything()
	_, err = l.tree.Mv(bg, reviewer, "1", "verified", "")
	refused(t, err, refusal.CodeMergeConflict)
	if after := l.everything(); !maps.Equal(before, after) {
		t.Errorf("a failed merge left %v, before %v", after, before)
	}
	h.fail["merge"], h.fail["remove"] = nil, errors.New("in use")
	moved, err = l.tree.Mv(bg, reviewer, "1", "verified", "")
	if err != nil || !strings.Contains(moved.Warning, "in use") || moved.To.Queue != "verified" {
		t.Errorf("got %+v, %v", moved, err)
	}
	if !slices.Equal(h.done, []tasks.WorktreeAction{"merge", "merge", "remove"}) {
		t.Errorf("got the actions %v", h.done)
	}
}

func TestAppendBlockRefusesInTheReferencesOrder(t *testing.T) {
	l := newDesk(t)
	l.planned("feature", "backend", "DEVELOPER")
	before := l.everything()
	good := tasks.Fields{{Key: "base_commit", Value: "a"}, {Key: "files", Value: "a.go"}, {Key: "ready_for_test", Value: "true"}}
	outside := as("DEVELOPER")
	outside.Evidence = &evidence{facts: tasks.Facts{Files: map[string]tasks.FileFact{"a.go": {InGit: true, Changed: true}}}}
	cases := []struct {
		name   string
		op     tasks.Operator
		kind   string
		fields tasks.Fields
		code   refusal.Code
		status refusal.Status
	}{
		{"reserved before author", as("TESTER"), "implementation", good.With("by", "DEVELOPER"), refusal.CodeBlockReserved, 3},
		{"other author's name", as("DEVELOPER"), "implementation", good.With("closed_by", "TESTER"), refusal.CodeBlockAuthor, 3},
		{"author before queue", as("DEVELOPER"), "tests", nil, refusal.CodeBlockAuthor, 3},
		{"scope", as("UI-DEVELOPER"), "implementation", good, refusal.CodeBlockAuthor, 3},
		{"queue", as("ARCHITECT-PLANNER"), "triage", tasks.Fields{{Key: "notes", Value: "x"}}, refusal.CodeBlockQueue, 2},
		{"field before isolation", outside, "implementation", good.Without("base_commit"), refusal.CodeBlockField, 2},
		{"isolation", outside, "implementation", good, refusal.CodeWorkspaceIsolation, 2},
		{"files", as("DEVELOPER"), "implementation", good.With("files", "b.go"), refusal.CodeFileEvidence, 2},
		{"kind", as("DEVELOPER"), "weird", nil, refusal.CodeBlockKind, 2},
		{"blocked by another", as("TESTER"), "blocked", tasks.Fields{{Key: "reason", Value: "x"}, {Key: "dependencies", Value: "verified/0002-x.yaml"}, {Key: "resume_to", Value: "feature_dev"}}, refusal.CodeBlockAuthor, 3},
		{"twice", as("DEVELOPER"), "implementation", append(slices.Clone(good), tasks.Field{Key: "files", Value: "x"}), refusal.CodeBlockField, 2},
		{"odd list", as("DEVELOPER"), "implementation", good.With("files", "[a"), refusal.CodeBlockField, 2},
		{"anchor", as("DEVELOPER"), "implementation", good.With("x", "{a: &b c}"), refusal.CodeBlockField, 2},
		{"no UTF-8", as("DEVELOPER"), "implementation", good.With("notes", "\xff"), refusal.CodeBlockField, 2},
		{"commit of digits is text", as("DEVELOPER"), "implementation", good.With("base_commit", ""), refusal.CodeBlockField, 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := l.tree.AppendBlock(bg, c.op, tasks.NewBlock{ID: "1", Kind: contract.BlockKind(c.kind), Fields: c.fields})
			if r := refused(t, err, c.code); r.Status() != c.status {
				t.Errorf("got status %d, want %d (%v)", r.Status(), c.status, r)
			}
		})
	}
	if after := l.everything(); !maps.Equal(before, after) {
		t.Errorf("refused blocks left %v, before %v", after, before)
	}
}

func TestAppendBlockTypesItsArguments(t *testing.T) {
	l := newDesk(t)
	ref := l.planned("feature", "backend", "DEVELOPER")
	body := "5"
	_, err := l.tree.AppendBlock(bg, as("DEVELOPER"), tasks.NewBlock{ID: "1", Kind: "implementation", Body: &body, Fields: tasks.Fields{
		{Key: "base_commit", Value: "1234567"}, {Key: "files", Value: " a.go , "}, {Key: "ready_for_test", Value: "true"}, {Key: "count", Value: "7"},
		{Key: "code", Value: "007"}, {Key: "map", Value: "{a: [1, x], b: 'y'}"}, {Key: "commands", Value: "['a, b', c]"}, {Key: "yes", Value: "yes"}}})
	if err != nil {
		t.Fatal(err)
	}
	text := l.read("feature_dev", string(ref.ID)+".yaml")
	want := `- kind: implementation
  by: DEVELOPER
  at: '2026-01-05T09:00:00Z'
  base_commit: '1234567'
  files:
  - a.go
  ready_for_test: true
  count: 7
  code: '007'
  map:
    a:
    - 1
    - x
    b: 'y'
  commands:
  - a, b
  - c
  'yes': 'yes'
  notes: '5'
  worktree_fingerprint: clean
`
	if !strings.HasSuffix(text, want) {
		t.Errorf("got\n%s\nwant it to end with\n%s", text, want)
	}
}

func TestWithdrawParksTheTaskInOneStep(t *testing.T) {
	l := newDesk(t)
	ref := l.newTask("One", "feature", "backend")
	moved, err := l.tree.Withdraw(bg, as("ARCHITECT-PLANNER"), "1", "no need")
	if err != nil || moved.From.Queue != "feature_inbox" || moved.To.Queue != "feature_blocked" {
		t.Fatalf("got %+v, %v", moved, err)
	}
	want := "  blocked_by: ARCHITECT-PLANNER\n  blocked_at: '2026-01-05T09:00:00Z'\n  reason: 'withdrawn: no need'\n  dependencies:\n" +
		"  - archive/0000-withdrawn-sentinel.yaml\n  resume_to: feature_inbox\n"
	if got := l.read("feature_blocked", string(ref.ID)+".yaml"); !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s", got)
	}
	l.newTask("Two", "feature", "backend")
	before := l.everything()
	_, err = l.tree.Withdraw(bg, as("TESTER"), "2", "x")
	if r := refused(t, err, refusal.CodeTransitionRole); r.Status() != refusal.Forbidden {
		t.Errorf("got status %d, want 3", r.Status())
	}
	_, err = l.tree.Withdraw(bg, as("ARCHITECT-PLANNER"), "2", " ")
	refused(t, err, refusal.CodeUsage)
	_, err = l.tree.Withdraw(bg, as("ARCHITECT-REVIEWER"), "1", "again")
	refused(t, err, refusal.CodeTaskThere)
	if after := l.everything(); !maps.Equal(before, after) {
		t.Errorf("refused withdrawals left %v, before %v", after, before)
	}
	// What was withdrawn is archived by the reviewer, and never resumed.
	_, err = l.tree.Mv(bg, as("ARCHITECT-REVIEWER"), "1", "feature_inbox", "")
	refused(t, err, refusal.CodeCheckFailed)
	if _, err := l.tree.Mv(bg, as("ARCHITECT-REVIEWER"), "1", "archive", ""); err != nil {
		t.Error(err)
	}
}

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

func TestResumeByHandWaitsForTheDependencies(t *testing.T) {
	l := newDesk(t)
	l.planned("feature", "backend", "DEVELOPER")
	op := as("DEVELOPER")
	block := tasks.NewBlock{ID: "1", Kind: "blocked", Fields: tasks.Fields{{Key: "reason", Value: "waits"}, {Key: "dependencies", Value: "verified/0002-dep.yaml"}, {Key: "resume_to", Value: "feature_dev"}}}
	_, err := l.tree.Mv(bg, op, "1", "feature_blocked", "")
	refused(t, err, refusal.CodeCheckFailed)
	if _, err := l.tree.AppendBlock(bg, op, block); err != nil {
		t.Fatal(err)
	}
	if _, err := l.tree.Mv(bg, op, "1", "feature_blocked", ""); err != nil {
		t.Fatal(err)
	}
	reviewer := as("ARCHITECT-REVIEWER")
	states := map[string]tasks.DependencyStatus{"": tasks.DependencyMissing, "feature_dev": tasks.DependencyWaiting, "archive": tasks.DependencyWrongTerminal}
	for _, place := range []string{"", "feature_dev", "archive"} {
		if place != "" {
			l.put(place, "0002-dep.yaml", at("0002-dep", sampleTask))
		}
		facts, err := l.tree.Dependencies([]string{"verified/0002-dep.yaml", "odd"})
		if err != nil || facts["verified/0002-dep.yaml"].Status != states[place] || facts["odd"].Status != tasks.DependencyMalformed {
			t.Errorf("in %q: got %v, %v", place, facts, err)
		}
		_, err = l.tree.Mv(bg, reviewer, "1", "feature_dev", "")
		refused(t, err, refusal.CodeCheckFailed)
		if place != "" {
			if err := os.Remove(filepath.Join(l.project.Runtime, place, "0002-dep.yaml")); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.put("verified", "0002-dep.yaml", at("0002-dep", sampleTask))
	_, err = l.tree.Mv(bg, reviewer, "1", "feature_plan", "")
	refused(t, err, refusal.CodeCheckFailed)
	if _, err := l.tree.Mv(bg, reviewer, "1", "feature_dev", ""); err != nil {
		t.Error(err)
	}
}

func TestJudgeDependency(t *testing.T) {
	here := func(q contract.Queue) tasks.Location { return tasks.Location{Queue: q, Valid: true, Revision: "r"} }
	for _, c := range []struct {
		declared string
		at       []tasks.Location
		want     tasks.DependencyStatus
	}{
		{"verified/0001-x.yaml", []tasks.Location{here("verified")}, tasks.DependencySatisfied},
		{"archive/0001-x.yaml", []tasks.Location{here("archive")}, tasks.DependencySatisfied},
		{"verified/0001-x.yaml", nil, tasks.DependencyMissing},
		{"verified/0001-x.yaml", []tasks.Location{here("archive")}, tasks.DependencyWrongTerminal},
		{"verified/0001-x.yaml", []tasks.Location{here("feature_blocked")}, tasks.DependencyWaiting},
		{"feature_dev/0001-x.yaml", []tasks.Location{here("feature_dev")}, tasks.DependencyActive},
		{"verified/0001-x.yaml", []tasks.Location{here("verified"), here("archive")}, tasks.DependencyAmbiguous},
		{"verified/0001-x.yaml", []tasks.Location{{Queue: "verified", Legacy: true}}, tasks.DependencyMigration},
		{"verified/0001-x.yaml", []tasks.Location{{Queue: "verified"}}, tasks.DependencyMalformed},
		{"nowhere/0001-x.yaml", []tasks.Location{here("verified")}, tasks.DependencyMalformed},
		{"x", []tasks.Location{here("verified")}, tasks.DependencyMalformed},
	} {
		if got := tasks.JudgeDependency(testSchema, c.declared, c.at); got.Status != c.want || (got.Revision != "") != (c.want == tasks.DependencySatisfied) {
			t.Errorf("%s at %v: got %+v, want %s", c.declared, c.at, got, c.want)
		}
	}
}

var update = flag.Bool("update", false, "write the files of testdata anew")

// The files below testdata/ours were validated by the reference implementation.
func TestFilesThatWeWrite(t *testing.T) {
	l := newDesk(t)
	odd := "a rather long line that goes on well beyond the eighty columns at which a folding writer breaks it\n\n  indented\ttab\n# no comment\ntrailing space \nquotes ' \" \u00fc 漢 \U0001F600\u0085\u2028\x00\x1b end\n"
	l.must(l.tree.New(bg, as("TESTER"), tasks.NewTask{Stream: "product", Title: "yes", Kind: "bugfix", Scope: "ui", Description: odd, Hosts: []string{"null", "1.5", ""}, Reporter: "0x10"}))
	l.must(l.tree.New(bg, as("ARCHITECT-PLANNER"), tasks.NewTask{Stream: "review_session", Title: "- Look: at #it", TargetFunctionality: "~", Scenarios: []string{"a: b", "1e5"}, Description: " lead\n\n"}))
	l.planned("feature", "backend", "DEVELOPER")
	body := odd
	if _, err := l.tree.AppendBlock(bg, as("DEVELOPER"), tasks.NewBlock{ID: "3", Kind: "implementation", Body: &body, Fields: tasks.Fields{
		{Key: "base_commit", Value: "1234567"}, {Key: "files", Value: ""}, {Key: "ready_for_test", Value: "true"}, {Key: "odd key: #", Value: "{a: {b: [[], {}, -1.5e+300]}, c: null}"}}}); err != nil {
		t.Fatal(err)
	}
	task, err := l.tree.ReadCurrent("0003-planned-feature-backend")
	if err != nil {
		t.Fatal(err)
	}
	planned, _ := accepted(t, task, decide(t, "handoff", `{"to_queue":"feature_test","blocks":[`+strings.Replace(implPayload, `"done"`, `{"b":[1,2.5e-9,null,"\u0000"],"a":"x\ny\n"}`, 1)+`]}`), facts("DEVELOPER"))
	l.put("feature_test", "0003-planned-feature-backend.yaml", string(planned.After))
	if _, err := l.tree.Withdraw(bg, as("ARCHITECT-PLANNER"), "2", "no: need"); err != nil {
		t.Fatal(err)
	}
	for name, text := range l.everything() {
		if filepath.Ext(name) != ".yaml" || filepath.Dir(name) == "feature_dev" {
			continue
		}
		golden := filepath.Join("testdata", "ours", name)
		if *update {
			if err := errors.Join(os.MkdirAll(filepath.Dir(golden), 0o755), os.WriteFile(golden, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || string(want) != text {
			t.Errorf("%s: got\n%s\nwant\n%s (%v)", name, text, want, err)
		}
	}
}
