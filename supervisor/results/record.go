package results

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// Members of an operation's record beyond those of the reference.
const (
	// beforeMember holds the task's old text, which giving the operation up puts back.
	beforeMember = "before"
	// conflictMember holds the files of a merge conflict that handed the task back.
	conflictMember = "merge_conflict"
)

// operation is the record of one operation with what it is made of.
type operation struct {
	runstore.Operation
	merge *tasks.MergePlan
}

// newOperation is the record of an intent.
func (a *Applier) newOperation(run *runstore.Run, res *runstore.Result, task *tasks.Task, j judgement, merge *tasks.MergePlan, conflict []string) (*operation, error) {
	policy, err := json.Marshal(policyOf(a.o.Policy))
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(string(task.Bytes))
	if err != nil {
		return nil, err
	}
	o := runstore.Operation{ID: runstore.OperationID(res.ID()), Kind: runstore.ResultOperation, Phase: "prepared", Version: 1,
		ResultID: res.ID(), RunID: run.ID, TaskID: run.TaskID, TaskRevision: runstore.Revision(task.Revision),
		Source: string(task.Queue), Destination: string(j.planned.Destination), SchemaSHA256: run.SchemaSHA256,
		At: runstore.Epoch(a.o.Now()), BeforeSHA256: contentHash(task.Bytes), AfterSHA256: contentHash(j.planned.After),
		After: string(j.planned.After), Pre: words(j.planned.Pre), Post: words(j.planned.Post), ActionsDone: []string{},
		WorktreePolicy: policy, Role: run.Role, Decision: res.Envelope.Decision, Artifacts: artifactsOf(j.planned.Artifacts),
		CommandEvidence: j.planned.Commands, Extra: runstore.Members{beforeMember: before}}
	if len(o.Pre) > 0 {
		// The first action begins with the record: one commit of the store does for both.
		first := actionName("pre", 0, o.Pre[0])
		o.ActionStarted = &first
	}
	if j.planned.Question != "" {
		o.Question = &j.planned.Question
	}
	if len(conflict) > 0 {
		if o.Extra[conflictMember], err = json.Marshal(conflict); err != nil {
			return nil, err
		}
	}
	op := &operation{Operation: o}
	return op, op.setMerge(merge)
}

// setMerge puts a merge into the record.
func (op *operation) setMerge(m *tasks.MergePlan) (err error) {
	op.merge = m
	if m != nil {
		op.Merge, err = json.Marshal(m)
	}
	return err
}

// readOperation takes an operation from the store, its merge ready to go on.
func (a *Applier) readOperation(o *runstore.Operation) (*operation, error) {
	op := &operation{Operation: *o}
	op.ActionsDone = slices.Clone(o.ActionsDone)
	if len(o.Merge) == 0 {
		return op, nil
	}
	var m tasks.MergePlan
	if err := json.Unmarshal(o.Merge, &m); err != nil {
		return nil, &refusal.Refusal{Code: refusal.CodeResultRecovery, Err: err,
			What:   fmt.Sprintf("the merge on record of operation %s cannot be read: %v", o.ID, err),
			Remedy: "look at state.json"}
	}
	m = m.With(a.o.Git)
	op.merge = &m
	return op, nil
}

// before is the task's text before the operation; empty where the record does not hold it.
func (op *operation) before() string {
	var text string
	// A record without it, or with something else, only loses the way back.
	_ = json.Unmarshal(op.Extra[beforeMember], &text)
	return text
}

func (op *operation) moves() bool { return op.Destination != op.Source }

func (op *operation) taskID() tasks.ID { return tasks.ID(op.TaskID) }

// file is the path of the task's file in a queue, below the runtime folder.
func (op *operation) file(queue string) string {
	return tasks.FileOf(contract.Queue(queue), op.taskID())
}

// merged is the commit that holds all of the worktree's contents once the merge is made.
func (op *operation) merged() string {
	if op.merge == nil {
		return ""
	}
	return op.merge.Theirs
}

func words(actions []tasks.WorktreeAction) []string {
	out := make([]string, len(actions))
	for i, action := range actions {
		out[i] = string(action)
	}
	return out
}

func artifactsOf(list []tasks.Artifact) []runstore.Artifact {
	out := make([]runstore.Artifact, len(list))
	for i, f := range list {
		out[i] = runstore.Artifact{Path: f.Path, SHA256: f.SHA256}
	}
	return out
}

func policyOf(w contract.Worktrees) map[string]any {
	return map[string]any{"base_path": w.BasePath, "branch_prefix": w.BranchPrefix, "default_branch": w.DefaultBranch,
		"merge_strategy": w.MergeStrategy, "cleanup_on_archive": w.CleanupOnArchive, "cleanup_on_verified": w.CleanupOnVerified,
		"conflict_handback_to": w.ConflictHandbackTo, "required_for_task_kinds": w.RequiredForTaskKinds}
}

func contentHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// mergeCommit is the id of the merge; empty where there is none.
func (op *operation) mergeCommit() string {
	if op.merge == nil {
		return ""
	}
	return op.merge.Commit
}
