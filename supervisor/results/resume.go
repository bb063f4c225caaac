package results

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// finishResume takes up the resume of a blocked task from its record: it moves the task where the
// evidence is still what it was, and writes the journal's line once. What is not as recorded is
// left as it stands, for a person. Spec: "Dependency maintenance" (E-139, E-140, E-144).
func (a *Applier) finishResume(ctx context.Context, o *runstore.Operation) error {
	held, err := a.o.Tree.Lock(ctx, tasks.ID(o.TaskID))
	if err != nil {
		return err
	}
	defer held.Release()
	op := &operation{Operation: *o}
	err = a.resumeTask(held, op)
	if err == nil {
		op.Status = "applied"
		return a.putResume(ctx, op)
	}
	r, refused := refusal.Find(err)
	if !refused || r.Code != refusal.CodeOperationForeign && r.Code != refusal.CodeResultRecovery {
		return err // it is still on record, and goes on at the next try
	}
	op.Status = "needs_recovery"
	if op.Details, err = json.Marshal(map[string]string{"error": r.Error(), "remedy": r.Remedy}); err != nil {
		return err
	}
	if err := a.putResume(ctx, op); err != nil {
		return err
	}
	return r
}

func (a *Applier) putResume(ctx context.Context, op *operation) error {
	now := runstore.Epoch(a.o.Now())
	op.UpdatedAt = &now
	if err := a.put(ctx, op); err != nil {
		return err
	}
	a.o.Log.Info("resume of a blocked task settled", "task_id", op.TaskID, "operation", op.ID, "status", op.Status)
	return nil
}

// resumeTask performs what is left of a resume.
func (a *Applier) resumeTask(held *tasks.Held, op *operation) error {
	moved, err := a.resumed(op)
	if err != nil {
		return err
	}
	if !moved {
		if err := a.sameEvidence(op); err != nil {
			return err
		}
		ref := tasks.Ref{ID: op.taskID(), Queue: contract.Queue(op.Source), File: op.file(op.Source), Revision: tasks.Revision(op.TaskRevision)}
		err := a.o.Disk.Step("resume.move", func() error {
			_, err := a.o.Tree.Move(held, ref, contract.Queue(op.Destination))
			return err
		})
		if err != nil {
			return err
		}
	}
	line := tasks.JournalLine{T: a.o.Now().UTC().Format("2006-01-02T15:04:05Z"), Actor: "SYSTEM", ActorKind: "system", Task: string(op.TaskID),
		From: op.Source, To: op.Destination, Reason: "resume after dependencies", IntentID: string(op.ID), OperationID: string(op.ID),
		SchemaSHA256: op.SchemaSHA256, BlockedBy: op.BlockedBy, DependencyEvidence: op.Dependencies}
	return a.o.Disk.Step("resume.journal", func() error { return a.o.Tree.AppendJournal(line) })
}

// resumed tells whether the task has been moved. Anything but the task as it was in one of the two
// places is somebody else's doing.
func (a *Applier) resumed(op *operation) (bool, error) {
	name := string(op.TaskID) + ".yaml"
	source, there := a.o.Tree.Look(contract.Queue(op.Source), name)
	dest, arrived := a.o.Tree.Look(contract.Queue(op.Destination), name)
	switch {
	case there && !arrived && string(source.Revision) == string(op.TaskRevision):
		return false, nil
	case arrived && !there:
		task, err := a.o.Tree.ReadCurrent(op.taskID())
		if err != nil {
			return false, err
		}
		if contentHash(task.Bytes) == op.ContentSHA256 {
			return true, nil
		}
	}
	return false, refusal.New(refusal.CodeOperationForeign,
		fmt.Sprintf("put the task back as it was blocked, in %s alone, then `greatminds run repair --operation %s`", op.file(op.Source), op.ID),
		"task %s was changed by somebody else while operation %s took it from %s to %s (%s at %.12s, %s at %.12s)",
		op.TaskID, op.ID, op.Source, op.Destination, op.Source, source.Revision, op.Destination, dest.Revision)
}

// sameEvidence compares the dependencies with what the record relies on.
func (a *Applier) sameEvidence(op *operation) error {
	var on []struct {
		Declared     string         `json:"declared"`
		TaskRevision tasks.Revision `json:"task_revision"`
	}
	if err := json.Unmarshal(op.Dependencies, &on); err != nil || len(on) == 0 {
		return refusal.New(refusal.CodeResultRecovery, "look at the record in state.json", "the evidence of operation %s cannot be read", op.ID)
	}
	declared := make([]string, len(on))
	for i, d := range on {
		declared[i] = d.Declared
	}
	facts, err := a.o.Tree.Dependencies(declared)
	if err != nil {
		return err
	}
	var changed []string
	for _, d := range on {
		if f := facts[d.Declared]; f.Status != tasks.DependencySatisfied || f.Revision != d.TaskRevision {
			changed = append(changed, fmt.Sprintf("%s is %s", d.Declared, f.Status))
		}
	}
	if len(changed) > 0 {
		return refusal.New(refusal.CodeOperationForeign, fmt.Sprintf("`greatminds run repair --operation %s --abandon --reason TEXT` gives it up", op.ID),
			"what operation %s relies on has changed: %s", op.ID, strings.Join(changed, ", "))
	}
	return nil
}

// abandonResume gives a resume up whose task has not moved.
func (a *Applier) abandonResume(ctx context.Context, o *runstore.Operation, reason string) error {
	held, err := a.o.Tree.Lock(ctx, tasks.ID(o.TaskID))
	if err != nil {
		return err
	}
	defer held.Release()
	if !o.Open() {
		return settledRefusal("operation", string(o.ID), o.Status)
	}
	repair, _ := RepairCommands(string(o.ID))
	if _, there := a.o.Tree.Look(contract.Queue(o.Source), string(o.TaskID)+".yaml"); !there {
		return refusal.New(refusal.CodeOperationBegun, fmt.Sprintf("finish it with `%s`", repair),
			"operation %s cannot be given up: task %s does not stand in %s any more", o.ID, o.TaskID, o.Source)
	}
	op := &operation{Operation: *o}
	op.Status, op.Resolution = "abandoned", reason
	return a.putResume(ctx, op)
}
