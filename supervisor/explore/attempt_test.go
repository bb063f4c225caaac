package explore

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
	"greatminds/supervisor/permission"
	"greatminds/supervisor/policy"
	"greatminds/supervisor/usage"
	"greatminds/tasks"
)

// attempt is one run from its claim to its end, as a daemon takes it there.
type attempt struct {
	*life
	judged dispatch.Judgement
	task   *tasks.Task
	id     runstore.RunID
	// agent is a process that stands for the agent, where the scenario needs one that lives.
	agent *exec.Cmd
}

func (a *attempt) run() *runstore.Run { return a.view().Run(a.id) }

// run claims a ready task and takes its run to its end.
func (l *life) run(j dispatch.Judgement, turn func(a *attempt) error) error {
	a := &attempt{life: l, judged: j}
	defer a.endAgent()
	for _, stage := range []struct {
		name string
		do   func() error
	}{{"claim", a.claim}, {"workspace", a.workspace}, {"launch", a.launch}, {"session", a.session}} {
		if err := l.do(stage.name, stage.do); err != nil {
			return fmt.Errorf("%s: %w", stage.name, err)
		}
		if a.run().State.Terminal() {
			return nil
		}
	}
	l.driven = a.id
	err := turn(a)
	l.driven = ""
	a.endAgent()
	if err != nil {
		return err
	}
	switch s := a.run().State; {
	case s.Terminal():
		return nil
	case s == runstore.Cancelling:
		return l.do("end", func() error { return a.end(runstore.Cancelled, "operator_cancelled") })
	}
	return l.do("end", func() error { return a.end(runstore.Completed, "turn_ended") })
}

// claim takes the task lock first, then the store, and judges again under both.
func (a *attempt) claim() error {
	held, err := a.r.Tree.Lock(a.ctx, a.judged.Task.ID)
	if err != nil {
		return err
	}
	defer held.Release()
	if a.task, err = a.r.Tree.Read(a.judged.Task); err != nil {
		return err
	}
	agent, _ := a.r.Contract.Agent(a.judged.Binding.Agent)
	return a.update(func(tx *runstore.Tx) error {
		claimed, holds, err := tx.Claim(runstore.Claim{OwnerID: a.r.Owner, TaskID: runstore.TaskID(a.task.ID), TaskPath: a.task.File,
			TaskRevision: runstore.Revision(a.task.Revision), Role: string(a.judged.Binding.Role),
			BindingID: a.judged.Binding.ID, BindingSHA256: a.judged.Binding.SHA256(), AgentID: agent.ID, AgentSHA256: agent.SHA256(),
			ConfigSHA256: a.r.Contract.SHA256(), SchemaSHA256: a.r.Schema.SHA256, SchemaVersion: a.r.Schema.Version, Workspace: a.w.root,
			Account: a.judged.Binding.Account, Permission: a.judged.Binding.Permission}, func(v *runstore.View) []runstore.Hold {
			if h, held := dispatch.Judge(a.dispatched(), v, a.judged.Candidate).Hold(); held {
				return []runstore.Hold{h}
			}
			return nil
		})
		if err != nil || len(holds) > 0 {
			return fmt.Errorf("not claimed: %v %w", holds, err)
		}
		a.id = claimed.ID
		a.agents.tokens[a.id] = string(claimed.Token)
		return nil
	})
}

// workspace prepares the worktree and records it.
func (a *attempt) workspace() error {
	if a.run().State == runstore.Claimed {
		if err := a.to(runstore.Starting, ""); err != nil {
			return err
		}
	}
	ws, err := tasks.PrepareWorktree(a.ctx, tasks.WorktreeRequest{Git: a.r.Git, Project: a.w.project, Policy: a.r.Worktrees,
		Task: a.task, Workspace: a.judged.Binding.Workspace})
	if err != nil {
		return err
	}
	return a.update(func(tx *runstore.Tx) error {
		return tx.EditRun(a.id, func(r *runstore.Run) {
			r.Workspace, r.WorkspacePlan = ws.Path, &runstore.WorkspacePlan{Kind: ws.Kind, Path: ws.Path}
		})
	})
}

// launch records the process and opens its gate. Unless the scenario needs one that lives, the
// process has ended long before.
func (a *attempt) launch() error {
	if a.run().Process == nil {
		process := gone()
		if a.w.liveAgent {
			var err error
			if process, err = a.startAgent(); err != nil {
				return err
			}
		}
		if err := a.update(func(tx *runstore.Tx) error { return tx.RecordProcess(a.id, process) }); err != nil {
			return err
		}
	}
	if err := a.r.Disk.Step("walk.launch", func() error { return nil }); err != nil {
		return a.end(runstore.Failed, "transport_failure") // as the walk does
	}
	return nil
}

