package tasks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// The queues of the schema with those who may move a task out as its current owner.
var owners = map[contract.Queue][]contract.Role{
	"feature_inbox":       {"ARCHITECT-PLANNER", "EXPLORER"},
	"feature_plan":        {"ARCHITECT-PLANNER"},
	"feature_dev":         {"DEVELOPER"},
	"feature_ui_dev":      {"UI-DEVELOPER"},
	"feature_docs":        {"TECHNICAL-WRITER"},
	"feature_test":        {"TESTER", "DEVELOPER", "UI-DEVELOPER"},
	"feature_docs_review": {"READER", "TECHNICAL-WRITER"},
	"feature_live":        {"LIVE-DEVELOPER", "ARCHITECT-PLANNER"},
	"feature_review":      {"ARCHITECT-REVIEWER", "TESTER", "READER", "LIVE-DEVELOPER"},
	"user_feedback":       {"ARCHITECT-PLANNER", "USER"},
	"review_sessions":     {"EXPLORER", "ARCHITECT-PLANNER"},
}

// The rows of the transition table without wildcards: from, to, who.
var rows = [][3]string{
	{"user_feedback", "feature_inbox", "ARCHITECT-PLANNER"}, {"user_feedback", "archive", "ARCHITECT-PLANNER"},
	{"feature_inbox", "archive", "ARCHITECT-PLANNER"}, {"feature_plan", "archive", "ARCHITECT-PLANNER"},
	{"review_sessions", "archive", "ARCHITECT-PLANNER"}, {"review_sessions", "archive", "EXPLORER"},
	{"feature_blocked", "archive", "ARCHITECT-REVIEWER"}, {"feature_inbox", "feature_plan", "ARCHITECT-PLANNER"},
	{"feature_plan", "feature_dev", "ARCHITECT-PLANNER"}, {"feature_plan", "feature_ui_dev", "ARCHITECT-PLANNER"},
	{"feature_plan", "feature_docs", "ARCHITECT-PLANNER"}, {"feature_plan", "feature_docs_review", "ARCHITECT-PLANNER"},
	{"feature_plan", "feature_live", "ARCHITECT-PLANNER"}, {"feature_plan", "feature_test", "ARCHITECT-PLANNER"},
	{"feature_dev", "feature_test", "DEVELOPER"}, {"feature_ui_dev", "feature_test", "UI-DEVELOPER"},
	{"feature_docs", "feature_docs_review", "TECHNICAL-WRITER"}, {"feature_live", "feature_review", "LIVE-DEVELOPER"},
	{"feature_test", "feature_review", "TESTER"}, {"feature_test", "feature_dev", "TESTER"}, {"feature_test", "feature_ui_dev", "TESTER"},
	{"feature_docs_review", "feature_review", "READER"}, {"feature_docs_review", "feature_docs", "READER"},
	{"feature_review", "verified", "ARCHITECT-REVIEWER"}, {"feature_review", "feature_dev", "ARCHITECT-REVIEWER"},
	{"feature_review", "feature_ui_dev", "ARCHITECT-REVIEWER"}, {"feature_review", "feature_docs", "ARCHITECT-REVIEWER"},
	{"verified", "archive", "ARCHITECT-REVIEWER"}, {"verified", "feature_review", "ARCHITECT-REVIEWER"},
}

// allowedRoles says who may move a task from one queue to another, whatever the task holds.
func allowedRoles(from, to contract.Queue) []contract.Role {
	var roles []contract.Role
	for _, row := range rows {
		if contract.Queue(row[0]) == from && contract.Queue(row[1]) == to {
			roles = append(roles, contract.Role(row[2]))
		}
	}
	if to == "feature_blocked" && owners[from] != nil {
		roles = append(append(roles, owners[from]...), "ARCHITECT-PLANNER")
	}
	if from == "feature_blocked" && owners[to] != nil {
		roles = append(roles, "ARCHITECT-REVIEWER")
	}
	return roles
}

