package tasks_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"greatminds/internal/refusal"
	"greatminds/tasks"
)

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
