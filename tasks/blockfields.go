package tasks

import (
	"regexp"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// Kinds of blocks that checks know by name.
const (
	blockTriage         contract.BlockKind = "triage"
	blockPlan           contract.BlockKind = "plan"
	blockImplementation contract.BlockKind = "implementation"
	blockTests          contract.BlockKind = "tests"
	blockReader         contract.BlockKind = "reader_review"
	blockReview         contract.BlockKind = "review"
	blockBlocked        contract.BlockKind = "blocked"
	blockRollback       contract.BlockKind = "rollback"
	blockSession        contract.BlockKind = "session_iteration"
)

// brokenCommit is what a checkout with broken git metadata reports in place of a commit.
const brokenCommit = "unknown-git-worktree"

// fieldForm is what a block field has to be.
type fieldForm int

const (
	formText   fieldForm = iota // a text with something in it
	formFlag                    // true or false
	formOption                  // true, false or missing
	formMoment                  // a date and time
	formTexts                   // a list of texts, possibly empty
	formSome                    // a list of at least one text
	formWord                    // one of the words of the rule
)

// fieldRule is the rule of one field of one kind of block.
type fieldRule struct {
	name string
	form fieldForm
	// words are the accepted values of formWord.
	words func(*contract.Schema) []string
}

// allowed returns the words that the schema lists for a block kind under a key.
func allowed(kind contract.BlockKind, key string) func(*contract.Schema) []string {
	return func(s *contract.Schema) []string {
		spec, _ := s.BlockKind(kind) // an unknown kind allows nothing
		return spec.Allowed[key]
	}
}

// fieldRules are the fields that each kind of block must have, and the optional ones whose type
// matters.
var fieldRules = map[contract.BlockKind][]fieldRule{
	blockPlan: {
		{name: "base_commit"}, {name: "assignee_role"}, {name: "stand_required", form: formFlag},
		{name: "plan_kind", form: formWord, words: func(s *contract.Schema) []string { return s.Enums.PlanKinds }},
		{name: "mode", form: formWord, words: func(s *contract.Schema) []string { return s.Enums.Modes }},
		{name: "ready_for_implementation", form: formFlag},
		{name: "audit_only", form: formOption}, {name: "interactive", form: formOption}, {name: "verify_only", form: formOption},
	},
	blockImplementation: {
		{name: "base_commit"}, {name: "files", form: formTexts}, {name: "ready_for_test", form: formFlag},
	},
	blockTests: {
		{name: "base_commit"}, {name: "test_files", form: formSome}, {name: "test_command"},
		{name: "test_result", form: formWord, words: allowed(blockTests, "allowed_test_results")},
		{name: "gate_check_result", form: formWord, words: allowed(blockTests, "allowed_gate_check_results")},
		{name: "gate_check_at", form: formMoment}, {name: "gate_check_commit"}, {name: "ready_for_review", form: formFlag},
	},
	blockReader: {
		{name: "outcome", form: formWord, words: allowed(blockReader, "allowed_outcomes")},
		{name: "stand_checked", form: formFlag}, {name: "ready_for_architect", form: formFlag},
	},
	blockReview: {
		{name: "outcome", form: formWord, words: allowed(blockReview, "allowed_outcomes")},
	},
	blockBlocked:  {{name: "reason"}, {name: "dependencies", form: formSome}, {name: "resume_to"}},
	blockRollback: {{name: "reason"}},
	blockSession:  {{name: "summary"}},
}

// fieldFaults judges the fields of one block by its kind alone.
// Spec: reference of the blocks.
func fieldFaults(s *contract.Schema, b *Block, where func(string) string) []refusal.Reason {
	j := &judge{code: refusal.CodeBlockField, where: where}
	for _, rule := range fieldRules[b.Kind] {
		v, given := b.Fields.Lookup(rule.name)
		name := string(b.Kind) + "." + rule.name
		switch rule.form {
		case formText:
			j.text(rule.name, name, v)
		case formFlag:
			j.flag(rule.name, name, v)
		case formOption:
			if given {
				j.flag(rule.name, name, v)
			}
		case formMoment:
			j.moment(rule.name, name, v)
		case formTexts:
			j.texts(rule.name, name, v, 0)
		case formSome:
			j.texts(rule.name, name, v, 1)
		case formWord:
			j.word(rule.name, name, v, rule.words(s))
		}
	}
	switch b.Kind {
	case blockPlan:
		if b.Is("stand_required") {
			j.text("stand_reason", "plan.stand_reason (the plan requires the stand)", b.Fields.Get("stand_reason"))
		}
	case blockReview:
		if b.Text("outcome") == "approved" {
			j.text("commit", "review.commit (the outcome is approved)", b.Fields.Get("commit"))
		}
	case blockBlocked:
		j.blocked(s, b)
	}
	j.commits(b)
	return j.faults
}

var dependencyPattern = regexp.MustCompile(`^([a-z_]+)/([0-9]{1,4}-[a-z0-9-]+)\.(yaml|md)$`)

// blocked judges where a blocked block points.
func (j *judge) blocked(s *contract.Schema, b *Block) {
	for _, dep := range textsOf(b.Fields.Get("dependencies")) {
		m := dependencyPattern.FindStringSubmatch(dep)
		if m == nil {
			j.fault("dependencies", "write <queue>/<id>.yaml, such as verified/0007-add-login.yaml",
				"the dependency %s is no task path", shown(dep))
		} else if !isTaskQueue(s, contract.Queue(m[1])) {
			j.fault("dependencies", "name one of the schema's queues", "the dependency %s names the unknown queue %q",
				shown(dep), m[1])
		}
	}
	if to := b.Text("resume_to"); to != "" && !isTaskQueue(s, contract.Queue(to)) {
		j.fault("resume_to", "name one of the schema's queues", "blocked.resume_to names the unknown queue %q", to)
	}
}

// commits refuses the word of broken git metadata wherever a commit is evidence.
func (j *judge) commits(b *Block) {
	for _, key := range []string{"base_commit", "gate_check_commit", "commit", "stand_evidence.commit"} {
		if deep(b.Fields, key) == brokenCommit {
			j.fault(key, "mend the checkout's git metadata, then name a real commit",
				"%s.%s is %q, which is no commit", b.Kind, key, brokenCommit)
		}
	}
}

// isTaskQueue reports whether the schema has a queue of this name that holds tasks.
func isTaskQueue(s *contract.Schema, q contract.Queue) bool {
	spec, ok := s.Queue(q)
	return ok && spec.Kind != contract.QueueState
}