// Every pair of queues and every role: the table allows exactly what the reference's allows,
// and terminal and parked queues are no active ones.
func TestEveryMoveAndRoleAgainstTheTable(t *testing.T) {
	s := contract.EmbeddedSchema()
	moves := 0
	for _, from := range s.TaskQueues() {
		for _, to := range s.TaskQueues() {
			roles := allowedRoles(from, to)
			for _, role := range append(s.Roles, contract.RoleSpec{Name: ""}, contract.RoleSpec{Name: "SYSTEM"}) {
				m := &move{s: s, task: &Task{Ref: Ref{Queue: from}}, from: from, to: to, role: role.Name}
				got, faults := m.rows()
				want := from != to && slices.Contains(roles, role.Name)
				if (len(got) > 0) != want || (len(faults) == 0) != want {
					t.Errorf("%s → %s by %q: got %d rows and %v, want allowed %v", from, to, role.Name, len(got), faults, want)
				}
				switch {
				case want:
					moves++
				case from == to && faults[0].Code != refusal.CodeTaskThere,
					from != to && len(roles) > 0 && faults[0].Code != refusal.CodeTransitionRole,
					from != to && len(roles) == 0 && faults[0].Code != refusal.CodeNoTransition:
					t.Errorf("%s → %s by %q: got code %s", from, to, role.Name, faults[0].Code)
				}
				listed := slices.ContainsFunc(AllowedTransitions(s, from, role.Name), func(a AllowedMove) bool {
					return a.To == to || a.To == contract.AnyResumeToQueue && owners[to] != nil
				})
				if listed != want && from != to {
					t.Errorf("%s → %s by %q: the context lists it: %v, want %v", from, to, role.Name, listed, want)
				}
			}
		}
	}
	if moves < 50 {
		t.Errorf("only %d moves are allowed at all", moves)
	}
}

func TestEveryRequiredNameHasACheck(t *testing.T) {
	s := contract.EmbeddedSchema()
	used := map[string]bool{}
	for _, row := range s.Transitions {
		for _, name := range row.Requires {
			used[name] = true
			if checks[name] == nil {
				t.Errorf("%s → %s requires %q, which has no check", row.From, row.To, name)
			}
		}
	}
	for name := range checks {
		if !used[name] {
			t.Errorf("the check %q belongs to no row", name)
		}
	}
	m := &move{s: s, task: &Task{}}
	if faults := m.required([]string{"nobody_knows_this"}); len(faults) != 1 || faults[0].Code != refusal.CodeCheckFailed {
		t.Errorf("an unknown check gives %v, want a refusal", faults)
	}
}

// b makes a block out of "kind key=value …"; values are typed like arguments.
func b(text string) Block {
	words := strings.Fields(text)
	block := Block{Kind: contract.BlockKind(words[0]), By: "DEVELOPER", At: "2026-01-05T09:00:00Z"}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		if key == "by" {
			block.By = contract.Role(value)
			continue
		}
		v, why := typedField(key, value)
		if why != "" {
			panic(why)
		}
		block.Fields = append(block.Fields, Field{key, v})
	}
	return block
}

