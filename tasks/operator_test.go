package tasks_test

import (
	"errors"
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
