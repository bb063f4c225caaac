package supervisor

import (
	"context"
	"encoding/json"
	"time"

	"greatminds/contract"
	"greatminds/runstore"
	"greatminds/supervisor/policy"
	"greatminds/tasks"
	"greatminds/transport"
)

// update runs one transaction of an execution. A run that is told to stop still records what
// it did, so the caller's cancellation does not reach the store.
func (d *Daemon) update(ctx context.Context, f func(tx *runstore.Tx) error) error {
	return d.store.Update(context.WithoutCancel(ctx), f)
}

func (d *Daemon) emit(ctx context.Context, e *execution, kind string, data map[string]any) error {
	return d.update(ctx, func(tx *runstore.Tx) error { tx.Emit(kind, e.run.ID, data); return nil })
}

func (d *Daemon) stage(ctx context.Context, e *execution, name string) error {
	offset := time.Since(e.began)
	return d.update(ctx, func(tx *runstore.Tx) error { return tx.Stage(e.run.ID, name, offset) })
}

// begin takes the run out of claimed. A run that was cancelled meanwhile does not start.
func (d *Daemon) begin(ctx context.Context, e *execution) (ending, bool) {
	if end, told := e.told(ctx); told {
		return end, false
	}
	err := d.update(ctx, func(tx *runstore.Tx) error {
		return tx.Transition(e.run.ID, runstore.NewID(), runstore.Starting, "", nil)
	})
	if err != nil {
		return storeFailed(err), false
	}
	return ending{}, true
}

func (d *Daemon) recordWorkspace(ctx context.Context, e *execution, ws tasks.Workspace) error {
	plan := &runstore.WorkspacePlan{Kind: ws.Kind, Path: ws.Path}
	if ws.Kind == tasks.TaskWorktree {
		policy, err := json.Marshal(policyRecord(d.worktrees))
		if err != nil {
			return err
		}
		plan.Policy = policy
	}
	var identity *runstore.WorkspaceIdentity
	told := map[string]any{"kind": ws.Kind, "path": ws.Path}
	if ws.Head != "" {
		told["identity"] = map[string]any{"branch": ws.Branch, "git_common_dir": ws.CommonDir, "head": ws.Head}
		identity = &runstore.WorkspaceIdentity{Head: ws.Head, Branch: ws.Branch, GitCommonDir: ws.CommonDir}
	}
	offset := time.Since(e.began)
	return d.update(ctx, func(tx *runstore.Tx) error {
		err := tx.EditRun(e.run.ID, func(r *runstore.Run) {
			r.Workspace, r.WorkspacePlan, r.WorkspaceIdentity = ws.Path, plan, identity
		})
		if err != nil {
			return err
		}
		tx.Emit("workspace_ready", e.run.ID, told)
		return tx.Stage(e.run.ID, "workspace_ready", offset)
	})
}

func policyRecord(w contract.Worktrees) map[string]any {
	return map[string]any{"base_path": w.BasePath, "branch_prefix": w.BranchPrefix, "cleanup_on_archive": w.CleanupOnArchive,
		"cleanup_on_verified": w.CleanupOnVerified, "conflict_handback_to": w.ConflictHandbackTo, "default_branch": w.DefaultBranch,
		"merge_strategy": w.MergeStrategy, "required_for_task_kinds": w.RequiredForTaskKinds}
}

// recordProcess makes the identity of the waiting gate durable. Nothing is exec'd before. E-237.
func (d *Daemon) recordProcess(ctx context.Context, e *execution) error {
	offset := time.Since(e.began)
	process := e.child.Process()
	return d.update(ctx, func(tx *runstore.Tx) error {
		if err := tx.RecordProcess(e.run.ID, process); err != nil {
			return err
		}
		return tx.Stage(e.run.ID, "process_recorded", offset)
	})
}

// recordSession makes the run running, with what the handshake agreed on.
func (d *Daemon) recordSession(ctx context.Context, e *execution) error {
	n := e.session.Negotiated()
	e.outcome.strategy = string(n.Strategy)
	if n.AuthMethod != "" {
		e.outcome.authMethod = &n.AuthMethod
	}
	id := e.session.ID()
	var err error
	if e.past, err = d.sessions.past(d.store.View, e.sessionKey()); err != nil {
		return err
	}
	var account policy.CostAccount
	offset := time.Since(e.began)
	err = d.update(ctx, func(tx *runstore.Tx) error {
		account = d.sessions.now(tx.View, e.sessionKey(), e.past).account(n.Strategy == transport.Loaded || n.Strategy == transport.Resumed)
		if err := tx.Transition(e.run.ID, runstore.NewID(), runstore.Running, "", map[string]any{"session_id": id}); err != nil {
			return err
		}
		at := runstore.Epoch(tx.Now())
		protocol, err := e.observeProtocol(tx, tx.Run(e.run.ID), e.session.Stats(), ending{})
		if err != nil {
			return err
		}
		// From here on the run's session is known to others: that nothing was sent to it yet is on
		// record with it, or a crash before the first prompt would leave a session of unknown history.
		begun := e.outcomeRecord(e.session.Stats())
		used, err := e.usage.prepare(tx, e.run.ID, account)
		if err != nil {
			return err
		}
		err = tx.EditRun(e.run.ID, func(r *runstore.Run) {
			r.SessionID, r.Protocol, r.Outcome, r.Usage = &id, protocol, begun, used
			if r.StartupReadyAt == nil {
				r.StartupReadyAt = &at
			}
		})
		if err != nil {
			return err
		}
		return tx.Stage(e.run.ID, "session_ready", offset)
	})
	if err == nil {
		e.usage.open(account)
	}
	return err
}

// optional says which of the manifest's optional capabilities the agent offers; never null.
func optional(n transport.Negotiated) map[string]bool {
	if n.Optional == nil {
		return map[string]bool{}
	}
	return n.Optional
}

// observe records a boundary that the transport has seen. One that cannot be recorded fails the
// turn: nothing counts as processed that was not observed. E-670.
func (d *Daemon) observe(e *execution, s transport.Stage) {
	if err := d.step("walk."+string(s), func() error { return d.stage(context.Background(), e, string(s)) }); err != nil {
		e.unrecorded.CompareAndSwap(nil, &err)
		d.log.Error("stage not recorded", "run_id", e.run.ID, "stage", s, "err", err)
	}
}
