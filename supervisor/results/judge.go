package results

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// Check judges a new decision with the rules that apply it later, against the task, the
// workspace and the receipts as they are now, and returns every reason against it. It changes
// nothing. Merges, checkouts and locks are no fault of a decision and are not asked.
// Spec: "Lifecycle and result receipts" (E-196, E-213).
func (a *Applier) Check(ctx context.Context, run *runstore.Run, e runstore.Envelope) ([]refusal.Reason, error) {
	task, err := a.current(run)
	if r, ok := refusal.Find(err); ok {
		return []refusal.Reason{{Code: r.Code, What: r.What, Remedy: r.Remedy}}, nil
	}
	if err != nil {
		return nil, err
	}
	j, err := a.judge(ctx, run, e, task)
	return j.reasons, err
}

// current reads the task of a run, which must be at the revision that the run was given.
func (a *Applier) current(run *runstore.Run) (*tasks.Task, error) {
	task, err := a.o.Tree.ReadCurrent(tasks.ID(run.TaskID))
	if err != nil {
		return nil, err
	}
	if string(task.Revision) != string(run.TaskRevision) {
		return nil, refusal.New(refusal.CodeRevisionStale, fmt.Sprintf("`greatminds run retry %s` starts over on the task as it is", run.ID),
			"task %s is at %.12s in %s, but run %s decided about %.12s: the decision no longer counts",
			task.ID, task.Revision, task.Queue, run.ID, run.TaskRevision)
	}
	return task, nil
}

// judgement is a decision as it was judged.
type judgement struct {
	schema  *contract.Schema
	facts   tasks.Facts
	planned tasks.Planned
	reasons []refusal.Reason
}

// judge plans a decision about a task by the schema that its run pinned.
func (a *Applier) judge(ctx context.Context, run *runstore.Run, e runstore.Envelope, task *tasks.Task) (judgement, error) {
	schema, err := a.o.Schema(run.SchemaSHA256)
	if err != nil {
		return judgement{}, fmt.Errorf("schema of run %s: %w", run.ID, err)
	}
	decision, err := decisionOf(e)
	if err != nil {
		return judgement{schema: schema, reasons: []refusal.Reason{{Code: refusal.CodeDecisionForm, What: err.Error()}}}, nil
	}
	facts := tasks.Facts{Now: a.o.Now(), Role: contract.Role(run.Role), RunID: string(run.ID),
		ResultID: string(e.ResultID), SchemaSHA256: run.SchemaSHA256}
	needs := tasks.Needs(schema, task, decision)
	if err := a.gather(ctx, run, run.Workspace, task, needs, &facts); err != nil {
		return judgement{}, err
	}
	planned, reasons := tasks.Effect(schema, task, decision, facts)
	return judgement{schema, facts, planned, reasons}, nil
}

// decisionOf reads a stored envelope's payload again; it was strict when it was received.
func decisionOf(e runstore.Envelope) (tasks.Decision, error) {
	d := json.NewDecoder(bytes.NewReader(e.Payload))
	d.UseNumber()
	var payload map[string]any
	if err := d.Decode(&payload); err != nil {
		return tasks.Decision{}, fmt.Errorf("the payload of result %s cannot be read: %w", e.ResultID, err)
	}
	return tasks.Decision{Kind: e.Decision, Payload: payload}, nil
}

// gather fetches the facts that a decision asks for. run is nil for an operator's command.
func (a *Applier) gather(ctx context.Context, run *runstore.Run, workspace string, task *tasks.Task, needs tasks.FactNeeds, f *tasks.Facts) (err error) {
	policy := a.o.Policy
	f.Workspace, f.Worktrees = workspace, &policy
	f.InWorktree = tasks.InsideWorktree(a.o.Project, policy, task.ID, workspace)
	base := ""
	if f.InWorktree {
		base = policy.DefaultBranch
	}
	if f.Files, err = a.o.Git.FileEvidence(ctx, workspace, base, needs.Files); err != nil {
		return err
	}
	f.Artifacts = make(map[string]tasks.ArtifactFact, len(needs.Artifacts))
	for _, name := range needs.Artifacts {
		f.Artifacts[name] = tasks.ArtifactEvidence(workspace, name)
	}
	if f.BaseProblem, err = a.o.Git.BaseProblem(ctx, a.o.Project.Root, needs.BaseCommit); err != nil {
		return err
	}
	if needs.Fingerprint {
		f.Fingerprint = a.o.Git.Fingerprint(ctx, workspace)
	}
	if f.Dependencies, err = a.o.Tree.Dependencies(needs.Dependencies); err != nil || run == nil {
		return err
	}
	return a.gatherCommands(ctx, run, needs.Commands, f)
}

// gatherCommands fetches the receipts that a decision cites, and which validation commands its
// role has. Purposes are those of the contract that the run pinned.
func (a *Applier) gatherCommands(ctx context.Context, run *runstore.Run, ids []string, f *tasks.Facts) error {
	pinned, err := a.o.Contract(run.ConfigSHA256)
	if err != nil {
		return fmt.Errorf("contract of run %s: %w", run.ID, err)
	}
	for _, c := range pinned.Commands {
		if c.Purpose == "validation" && slices.Contains(c.Roles, contract.Role(run.Role)) {
			f.ValidationCommands = append(f.ValidationCommands, c.ID)
		}
	}
	f.Commands = make(map[string]tasks.CommandFact, len(ids))
	view := a.o.Store.View()
	for _, id := range ids {
		receipt := view.Command(runstore.CommandID(id))
		if receipt == nil {
			continue
		}
		fact, err := a.commandFact(ctx, run, receipt)
		if err != nil {
			return err
		}
		if defined, ok := pinned.Command(receipt.CommandID); ok {
			fact.Purpose = defined.Purpose
		}
		f.Commands[id] = fact
	}
	return nil
}

func (a *Applier) commandFact(ctx context.Context, run *runstore.Run, c *runstore.Command) (tasks.CommandFact, error) {
	fact := tasks.CommandFact{RequestID: string(c.ID), RunID: string(c.RunID), CommandID: c.CommandID, Argv: c.Argv,
		Completed: (c.Status == "succeeded" || c.Status == "failed") && c.Reason == "exit" && c.ExitCode != nil,
		Status:    c.Status, Reason: c.Reason}
	if !fact.Completed || c.RunID != run.ID {
		return fact, nil
	}
	fact.ExitCode = *c.ExitCode
	if a.o.Commands == nil {
		fact.Stale = "nobody can tell whether its source is unchanged"
		return fact, nil
	}
	stale, err := a.o.Commands.Stale(ctx, run, c)
	fact.Stale = stale
	return fact, err
}

// Gather fills the facts of an operator's command: the task's worktree is the workspace where
// there is one, the project folder otherwise.
func (a *Applier) Gather(ctx context.Context, t *tasks.Task, needs tasks.FactNeeds, f *tasks.Facts) error {
	workspace := a.o.Project.Root
	if tree := tasks.WorktreePath(a.o.Project, a.o.Policy, t.ID); tasks.InsideWorktree(a.o.Project, a.o.Policy, t.ID, tree) {
		workspace = tree
	}
	return a.gather(ctx, nil, workspace, t, needs, f)
}

// reasonsText spells reasons as the receipt's error.
func reasonsText(reasons []refusal.Reason) string {
	lines := make([]string, len(reasons))
	for i, r := range reasons {
		lines[i] = r.String()
	}
	return strings.Join(lines, "\n")
}