func TestEveryNamedCheck(t *testing.T) {
	ready := "blocked reason=x dependencies=verified/0001-x.yaml resume_to=feature_dev"
	satisfied := map[string]DependencyFact{"verified/0001-x.yaml": {Status: DependencySatisfied}}
	cases := []struct {
		check string
		holds bool
		to    contract.Queue
		scope string
		facts Facts
		with  []string
	}{
		{check: "triage_block", holds: true, with: []string{"triage notes=x"}},
		{check: "triage_block", holds: true, with: []string{"triage body=x"}},
		{check: "triage_block", holds: false, with: []string{"triage notes="}},
		{check: "triage_block", holds: false, with: []string{"triage notes=x", "triage"}},
		{check: "triage_block", holds: false},
		{check: "plan_block", holds: true, with: []string{"plan"}},
		{check: "plan_block", holds: false, with: []string{"triage"}},
		{check: "implementation_block", holds: true, with: []string{"implementation"}},
		{check: "implementation_block", holds: false},
		{check: "tests_block", holds: true, with: []string{"tests"}},
		{check: "tests_block", holds: false},
		{check: "scope_backend", holds: true, scope: "backend"},
		{check: "scope_backend", holds: false, scope: "ui"},
		{check: "scope_ui", holds: true, scope: "ui"},
		{check: "scope_ui", holds: false, scope: ""},
		{check: "scope_docs", holds: true, scope: "docs"},
		{check: "scope_docs", holds: false, scope: "research"},
		{check: "plan.audit_only", holds: true, with: []string{"plan audit_only=true"}},
		{check: "plan.audit_only", holds: false, with: []string{"plan audit_only=false"}},
		{check: "plan.interactive", holds: true, with: []string{"plan interactive=true"}},
		{check: "plan.interactive", holds: false, with: []string{"plan interactive=true", "plan"}},
		{check: "plan.verify_only", holds: true, with: []string{"plan verify_only=true"}},
		{check: "plan.verify_only", holds: false, with: nil},
		{check: "tests_block_fail_or_partial", holds: true, with: []string{"tests test_result=fail"}},
		{check: "tests_block_fail_or_partial", holds: true, with: []string{"tests test_result=partial"}},
		{check: "tests_block_fail_or_partial", holds: false, with: []string{"tests test_result=pass"}},
		{check: "tests_block_fail_or_partial", holds: false, with: []string{"tests test_result=fail", "tests test_result=pass"}},
		{check: "tests_block_fail_or_partial", holds: false, with: []string{"tests test_result=fail", "implementation"}},
		{check: "reader_block_pass", holds: true, with: []string{"reader_review outcome=pass"}},
		{check: "reader_block_pass", holds: true, with: []string{"reader_review outcome=approved"}},
		{check: "reader_block_pass", holds: false, with: []string{"reader_review outcome=fail"}},
		{check: "reader_block_fail_or_partial", holds: true, with: []string{"reader_review outcome=partial"}},
		{check: "reader_block_fail_or_partial", holds: true, with: []string{"reader_review outcome=changes_requested"}},
		{check: "reader_block_fail_or_partial", holds: false, with: []string{"reader_review outcome=pass"}},
		{check: "review_block_approved", holds: true, with: []string{"review outcome=approved"}},
		{check: "review_block_approved", holds: true, with: []string{"review outcome=approved_sprint"}},
		{check: "review_block_approved", holds: false, with: []string{"review outcome=changes_requested"}},
		{check: "review_block_approved", holds: false, with: []string{"review outcome=approved", "rollback reason=x"}},
		{check: "review_block_changes_requested", holds: true, with: []string{"review outcome=changes_requested"}},
		{check: "review_block_changes_requested", holds: false, with: []string{"review outcome=approved"}},
		{check: "review_block_changes_requested", holds: false},
		{check: "blocked_block_with_dependencies_and_resume_to", holds: true, with: []string{ready}},
		{check: "blocked_block_with_dependencies_and_resume_to", holds: false},
		{check: "blocked_block_with_dependencies_and_resume_to", holds: false, with: []string{ready, "implementation"}},
		{check: "blocked_block_with_dependencies_and_resume_to", holds: false, with: []string{strings.Replace(ready, "blocked", "implementation", 1)}},
		{check: "blocked_block_with_dependencies_and_resume_to", holds: false, with: []string{"blocked reason=x dependencies= resume_to=feature_dev"}},
		{check: "blocked_block_with_dependencies_and_resume_to", holds: false, with: []string{"blocked reason=x dependencies=verified/0001-x.yaml resume_to=verified"}},
		{check: "blocked_block_withdrawn_reason_and_resume_to", holds: true, with: []string{"blocked reason=WithDrawn dependencies=archive/0-x.yaml resume_to=feature_dev"}},
		{check: "blocked_block_withdrawn_reason_and_resume_to", holds: false, with: []string{ready}},
		{check: "feature_blocked_withdrawn_reason", holds: true, with: []string{"blocked reason=x-abandoned"}},
		{check: "feature_blocked_withdrawn_reason", holds: true, with: []string{"blocked reason=obsoleted"}},
		{check: "feature_blocked_withdrawn_reason", holds: false, with: []string{"blocked reason=withdrawn", "blocked reason=later"}},
		{check: "feature_blocked_withdrawn_reason", holds: false},
		{check: "all_dependencies_exist_per_wake_check", holds: true, to: "feature_dev", facts: Facts{Dependencies: satisfied}, with: []string{ready}},
		{check: "all_dependencies_exist_per_wake_check", holds: false, to: "feature_dev", with: []string{ready}},
		{check: "all_dependencies_exist_per_wake_check", holds: false, to: "feature_test", facts: Facts{Dependencies: satisfied}, with: []string{ready}},
		{check: "all_dependencies_exist_per_wake_check", holds: false, to: "feature_dev", facts: Facts{Dependencies: satisfied},
			with: []string{strings.Replace(ready, "reason=x", "reason=withdrawn", 1)}},
		{check: "all_dependencies_exist_per_wake_check", holds: false, to: "feature_dev"},
		{check: "gate_check_pass_if_stand_required", holds: true, with: []string{"plan stand_required=false"}},
		{check: "gate_check_pass_if_stand_required", holds: false, with: []string{"plan stand_required=true"}},
		{check: "gate_check_pass_if_stand_required", holds: false, with: []string{"plan"}},
		{check: "gate_check_pass_if_stand_required", holds: false},
		{check: "gate_check_pass_if_stand_required", holds: false, with: []string{"plan stand_required=false", "plan stand_required=yes"}},
		{check: "gate_check_pass_if_stand_required", holds: true, to: "verified", with: []string{"plan stand_required=true", "review outcome=approved_sprint"}},
		{check: "gate_check_pass_if_stand_required", holds: false, to: "feature_review", with: []string{"plan stand_required=true", "review outcome=approved_sprint"}},
		{check: "review_session_terminal_block", holds: true, with: []string{"session_iteration summary=x"}},
		{check: "review_session_terminal_block", holds: true, with: []string{"blocked reason=withdrawn"}},
		{check: "review_session_terminal_block", holds: false, with: []string{"blocked reason=x"}},
		{check: "rollback_block_with_reason", holds: true, with: []string{"rollback reason=x"}},
		{check: "rollback_block_with_reason", holds: false, with: []string{"rollback reason="}},
		{check: "rollback_block_with_reason", holds: false, with: []string{"rollback reason=x", "review outcome=approved"}},
	}
	seen := map[string][2]bool{}
	for i, c := range cases {
		t.Run(fmt.Sprintf("%d %s %v", i, c.check, c.holds), func(t *testing.T) {
			task := &Task{Scope: c.scope}
			for _, text := range c.with {
				task.Blocks = append(task.Blocks, b(text))
			}
			m := &move{s: contract.EmbeddedSchema(), task: task, to: c.to, facts: c.facts}
			faults := checks[c.check](m)
			if (len(faults) == 0) != c.holds {
				t.Errorf("got %v, want it to hold: %v", faults, c.holds)
			}
			for _, f := range faults {
				if f.What == "" || f.Remedy == "" || f.Code == "" {
					t.Errorf("a reason lacks its text, remedy or code: %+v", f)
				}
			}
		})
		both := seen[c.check]
		if c.holds {
			both[0] = true
		} else {
			both[1] = true
		}
		seen[c.check] = both
	}
	for name := range checks {
		if seen[name] != [2]bool{true, true} {
			t.Errorf("the check %s is not tried both ways", name)
		}
	}
}