// startAgent starts a process that does nothing, and returns its identity.
func (a *attempt) startAgent() (runstore.Process, error) {
	a.endAgent()
	a.agent = exec.Command("sleep", "60")
	if err := a.agent.Start(); err != nil {
		return runstore.Process{}, err
	}
	p := gone()
	p.PID = a.agent.Process.Pid
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		return p, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	p.StartTicks, err = strconv.ParseUint(fields[19], 10, 64)
	return p, err
}

// endAgent ends the agent's process; it does nothing a second time.
func (a *attempt) endAgent() {
	if a.agent != nil {
		_ = a.agent.Process.Kill() // it may have ended
		_ = a.agent.Wait()         // it was killed: its status says nothing
		a.agent = nil
	}
}

// gone is the identity of a process that has ended.
var gone = sync.OnceValue(func() runstore.Process {
	c := exec.Command("true")
	if err := c.Run(); err != nil {
		panic(err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		panic(err)
	}
	return runstore.Process{PID: c.ProcessState.Pid(), StartTicks: 1, BootID: strings.TrimSpace(string(boot)), Group: c.ProcessState.Pid(), Session: c.ProcessState.Pid()}
})

// session makes the run running and begins its prompt turn.
func (a *attempt) session() error {
	if a.run().State == runstore.Starting {
		session := "session-" + string(a.id)
		err := a.update(func(tx *runstore.Tx) error {
			if err := tx.Transition(a.id, "running", runstore.Running, "", map[string]any{"session_id": session}); err != nil {
				return err
			}
			return tx.EditRun(a.id, func(r *runstore.Run) { r.SessionID = &session })
		})
		if err != nil {
			return err
		}
	}
	begun := true
	return a.update(func(tx *runstore.Tx) error {
		if err := tx.Reserve(a.id, "first-prompt", runstore.Reservation{RequestedBytes: 10, UsedBytes: 10, LimitBytes: 1000}); err != nil {
			return err
		}
		if err := tx.EditRun(a.id, func(r *runstore.Run) { r.Outcome = &runstore.Outcome{PromptStarted: &begun} }); err != nil {
			return err
		}
		if err := a.account(tx, policy.CostAccount.Begun); err != nil {
			return err
		}
		return tx.Stage(a.id, "first_prompt_started", time.Second)
	})
}

func (a *attempt) to(s runstore.State, reason string) error {
	return a.update(func(tx *runstore.Tx) error { return tx.Transition(a.id, string(s), s, reason, nil) })
}

// end ends the run's command, and then the run.
func (a *attempt) end(s runstore.State, reason string) error {
	if err := a.r.Commands.CancelRun(a.ctx, a.id); err != nil {
		return err
	}
	return a.update(func(tx *runstore.Tx) error {
		if err := permission.CloseRun(tx, a.id, permission.RunClosed); err != nil {
			return err
		}
		if s == runstore.Completed { // the prompt was answered
			stop, begun := "end_turn", true
			if err := tx.EditRun(a.id, func(r *runstore.Run) { r.Outcome = &runstore.Outcome{PromptStarted: &begun, StopReason: &stop} }); err != nil {
				return err
			}
			if err := a.account(tx, policy.CostAccount.Finished); err != nil {
				return err
			}
		}
		if err := tx.Transition(a.id, string(s), s, reason, nil); err != nil {
			return err
		}
		if c := tx.Run(a.id).Control; c != nil {
			return tx.SetControl(a.id, c.ID, "completed")
		}
		return nil
	})
}

// account changes the account of the session's reported cost.
func (a *attempt) account(tx *runstore.Tx, change func(policy.CostAccount) policy.CostAccount) error {
	account := policy.NewCostAccount()
	if record := usage.Read(tx.Run(a.id).Usage); record != nil {
		account = *record.Cost
	}
	account = change(account)
	raw, err := usage.Record{Cost: &account, LedgerSequence: tx.Sequence()}.Encode()
	if err != nil {
		return err
	}
	return tx.EditRun(a.id, func(r *runstore.Run) { r.Usage = raw })
}

// command asks for the configured command and carries it out.
func (a *attempt) command() error {
	id := runstore.CommandID("check-" + string(a.id))
	if err := a.do("command request", func() error {
		_, err := a.ask("run.command", a.id, map[string]any{"command_id": "check", "request_id": string(id), "output_limit": 100})
		return err
	}); err != nil {
		return err
	}
	return a.do("command", func() error { return a.r.Commands.Execute(a.ctx, id) })
}

// submit hands a decision in, hands it in again, and tries another one, which must be refused.
func (a *attempt) submit(text string) error {
	err := a.do("submit", func() error {
		_, err := a.ask("run.submit", a.id, map[string]any{"text": text})
		return err
	})
	if err != nil {
		return err
	}
	a.agents.texts[a.id] = text
	other := strings.Replace(text, `{"decision"`, `{"result_id":"another","decision"`, 1)
	_, err = a.ask("run.submit", a.id, map[string]any{"text": other})
	if r, is := refusal.Find(err); !is || r.Code != refusal.CodeDecisionConflict {
		return fmt.Errorf("a second decision: got %v, want it refused", err)
	}
	return nil
}
