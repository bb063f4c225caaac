package supervisor

import (
	"context"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/execgate"
	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
	"greatminds/supervisor/policy"
	"greatminds/supervisor/status"
	"greatminds/tasks"
)

// judge says of every task what dispatch would do with it now.
func (c *core) judge(v *runstore.View, found []tasks.Found) status.Dispatch {
	p := dispatch.Places{Worktrees: c.worktrees, Branch: branchFault(context.Background(), c.git, c.o.Project, c.worktrees),
		Workspaces: workspaceFaults(c.o.Project, c.contract)}
	return judgeIn(c.world(p), v, found)
}

func (c *core) world(p dispatch.Places) dispatch.World {
	return dispatch.World{Contract: c.contract, ContractSHA256: c.contractSHA, Schema: c.schema, Now: c.o.Now(), Places: p}
}

// Judge says of every task and account what a daemon would do with it now. It needs neither
// lease nor daemon, so that a status can be read beside a hung one.
func Judge(o Options, c *contract.Contract, s *contract.Schema, v *runstore.View, found []tasks.Found) status.Dispatch {
	w := dispatch.World{Contract: c, ContractSHA256: c.SHA256(), Schema: s, Now: o.Now()}
	if policy, err := contract.WorktreePolicy(o.Project, s); err == nil {
		// A policy that cannot be read is refused where a run would need it.
		git := &tasks.Git{Env: execgate.GitEnv(o.Environ), Disk: durable.NewDisk(nil)}
		w.Places = dispatch.Places{Worktrees: policy, Branch: branchFault(context.Background(), git, o.Project, policy),
			Workspaces: workspaceFaults(o.Project, c)}
	}
	return judgeIn(w, v, found)
}

func judgeIn(w dispatch.World, v *runstore.View, found []tasks.Found) status.Dispatch {
	out := status.Dispatch{Assignments: []status.Assignment{}, Accounts: map[string]status.Account{}}
	for _, j := range dispatch.Plan(w, v, found) {
		out.Assignments = append(out.Assignments, assignment(j))
	}
	for name, a := range dispatch.Accounts(w, v) {
		out.Accounts[name] = account(v, name, a)
	}
	return out
}

func assignment(j dispatch.Judgement) status.Assignment {
	retry := map[string]any{"reason": wordOr(j.Repeat.Hold, dispatch.Ready), "failures": j.Repeat.Failures, "max_retries": j.Binding.MaxStartupRetries}
	if !j.Repeat.NextAt.IsZero() {
		retry["next_at"] = runstore.Epoch(j.Repeat.NextAt)
	}
	if j.Repeat.RetryOf != "" {
		retry["retry_of"] = j.Repeat.RetryOf
	}
	progress := status.Progress{Reason: dispatch.Ready, Turns: j.Repeat.Turns, MaxTurns: j.Binding.MaxNoProgressTurns}
	if j.Repeat.Hold == policy.NoProgressLimit || j.Repeat.Hold == policy.NoProgressBackoff {
		progress.Reason = string(j.Repeat.Hold)
	}
	return status.Assignment{TaskID: string(j.Task.ID), Binding: j.Binding.ID, Role: j.Binding.Role, Reason: j.Reason,
		NextAt: timed(j.NextAt), What: j.What, Remedy: j.Remedy, Retry: retry, Progress: progress}
}

func account(v *runstore.View, name string, a policy.AccountVerdict) status.Account {
	out := status.Account{Reason: wordOr(a.Hold, dispatch.Ready), Account: name, Failures: a.Failures, SourceRun: a.SourceRun,
		Hold: a.Limit.Kind, HoldID: a.Limit.ID, NextAt: timed(a.NextAt)}
	switch a.Hold {
	case policy.AccountRateLimit, policy.AccountQuota:
		out.What, out.Remedy = dispatch.LimitWords(name, a.Limit, a.NextAt)
	case policy.AccountNeedsLogin:
		out.What, out.Remedy = dispatch.AccountLogin(v, name, runstore.RunID(a.SourceRun))
	}
	return out
}

// timed is a time as documents have it, nil where there is none.
func timed(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	seconds := runstore.Epoch(t)
	return &seconds
}

func wordOr(r policy.Reason, none string) string {
	if r == policy.None {
		return none
	}
	return string(r)
}