func TestReadinessOfEveryDestination(t *testing.T) {
	cases := []struct {
		from, to contract.Queue
		ready    bool
		with     string
	}{
		{"feature_inbox", "feature_plan", true, "triage"},
		{"feature_inbox", "feature_plan", false, ""},
		{"feature_blocked", "feature_plan", true, ""},
		{"feature_plan", "feature_dev", true, "plan ready_for_implementation=true"},
		{"feature_plan", "feature_dev", false, "plan ready_for_implementation=false"},
		{"feature_plan", "feature_dev", false, "plan ready_for_implementation=true; plan"},
		{"feature_blocked", "feature_ui_dev", false, ""},
		{"feature_test", "feature_dev", true, "plan ready_for_implementation=true; implementation; tests"},
		{"feature_review", "feature_docs", true, "plan ready_for_implementation=true"},
		{"feature_review", "feature_docs", false, "plan ready_for_implementation=true audit_only=true"},
		{"feature_plan", "feature_test", true, "plan ready_for_implementation=true verify_only=true"},
		{"feature_plan", "feature_test", false, "plan ready_for_implementation=true"},
		{"feature_plan", "feature_test", false, "plan verify_only=true; implementation ready_for_test=true"},
		{"feature_dev", "feature_test", true, "implementation ready_for_test=true"},
		{"feature_dev", "feature_test", false, "implementation ready_for_test=false"},
		{"feature_dev", "feature_test", false, "plan verify_only=true ready_for_implementation=true"},
		{"feature_dev", "feature_test", true, "implementation ready_for_test=true; blocked"},
		{"feature_dev", "feature_test", false, "implementation ready_for_test=true; tests test_result=fail"},
		{"feature_blocked", "feature_test", true, "implementation ready_for_test=true; tests; blocked"},
		{"feature_blocked", "feature_test", true, "plan verify_only=true ready_for_implementation=true; blocked"},
		{"feature_blocked", "feature_test", false, "plan; blocked"},
		{"feature_docs", "feature_docs_review", true, "implementation ready_for_test=true"},
		{"feature_docs", "feature_docs_review", false, ""},
		{"feature_plan", "feature_docs_review", true, "plan audit_only=true ready_for_implementation=true"},
		{"feature_plan", "feature_docs_review", false, "plan audit_only=true"},
		{"feature_blocked", "feature_docs_review", true, ""},
		{"feature_test", "feature_review", true, "tests ready_for_review=true"},
		{"feature_test", "feature_review", false, "tests ready_for_review=false"},
		{"feature_test", "feature_review", false, "tests ready_for_review=true; implementation"},
		{"feature_docs_review", "feature_review", true, "reader_review ready_for_architect=true"},
		{"feature_docs_review", "feature_review", false, "reader_review"},
		{"feature_live", "feature_review", true, "implementation by=LIVE-DEVELOPER ready_for_test=true"},
		{"feature_live", "feature_review", false, "implementation by=DEVELOPER ready_for_test=true"},
		{"feature_live", "feature_review", false, "implementation by=LIVE-DEVELOPER"},
		{"feature_blocked", "feature_review", true, ""},
		{"verified", "feature_review", true, ""},
		{"feature_dev", "feature_review", false, "implementation ready_for_test=true"},
		{"feature_plan", "feature_live", true, ""},
		{"feature_review", "verified", true, ""},
	}
	for _, c := range cases {
		task := &Task{}
		for _, text := range strings.Split(c.with, ";") {
			if text = strings.TrimSpace(text); text != "" {
				task.Blocks = append(task.Blocks, b(text))
			}
		}
		m := &move{s: contract.EmbeddedSchema(), task: task, from: c.from, to: c.to}
		if faults := m.readiness(); (len(faults) == 0) != c.ready {
			t.Errorf("%s → %s with %q: got %v, want ready %v", c.from, c.to, c.with, faults, c.ready)
		}
	}
}

