package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
)

// taskLockWait is how long a claim waits for somebody who is at work on the task's file.
const taskLockWait = 2 * time.Second

// claim takes one ready task: the task lock first, then the store. Under both the task's
// revision is read again and the judgement is made again. It reports whether a run was started.
// E-157..E-160.
func (d *Daemon) claim(ctx context.Context, j dispatch.Judgement) (bool, error) {
	if err := d.workspaceExists(ctx, j); err != nil {
		d.refuseClaim(j, err)
		return false, nil
	}
	wait, cancel := context.WithTimeout(ctx, taskLockWait)
	defer cancel()
	held, err := d.tree.Lock(wait, j.Task.ID)
	if err != nil {
		d.log.Warn("task lock not free", "task_id", j.Task.ID, "err", err)
		return false, nil
	}
	defer held.Release()
	task, err := d.tree.Read(j.Task)
	if err != nil {
		// Moved or edited since it was discovered: the next look finds it as it is.
		d.catalog.Touch(j.Task.File)
		d.log.Info("task changed before its claim", "task_id", j.Task.ID, "err", err)
		return false, nil
	}
	agent, ok := d.contract.Agent(j.Binding.Agent)
	if !ok {
		panic("supervisor: a validated contract names an unknown agent: " + j.Binding.Agent)
	}
	claimed, err := d.recordClaim(ctx, j, agent)
	if err != nil || claimed == nil {
		return false, err
	}
	d.log.Info("task claimed", "run_id", claimed.ID, "task_id", task.ID, "binding", j.Binding.ID, "role", j.Binding.Role)
	d.start(ctx, &execution{run: claimed.Run, token: claimed.Token, task: task, binding: j.Binding, agent: agent,
		workspace: claimed.Workspace, activity: make(chan struct{}, 1)})
	return true, nil
}

// recordClaim makes the claim durable; nil without an error means that it was not admitted.
func (d *Daemon) recordClaim(ctx context.Context, j dispatch.Judgement, agent contract.Agent) (*runstore.ClaimedRun, error) {
	var claimed *runstore.ClaimedRun
	err := d.store.Update(ctx, func(tx *runstore.Tx) error {
		var verdict dispatch.Judgement
		run, holds, err := tx.Claim(runstore.Claim{
			OwnerID: d.owner, TaskID: runstore.TaskID(j.Task.ID), TaskPath: j.Task.File,
			TaskRevision: runstore.Revision(j.Task.Revision), Role: string(j.Binding.Role),
			BindingID: j.Binding.ID, BindingSHA256: j.Binding.SHA256(), AgentID: agent.ID, AgentSHA256: agent.SHA256(),
			ConfigSHA256: d.contractSHA, SchemaSHA256: d.schema.SHA256, SchemaVersion: d.schema.Version,
			Workspace: d.bindingWorkspace(j.Binding), Account: j.Binding.Account, Permission: j.Binding.Permission,
			Data: map[string]any{"binding_id": j.Binding.ID, "role": string(j.Binding.Role), "task_id": string(j.Task.ID)},
		}, func(v *runstore.View) []runstore.Hold {
			verdict = dispatch.Judge(d.world(), v, j.Candidate)
			if h, held := verdict.Hold(); held {
				return []runstore.Hold{h}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if len(holds) > 0 {
			return nil
		}
		if r := verdict.Repeat; r.Dispatch != "" {
			// E-497, E-532: an automatic repeat says so, with the run that it repeats.
			tx.Emit(string(r.Dispatch), run.ID, map[string]any{"task_id": string(j.Task.ID), "retry_of": r.RetryOf,
				"failures": r.Failures, "turns": r.Turns})
		}
		claimed = run
		return nil
	})
	return claimed, err
}

func (d *Daemon) bindingWorkspace(b contract.Binding) string {
	if filepath.IsAbs(b.Workspace) {
		return filepath.Clean(b.Workspace)
	}
	return filepath.Join(d.o.Project.Root, b.Workspace)
}

// workspaceExists refuses a claim that could only fail. E-036.
func (d *Daemon) workspaceExists(ctx context.Context, j dispatch.Judgement) error {
	task, err := d.tree.Read(j.Task)
	if err != nil {
		return nil // the claim itself finds out and says so
	}
	if d.worktrees.Requires(task.Kind) {
		return d.defaultBranchExists(ctx)
	}
	path := d.bindingWorkspace(j.Binding)
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return nil
	}
	return refusal.New(refusal.CodeWorkspaceMissing, "make the folder, or mend bindings."+j.Binding.ID+".workspace in coordination/execution.yaml, then restart coordd",
		"binding %s works in %s, which is no folder", j.Binding.ID, path)
}

// refuseClaim keeps a claim from being tried again until its task changes, and tells why.
func (d *Daemon) refuseClaim(j dispatch.Judgement, err error) {
	d.mu.Lock()
	d.refused[string(j.Task.Revision)+"/"+j.Binding.ID] = err
	d.mu.Unlock()
	d.log.Warn("task not claimed", "task_id", j.Task.ID, "binding", j.Binding.ID, "err", err)
}

// start runs a claimed task's walk in a goroutine of its own.
func (d *Daemon) start(ctx context.Context, e *execution) {
	run, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	e.began, e.stop, e.ended = time.Now(), stop, make(chan struct{})
	d.mu.Lock()
	d.live[e.run.ID] = e
	d.mu.Unlock()
	d.goDo(func() {
		defer stop(nil)
		d.walk(run, e)
		d.mu.Lock()
		delete(d.live, e.run.ID)
		d.mu.Unlock()
		close(e.ended)
		d.Wake()
	})
}
