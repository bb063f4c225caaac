package tasks_test

import (
	"slices"
	"strings"
	"testing"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

// E-204 E-207
func TestHandoffFilesTheBlockAndMoves(t *testing.T) {
	task := sampleFor(t)
	planned, after := accepted(t, task, decide(t, "handoff", `{"to_queue":"feature_test","blocks":[`+implPayload+`],"artifacts":["out/log.txt"],"reason":"ready","command_evidence":["c1"]}`), facts("DEVELOPER"))
	if !planned.Moves || planned.Destination != "feature_test" || planned.Reason != "ready" ||
		!slices.Equal(planned.Artifacts, []tasks.Artifact{{Path: "out/log.txt", SHA256: "ab"}}) || !slices.Equal(planned.Commands, []string{"c1"}) {
		t.Errorf("got %+v", planned)
	}
	if !strings.HasPrefix(string(planned.After), string(task.Bytes)) {
		t.Errorf("bytes that stood in the file have changed:\n%s", planned.After)
	}
	block := after.Blocks[1]
	provenance, _ := block.Fields.Get("provenance").(tasks.Fields)
	want := tasks.Fields{{"run_id", "run1"}, {"result_id", "run1-result"}, {"task_revision", string(task.Revision)}, {"schema_sha256", "5c"}, {"applied_by", "SYSTEM"}}
	if block.By != "DEVELOPER" || block.At != "2026-01-05T10:00:00Z" || block.Text("closed_by") != "DEVELOPER" ||
		block.Text("closed_at") != "2026-01-05T10:00:00Z" || block.Text("worktree_fingerprint") != "f00d" || !slices.Equal(provenance, want) {
		t.Errorf("got the block %+v", block)
	}
}

// E-204
func TestTheServiceAloneSetsAuthorTimeAndProvenance(t *testing.T) {
	task := sampleFor(t)
	for field, code := range map[string]refusal.Code{
		`"by":"DEVELOPER"`: refusal.CodeBlockReserved, `"at":"2026-01-05T09:00:00Z"`: refusal.CodeBlockReserved,
		`"provenance":{}`: refusal.CodeBlockReserved, `"worktree_fingerprint":"x"`: refusal.CodeBlockReserved,
		`"closed_by":"TESTER"`: refusal.CodeBlockAuthor, `"reviewed_by":"ARCHITECT-REVIEWER"`: refusal.CodeBlockAuthor, `"closed_at":"soon"`: refusal.CodeBlockField,
	} {
		payload := `{"to_queue":"feature_test","blocks":[` + strings.Replace(implPayload, `"notes"`, field+`,"notes"`, 1) + `]}`
		rejected(t, task, decide(t, "handoff", payload), facts("DEVELOPER"), code)
	}
	payload := `{"to_queue":"feature_test","blocks":[` + strings.Replace(implPayload, `"notes"`, `"closed_by":"DEVELOPER","closed_at":"2020-01-05T09:00:00Z","notes"`, 1) + `]}`
	_, after := accepted(t, task, decide(t, "handoff", payload), facts("DEVELOPER"))
	if got := after.Blocks[1].Text("closed_at"); got != "2026-01-05T10:00:00Z" {
		t.Errorf("closed_at is %s, want the service's time", got)
	}
}

// E-208
func TestBlockedParksTheTaskWithItsBlock(t *testing.T) {
	task := sampleFor(t)
	planned, after := accepted(t, task, decide(t, "blocked", `{"reason":"waits","dependencies":["verified/0002-x.yaml"],"resume_to":"feature_dev"}`), facts("DEVELOPER"))
	block := after.Latest("blocked")
	if planned.Destination != "feature_blocked" || block == nil || block.Text("reason") != "waits" || block.Text("resume_to") != "feature_dev" ||
		block.Text("blocked_by") != "DEVELOPER" || block.By != "DEVELOPER" {
		t.Errorf("got %+v and %+v", planned, block)
	}
	for payload, code := range map[string]refusal.Code{
		`{"reason":"waits","resume_to":"feature_dev"}`:                                                         refusal.CodeBlockField,
		`{"reason":"waits","dependencies":[],"resume_to":"feature_dev"}`:                                       refusal.CodeBlockField,
		`{"reason":"waits","dependencies":["x"],"resume_to":"feature_dev"}`:                                    refusal.CodeBlockField,
		`{"reason":"waits","dependencies":["verified/0002-x.yaml"],"resume_to":"nowhere"}`:                     refusal.CodeBlockField,
		`{"reason":"waits","dependencies":["verified/0002-x.yaml"],"resume_to":"verified"}`:                    refusal.CodeBlockField,
		`{"reason":"","dependencies":["verified/0002-x.yaml"],"resume_to":"feature_dev"}`:                      refusal.CodePayloadField,
		`{"reason":"waits","dependencies":["verified/0002-x.yaml"],"resume_to":"feature_dev","to_queue":"x"}`:  refusal.CodePayloadField,
		`{"reason":"waits","dependencies":["verified/0002-x.yaml"],"resume_to":"feature_dev","question":"x?"}`: refusal.CodePayloadField,
	} {
		rejected(t, task, decide(t, "blocked", payload), facts("DEVELOPER"), code)
	}
	rejected(t, task, decide(t, "blocked", `{"reason":"waits","dependencies":["verified/0002-x.yaml"],"resume_to":"feature_dev"}`), facts("TESTER"), refusal.CodeBlockAuthor)
	// The planner blocks its own queue like any owner, and withdraws elsewhere.
	accepted(t, stage{queue: "feature_plan", kind: "feature", scope: "backend"}.task(t),
		decide(t, "blocked", `{"reason":"waits","dependencies":["verified/0002-x.yaml"],"resume_to":"feature_plan"}`), facts("ARCHITECT-PLANNER"))
	accepted(t, task, decide(t, "blocked", `{"reason":"withdrawn by the user","dependencies":["archive/0000-x.yaml"],"resume_to":"feature_dev"}`), facts("ARCHITECT-PLANNER"))
	rejected(t, task, decide(t, "blocked", `{"reason":"waits","dependencies":["verified/0002-x.yaml"],"resume_to":"feature_dev"}`), facts("ARCHITECT-PLANNER"), refusal.CodeBlockAuthor, refusal.CodeCheckFailed)
}

// A handoff to the blocked queue without a blocked block would strand the task there.
func TestNobodyIsParkedWithoutABlockedBlock(t *testing.T) {
	rejected(t, sampleFor(t), decide(t, "handoff", `{"to_queue":"feature_blocked","blocks":[]}`), facts("DEVELOPER"), refusal.CodeCheckFailed)
	verified := stage{queue: "verified", kind: "feature", scope: "backend", blocks: []string{plannedBlock}}.task(t)
	rejected(t, verified, decide(t, "handoff", `{"to_queue":"feature_blocked","blocks":[]}`), facts("ARCHITECT-REVIEWER"), refusal.CodeNoTransition)
}

func TestNeedsInputAndNoChangeLeaveTheTask(t *testing.T) {
	task := sampleFor(t)
	planned, _ := accepted(t, task, decide(t, "needs_input", `{"question":"which one?","artifacts":["out/log.txt"]}`), facts("DEVELOPER"))
	if planned.Question != "which one?" || planned.Moves || string(planned.After) != string(task.Bytes) || planned.Pre != nil || planned.Post != nil {
		t.Errorf("got %+v", planned)
	}
	for _, payload := range []string{`{}`, `{"question":""}`, `{"question":" "}`, `{"question":5}`, `{"question":"x","reason":"y"}`} {
		rejected(t, task, decide(t, "needs_input", payload), facts("DEVELOPER"), refusal.CodePayloadField)
	}
	planned, _ = accepted(t, task, decide(t, "no_change", `{}`), facts("DEVELOPER"))
	if planned.Moves || planned.Reason != "" || string(planned.After) != string(task.Bytes) {
		t.Errorf("got %+v", planned)
	}
	for _, payload := range []string{`{"reason":5}`, `{"blocks":[]}`, `{"to_queue":"feature_test"}`} {
		rejected(t, task, decide(t, "no_change", payload), facts("DEVELOPER"), refusal.CodePayloadField)
	}
}

// E-073 E-112 E-196: one violation of each kind, each rejected with its reason.
func TestHandoffRejections(t *testing.T) {
	dev := sampleFor(t)
	handoff := func(to, blocks string) tasks.Decision {
		return decide(t, "handoff", `{"to_queue":"`+to+`","blocks":[`+blocks+`]}`)
	}
	tested := stage{queue: "feature_review", kind: "feature", scope: "backend", blocks: []string{plannedBlock, implBlock, testsBlock}}.task(t)
	cases := map[string]struct {
		task  *tasks.Task
		d     tasks.Decision
		role  contract.Role
		facts func(*tasks.Facts)
		code  refusal.Code
	}{
		"unknown queue":      {dev, handoff("nowhere", implPayload), "DEVELOPER", nil, refusal.CodeQueueUnknown},
		"state queue":        {dev, handoff(".stand", implPayload), "DEVELOPER", nil, refusal.CodeQueueUnknown},
		"same queue":         {dev, handoff("feature_dev", implPayload), "DEVELOPER", nil, refusal.CodeTaskThere},
		"no row":             {dev, handoff("verified", implPayload), "DEVELOPER", nil, refusal.CodeNoTransition},
		"another's row":      {dev, handoff("feature_test", ""), "TESTER", nil, refusal.CodeTransitionRole},
		"block of others":    {dev, handoff("feature_test", implPayload+","+testsPayload), "DEVELOPER", nil, refusal.CodeBlockAuthor},
		"queue takes none":   {dev, handoff("feature_test", implPayload+","+testsPayload), "DEVELOPER", nil, refusal.CodeBlockQueue},
		"unknown kind":       {dev, handoff("feature_test", `{"kind":"weird"}`), "DEVELOPER", nil, refusal.CodeBlockKind},
		"no kind":            {dev, handoff("feature_test", `{"files":[]}`), "DEVELOPER", nil, refusal.CodePayloadField},
		"block no object":    {dev, handoff("feature_test", `"x"`), "DEVELOPER", nil, refusal.CodePayloadField},
		"missing block":      {dev, handoff("feature_test", ""), "DEVELOPER", nil, refusal.CodeNotReady},
		"not ready":          {dev, handoff("feature_test", strings.Replace(implPayload, "true", "false", 1)), "DEVELOPER", nil, refusal.CodeNotReady},
		"wrong type":         {dev, handoff("feature_test", strings.Replace(implPayload, `["a.go"]`, `"a.go"`, 1)), "DEVELOPER", nil, refusal.CodeBlockField},
		"missing field":      {dev, handoff("feature_test", strings.Replace(implPayload, `"base_commit":"abc1234",`, "", 1)), "DEVELOPER", nil, refusal.CodeBlockField},
		"huge number":        {dev, handoff("feature_test", strings.Replace(implPayload, `"done"`, `99999999999999999999`, 1)), "DEVELOPER", nil, refusal.CodePayloadField},
		"file unchanged":     {dev, handoff("feature_test", implPayload), "DEVELOPER", func(f *tasks.Facts) { f.Files["a.go"] = tasks.FileFact{InGit: true, Exists: true} }, refusal.CodeFileEvidence},
		"file not looked at": {dev, handoff("feature_test", implPayload), "DEVELOPER", func(f *tasks.Facts) { f.Files = nil }, refusal.CodeFileEvidence},
		"file outside git":   {dev, handoff("feature_test", implPayload), "DEVELOPER", func(f *tasks.Facts) { f.Files["a.go"] = tasks.FileFact{} }, refusal.CodeFileEvidence},
		"file problem":       {dev, handoff("feature_test", implPayload), "DEVELOPER", func(f *tasks.Facts) { f.Files["a.go"] = tasks.FileFact{Problem: "x"} }, refusal.CodeFileEvidence},
		"absolute file":      {dev, handoff("feature_test", strings.Replace(implPayload, "a.go", "/a.go", 1)), "DEVELOPER", nil, refusal.CodeFileEvidence},
		"file above":         {dev, handoff("feature_test", strings.Replace(implPayload, "a.go", "x/../../a.go", 1)), "DEVELOPER", nil, refusal.CodeFileEvidence},
		"outside worktree":   {dev, handoff("feature_test", implPayload), "DEVELOPER", func(f *tasks.Facts) { f.InWorktree = false }, refusal.CodeWorkspaceIsolation},
		"scope of another":   {dev, handoff("feature_test", implPayload), "UI-DEVELOPER", nil, refusal.CodeBlockAuthor},
		"hand-back scope": {stage{queue: "feature_test", kind: "feature", scope: "backend", blocks: []string{plannedBlock, implBlock}}.task(t),
			handoff("feature_ui_dev", strings.Replace(testsPayload, `"pass"`, `"fail"`, 1)), "TESTER", nil, refusal.CodeScopeMismatch},
		"hand-back of a pass": {stage{queue: "feature_test", kind: "feature", scope: "backend", blocks: []string{plannedBlock, implBlock}}.task(t),
			handoff("feature_dev", testsPayload), "TESTER", nil, refusal.CodeCheckFailed},
		"old tests": {stage{queue: "feature_test", kind: "feature", scope: "backend", blocks: []string{plannedBlock, implBlock, testsBlock, implBlock}}.task(t),
			handoff("feature_review", ""), "TESTER", nil, refusal.CodeNotReady},
		"review scope":         {tested, handoff("feature_docs", `{"kind":"review","outcome":"changes_requested"}`), "ARCHITECT-REVIEWER", nil, refusal.CodeScopeMismatch},
		"approval to the dev":  {tested, handoff("feature_dev", `{"kind":"review","outcome":"approved","commit":"abc"}`), "ARCHITECT-REVIEWER", nil, refusal.CodeCheckFailed},
		"rejection verified":   {tested, handoff("verified", `{"kind":"review","outcome":"changes_requested"}`), "ARCHITECT-REVIEWER", nil, refusal.CodeCheckFailed},
		"approval, no commit":  {tested, handoff("verified", `{"kind":"review","outcome":"approved"}`), "ARCHITECT-REVIEWER", nil, refusal.CodeBlockField},
		"approval, no block":   {tested, handoff("verified", ""), "ARCHITECT-REVIEWER", nil, refusal.CodeNotReady},
		"identity":             {dev, tasks.Decision{Kind: "handoff", Payload: map[string]any{"to_queue": "feature_test", "blocks": []any{}, "role": "X"}}, "DEVELOPER", nil, refusal.CodeDecisionIdentity},
		"unknown field":        {dev, decide(t, "handoff", `{"to_queue":"feature_test","blocks":[],"extra":1}`), "DEVELOPER", nil, refusal.CodePayloadField},
		"blocks as object":     {dev, decide(t, "handoff", `{"to_queue":"feature_test","blocks":{}}`), "DEVELOPER", nil, refusal.CodePayloadField},
		"no destination":       {dev, decide(t, "handoff", `{"blocks":[]}`), "DEVELOPER", nil, refusal.CodePayloadField},
		"unknown decision":     {dev, tasks.Decision{Kind: "done"}, "DEVELOPER", nil, refusal.CodeDecisionForm},
		"approval, failed":     {stage{queue: "feature_review", kind: "feature", scope: "backend", blocks: []string{plannedBlock, implBlock, strings.Replace(testsBlock, "pass", "fail", 1)}}.task(t), handoff("verified", `{"kind":"review","outcome":"approved","commit":"abc"}`), "ARCHITECT-REVIEWER", nil, refusal.CodeBlockRule},
		"approval of nothing":  {stage{queue: "feature_review", kind: "feature", scope: "backend", blocks: []string{plannedBlock, implBlock}}.task(t), handoff("verified", `{"kind":"review","outcome":"approved","commit":"abc"}`), "ARCHITECT-REVIEWER", nil, refusal.CodeBlockRule},
		"audit never written":  {stage{queue: "feature_plan", kind: "docs", scope: "docs"}.task(t), handoff("feature_docs", `{"kind":"plan","base_commit":"a","assignee_role":"READER","stand_required":false,"plan_kind":"full","mode":"A","ready_for_implementation":true,"audit_only":true}`), "ARCHITECT-PLANNER", nil, refusal.CodeNotReady},
		"plan of another kind": {stage{queue: "feature_plan", kind: "feature", scope: "backend"}.task(t), handoff("feature_live", strings.Replace(planPayload, `"mode"`, `"interactive":false,"mode"`, 1)), "ARCHITECT-PLANNER", nil, refusal.CodeNotReady},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			world := facts(c.role)
			if c.facts != nil {
				c.facts(&world)
			}
			rejected(t, c.task, c.d, world, c.code)
		})
	}
}

// E-196: an agent hears every reason at once, so that it can mend them in one turn.
func TestARejectionGivesEveryReasonAtOnce(t *testing.T) {
	world := facts("DEVELOPER")
	world.InWorktree, world.Files = false, nil
	d := decide(t, "handoff", `{"to_queue":"feature_test","blocks":[{"kind":"implementation","by":"X","files":["a.go","/b"],"ready_for_test":"yes"}],`+
		`"artifacts":["../x"],"command_evidence":["nobody"],"extra":true}`)
	got := codes(rejected(t, sampleFor(t), d, world))
	want := []refusal.Code{refusal.CodePayloadField, refusal.CodeArtifact, refusal.CodeCommandEvidence, refusal.CodeBlockReserved,
		refusal.CodeBlockField, refusal.CodeWorkspaceIsolation, refusal.CodeFileEvidence, refusal.CodeNotReady}
	for _, code := range want {
		if !slices.Contains(got, string(code)) {
			t.Errorf("got the codes %v, which lack %s", got, code)
		}
	}
}