// E-072 E-074
func TestGateVerdicts(t *testing.T) {
	evidence := Fields{{"lease_id", "l1"}, {"commit", "abc1234"}, {"result", "ok"}}
	tests := func(result string, e any) Block {
		return Block{Kind: "tests", Fields: Fields{{"test_result", result}, {"stand_evidence", e}}}
	}
	required, not := b("plan stand_required=true base_commit=abc1234def"), b("plan stand_required=false")
	done := b("implementation base_commit=abc1234 worktree_fingerprint=f1")
	cases := []struct {
		name   string
		blocks []Block
		gate   GateFact
		want   GateVerdict
	}{
		{"no plan", nil, GateFact{}, GateMissing},
		{"absent declaration", []Block{b("plan")}, GateFact{}, GateMissing},
		{"declaration as text", []Block{b("plan stand_required=no")}, GateFact{}, GateMissing},
		{"not required", []Block{not}, GateFact{}, GateNA},
		{"an older plan does not count", []Block{not, required}, GateFact{}, GateMissing},
		{"the latest plan counts", []Block{required, not}, GateFact{}, GateNA},
		{"no tests", []Block{required}, GateFact{}, GateMissing},
		{"no lease", []Block{required, tests("pass", Fields{{"commit", "abc"}})}, GateFact{}, GateMissing},
		{"evidence is text", []Block{required, tests("pass", "seen")}, GateFact{}, GateMissing},
		{"failed", []Block{required, tests("fail", evidence)}, GateFact{Receipt: StandFresh}, GateFail},
		{"other commit", []Block{required, b("implementation base_commit=fff"), tests("pass", evidence)}, GateFact{Receipt: StandFresh}, GateFail},
		{"plan's commit", []Block{required, tests("pass", evidence)}, GateFact{Receipt: StandFresh}, GatePass},
		{"pass", []Block{required, done, tests("pass", evidence)}, GateFact{Receipt: StandFresh}, GatePass},
		{"same changes", []Block{required, done, tests("pass", evidence.With("worktree_fingerprint", "f1"))}, GateFact{Receipt: StandFresh}, GatePass},
		{"other changes", []Block{required, done, tests("pass", evidence.With("worktree_fingerprint", "f2"))}, GateFact{Receipt: StandFresh}, GateFail},
		{"result of the evidence", []Block{required, tests("", evidence)}, GateFact{Receipt: StandFresh}, GatePass},
		{"nobody looked", []Block{required, done, tests("pass", evidence)}, GateFact{}, GateFail},
		{"no deployment", []Block{required, done, tests("pass", evidence)}, GateFact{Receipt: StandMissing}, GateFail},
		{"unresolved", []Block{required, done, tests("pass", evidence)}, GateFact{Receipt: StandUnresolved}, GateFail},
		{"stale", []Block{required, done, tests("pass", evidence)}, GateFact{Receipt: StandStale, Reason: "source"}, GateFail},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, why := Gate(&Task{Blocks: c.blocks}, c.gate)
			if got != c.want {
				t.Errorf("got %s (%s), want %s", got, why, c.want)
			}
			if (why == "") != (got == GatePass || got == GateNA) {
				t.Errorf("%s gives the reason %q", got, why)
			}
			if c.gate.Reason != "" && !strings.Contains(why, c.gate.Reason) {
				t.Errorf("the reason %q lacks %q", why, c.gate.Reason)
			}
		})
	}
}

