package ops

import (
	"context"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// Moved is the answer of a command that moved a task.
type Moved struct {
	Version int `json:"version"`
	// ID is the task's full id.
	ID   tasks.ID       `json:"id"`
	From contract.Queue `json:"from"`
	To   contract.Queue `json:"to"`
	// Warning says what went wrong after the move, empty when nothing did.
	Warning string `json:"warning,omitempty"`
}

// Filed is the answer of a command that wrote a task file.
type Filed struct {
	Version int       `json:"version"`
	Ref     tasks.Ref `json:"task"`
	// Path is the file's absolute path.
	Path string `json:"path"`
	// Steps names what was done, in order, where it was more than one thing.
	Steps []string `json:"steps,omitempty"`
}

func (r *request) filed(ref tasks.Ref) Filed {
	return Filed{Version: 1, Ref: ref, Path: r.Project.Runtime + "/" + ref.File}
}

func (r *request) moved(m tasks.Moved) Moved {
	return Moved{Version: 1, ID: m.To.ID, From: m.From.Queue, To: m.To.Queue, Warning: m.Warning}
}

// acting is the caller as the task domain knows them: an agent in its run's role, an operator in
// the role that they say.
func (r *request) acting() (tasks.Operator, error) {
	role := strings.ToUpper(strings.TrimSpace(r.Role))
	if r.run != nil {
		if err := r.active(); err != nil {
			return tasks.Operator{}, err
		}
		role = r.run.Role
	}
	if role == "" {
		return tasks.Operator{}, refusal.New(refusal.CodeRoleMissing, "set GREATMINDS_ROLE in your shell, for example to ARCHITECT-PLANNER",
			"the caller's role is not known")
	}
	return tasks.Operator{Role: contract.Role(role), Busy: r.busy, Hooks: r.Hooks, Evidence: r.Evidence}, nil
}

// busy refuses while an operation of the daemon on the task is open. E-206.
func (r *request) busy(id tasks.ID) error {
	v := r.view()
	for _, o := range v.OperationsOfTask(runstore.TaskID(id)) {
		if o.Open() {
			return refusal.New(refusal.CodeTaskBusy, operationRemedy(o), "operation %s on task %s is not finished", o.ID, id)
		}
	}
	for _, result := range v.OpenResults() {
		if string(result.Envelope.TaskID) == string(id) {
			return refusal.New(refusal.CodeTaskBusy, resultRemedy(result),
				"result %s of task %s is %s", result.ID(), id, result.Status)
		}
	}
	return nil
}

// edit performs one task command under its receipt and wakes the daemon.
func edit[A any](ctx context.Context, r *request, f func(op tasks.Operator, args A) (any, error)) (any, error) {
	var args A
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	op, err := r.acting()
	if err != nil {
		return nil, err
	}
	answer, err := r.around(ctx, func() (any, error) { return f(op, args) })
	if err == nil {
		r.Daemon.Wake()
	}
	return answer, err
}

// NewTaskArgs are the arguments of `task new`.
type NewTaskArgs struct {
	Stream              string         `json:"stream"`
	Title               string         `json:"title"`
	Reporter            string         `json:"reporter,omitempty"`
	Priority            string         `json:"priority,omitempty"`
	Kind                string         `json:"kind,omitempty"`
	Scope               string         `json:"scope,omitempty"`
	Mode                string         `json:"mode,omitempty"`
	TargetFunctionality string         `json:"target_functionality,omitempty"`
	Description         string         `json:"description,omitempty"`
	Scenarios           []string       `json:"scenarios,omitempty"`
	Hosts               []string       `json:"hosts,omitempty"`
	EvidenceFor         []string       `json:"evidence_for,omitempty"`
	InQueue             contract.Queue `json:"in_queue,omitempty"`
	Seq                 string         `json:"seq,omitempty"`
	Reason              string         `json:"reason,omitempty"`
}

func taskNew(ctx context.Context, r *request) (any, error) {
	return edit(ctx, r, func(op tasks.Operator, a NewTaskArgs) (any, error) {
		ref, err := r.Tree.New(ctx, op, tasks.NewTask{
			Stream: a.Stream, Title: a.Title, Reporter: a.Reporter, Priority: a.Priority, Kind: a.Kind,
			Scope: a.Scope, Mode: a.Mode, TargetFunctionality: a.TargetFunctionality, Description: a.Description,
			Scenarios: a.Scenarios, Hosts: a.Hosts, EvidenceFor: a.EvidenceFor, InQueue: a.InQueue, Seq: a.Seq, Reason: a.Reason,
		})
		return r.filed(ref), err
	})
}

// MoveArgs are the arguments of `task mv`.
type MoveArgs struct {
	ID     string         `json:"id"`
	To     contract.Queue `json:"to_queue"`
	Reason string         `json:"reason,omitempty"`
}

func taskMove(ctx context.Context, r *request) (any, error) {
	return edit(ctx, r, func(op tasks.Operator, a MoveArgs) (any, error) {
		m, err := r.Tree.Mv(ctx, op, a.ID, a.To, a.Reason)
		return r.moved(m), err
	})
}

// BlockArgs are the arguments of `task append-block`.
type BlockArgs struct {
	ID   string             `json:"id"`
	Kind contract.BlockKind `json:"kind"`
	// Fields are "key=value" as typed, in order.
	Fields []string `json:"fields,omitempty"`
	Body   *string  `json:"body,omitempty"`
}

func taskAppendBlock(ctx context.Context, r *request) (any, error) {
	return edit(ctx, r, func(op tasks.Operator, a BlockArgs) (any, error) {
		fields, err := parseFields(a.Fields)
		if err != nil {
			return nil, err
		}
		ref, err := r.Tree.AppendBlock(ctx, op, tasks.NewBlock{ID: a.ID, Kind: a.Kind, Fields: fields, Body: a.Body})
		return r.filed(ref), err
	})
}

// WithdrawArgs are the arguments of `task withdraw`.
type WithdrawArgs struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

func taskWithdraw(ctx context.Context, r *request) (any, error) {
	return edit(ctx, r, func(op tasks.Operator, a WithdrawArgs) (any, error) {
		m, err := r.Tree.Withdraw(ctx, op, a.ID, a.Reason)
		return r.moved(m), err
	})
}

// PlanArgs are the arguments of `plan`.
type PlanArgs struct {
	ID            string `json:"id"`
	Scope         string `json:"scope"`
	AssigneeRole  string `json:"assignee_role"`
	BaseCommit    string `json:"base_commit"`
	PlanKind      string `json:"plan_kind"`
	Mode          string `json:"mode"`
	StandRequired bool   `json:"stand_required"`
	StandReason   string `json:"stand_reason,omitempty"`
	Body          string `json:"body"`
	Triage        string `json:"triage,omitempty"`
	StopAtPlan    bool   `json:"stop_at_plan,omitempty"`
	AuditOnly     bool   `json:"audit_only,omitempty"`
}

func taskPlan(ctx context.Context, r *request) (any, error) {
	return edit(ctx, r, func(op tasks.Operator, a PlanArgs) (any, error) {
		p, err := r.Tree.Plan(ctx, op, tasks.PlanTask{
			ID: a.ID, Scope: a.Scope, AssigneeRole: a.AssigneeRole, BaseCommit: a.BaseCommit, PlanKind: a.PlanKind,
			Mode: a.Mode, StandRequired: a.StandRequired, StandReason: a.StandReason, Body: a.Body, Triage: a.Triage,
			StopAtPlan: a.StopAtPlan, AuditOnly: a.AuditOnly,
		})
		filed := r.filed(p.Ref)
		filed.Steps = p.Steps
		return filed, err
	})
}
