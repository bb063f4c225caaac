package tasks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// Operator is who asks for a change of a task from the command line, and what the change may
// lean on.
type Operator struct {
	// Role is the caller's role; it must be one of the schema's.
	Role contract.Role
	// Busy refuses while an operation of the daemon on the task is open; nil asks nobody.
	Busy func(ID) error
	// Hooks does what belongs to a move in the task's worktree; nil does nothing.
	Hooks Hooks
	// Evidence looks at the workspace for block evidence; nil knows nothing.
	Evidence Evidence
}

// Hooks performs worktree actions around an operator's move.
type Hooks interface {
	// Worktree performs one action for a task. An error before the move stops it; one after it
	// is only reported. A create or merge may be repeated after a move that failed behind it.
	Worktree(ctx context.Context, t *Task, action WorktreeAction) error
}

// Evidence gathers the facts that a new block or a move asks for.
type Evidence interface {
	// Gather fills the facts that needs names, and Workspace, InWorktree and Worktrees. A fact
	// that cannot be had is left out or carries its problem; an error ends the command.
	Gather(ctx context.Context, t *Task, needs FactNeeds, f *Facts) error
}

// known wants the caller's role to be one of the schema's.
func (t *Tree) known(op Operator) error {
	if _, ok := t.schema.Role(op.Role); ok {
		return nil
	}
	var names []string
	for _, r := range t.schema.Roles {
		names = append(names, string(r.Name))
	}
	return refusal.New(refusal.CodeRoleUnknown, "set GREATMINDS_ROLE to one of "+strings.Join(names, ", "),
		"the caller's role %s is not in the schema", shown(string(op.Role)))
}

// open finds a task, takes its lock, finishes what an interrupted change left, and reads the
// task as it now stands. The caller releases the lock.
func (t *Tree) open(ctx context.Context, op Operator, name string) (*Held, *Task, error) {
	if err := t.known(op); err != nil {
		return nil, nil, err
	}
	ref, err := t.Find(name)
	if err != nil {
		return nil, nil, err
	}
	h, err := t.Lock(ctx, ref.ID)
	if err != nil {
		return nil, nil, err
	}
	task, err := t.settled(op, h, ref.ID)
	if err != nil {
		h.Release()
		return nil, nil, err
	}
	return h, task, nil
}

func (t *Tree) settled(op Operator, h *Held, id ID) (*Task, error) {
	if op.Busy != nil {
		if err := op.Busy(id); err != nil {
			return nil, err
		}
	}
	if err := t.finishIntents(h, id); err != nil {
		return nil, err
	}
	return t.ReadCurrent(id)
}

// gather asks the operator's evidence for facts. Dependencies are the tree's own to look up.
func (t *Tree) gather(ctx context.Context, op Operator, task *Task, needs FactNeeds) (Facts, error) {
	f := Facts{Now: t.now(), Role: op.Role, SchemaSHA256: t.schema.SHA256}
	if op.Evidence != nil {
		if err := op.Evidence.Gather(ctx, task, needs, &f); err != nil {
			return f, err
		}
	}
	var err error
	f.Dependencies, err = t.Dependencies(needs.Dependencies)
	return f, err
}

// Moved is a finished move.
type Moved struct {
	// From and To are where the task was and is.
	From, To Ref
	// Warning says what went wrong after the move; empty when nothing did.
	Warning string
}

// Mv moves a task by an operator's hand: transition and role, scope, readiness and the named
// checks first; then the worktree actions that come before, the move, its journal line, and the
// actions that come after. A refused move has changed nothing; a failed action before the move
// stops it. Every reason against the move is given at once, and the first decides the code.
// Spec: reference of the `task mv` order.
func (t *Tree) Mv(ctx context.Context, op Operator, id string, to contract.Queue, reason string) (Moved, error) {
	if !isTaskQueue(t.schema, to) {
		return Moved{}, refusal.New(refusal.CodeQueueUnknown, "name one of "+queueNames(t.schema),
			"the destination %q is no queue", to)
	}
	h, task, err := t.open(ctx, op, id)
	if err != nil {
		return Moved{}, err
	}
	defer h.Release()
	var needs FactNeeds
	needs.ofMove(task, to)
	facts, err := t.gather(ctx, op, task, needs)
	if err != nil {
		return Moved{}, err
	}
	return t.move(ctx, op, h, task, to, reason, facts)
}

