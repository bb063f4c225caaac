package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"greatminds/contract"
	"greatminds/internal/redact"
	"greatminds/internal/refusal"
	"greatminds/runstore"
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
	if ws.Head != "" {
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
		tx.Emit("workspace_ready", e.run.ID, map[string]any{"kind": ws.Kind, "path": ws.Path})
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

// preflight finds what would fail after a process was started, and costs none.
func (d *Daemon) preflight(e *execution) (ending, bool) {
	e.environment = d.agentEnvironment(e)
	for _, name := range e.agent.RequiredEnv {
		if !d.has(name) {
			code := authRequiredRPCCode
			e.outcome.errorCode = &code
			e.outcome.what = fmt.Sprintf("agent %s needs the variable %s, which the daemon's environment lacks", e.agent.ID, name)
			return ending{runstore.WaitingAuth, authRequired, nil}, false
		}
	}
	if end, ok := d.prepareMCP(e); !ok {
		return end, false
	}
	if n := len(e.prompt); n > e.binding.MaxPromptBytes {
		e.outcome.inputBudget = map[string]any{"budget": "prompt", "limit_bytes": e.binding.MaxPromptBytes, "used_bytes": 0, "requested_bytes": n}
		return e.failed(inputBudget, "InputBudgetExceeded", refusal.New(refusal.CodePromptTooLarge,
			"shorten the task, or raise max_prompt_bytes of binding "+e.binding.ID,
			"the first prompt has %d bytes, binding %s allows %d", n, e.binding.ID, e.binding.MaxPromptBytes)), false
	}
	return ending{}, true
}

func (d *Daemon) has(name string) bool { return d.o.Getenv(name) != "" }

func (d *Daemon) agentEnvironment(e *execution) []string {
	env, secrets := e.agent.Environ(d.o.Getenv)
	secrets = append(secrets, string(e.token))
	e.secrets = redact.New(secrets...)
	return append(env, d.credential(e)...)
}

// credential is what lets a process of the run call the supervisor.
func (d *Daemon) credential(e *execution) []string {
	return []string{"GREATMINDS_PROJECT_DIR=" + d.o.Project.Root, "GREATMINDS_ROLE=" + string(e.binding.Role),
		"GREATMINDS_RUN_ID=" + string(e.run.ID), "GREATMINDS_RUN_TOKEN=" + string(e.token)}
}

// recordSession makes the run running, with what the handshake agreed on.
func (d *Daemon) recordSession(ctx context.Context, e *execution) error {
	n := e.session.Negotiated()
	e.outcome.strategy = string(n.Strategy)
	if n.AuthMethod != "" {
		e.outcome.authMethod = &n.AuthMethod
	}
	id := e.session.ID()
	offset := time.Since(e.began)
	return d.update(ctx, func(tx *runstore.Tx) error {
		if err := tx.Transition(e.run.ID, runstore.NewID(), runstore.Running, "", map[string]any{"session_id": id}); err != nil {
			return err
		}
		at := epoch(tx.Now())
		protocol, err := json.Marshal(map[string]any{"version": 1, "negotiated": map[string]any{"at": at, "data": map[string]any{
			"phase": "initialize", "protocol_version": n.ProtocolVersion, "capabilities": n.Capabilities, "optional_capabilities": optional(n),
			"agent": map[string]any{"name": n.AgentName, "version": n.AgentVersion}}}})
		if err != nil {
			return err
		}
		// From here on the run's session is known to others: that nothing was sent to it yet is on
		// record with it, or a crash before the first prompt would leave a session of unknown history.
		begun := e.outcomeRecord(e.session.Stats())
		err = tx.EditRun(e.run.ID, func(r *runstore.Run) {
			r.SessionID, r.Protocol, r.Outcome = &id, protocol, begun
			if r.StartupReadyAt == nil {
				r.StartupReadyAt = &at
			}
		})
		if err != nil {
			return err
		}
		return tx.Stage(e.run.ID, "session_ready", offset)
	})
}

// optional says which of the manifest's optional capabilities the agent offers; never null.
func optional(n transport.Negotiated) map[string]bool {
	if n.Optional == nil {
		return map[string]bool{}
	}
	return n.Optional
}

// reserveInput debits the prompt's bytes before it is sent; the debit stands when the send's
// outcome is unknown, and so does that a prompt was started. Spec: "Bounded client input".
func (d *Daemon) reserveInput(ctx context.Context, e *execution) (ending, bool) {
	n, limit, session := int64(len(e.prompt)), int64(e.binding.MaxSessionInputBytes), e.session.ID()
	offset := time.Since(e.began)
	var used int64
	err := d.update(ctx, func(tx *runstore.Tx) (err error) {
		if used, err = sessionInput(tx.View, e, session); err != nil {
			return err
		}
		if used+n > limit {
			return errBudget
		}
		err = tx.Reserve(e.run.ID, "first-prompt", runstore.Reservation{RequestedBytes: n, UsedBytes: used + n, LimitBytes: limit})
		if err != nil {
			return err
		}
		e.outcome.reserved, e.outcome.sessionReserved, e.outcome.prompted = n, used+n, true
		begun := e.outcomeRecord(e.session.Stats())
		if err := tx.EditRun(e.run.ID, func(r *runstore.Run) { r.Outcome = begun }); err != nil {
			return err
		}
		return tx.Stage(e.run.ID, "first_prompt_started", offset)
	})
	switch {
	case errors.Is(err, errBudget), errors.Is(err, errHistory):
		return e.overBudget(err, used, n, limit), false
	case err != nil:
		e.outcome.reserved, e.outcome.sessionReserved, e.outcome.prompted = 0, 0, false
		return storeFailed(err), false
	}
	return ending{}, true
}

// overBudget ends a run whose session takes no more input. E-572, E-573.
func (e *execution) overBudget(why error, used, n, limit int64) ending {
	budget := map[string]any{"budget": "session", "limit_bytes": limit, "used_bytes": used, "requested_bytes": n}
	r := refusal.New(refusal.CodePromptTooLarge, "raise max_session_input_bytes of binding "+e.binding.ID+", or set `session: new`",
		"the session has taken %d bytes, %d more would pass its limit of %d", used, n, limit)
	if errors.Is(why, errHistory) {
		budget["used_bytes"], budget["reason"] = nil, "session_history_unknown"
		r = refusal.New(refusal.CodePromptTooLarge, "set `session: new` for binding "+e.binding.ID,
			"what the session has taken before is on no record")
	}
	e.outcome.inputBudget = budget
	return e.failed(inputBudget, "InputBudgetExceeded", r)
}

// Why a session takes no more input.
var (
	errBudget  = errors.New("the session takes no more input")
	errHistory = errors.New("the session's earlier input is on no record")
)

// sessionInput sums what was already sent to the session by earlier runs. It fails with errHistory
// where one of them may have sent something that is on no record.
func sessionInput(v *runstore.View, e *execution, session string) (int64, error) {
	total := int64(0)
	for _, r := range v.RunsOfTask(e.run.TaskID) {
		if r.ID == e.run.ID || r.SessionID == nil || *r.SessionID != session || r.AgentSHA256 != e.run.AgentSHA256 || r.Workspace != e.workspace {
			continue
		}
		sent := v.Reservations(r.ID)
		if len(sent) == 0 && (r.Outcome == nil || r.Outcome.PromptStarted == nil || *r.Outcome.PromptStarted) {
			return 0, errHistory
		}
		for _, prompt := range sent {
			total += prompt.RequestedBytes
		}
	}
	return total, nil
}

func epoch(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
