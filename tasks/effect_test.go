package tasks_test

import (
	"encoding/json"
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

// E-211: what lies outside the workspace is not even asked for.
func TestArtifactsMustBeFilesOfTheWorkspace(t *testing.T) {
	task := sampleFor(t)
	f := facts("DEVELOPER")
	f.Artifacts = map[string]tasks.ArtifactFact{"link/secret.txt": {Problem: "leaves the workspace through a link"}, "dir": {Problem: "is no regular file"},
		"fifo": {Problem: "is no regular file"}, "missing": {Problem: "does not exist"}, "../x": {SHA256: "ab"}, "/etc/hostname": {SHA256: "ab"}, "": {SHA256: "ab"}}
	for _, name := range []string{"link/secret.txt", "../x", "a/../../x", "/etc/hostname", "dir", "fifo", "missing", "unknown", ""} {
		d := decide(t, "no_change", `{"artifacts":[`+quote(name)+`]}`)
		reasons := rejected(t, task, d, f, refusal.CodeArtifact)
		if reasons[0].Place != "payload.artifacts[0]" {
			t.Errorf("%q: got the place %s", name, reasons[0].Place)
		}
		asked := tasks.Needs(testSchema, task, d).Artifacts
		if unsafe := name == "" || strings.HasPrefix(name, "/") || strings.Contains(name, ".."); unsafe != (len(asked) == 0) {
			t.Errorf("%q: asked for %v", name, asked)
		}
	}
	rejected(t, task, decide(t, "no_change", `{"artifacts":"x"}`), f, refusal.CodePayloadField)
	rejected(t, task, decide(t, "no_change", `{"artifacts":[5]}`), f, refusal.CodePayloadField)
}

func quote(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a spelling
	}
	return string(data)
}

// E-107 E-109 E-110
func TestACitedCommandFillsTheTestsBlock(t *testing.T) {
	task := stage{queue: "feature_test", kind: "feature", scope: "backend", blocks: []string{plannedBlock, implBlock}}.task(t)
	without := strings.Replace(testsPayload, `"test_command":"go test","test_result":"pass",`, `"command_request_id":"c1",`, 1)
	planned, after := accepted(t, task, decide(t, "handoff", `{"to_queue":"feature_review","blocks":[`+without+`]}`), facts("TESTER"))
	block := after.Latest("tests")
	provenance, _ := block.Fields.Get("provenance").(tasks.Fields)
	if block.Text("test_command") != "go test ./..." || block.Text("test_result") != "pass" || provenance.Get("command_request_id") != "c1" ||
		block.Fields.Has("command_request_id") || !slices.Equal(planned.Commands, []string{"c1"}) {
		t.Errorf("got %+v, commands %v", block, planned.Commands)
	}
	for _, other := range []string{`"test_command":"make"`, `"test_result":"fail"`} {
		rejected(t, task, decide(t, "handoff", `{"to_queue":"feature_review","blocks":[`+strings.Replace(without, `"test_files"`, other+`,"test_files"`, 1)+`]}`),
			facts("TESTER"), refusal.CodeCommandEvidence)
	}
	failed := strings.Replace(without, `"c1"`, `"c2"`, 1)
	rejected(t, task, decide(t, "handoff", `{"to_queue":"feature_dev","blocks":[`+strings.Replace(failed, `"test_files"`, `"test_result":"pass","test_files"`, 1)+`]}`),
		facts("TESTER"), refusal.CodeCommandEvidence)
	_, after = accepted(t, task, decide(t, "handoff", `{"to_queue":"feature_dev","blocks":[`+failed+`]}`), facts("TESTER"))
	if got := after.Latest("tests").Text("test_result"); got != "fail" {
		t.Errorf("exit 3 became test_result %s", got)
	}
}