// move judges and performs one move of a locked task.
func (t *Tree) move(ctx context.Context, op Operator, h *Held, task *Task, to contract.Queue, reason string, facts Facts) (Moved, error) {
	m := &move{s: t.schema, task: task, from: task.Queue, to: to, role: op.Role, facts: facts}
	faults := m.check()
	if len(faults) > 0 {
		return Moved{}, refuse("mend what is missing, then move it again", faults, "%s may not go %s → %s",
			task.ID, task.Queue, to)
	}
	pre, post := actions(facts.policy(t.schema), task, to)
	if err := act(ctx, op, task, pre); err != nil {
		return Moved{}, err
	}
	next, err := t.commit(h, change{before: task.Ref, to: to, role: op.Role, reason: reason})
	if err != nil {
		return Moved{}, err
	}
	done := Moved{From: task.Ref, To: next}
	if err := act(ctx, op, task, post); err != nil {
		done.Warning = "the task has moved, but its worktree could not be removed: " + err.Error()
	}
	t.touch(op.Role)
	return done, nil
}

func act(ctx context.Context, op Operator, task *Task, actions []WorktreeAction) error {
	if op.Hooks == nil {
		return nil
	}
	for _, a := range actions {
		if err := op.Hooks.Worktree(ctx, task, a); err != nil {
			return err
		}
	}
	return nil
}

// touch notes the role's sign of life, an empty file whose time counts. It is no durable fact,
// and a failure is nobody's loss.
func (t *Tree) touch(role contract.Role) {
	path := filepath.Join(t.project.Runtime, "heartbeat."+strings.ToLower(string(role)))
	now := t.now()
	if err := os.Chtimes(path, now, now); !errors.Is(err, os.ErrNotExist) {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, taskPerm)
	if err != nil {
		return
	}
	_ = f.Close() // nothing was written
}

// Withdraw parks a task for good: it files a blocked block whose reason begins with
// "withdrawn:" and moves the task to the blocked queue. Both are judged before either happens.
func (t *Tree) Withdraw(ctx context.Context, op Operator, id, reason string) (Moved, error) {
	if strings.TrimSpace(reason) == "" {
		return Moved{}, refusal.New(refusal.CodeUsage, "give --reason TEXT", "a withdrawal needs a reason")
	}
	h, task, err := t.open(ctx, op, id)
	if err != nil {
		return Moved{}, err
	}
	defer h.Release()
	facts, err := t.gather(ctx, op, task, FactNeeds{})
	if err != nil {
		return Moved{}, err
	}
	fields := Fields{{"blocked_by", string(op.Role)}, {"blocked_at", stamp(facts.Now)}, {"reason", "withdrawn: " + reason},
		{"dependencies", []any{"archive/0000-withdrawn-sentinel.yaml"}}, {"resume_to", string(task.Queue)}}
	block, faults := t.judge(task, facts, blockBlocked, fields)
	m := &move{s: t.schema, task: task.with([]Block{block}), from: task.Queue, to: queueBlocked, role: op.Role, facts: facts}
	faults = distinct(append(m.check(), faults...))
	if len(faults) > 0 {
		return Moved{}, refuse("leave the withdrawal to the queue's owner or to "+string(rolePlanner), faults,
			"%s cannot be withdrawn from %s", task.ID, task.Queue)
	}
	filed, err := t.file(h, op, task, block)
	if err != nil {
		return Moved{}, err
	}
	done, err := t.move(ctx, op, h, filed, queueBlocked, "withdrawn: "+reason, facts)
	done.From = task.Ref
	return done, err
}
