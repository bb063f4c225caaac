package results

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// The original computes no merge: it notes that one begins, calls git merge, and notes that it is
// done. An application that was taken over from it can therefore have to merge without a merge on
// record.

// errMergeAnew says that an application has begun nothing that its decision cannot be carried out
// anew from.
var errMergeAnew = errors.New("the merge has to be computed anew")

// unmerged tells whether an operation has a merge before it, and none on record.
func (op *operation) unmerged() bool {
	for i, action := range op.Pre {
		if action == string(tasks.WorktreeMerge) && op.merge == nil && !slices.Contains(op.ActionsDone, actionName("pre", i, action)) {
			return true
		}
	}
	return false
}

// withoutMerge decides about an application that has no merge on record: it is carried out anew
// where the merge had not begun, or where an operator has looked and asks for it. Otherwise nobody
// knows whether it was made, which is no permission to make it again. E-203.
func (a *Applier) withoutMerge(ctx context.Context, op *operation) error {
	state, err := a.fileState(op)
	if err == nil && state == fileBefore && op.ActionStarted == nil {
		return errMergeAnew
	}
	if err == nil {
		err = refusal.New(refusal.CodeResultRecovery,
			fmt.Sprintf("look at %s with `git status` and `git log`, and end what is under way there", a.o.Project.Root),
			"the original had begun to merge task %s when it ended, and whether the merge was made is not on record", op.TaskID)
	}
	return a.needsRecovery(ctx, op, refusalOf(err))
}

// lookedAt is an operation as it is after an operator has looked at its merge: nothing of it counts
// as begun. A merge that was made by then is found made.
func (a *Applier) lookedAt(tx *runstore.Tx, id runstore.OperationID) error {
	o := tx.Operation(id)
	if o == nil || o.Phase != "prepared" {
		return nil
	}
	op, err := a.readOperation(o)
	if err != nil || !op.unmerged() {
		return nil // what cannot be read is told where it is needed
	}
	op.ActionStarted = nil
	return tx.PutOperation(op.Operation)
}

// mergedByOriginal finds the commit that holds all of a worktree's contents where the original has
// made the merge and not recorded it: the task's branch where main contains it, else main, so that
// what the worktree holds beside it is found.
func (a *Applier) mergedByOriginal(ctx context.Context, op *operation) (string, error) {
	if op.merge != nil || !slices.Contains(op.Pre, string(tasks.WorktreeMerge)) {
		return op.merged(), nil
	}
	m, err := a.mergeNow(ctx, op)
	var conflict *tasks.MergeConflict
	switch r, refused := refusal.Find(err); {
	case err == nil && m.Nothing:
		return m.Theirs, nil
	case err == nil || errors.As(err, &conflict):
		return m.Old, nil
	case refused && r.Code == refusal.CodeMergeBranchMissing:
		return "", nil // its removal was begun
	}
	return "", err
}

// mergeNow computes the merge of an operation's task as the repository is now.
func (a *Applier) mergeNow(ctx context.Context, op *operation) (tasks.MergePlan, error) {
	return tasks.ComputeMerge(ctx, tasks.MergeRequest{Git: a.o.Git, Project: a.o.Project, Policy: a.o.Policy,
		Task: op.taskID(), Message: "review(" + string(op.TaskID) + ")", When: epochTime(op.At)})
}

// mayForget refuses to give up an application whose merge the original has made.
func (a *Applier) mayForget(ctx context.Context, op *operation) error {
	if !op.unmerged() || op.ActionStarted == nil {
		return nil
	}
	m, err := a.mergeNow(ctx, op)
	var conflict *tasks.MergeConflict
	switch {
	case errors.As(err, &conflict):
		return nil
	case err != nil:
		return fmt.Errorf("whether the merge of operation %s was made cannot be told: %w", op.ID, err)
	case m.Nothing:
		repair, _ := RepairCommands(string(op.ID))
		return refusal.New(refusal.CodeOperationBegun, fmt.Sprintf("finish it with `%s`", repair),
			"operation %s cannot be given up: %s contains the work of task %s already", op.ID, m.Branch, op.TaskID)
	}
	return nil
}
