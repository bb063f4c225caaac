package tasks

import (
	"fmt"
	"slices"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// GateVerdict is the answer of the stand gate, as `gate-check` prints it.
type GateVerdict string

// Answers of the gate.
const (
	GatePass    GateVerdict = "pass"
	GateNA      GateVerdict = "n/a"
	GateFail    GateVerdict = "fail"
	GateMissing GateVerdict = "missing"
)

// Gate judges the stand evidence of a task's latest tests block. A plan that does not say
// clearly that no stand is required waives nothing: the answer is then missing.
// Spec: "Configured commands and evidence" (a missing declaration waives no check).
func Gate(t *Task, f GateFact) (verdict GateVerdict, why string) {
	plan := t.Latest(blockPlan)
	if plan == nil {
		return GateMissing, "no plan block says whether the stand is required"
	}
	required, ok := plan.Fields.Get("stand_required").(bool)
	switch {
	case !ok:
		return GateMissing, fmt.Sprintf("plan.stand_required is %s, neither true nor false",
			shown(plan.Fields.Get("stand_required")))
	case !required:
		return GateNA, ""
	}
	tests := t.Latest(blockTests)
	evidence, _ := tests.value("stand_evidence").(Fields) // no mapping, no lease
	if lease, _ := evidence.Get("lease_id").(string); strings.TrimSpace(lease) == "" {
		return GateMissing, "the latest tests block names no stand lease (stand_evidence.lease_id)"
	}
	if result := standResult(tests, evidence); !slices.Contains([]string{"pass", "ok"}, result) {
		return GateFail, fmt.Sprintf("the tests on the stand ended with %q", result)
	}
	return standIdentity(t, plan, evidence, f)
}

// standResult is what the tests said: the block's result, else that of its evidence.
func standResult(tests *Block, evidence Fields) string {
	if result := tests.Text("test_result"); result != "" {
		return result
	}
	result, _ := evidence.Get("result").(string)
	return result
}

// standIdentity judges whether the stand ran what the task is about.
func standIdentity(t *Task, plan *Block, evidence Fields, f GateFact) (GateVerdict, string) {
	implementation := t.Latest(blockImplementation)
	commit := implementation.Text("base_commit")
	if commit == "" {
		commit = plan.Text("base_commit")
	}
	tested, _ := evidence.Get("commit").(string)
	if !samePrefix(tested, commit) {
		return GateFail, fmt.Sprintf("the stand ran commit %q, and the task is about %q", tested, commit)
	}
	print, _ := evidence.Get("worktree_fingerprint").(string)
	if want := implementation.Text("worktree_fingerprint"); want != "" && print != "" && want != print {
		return GateFail, fmt.Sprintf("the stand ran the changes %s, and the task holds %s", print, want)
	}
	if f.Receipt == StandFresh {
		return GatePass, ""
	}
	state := string(f.Receipt)
	if f.Receipt == StandUnknown {
		state = "not known"
	}
	why := "the deployment of the lease is " + state
	if f.Reason != "" {
		why += ": " + f.Reason
	}
	return GateFail, why
}

// samePrefix reports whether one commit name is the other, shortened.
func samePrefix(a, b string) bool {
	return a != "" && b != "" && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

// gate is the named check gate_check_pass_if_stand_required.
func (m *move) gate() []refusal.Reason {
	if m.to == queueVerified && m.task.Latest(blockReview).Text("outcome") == "approved_sprint" || carvedOut(m.task) {
		return nil
	}
	verdict, why := Gate(m.task, m.facts.Gate)
	if verdict == GatePass || verdict == GateNA {
		return nil
	}
	return []refusal.Reason{m.fault(refusal.CodeGateFailed, "test on the stand, or have the plan say stand_required: false",
		"the stand gate is %s: %s", verdict, why)}
}

// carvedOut reports the one exception from the stand gate: a change that the stand cannot show
// because it concerns the stand itself. All conditions are needed.
func carvedOut(t *Task) bool {
	tests, review := t.Latest(blockTests), t.Latest(blockReview)
	if !t.Latest(blockPlan).Is("stand_required") || !slices.Contains([]string{"partial", "fail"}, tests.Text("test_result")) {
		return false
	}
	evidence, _ := tests.value("stand_evidence").(Fields)
	for _, key := range []string{"reproduction_steps", "observed_without_fix", "observed_with_fix"} {
		if s, _ := evidence.Get(key).(string); strings.TrimSpace(s) == "" {
			return false
		}
	}
	return review.Is("self_referential_carveout") && strings.TrimSpace(review.Text("carveout_citation")) != ""
}

// standFaults judges the stand evidence of a new tests block against the latest plan. The
// explicit word that no stand is required waives it; silence does not.
// Spec: "Configured commands and evidence".
func standFaults(s *contract.Schema, t *Task, b *Block, where func(string) string) []refusal.Reason {
	j := &judge{code: refusal.CodeStandEvidence, where: where}
	required, declared := t.Latest(blockPlan).value("stand_required").(bool)
	if declared && !required {
		return nil
	}
	evidence, _ := b.Fields.Get("stand_evidence").(Fields)
	rules := s.TestsValidation
	if required {
		for _, key := range rules.RequiredSubfields {
			if !something(evidence.Get(key)) {
				j.fault("stand_evidence", "test on the stand and say it there",
					"the plan requires the stand, and tests.stand_evidence.%s says nothing", key)
			}
		}
	}
	if slices.Contains(rules.ExemptScopes, t.Scope) {
		return j.faults
	}
	why := "the plan requires the stand"
	if !declared {
		why = "no plan says that the stand is not required"
	}
	for _, path := range rules.RequiredForScopes[t.Scope] {
		if !something(deep(b.Fields, path)) {
			j.fault(path, "give it, or have the plan say stand_required: false", "%s, and tests.%s of scope %s says nothing",
				why, path, t.Scope)
		}
	}
	return j.faults
}

// deep returns the value at a dotted path, nil where there is none.
func deep(f Fields, path string) any {
	head, tail, nested := strings.Cut(path, ".")
	if !nested {
		return f.Get(head)
	}
	inner, _ := f.Get(head).(Fields) // no mapping, no value
	return deep(inner, tail)
}

// something reports whether a value says anything.
func something(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case string:
		return strings.TrimSpace(v) != ""
	case []any:
		return len(v) > 0
	case Fields:
		return len(v) > 0
	}
	return true
}
