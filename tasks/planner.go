package tasks

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// PlanTask is the arguments of `plan ID`.
type PlanTask struct {
	ID string
	// Scope, AssigneeRole, BaseCommit, PlanKind and Mode go into the plan; Scope must be the
	// task's, and AssigneeRole the one that the schema gives this scope.
	Scope, AssigneeRole, BaseCommit, PlanKind, Mode string
	StandRequired                                   bool
	// StandReason says why the stand is required; Body is the plan itself.
	StandReason, Body string
	// Triage is the note of the triage block; a short one is written where it is empty.
	Triage string
	// StopAtPlan leaves the task in feature_plan with its plan filed; AuditOnly sends a docs
	// task straight to its reader.
	StopAtPlan, AuditOnly bool
}

// Planning is what `plan ID` has done.
type Planning struct {
	// Ref is the task as it stands at the end.
	Ref
	// Steps names what was done, in order.
	Steps []string
}

// planStep is one step of a plan: a block to file, or a queue to move to.
type planStep struct {
	name   string
	kind   contract.BlockKind
	fields Fields
	to     contract.Queue
	reason string
}

// Plan takes a task from its intake to the assignee's queue: triage, plan, and the moves
// between. All steps are judged on a copy of the task before the first is taken, so that a
// plan that would be refused on the way changes nothing; what fails later by its surroundings
// (a worktree, a disk) is named with the step, and Plan goes on from there when called again.
// Only the planner may call it.
func (t *Tree) Plan(ctx context.Context, op Operator, a PlanTask) (Planning, error) {
	if op.Role != rolePlanner {
		return Planning{}, refusal.New(refusal.CodeTransitionRole, "leave it to "+string(rolePlanner),
			"only %s plans tasks, not %s", rolePlanner, shown(string(op.Role)))
	}
	h, task, err := t.open(ctx, op, a.ID)
	if err != nil {
		return Planning{}, err
	}
	defer h.Release()
	facts, err := t.gather(ctx, op, task, FactNeeds{BaseCommit: a.BaseCommit})
	if err != nil {
		return Planning{}, err
	}
	steps, err := t.steps(task, a)
	if err != nil {
		return Planning{}, err
	}
	if err := t.rehearse(task, facts, steps); err != nil {
		return Planning{}, err
	}
	return t.walk(ctx, op, h, task, facts, steps)
}

// steps lists what takes the task from where it stands to the assignee's queue.
func (t *Tree) steps(task *Task, a PlanTask) ([]planStep, error) {
	to, ok := implementers[a.Scope]
	switch {
	case !slices.Contains([]contract.Queue{queueFeedback, queueInbox, queuePlan}, task.Queue):
		return nil, refusal.New(refusal.CodeNotReady, "plan tasks of feature_inbox, user_feedback or feature_plan",
			"task %s is in %s, where nothing is planned", task.ID, task.Queue)
	case !ok:
		return nil, refusal.New(refusal.CodeUsage, "use --scope backend, ui or docs", "--scope is %s", shown(a.Scope))
	case a.Scope != task.Scope:
		return nil, refusal.New(refusal.CodeScopeMismatch, "plan it with --scope "+task.Scope, "the task has scope %s, not %s",
			shown(task.Scope), a.Scope)
	case t.schema.AssigneeRoleByScope[a.Scope] != contract.Role(a.AssigneeRole):
		return nil, refusal.New(refusal.CodeBlockField, "use --assignee-role "+string(t.schema.AssigneeRoleByScope[a.Scope]),
			"scope %s is not assigned to %s", a.Scope, shown(a.AssigneeRole))
	case a.AuditOnly && a.Scope != "docs":
		return nil, refusal.New(refusal.CodeScopeMismatch, "leave --audit-only out", "only docs tasks are audited, and this one has scope %s", a.Scope)
	}
	var steps []planStep
	add := func(name string, kind contract.BlockKind, fields Fields) {
		// A block that an earlier call filed before it was cut short is not filed again.
		if !task.endsWith(kind, fields) {
			steps = append(steps, planStep{name: name, kind: kind, fields: fields})
		}
	}
	if task.Queue != queuePlan || a.Triage != "" && t.schema.Accepts(task.Queue, blockTriage) {
		note := orElse(a.Triage, fmt.Sprintf("triaged for planning (scope:%s)", a.Scope))
		add("append triage", blockTriage, Fields{{"notes", note}})
	}
	if task.Queue == queueFeedback {
		steps = append(steps, planStep{name: "mv " + string(queueInbox), to: queueInbox, reason: "triaged"})
	}
	if task.Queue != queuePlan {
		steps = append(steps, planStep{name: "mv " + string(queuePlan), to: queuePlan, reason: "triaged; planning"})
	}
	add("append plan", blockPlan, a.fields())
	if a.StopAtPlan {
		return steps, nil
	}
	if a.AuditOnly {
		to = queueDocsReview
	}
	return append(steps, planStep{name: "mv " + string(to), to: to, reason: "route scope:" + a.Scope}), nil
}