// E-106 E-108 E-111
func TestOnlyFinishedFreshCommandsOfThisRunCount(t *testing.T) {
	task := stage{queue: "feature_test", kind: "feature", scope: "backend", blocks: []string{plannedBlock, implBlock}}.task(t)
	cite := `{"to_queue":"feature_review","blocks":[` + strings.Replace(testsPayload, `"test_command":"go test","test_result":"pass",`, `"command_request_id":"c1",`, 1) + `]}`
	spoil := map[string]func(*tasks.CommandFact){
		"foreign run": func(c *tasks.CommandFact) { c.RunID = "other" },
		"timeout":     func(c *tasks.CommandFact) { c.Completed, c.Status, c.Reason = false, "failed", "timeout" },
		"uncertain":   func(c *tasks.CommandFact) { c.Completed, c.Status = false, "needs_recovery" },
		"stale":       func(c *tasks.CommandFact) { c.Stale = "the source has changed" },
	}
	for name, f := range spoil {
		t.Run(name, func(t *testing.T) {
			world := facts("TESTER")
			fact := world.Commands["c1"]
			f(&fact)
			world.Commands["c1"] = fact
			rejected(t, task, decide(t, "handoff", cite), world, refusal.CodeCommandEvidence)
			rejected(t, task, decide(t, "no_change", `{"command_evidence":["c1"]}`), world, refusal.CodeCommandEvidence)
		})
	}
	world := facts("TESTER")
	fact := world.Commands["c1"]
	fact.Purpose = "build"
	world.Commands["c1"] = fact
	rejected(t, task, decide(t, "handoff", cite), world, refusal.CodeCommandEvidence)
	rejected(t, task, decide(t, "no_change", `{"command_evidence":["unknown"]}`), facts("TESTER"), refusal.CodeCommandEvidence)
	world = facts("TESTER")
	world.ValidationCommands = []string{"unit"}
	rejected(t, task, decide(t, "handoff", `{"to_queue":"feature_review","blocks":[`+testsPayload+`]}`), world, refusal.CodeCommandEvidence)
	accepted(t, task, decide(t, "handoff", cite), world)
	rejected(t, sampleFor(t), decide(t, "handoff", `{"to_queue":"feature_test","blocks":[`+strings.Replace(implPayload, `"notes"`, `"command_request_id":"c1","notes"`, 1)+`]}`),
		facts("DEVELOPER"), refusal.CodeCommandEvidence)
}

