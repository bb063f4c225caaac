package supervisor

import (
	"context"

	"greatminds/internal/execgate"
	"greatminds/runstore"
	"greatminds/supervisor/brief"
	"greatminds/tasks"
	"greatminds/transport"
)

// walk takes one claimed task through its run. It is the middle of a task's way:
//
//	discover   discovery.Catalog.Tasks        (loop.go)
//	decide     dispatch.Plan                  (loop.go)
//	claim      tasks.Lock, Tx.Claim(admit)    (claim.go)
//	workspace  tasks.PrepareWorktree          here
//	context    brief.Compile                  here
//	session    an earlier one to go on with   (session.go)
//	preflight  what would fail anyway         (preflight.go)
//	gate       execgate.Start, Tx.RecordProcess, Child.Open
//	session    transport.Open                 here
//	prompt     Session.Prompt                 (turn.go; permission.Broker.Ask beside it)
//	end        the tree is ended, then the run (finish.go)
//	apply      results.Applier.Apply          (due.go): journal, next queue
//
// Each step either goes on or returns how the run ends; nothing after it is tried.
func (d *Daemon) walk(ctx context.Context, e *execution) {
	defer e.feed.end() // also where the run's end could not be recorded
	end := d.steps(ctx, e)
	d.holdAccount(ctx, e)
	if told, was := e.told(ctx); was && end.state != runstore.Completed {
		// Whatever failed, failed because the run was told to stop.
		end, e.outcome.errorType, e.outcome.errorCode, e.outcome.what, e.outcome.missing = told, "", nil, "", nil
	}
	d.finish(ctx, e, end)
}

func (d *Daemon) steps(ctx context.Context, e *execution) ending {
	if end, ok := d.begin(ctx, e); !ok {
		return end
	}
	execgate.Ahead()
	for _, step := range []func(context.Context, *execution) (ending, bool){
		d.prepareWorkspace, d.compileContext, d.findSession, d.preflight, d.launch, d.openSession,
	} {
		if end, ok := step(ctx, e); !ok {
			return end
		}
	}
	return d.promptTurn(ctx, e)
}

// prepareWorkspace makes or checks the task's worktree before any process starts. E-026..E-031.
func (d *Daemon) prepareWorkspace(ctx context.Context, e *execution) (ending, bool) {
	if err := d.emit(ctx, e, "workspace_preparing", map[string]any{"task_id": string(e.task.ID)}); err != nil {
		return storeFailed(err), false
	}
	ws, err := tasks.PrepareWorktree(ctx, tasks.WorktreeRequest{Git: d.git, Project: d.o.Project, Policy: d.worktrees,
		Task: e.task, Workspace: e.binding.Workspace})
	if err != nil {
		return e.noWorkspace(err), false
	}
	e.workspace = ws.Path
	if err := d.recordWorkspace(ctx, e, ws); err != nil {
		return storeFailed(err), false
	}
	return ending{}, true
}

// compileContext builds the first prompt.
func (d *Daemon) compileContext(ctx context.Context, e *execution) (ending, bool) {
	e.document = brief.Compile(brief.Assignment{RunID: string(e.run.ID), Task: e.task, Role: e.binding.Role,
		Workspace: e.workspace, CLI: d.o.CLI, Contract: d.contract, Schema: d.schema})
	e.prompt = brief.Prompt(e.document, e.agent.SupervisorTools)
	e.outcome.contextBytes = int64(len(e.prompt))
	if err := d.stage(ctx, e, "context_ready"); err != nil {
		return storeFailed(err), false
	}
	return ending{}, true
}

// launch brings keeper and gate up, makes the identity durable, and only then opens the gate.
func (d *Daemon) launch(ctx context.Context, e *execution) (ending, bool) {
	if err := e.pipes(); err != nil {
		return e.failed(transportFailure, "OSError", err), false
	}
	e.oomKills = oomKills()
	child, err := execgate.Start(ctx, execgate.Launch{Argv: e.agent.Argv, Env: e.environment, Dir: e.workspace,
		Stdin: e.agentEnds[0], Stdout: e.agentEnds[1], Stderr: e.agentEnds[2], Mark: string(e.run.ID)})
	if err != nil {
		return e.notStarted(err), false
	}
	e.child = child
	if err := d.recordProcess(ctx, e); err != nil {
		return storeFailed(err), false
	}
	if err := d.step("walk.launch", func() error { return child.Open(ctx) }); err != nil {
		return e.launchFailed(err), false
	}
	return ending{}, true
}

// openSession makes the handshake and opens or loads the session.
func (d *Daemon) openSession(ctx context.Context, e *execution) (ending, bool) {
	d.openFeed(e)
	session, err := transport.Open(ctx, d.sessionOptions(e))
	e.session = session // also beside an error: what was counted until then belongs to the outcome
	if err != nil {
		return e.sessionFailed(err), false
	}
	if err := d.recordSession(ctx, e); err != nil {
		return storeFailed(err), false
	}
	return ending{}, true
}
