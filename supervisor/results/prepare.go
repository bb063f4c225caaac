package results

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// prepare computes what there is to merge, writes the whole intent down and moves the receipt to
// applying. What stands in the way before that is a hold: nothing has been touched.
func (a *Applier) prepare(ctx context.Context, run *runstore.Run, res *runstore.Result, task *tasks.Task, j judgement) (*operation, error) {
	var merge *tasks.MergePlan
	var conflict []string
	if slices.Contains(j.planned.Pre, tasks.WorktreeMerge) {
		m, err := a.computeMerge(ctx, task, epochTime(res.At))
		var c *tasks.MergeConflict
		switch {
		case errors.As(err, &c):
			if j.planned, err = a.handback(ctx, res, task, j, c); err != nil {
				return nil, err
			}
			conflict = c.Files
		case errors.Is(err, tasks.ErrBranchMoved):
			return nil, err
		case err != nil:
			return nil, holdFor(err)
		default:
			merge = &m
		}
	}
	op, err := a.newOperation(run, res, task, j, merge, conflict)
	if err != nil {
		return nil, err
	}
	err = a.o.Disk.Step("apply.intent", func() error {
		return a.o.Store.Update(ctx, func(tx *runstore.Tx) error {
			if err := tx.HoldResult(res.ID(), nil); err != nil {
				return err
			}
			if err := tx.PutOperation(op.Operation); err != nil {
				return err
			}
			return tx.SetResult(res.ID(), "applying", nil)
		})
	})
	return op, err
}

// computeMerge computes a merge and looks whether every checkout can follow it.
func (a *Applier) computeMerge(ctx context.Context, task *tasks.Task, when time.Time) (tasks.MergePlan, error) {
	m, err := tasks.ComputeMerge(ctx, tasks.MergeRequest{Git: a.o.Git, Project: a.o.Project, Policy: a.o.Policy,
		Task: task.ID, Message: mergeMessage(task), When: when})
	if err == nil && m.Nothing && m.Worktree == "" {
		err = a.workGone(task.ID, m)
	}
	if err != nil {
		return m, err
	}
	overlaps, err := m.CheckCheckouts(ctx)
	if err != nil {
		return m, err
	}
	if len(overlaps) > 0 {
		return m, tasks.OverlapRefusal(m.Branch, overlaps)
	}
	return m, nil
}

// workGone refuses a merge of nothing where the worktree is gone: work that was not committed went with
// it, and a branch without any of its own must not pass for a task that changed nothing.
func (a *Applier) workGone(id tasks.ID, m tasks.MergePlan) error {
	path, branch := tasks.WorktreePath(a.o.Project, a.o.Policy, id), strings.TrimPrefix(m.TaskBranch, "refs/heads/")
	return refusal.New(refusal.CodeMergeBranchMissing,
		fmt.Sprintf("bring the folder back; or where the work is somewhere else, run `git branch -f %s COMMIT`; or where there is none, `git worktree add -f %s %s`",
			branch, path, branch),
		"the worktree %s of task %s is gone, and its branch %s adds nothing to %s: nothing tells what to merge",
		path, id, branch, a.o.Policy.DefaultBranch)
}

func mergeMessage(task *tasks.Task) string {
	return fmt.Sprintf("review(%s): %s", task.ID, strings.Join(strings.Fields(task.Title), " "))
}

// handback plans the return of a task whose approved work does not merge.
func (a *Applier) handback(ctx context.Context, res *runstore.Result, task *tasks.Task, j judgement, c *tasks.MergeConflict) (tasks.Planned, error) {
	why := fmt.Sprintf("The approved work does not merge into %s: conflicts in %s. Bring branch %s%s up to date with %s in its worktree, resolve these files there and hand it over again.",
		c.Branch, strings.Join(c.Files, ", "), a.o.Policy.BranchPrefix, task.ID, c.Branch)
	planned, reasons := tasks.Handback(j.schema, task, a.o.Policy.ConflictHandbackTo, why, j.facts)
	if len(reasons) > 0 {
		reasons = append([]refusal.Reason{{Code: refusal.CodeMergeConflict, What: c.Error(),
			Remedy: "merge by hand, or hand the task back by `greatminds task mv`"}}, reasons...)
		return planned, a.reject(ctx, res, reasons)
	}
	a.o.Log.Info("merge conflict, task handed back", "run_id", res.Envelope.RunID, "task_id", task.ID, "to", planned.Destination, "files", c.Files)
	return planned, nil
}

func epochTime(seconds float64) time.Time { return time.UnixMicro(int64(seconds * 1e6)) }
