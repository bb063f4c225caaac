package tasks

import (
	"fmt"
	"slices"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// checks are the schema's named checks. Each looks only at the move it is given.
// Spec: reference of the `requires` names.
var checks = map[string]func(*move) []refusal.Reason{
	"triage_block":         (*move).triageBlock,
	"plan_block":           func(m *move) []refusal.Reason { return m.has(blockPlan) },
	"implementation_block": func(m *move) []refusal.Reason { return m.has(blockImplementation) },
	"tests_block":          func(m *move) []refusal.Reason { return m.has(blockTests) },

	"scope_backend": func(m *move) []refusal.Reason { return m.scope("backend") },
	"scope_ui":      func(m *move) []refusal.Reason { return m.scope("ui") },
	"scope_docs":    func(m *move) []refusal.Reason { return m.scope("docs") },

	"plan.audit_only":  func(m *move) []refusal.Reason { return m.planFlag("audit_only") },
	"plan.interactive": func(m *move) []refusal.Reason { return m.planFlag("interactive") },
	"plan.verify_only": func(m *move) []refusal.Reason { return m.planFlag("verify_only") },

	"tests_block_fail_or_partial": func(m *move) []refusal.Reason { return m.outcome(blockTests, "test_result", "fail", "partial") },
	"reader_block_pass":           func(m *move) []refusal.Reason { return m.outcome(blockReader, "outcome", "pass", "approved") },
	"reader_block_fail_or_partial": func(m *move) []refusal.Reason {
		return m.outcome(blockReader, "outcome", "fail", "partial", "changes_requested")
	},
	"review_block_approved": func(m *move) []refusal.Reason {
		return m.outcome(blockReview, "outcome", "approved", "approved_sprint")
	},
	"review_block_changes_requested": func(m *move) []refusal.Reason {
		return m.outcome(blockReview, "outcome", "changes_requested")
	},

	"blocked_block_with_dependencies_and_resume_to": (*move).blockedBlock,
	"blocked_block_withdrawn_reason_and_resume_to":  (*move).withdrawnBlock,
	"feature_blocked_withdrawn_reason":              (*move).withdrawnReason,
	"all_dependencies_exist_per_wake_check":         (*move).dependenciesReady,
	"gate_check_pass_if_stand_required":             (*move).gate,
	"review_session_terminal_block":                 (*move).sessionOver,
	"rollback_block_with_reason":                    (*move).rollbackBlock,
}

// fail is one reason of a named check.
func (m *move) fail(remedy, format string, args ...any) []refusal.Reason {
	return []refusal.Reason{m.fault(refusal.CodeCheckFailed, remedy, format, args...)}
}

func (m *move) triageBlock() []refusal.Reason {
	b := m.task.Latest(blockTriage)
	if strings.TrimSpace(b.Text("notes")) == "" && strings.TrimSpace(b.Text("body")) == "" {
		return m.fail("file a triage block with notes", "%s → %s needs a triage block with notes", m.from, m.to)
	}
	return nil
}

// has wants a block of a kind.
func (m *move) has(kind contract.BlockKind) []refusal.Reason {
	if m.task.Latest(kind) == nil {
		return []refusal.Reason{m.missing(kind)}
	}
	return nil
}

func (m *move) missing(kind contract.BlockKind) refusal.Reason {
	return m.fault(refusal.CodeNotReady, fmt.Sprintf("file a %s block", kind), "%s → %s needs a %s block",
		m.from, m.to, kind)
}

// recent returns the latest block of a kind that this stage filed: no block of another stage
// stands behind it. A block from before a hand-back says nothing about the work since. A
// blocked block in between is only a pause.
func (m *move) recent(kind contract.BlockKind) (*Block, []refusal.Reason) {
	for i := len(m.task.Blocks) - 1; i >= 0; i-- {
		b := &m.task.Blocks[i]
		switch b.Kind {
		case kind:
			return b, nil
		case blockBlocked:
			continue
		}
		if m.task.Latest(kind) != nil {
			return nil, []refusal.Reason{m.fault(refusal.CodeNotReady, fmt.Sprintf("file a new %s block", kind),
				"the latest %s block is older than the %s block behind it", kind, b.Kind)}
		}
	}
	return nil, []refusal.Reason{m.missing(kind)}
}

func (m *move) scope(want string) []refusal.Reason {
	if m.task.Scope == want {
		return nil
	}
	return []refusal.Reason{m.fault(refusal.CodeScopeMismatch, m.scopeRemedy(),
		"%s takes tasks of scope %s, and this one has scope %q", m.to, want, m.task.Scope)}
}

// implementers maps a scope to the queue of its implementer.
var implementers = map[string]contract.Queue{"backend": queueDev, "ui": queueUIDev, "docs": queueDocs}

func (m *move) scopeRemedy() string {
	if q, ok := implementers[m.task.Scope]; ok {
		return "send it to " + string(q)
	}
	return "no implementer's queue takes this scope"
}

func (m *move) planFlag(name string) []refusal.Reason {
	if m.task.Latest(blockPlan).Is(name) {
		return nil
	}
	return []refusal.Reason{m.fault(refusal.CodeNotReady, "file a plan block with "+name+": true",
		"%s → %s needs a plan with %s: true", m.from, m.to, name)}
}

// outcome wants the stage's own block to say one of some words.
func (m *move) outcome(kind contract.BlockKind, field string, words ...string) []refusal.Reason {
	b, faults := m.recent(kind)
	if len(faults) > 0 {
		return faults
	}
	if !slices.Contains(words, b.Text(field)) {
		return m.fail("choose the destination that fits, or file a new block",
			"%s → %s needs %s.%s to be %s, and it is %s", m.from, m.to, kind, field, strings.Join(words, " or "),
			shown(b.Fields.Get(field)))
	}
	return nil
}

// blockedBlock wants the blocked block that the move to the blocked queue rests on: the last
// block of the task, so that an old stop does not explain a new one.
func (m *move) blockedBlock() []refusal.Reason {
	n := len(m.task.Blocks)
	if n == 0 || m.task.Blocks[n-1].Kind != blockBlocked {
		return m.fail("file a blocked block with reason, dependencies and resume_to",
			"%s → %s needs a blocked block as the latest block of the task", m.from, m.to)
	}
	b := &m.task.Blocks[n-1]
	if spec, ok := m.s.Queue(contract.Queue(b.Text("resume_to"))); !ok || spec.Kind != contract.QueueActive {
		return m.fail("name an active queue", "blocked.resume_to %s is no active queue", shown(b.Fields.Get("resume_to")))
	}
	if len(textsOf(b.Fields.Get("dependencies"))) == 0 {
		return m.fail("name at least one dependency", "blocked.dependencies is empty")
	}
	return nil
}

// withdrawnWords make a reason a withdrawal, wherever they stand in it.
var withdrawnWords = []string{"withdrawn", "abandoned", "obsoleted"}

// withdrawn reports whether a blocked block's reason says that the task is given up.
func withdrawn(b *Block) bool {
	reason := strings.ToLower(b.Text("reason"))
	return slices.ContainsFunc(withdrawnWords, func(w string) bool { return strings.Contains(reason, w) })
}

func (m *move) withdrawnBlock() []refusal.Reason {
	return append(m.blockedBlock(), m.withdrawnReason()...)
}

func (m *move) withdrawnReason() []refusal.Reason {
	if b := m.task.Latest(blockBlocked); !withdrawn(b) {
		return m.fail("say withdrawn, abandoned or obsoleted in the reason of a blocked block",
			"%s → %s is for withdrawn tasks, and the latest blocked reason is %s", m.from, m.to,
			shown(b.value("reason")))
	}
	return nil
}

// dependenciesReady wants the declared destination and every dependency finished.
func (m *move) dependenciesReady() []refusal.Reason {
	b := m.task.Latest(blockBlocked)
	if b == nil {
		return m.fail("file a blocked block", "the task has no blocked block that says where to resume")
	}
	var faults []refusal.Reason
	if to := b.Text("resume_to"); contract.Queue(to) != m.to {
		faults = append(faults, m.fail("resume it there", "the task is to resume in %s, not in %s", to, m.to)...)
	}
	if withdrawn(b) {
		faults = append(faults, m.fail("move it to archive", "the task was withdrawn: %s", shown(b.Text("reason")))...)
	}
	for _, dep := range textsOf(b.Fields.Get("dependencies")) {
		if f := m.facts.Dependencies[dep]; f.Status != DependencySatisfied {
			status := string(f.Status)
			if status == "" {
				status = "not known"
			}
			faults = append(faults, m.fail("wait until it stands there", "the dependency %s is %s", dep, status)...)
		}
	}
	return faults
}

func (m *move) sessionOver() []refusal.Reason {
	if m.task.Latest(blockSession) != nil || withdrawn(m.task.Latest(blockBlocked)) {
		return nil
	}
	return m.fail("file a session_iteration block", "%s → %s needs a session_iteration block or a withdrawal", m.from, m.to)
}

func (m *move) rollbackBlock() []refusal.Reason {
	b, faults := m.recent(blockRollback)
	if len(faults) == 0 && strings.TrimSpace(b.Text("reason")) == "" {
		faults = m.fail("file a rollback block with a reason", "the rollback block gives no reason")
	}
	return faults
}
