package tasks

import (
	"greatminds/contract"
	"greatminds/internal/refusal"
)

// readiness judges the flags that each destination needs.
// Spec: reference of the readiness flags per destination.
func (m *move) readiness() []refusal.Reason {
	plan := m.task.Latest(blockPlan)
	switch m.to {
	case queuePlan:
		if m.from == queueInbox {
			return m.has(blockTriage)
		}
	case queueDev, queueUIDev, queueDocs:
		faults := m.ready(plan, blockPlan, "ready_for_implementation")
		if m.to == queueDocs && plan.Is("audit_only") {
			faults = append(faults, m.notReady("send it to feature_docs_review", "an audit_only plan has nothing to write"))
		}
		return faults
	case queueTest:
		if m.from == queuePlan {
			return append(m.planFlag("verify_only"), m.ready(plan, blockPlan, "ready_for_implementation")...)
		}
		if m.from == queueBlocked {
			return m.resumesTests(plan)
		}
		return m.stage(blockImplementation, "ready_for_test")
	case queueDocsReview:
		switch m.from {
		case queueDocs:
			return m.stage(blockImplementation, "ready_for_test")
		case queuePlan:
			return append(m.planFlag("audit_only"), m.ready(plan, blockPlan, "ready_for_implementation")...)
		}
	case queueReview:
		return m.reviewable()
	}
	return nil
}

// reviewable judges what may come to the reviewer, by where it comes from.
func (m *move) reviewable() []refusal.Reason {
	switch m.from {
	case queueTest:
		return m.stage(blockTests, "ready_for_review")
	case queueDocsReview:
		return m.stage(blockReader, "ready_for_architect")
	case queueLive:
		faults := m.stage(blockImplementation, "ready_for_test")
		if b := m.task.Latest(blockImplementation); b != nil && b.By != roleLive {
			faults = append(faults, m.notReady("file one as "+string(roleLive),
				"the latest implementation block is by "+string(b.By)))
		}
		return faults
	case queueBlocked, queueVerified:
		return nil
	}
	return []refusal.Reason{m.notReady("send it through its own stages", "nothing comes to review from "+string(m.from))}
}

// resumesTests judges a blocked task that goes back to the tester: one that came straight from
// its plan has no implementation block.
func (m *move) resumesTests(plan *Block) []refusal.Reason {
	if plan.Is("verify_only") && plan.Is("ready_for_implementation") {
		return nil
	}
	return m.ready(m.task.Latest(blockImplementation), blockImplementation, "ready_for_test")
}

// stage wants a flag on the block that this stage itself filed.
func (m *move) stage(kind contract.BlockKind, flag string) []refusal.Reason {
	b, faults := m.recent(kind)
	if len(faults) > 0 {
		return faults
	}
	return m.ready(b, kind, flag)
}

// ready wants a flag to be true.
func (m *move) ready(b *Block, kind contract.BlockKind, flag string) []refusal.Reason {
	switch {
	case b == nil:
		return []refusal.Reason{m.missing(kind)}
	case !b.Is(flag):
		return []refusal.Reason{m.notReady("file a "+string(kind)+" block with "+flag+": true when it is",
			string(m.from)+" → "+string(m.to)+" needs "+string(kind)+"."+flag+": true")}
	}
	return nil
}

func (m *move) notReady(remedy, what string) refusal.Reason {
	return refusal.Reason{Code: refusal.CodeNotReady, Remedy: remedy, What: what}
}
