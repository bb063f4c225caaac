package supervisor

import (
	"context"
	"path/filepath"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
	"greatminds/tasks"
)

// taskLockWait is how long a claim waits for somebody who is at work on the task's file. Nothing
// else of the loop goes on meanwhile, so it is short.
const taskLockWait = 50 * time.Millisecond

// claim takes one ready task: the task lock first, then the store. Under both the task's
// revision is read again and the judgement is made again. It reports whether a run was started; a
// task that cannot be taken now is put off. E-157..E-160.
func (d *Daemon) claim(ctx context.Context, j dispatch.Judgement) (bool, error) {
	wait, cancel := context.WithTimeout(ctx, taskLockWait)
	defer cancel()
	held, err := d.tree.Lock(wait, j.Task.ID)
	if err != nil {
		d.putOff(j.Task.ID, holdFor(err))
		return false, nil
	}
	defer held.Release()
	task, err := d.tree.Read(j.Task)
	if err != nil {
		d.moved(j.Task, err)
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
	d.letGo(j.Task.ID)
	d.log.Info("task claimed", "run_id", claimed.ID, "task_id", task.ID, "binding", j.Binding.ID, "role", j.Binding.Role)
	d.start(ctx, &execution{run: claimed.Run, token: claimed.Token, task: task, binding: j.Binding, agent: agent,
		workspace: claimed.Workspace, activity: make(chan struct{}, 1)})
	return true, nil
}

// moved looks after a task that is not what was discovered: one that was edited or moved is read
// again at once, one that cannot be taken as it stands is put off.
func (d *Daemon) moved(r tasks.Ref, why error) {
	now, there := d.tree.Look(r.Queue, filepath.Base(r.File))
	if there && now.Problem == nil && now.Revision == r.Revision {
		d.putOff(r.ID, holdFor(why))
		return
	}
	d.log.Info("task changed before its claim", "task_id", r.ID, "err", why)
	d.catalog.Touch(r.File)
	d.Wake()
}

// holdFor makes a hold of what stands against a task.
func holdFor(err error) runstore.Hold {
	if r, ok := refusal.Find(err); ok {
		return runstore.Hold{Code: string(r.Code), What: r.What, Remedy: r.Remedy}
	}
	return runstore.Hold{Code: string(refusal.CodeFailed), What: err.Error()}
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
			Workspace: workspaceOf(d.o.Project, j.Binding), Account: j.Binding.Account, Permission: j.Binding.Permission,
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

// start runs a claimed task's walk in a goroutine of its own.
func (d *Daemon) start(ctx context.Context, e *execution) {
	run, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	e.began, e.stop, e.ended = time.Now(), stop, make(chan struct{})
	d.mu.Lock()
	d.live[e.run.ID] = e
	d.mu.Unlock()
	d.ends.begin(e.run.ID)
	d.goDo(func() {
		defer stop(nil)
		d.walk(run, e)
		d.ends.end(e.run.ID)
		d.mu.Lock()
		delete(d.live, e.run.ID)
		d.mu.Unlock()
		close(e.ended)
		d.Wake()
	})
}