func TestTheCarveOutNeedsAllItsConditions(t *testing.T) {
	prose := Fields{{"reproduction_steps", "x"}, {"observed_without_fix", "x"}, {"observed_with_fix", "x"}}
	full := func() *Task {
		return &Task{Blocks: []Block{b("plan stand_required=true"),
			{Kind: "tests", Fields: Fields{{"test_result", "partial"}, {"stand_evidence", prose}}},
			b("review self_referential_carveout=true carveout_citation=section-4")}}
	}
	if !carvedOut(full()) {
		t.Fatal("all conditions hold, and there is no carve-out")
	}
	spoil := map[string]func(*Task){
		"stand not required": func(t *Task) { t.Blocks[0] = b("plan stand_required=false") },
		"tests passed":       func(t *Task) { t.Blocks[1].Fields = t.Blocks[1].Fields.With("test_result", "pass") },
		"prose missing": func(t *Task) {
			t.Blocks[1].Fields = t.Blocks[1].Fields.With("stand_evidence", prose.Without("observed_with_fix"))
		},
		"not claimed": func(t *Task) { t.Blocks[2] = b("review carveout_citation=section-4") },
		"no citation": func(t *Task) { t.Blocks[2] = b("review self_referential_carveout=true carveout_citation=") },
	}
	for name, f := range spoil {
		task := full()
		f(task)
		if carvedOut(task) {
			t.Errorf("%s: there is a carve-out all the same", name)
		}
	}
}