// endsWith tells whether the task's last block is of a kind and has these values.
func (t *Task) endsWith(kind contract.BlockKind, fields Fields) bool {
	if len(t.Blocks) == 0 || t.Blocks[len(t.Blocks)-1].Kind != kind {
		return false
	}
	last := t.Blocks[len(t.Blocks)-1].Fields
	return !slices.ContainsFunc(fields, func(f Field) bool { return !reflect.DeepEqual(last.Get(f.Key), f.Value) })
}

// fields are the plan block's own.
func (a PlanTask) fields() Fields {
	f := Fields{{"base_commit", a.BaseCommit}, {"assignee_role", a.AssigneeRole}, {"stand_required", a.StandRequired}}
	if a.StandReason != "" {
		f = append(f, Field{"stand_reason", a.StandReason})
	}
	f = append(f, Field{"plan_kind", a.PlanKind}, Field{"mode", a.Mode}, Field{"ready_for_implementation", true})
	if a.AuditOnly {
		f = append(f, Field{"audit_only", true})
	}
	return append(f, Field{"body", a.Body})
}

// rehearse judges every step on a copy of the task.
func (t *Tree) rehearse(task *Task, facts Facts, steps []planStep) error {
	faults := blockFaults(t.schema, task)
	copied := *task
	for _, s := range steps {
		var found []refusal.Reason
		if s.to == "" {
			d := &draft{s: t.schema, task: &copied, facts: facts, kind: s.kind, fields: s.fields}
			var b Block
			b, found = d.build()
			copied = *copied.with([]Block{b})
		} else {
			m := &move{s: t.schema, task: &copied, from: copied.Queue, to: s.to, role: rolePlanner, facts: facts}
			found = append(m.check(), unbranchable(facts, t.schema, &copied, s.to)...)
			copied.Queue = s.to
		}
		for i := range found {
			found[i].Place = join("step "+shown(s.name), found[i].Place)
		}
		faults = append(faults, found...)
	}
	if len(faults) > 0 {
		return refuse("mend the arguments", faults, "%s cannot be planned; it stays in %s", task.ID, task.Queue)
	}
	return nil
}

// unbranchable refuses a move that would make the task's worktree from a commit that there is not.
func unbranchable(facts Facts, s *contract.Schema, task *Task, to contract.Queue) []refusal.Reason {
	pre, _ := actions(facts.policy(s), task, to)
	if facts.BaseProblem == "" || !slices.Contains(pre, WorktreeCreate) {
		return nil
	}
	return []refusal.Reason{{Code: refusal.CodeBlockField, Place: "base_commit", What: facts.BaseProblem,
		Remedy: "name a commit of this repository"}}
}

// walk takes the steps.
func (t *Tree) walk(ctx context.Context, op Operator, h *Held, task *Task, facts Facts, steps []planStep) (Planning, error) {
	done := Planning{Ref: task.Ref}
	for _, s := range steps {
		next, err := t.step(ctx, op, h, task, facts, s)
		if err != nil {
			return done, stopped(err, task, s)
		}
		task, done.Ref = next, next.Ref
		done.Steps = append(done.Steps, s.name)
	}
	t.touch(op.Role)
	return done, nil
}

func (t *Tree) step(ctx context.Context, op Operator, h *Held, task *Task, facts Facts, s planStep) (*Task, error) {
	if s.to != "" {
		moved, err := t.move(ctx, op, h, task, s.to, s.reason, facts)
		if err != nil {
			return nil, err
		}
		return t.Read(moved.To)
	}
	block, faults := t.judge(task, facts, s.kind, s.fields)
	if len(faults) > 0 {
		return nil, refuse("mend the arguments", faults, "%s takes no such %s block", task.ID, s.kind)
	}
	return t.file(h, op, task, block)
}

// stopped says at which step a plan ended and where the task now stands.
func stopped(err error, task *Task, s planStep) error {
	r, ok := refusal.Find(err)
	if !ok {
		return fmt.Errorf("plan stopped at %q, %s is in %s: %w", s.name, task.ID, task.Queue, err)
	}
	out := *r
	out.What = fmt.Sprintf("the plan stopped at %q, and %s is in %s: %s", s.name, task.ID, task.Queue, r.What)
	out.Err = err
	return &out
}