// E-072 E-073 E-074 E-112
func TestTheStandIsWaivedOnlyByTheLatestPlansWord(t *testing.T) {
	handoff := decide(t, "handoff", `{"to_queue":"feature_review","blocks":[`+testsPayload+`]}`)
	in := func(blocks ...string) *tasks.Task {
		return stage{queue: "feature_test", kind: "feature", scope: "backend", blocks: blocks}.task(t)
	}
	accepted(t, in(standBlock, plannedBlock, implBlock), handoff, facts("TESTER"))
	for name, task := range map[string]*tasks.Task{"a later plan wants it": in(plannedBlock, standBlock, implBlock), "no plan": in(implBlock)} {
		reasons := rejected(t, task, handoff, facts("TESTER"), refusal.CodeStandEvidence, refusal.CodeGateFailed)
		if !strings.Contains(reasons[0].What, "stand") {
			t.Errorf("%s: the reason %q does not name the stand", name, reasons[0].What)
		}
	}
	// A declaration that is no boolean: the task is read, and the decision rejected.
	task := in(plannedBlock, implBlock)
	for i, field := range task.Blocks[0].Fields {
		if field.Key == "stand_required" {
			task.Blocks[0].Fields[i].Value = "false"
		}
	}
	rejected(t, task, handoff, facts("TESTER"), refusal.CodeStandEvidence, refusal.CodeGateFailed)

	with := strings.Replace(testsPayload, `"ready_for_review"`, `"functional_probes":["p"],"stand_evidence":{"reproduction_steps":"a","observed_without_fix":"b",`+
		`"observed_with_fix":"c","lease_id":"l1","result":"ok","commit":"abc1234","tester_observations":"d"},"ready_for_review"`, 1)
	full := decide(t, "handoff", `{"to_queue":"feature_review","blocks":[`+with+`]}`)
	world := facts("TESTER")
	if got := tasks.Needs(testSchema, in(standBlock, implBlock), full).StandLease; got != "l1" {
		t.Errorf("asks for the lease %q, want l1", got)
	}
	rejected(t, in(standBlock, implBlock), full, world, refusal.CodeGateFailed)
	world.Gate = tasks.GateFact{Receipt: tasks.StandFresh}
	accepted(t, in(standBlock, implBlock), full, world)
	for _, gone := range []string{`"functional_probes":["p"],`, `"lease_id":"l1",`, `"observed_with_fix":"c",`, `,"tester_observations":"d"`} {
		rejected(t, in(standBlock, implBlock), decide(t, "handoff", `{"to_queue":"feature_review","blocks":[`+strings.Replace(with, gone, "", 1)+`]}`),
			world, refusal.CodeStandEvidence)
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

const planPayload = `{"kind":"plan","base_commit":"abc1234","assignee_role":"DEVELOPER","stand_required":false,"plan_kind":"full","mode":"A","ready_for_implementation":true}`

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

// E-113: no command changes a queue; only a decision does, and it needs its blocks.
func TestACommandsSuccessAloneVerifiesNothing(t *testing.T) {
	task := stage{queue: "feature_review", kind: "feature", scope: "backend", blocks: []string{plannedBlock, implBlock, testsBlock}}.task(t)
	rejected(t, task, decide(t, "handoff", `{"to_queue":"verified","blocks":[],"command_evidence":["c1"]}`), facts("ARCHITECT-REVIEWER"), refusal.CodeNotReady)
	planned, _ := accepted(t, task, decide(t, "no_change", `{"command_evidence":["c1"]}`), facts("ARCHITECT-REVIEWER"))
	if planned.Moves {
		t.Error("a command moved the task")
	}
}

func TestNeedsAsksForWhatTheDecisionNames(t *testing.T) {
	blocked := stage{queue: "feature_blocked", kind: "feature", scope: "backend", blocks: []string{plannedBlock, "blocked; reason: x; dependencies: [verified/0002-x.yaml]; resume_to: feature_dev"}}.task(t)
	got := tasks.Needs(testSchema, blocked, decide(t, "handoff", `{"to_queue":"feature_dev","blocks":[]}`))
	if !slices.Equal(got.Dependencies, []string{"verified/0002-x.yaml"}) {
		t.Errorf("got %+v", got)
	}
	got = tasks.Needs(testSchema, sampleFor(t), decide(t, "handoff", `{"to_queue":"feature_test","artifacts":["a","a","b"],"command_evidence":["c1"],`+
		`"blocks":[{"kind":"implementation","files":["x","/y","x"]},{"kind":"tests","command_request_id":"c2"},"odd"]}`))
	if !slices.Equal(got.Files, []string{"x"}) || !slices.Equal(got.Artifacts, []string{"a", "b"}) || !slices.Equal(got.Commands, []string{"c1", "c2"}) || !got.Fingerprint {
		t.Errorf("got %+v", got)
	}
}

func TestTheContextListsFieldsAndRoutes(t *testing.T) {
	fields := tasks.DecisionFields()
	if len(fields) != 4 || !slices.Equal(fields["handoff"], []string{"artifacts", "blocks", "command_evidence", "reason", "to_queue"}) {
		t.Errorf("got %v", fields)
	}
	fields["handoff"][0] = "spoilt"
	if tasks.DecisionFields()["handoff"][0] != "artifacts" {
		t.Error("the list is shared with its callers")
	}
	generated := tasks.GeneratedFields()
	if !slices.Equal(generated["implementation"], []string{"closed_by", "closed_at", "worktree_fingerprint"}) || !slices.Equal(generated["blocked"], []string{"blocked_by", "blocked_at"}) {
		t.Errorf("got %v", generated)
	}
	moves := tasks.AllowedTransitions(testSchema, "feature_dev", "DEVELOPER")
	if len(moves) != 2 || moves[0].To != "feature_test" || moves[1].To != "feature_blocked" || len(moves[1].Requires) == 0 {
		t.Errorf("got %v, want the tester's queue and the blocked one", moves)
	}
	if got := tasks.AllowedTransitions(testSchema, "verified", "DEVELOPER"); got == nil || len(got) != 0 {
		t.Errorf("got %v, want an empty list", got)
	}
}
