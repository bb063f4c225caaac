package results

import (
	"fmt"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

// fileState says how far the task file has come.
type fileState int

const (
	fileBefore  fileState = iota // at the source, as it was
	fileWritten                  // at the source, with its new bytes
	fileMoved                    // at the destination, with its new bytes
)

// fileState compares the task's file with the record. Anything but one of the three states is
// somebody else's doing: both contents are kept, and a person decides (E-202).
func (a *Applier) fileState(op *operation) (fileState, error) {
	source, sourceThere := a.o.Tree.Look(contract.Queue(op.Source), string(op.TaskID)+".yaml")
	written := tasks.RevisionOf(op.file(op.Source), []byte(op.After))
	if !op.moves() {
		switch {
		case sourceThere && source.Revision == written:
			return fileMoved, nil
		case sourceThere && string(source.Revision) == string(op.TaskRevision):
			return fileBefore, nil
		}
		return 0, a.foreign(op, source.Revision, "")
	}
	dest, destThere := a.o.Tree.Look(contract.Queue(op.Destination), string(op.TaskID)+".yaml")
	switch {
	case !sourceThere && destThere && dest.Revision == tasks.RevisionOf(op.file(op.Destination), []byte(op.After)):
		return fileMoved, nil
	case sourceThere && !destThere && source.Revision == written:
		return fileWritten, nil
	case sourceThere && !destThere && string(source.Revision) == string(op.TaskRevision):
		return fileBefore, nil
	}
	return 0, a.foreign(op, source.Revision, dest.Revision)
}

func (a *Applier) foreign(op *operation, source, dest tasks.Revision) error {
	found := "it is in neither place"
	switch {
	case source != "" && dest != "":
		found = "it stands in both places"
	case source != "":
		found = fmt.Sprintf("%s is at %.12s", op.file(op.Source), source)
	case dest != "":
		found = fmt.Sprintf("%s is at %.12s", op.file(op.Destination), dest)
	}
	return refusal.New(refusal.CodeOperationForeign,
		fmt.Sprintf("put %s to the bytes on record (member `after` of operation %s in state.json, or those before it), keep the other version aside, then `greatminds run repair --operation %s`",
			op.file(op.Source), op.ID, op.ID),
		"task %s was changed by somebody else while operation %s took it from %s to %s: %s, on record are %.12s before and %.12s after",
		op.TaskID, op.ID, op.Source, op.Destination, found, op.TaskRevision, tasks.RevisionOf(op.file(op.Source), []byte(op.After)))
}

// moveFile writes the new bytes at the source and moves the file, as far as that has not
// happened, and returns where the task is.
func (a *Applier) moveFile(held *tasks.Held, op *operation, state fileState) (tasks.Ref, error) {
	ref := tasks.Ref{ID: op.taskID(), Queue: contract.Queue(op.Source), File: op.file(op.Source), Revision: tasks.Revision(op.TaskRevision)}
	if state == fileBefore {
		err := a.o.Disk.Step("apply.write", func() (err error) {
			ref, err = a.o.Tree.Write(held, ref, []byte(op.After))
			return err
		})
		if err != nil {
			return ref, err
		}
	}
	ref.Revision = tasks.RevisionOf(ref.File, []byte(op.After))
	if state == fileWritten {
		if err := a.o.Tree.Settle(ref, ref.Queue); err != nil {
			return ref, err
		}
	}
	if state == fileMoved {
		to := tasks.Ref{ID: ref.ID, Queue: contract.Queue(op.Destination), File: op.file(op.Destination)}
		if err := a.o.Tree.Settle(to, ref.Queue); err != nil {
			return ref, err
		}
	}
	if !op.moves() {
		return ref, nil
	}
	if state != fileMoved {
		err := a.o.Disk.Step("apply.move", func() (err error) {
			_, err = a.o.Tree.Move(held, ref, contract.Queue(op.Destination))
			return err
		})
		if err != nil {
			return ref, err
		}
	}
	ref.Queue, ref.File = contract.Queue(op.Destination), op.file(op.Destination)
	ref.Revision = tasks.RevisionOf(ref.File, []byte(op.After))
	return ref, nil
}