func TestEveryBlockFieldRule(t *testing.T) {
	good := map[contract.BlockKind]string{
		"triage":            "triage",
		"plan":              "plan base_commit=1234567 assignee_role=DEVELOPER stand_required=false plan_kind=full mode=A ready_for_implementation=true",
		"implementation":    "implementation base_commit=abc files=a,b ready_for_test=true",
		"tests":             "tests base_commit=abc test_files=a test_command=x test_result=pass gate_check_result=n/a gate_check_at=2026-01-05T09:00:00Z gate_check_commit=abc ready_for_review=true",
		"reader_review":     "reader_review outcome=pass stand_checked=false ready_for_architect=true",
		"review":            "review outcome=approved commit=abc",
		"blocked":           "blocked reason=x dependencies=verified/0001-x.yaml,archive/2-y.md resume_to=feature_dev",
		"rollback":          "rollback reason=x",
		"session_iteration": "session_iteration summary=x",
	}
	s := contract.EmbeddedSchema()
	judge := func(block Block) []string {
		var names []string
		for _, f := range fieldFaults(s, &block, func(p string) string { return p }) {
			if f.Code != refusal.CodeBlockField || f.Remedy == "" {
				t.Errorf("%s: got %+v", block.Kind, f)
			}
			names = append(names, f.Place)
		}
		return names
	}
	for kind, text := range good {
		if got := judge(b(text)); len(got) > 0 {
			t.Errorf("a good %s block: got faults at %v", kind, got)
		}
		if kind != "triage" && len(fieldRules[kind]) == 0 {
			t.Errorf("%s has no rules", kind)
		}
		for _, rule := range fieldRules[kind] {
			block := b(text)
			block.Fields = block.Fields.Without(rule.name)
			if got := judge(block); slices.Contains(got, rule.name) == (rule.form == formOption) {
				t.Errorf("%s without %s: got faults at %v", kind, rule.name, got)
			}
			for _, wrong := range wrongFor(rule.form) {
				if got := judge(Block{Kind: kind, Fields: b(text).Fields.With(rule.name, wrong)}); !slices.Contains(got, rule.name) {
					t.Errorf("%s.%s = %v: got faults at %v", kind, rule.name, wrong, got)
				}
			}
		}
	}
	for text, field := range map[string]string{
		good["plan"] + " stand_reason=": "", strings.Replace(good["plan"], "stand_required=false", "stand_required=true", 1): "stand_reason",
		"review outcome=approved": "commit", "review outcome=approved_sprint": "", "review outcome=changes_requested": "",
		strings.Replace(good["blocked"], "verified/0001-x.yaml", "nowhere/0001-x.yaml", 1):                   "dependencies",
		strings.Replace(good["blocked"], "verified/0001-x.yaml", "0001-x", 1):                                "dependencies",
		strings.Replace(good["blocked"], "verified/0001-x.yaml", ".stand/0001-x.yaml", 1):                    "dependencies",
		strings.Replace(good["blocked"], "feature_dev", "nowhere", 1):                                        "resume_to",
		strings.Replace(good["implementation"], "abc", "unknown-git-worktree", 1):                            "base_commit",
		strings.Replace(good["tests"], "gate_check_commit=abc", "gate_check_commit=unknown-git-worktree", 1): "gate_check_commit",
		"review outcome=approved commit=unknown-git-worktree":                                                "commit",
		good["tests"] + " stand_evidence={commit:unknown-git-worktree}":                                      "",
		good["tests"] + " x={commit:_unknown-git-worktree}":                                                  "",
	} {
		got := judge(b(text))
		if field == "" && len(got) > 0 || field != "" && !slices.Contains(got, field) {
			t.Errorf("%s: got faults at %v, want %q", text, got, field)
		}
	}
	broken := b(good["tests"])
	broken.Fields = broken.Fields.With("stand_evidence", Fields{{"commit", brokenCommit}})
	if got := judge(broken); !slices.Contains(got, "stand_evidence.commit") {
		t.Errorf("a broken commit in the stand evidence: got faults at %v", got)
	}
}

// wrongFor are values that no field of a form may have.
func wrongFor(form fieldForm) []any {
	switch form {
	case formFlag, formOption:
		return []any{"true", nil, int64(1)}
	case formMoment:
		return []any{"now", "2026-01-05", "2026-01-05 09:00:00", nil, int64(2026)}
	case formTexts:
		return []any{"a", nil, []any{int64(1)}, Fields{}}
	case formSome:
		return []any{"a", nil, []any{}, []any{"a", nil}}
	case formWord:
		return []any{"nobody", nil, "", true}
	}
	return []any{"", "  ", nil, int64(5), []any{"a"}}
}
