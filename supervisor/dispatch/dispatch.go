// Package dispatch decides which task runs next under which binding, and for every task that
// does not run, why not and what helps.
//
// It is pure: the durable view, the task files and the contract come in, judgements go out. The
// same judgement is made again under the store's lock when a claim is admitted, so that two
// claims never pass a limit together. Spec: "Execution contract and durable run store",
// reference 3 (hold reasons, in order of evaluation).
package dispatch

import (
	"encoding/json"
	"fmt"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/policy"
	"greatminds/tasks"
)

// Reasons of this package, beside those of policy. They are the words of assignments[].reason.
const (
	Ready             = "ready"
	Paused            = "dispatch_paused"
	ActiveRun         = "active_run"
	ResultUnresolved  = "domain_result_unresolved"
	CommandUnresolved = "command_unresolved"
	OperationOpen     = "maintenance_unresolved"
	ProjectCapacity   = "project_capacity"
	BindingCapacity   = "binding_capacity"
	AccountCapacity   = "account_capacity"
	TaskUnreadable    = "unreadable_task"
	NoBinding         = "no_queue_binding"
	Blocked           = "waiting_for_dependencies"
	Stopping          = "daemon_stopping"
)

// World is what does not stand in the store.
type World struct {
	Contract *contract.Contract
	// ContractSHA256 is the fingerprint of Contract.
	ContractSHA256 string
	Schema         *contract.Schema
	Now            time.Time
	// Places says where runs can not be made at present.
	Places Places
	// Holds are reasons of this process against single tasks, such as processes that could not
	// be ended or a file that somebody else has locked; nil for none.
	Holds map[tasks.ID]runstore.Hold
	// Stopping: no new claim is wanted any more.
	Stopping bool
	// Trouble is why the daemon could not do its work when it last looked at it, nil where it could, and
	// TroubleUntil when it looks again. It is for people: a claim is judged without it.
	Trouble      *refusal.Refusal
	TroubleUntil time.Time
	// Waited is for how long at least a run has been over by this process's monotonic clock; nil
	// where nobody knows.
	Waited func(runstore.RunID) time.Duration
	// HeldFor is the same for the hold of an account, by its id: since it was observed.
	HeldFor func(hold string) time.Duration
}

// Places are the folders and branches that runs would need, as they were found. A claim that
// could only fail later is held now. E-036.
type Places struct {
	// Worktrees is the project's policy: tasks of these kinds get a worktree of their own.
	Worktrees contract.Worktrees
	// Branch says why no worktree can be made; nil where one can.
	Branch *refusal.Refusal
	// Workspaces says, by binding, why its own workspace cannot be used.
	Workspaces map[string]*refusal.Refusal
	// LookAt is when they are looked at again, zero where nobody will.
	LookAt time.Time
}

// Candidate is one task under one binding.
type Candidate struct {
	Task    tasks.Ref
	Kind    string
	Binding contract.Binding
}

// Judgement says whether a candidate is claimed now.
type Judgement struct {
	Candidate
	// Reason is Ready or the code of the first hold.
	Reason string
	// What says the hold in words with its values, Remedy what helps; empty where waiting does.
	What, Remedy string
	// Repeat is the retry and progress verdict, Account the account's.
	Repeat  policy.Verdict
	Account policy.AccountVerdict
	// NextAt is when the judgement may change by itself, zero where it will not.
	NextAt time.Time
}

// Hold returns the judgement as a hold for the store; ok is false where the candidate is ready.
func (j Judgement) Hold() (runstore.Hold, bool) {
	if j.Reason == Ready {
		return runstore.Hold{}, false
	}
	h := runstore.Hold{Code: j.Reason, What: j.What, Remedy: j.Remedy}
	if !j.NextAt.IsZero() {
		at := runstore.Epoch(j.NextAt)
		h.NextAt = &at
	}
	return h, true
}

// Plan judges every task file under every queue binding that may claim it, in the order in
// which they would be claimed. Tasks that no binding can claim get one judgement that says so.
func Plan(w World, v *runstore.View, found []tasks.Found) []Judgement {
	accounts, claimants := Accounts(w, v), map[contract.Queue][]claimant{}
	var out []Judgement
	for _, f := range ordered(found) {
		if j, ok := unclaimable(w, f); ok {
			out = append(out, j)
			continue
		}
		able, known := claimants[f.Queue]
		if !known {
			able = claimantsOf(w, f.Queue)
			claimants[f.Queue] = able
		}
		for _, b := range able {
			out = append(out, judge(w, v, Candidate{f.Ref, f.Task.Kind, b.Binding}, b.pinned, accounts[b.Account]))
		}
	}
	return out
}

// claimant is a binding with the contracts that its runs are pinned to. Their fingerprints cost more
// than the rest of a judgement, and hundreds of tasks may wait in a queue.
type claimant struct {
	contract.Binding
	pinned policy.Contracts
}

func claimantsOf(w World, queue contract.Queue) []claimant {
	var out []claimant
	for _, b := range bindingsFor(w, queue) {
		out = append(out, claimant{b, pinned(w, b)})
	}
	return out
}

// Judge judges one candidate; admission calls it under the store's lock.
func Judge(w World, v *runstore.View, c Candidate) Judgement {
	return judge(w, v, c, pinned(w, c.Binding), Accounts(w, v)[c.Binding.Account])
}

func judge(w World, v *runstore.View, c Candidate, pins policy.Contracts, account policy.AccountVerdict) Judgement {
	j := Judgement{Candidate: c, Account: account, Reason: Ready}
	v = v.Apart()
	history := v.RunsOfTask(runstore.TaskID(c.Task.ID))
	j.Repeat = policy.Repeat(Attempts(w, v, history), policy.Candidate{Queue: string(c.Task.Queue),
		Revision: string(c.Task.Revision), Pinned: pins}, limits(c.Binding), w.Now)
	for _, question := range []func(World, *runstore.View, []*runstore.Run, *Judgement) bool{
		stopping, processHold, activeRun, unreadable, openResult, openCommand, openOperation,
		accountLogin, repeat, accountHold, place, capacity, trouble,
	} {
		if question(w, v, history, &j) {
			return j
		}
	}
	return j
}

func hold(j *Judgement, reason, remedy, what string, args ...any) bool {
	j.Reason, j.Remedy, j.What = reason, remedy, fmt.Sprintf(what, args...)
	return true
}

func stopping(w World, v *runstore.View, _ []*runstore.Run, j *Judgement) bool {
	switch {
	case v.Paused():
		return hold(j, Paused, "greatminds run resume", "dispatch is paused")
	case w.Stopping:
		return hold(j, Stopping, "", "the daemon is stopping")
	}
	return false
}

func processHold(w World, _ *runstore.View, _ []*runstore.Run, j *Judgement) bool {
	h, held := w.Holds[j.Task.ID]
	if held && h.NextAt != nil {
		j.NextAt = moment(*h.NextAt)
	}
	return held && hold(j, h.Code, h.Remedy, "%s", h.What)
}

// unreadable holds a task whose past runs cannot be read: what they did is not known. Only this one
// is held.
func unreadable(_ World, v *runstore.View, history []*runstore.Run, j *Judgement) bool {
	for _, r := range history {
		v.ResultOfRun(r.ID)
	}
	v.OperationsOfTask(runstore.TaskID(j.Task.ID))
	r, damaged := refusal.Find(v.HistoryFault())
	return damaged && hold(j, string(r.Code), r.Remedy, "%s", r.What)
}

func activeRun(_ World, _ *runstore.View, history []*runstore.Run, j *Judgement) bool {
	for _, r := range history {
		if r.State.Terminal() {
			continue
		}
		what := fmt.Sprintf("run %s is %s", r.ID, r.State)
		remedy := ""
		if r.Reason != "" {
			what += " (" + r.Reason + ")"
		}
		switch {
		case r.State == runstore.WaitingAuth:
			what, remedy = LoginWords(r)
		case r.State == runstore.WaitingInput && r.Process == nil:
			what += causeOf(r)
			remedy = fmt.Sprintf("greatminds run retry %s", r.ID)
		case r.State == runstore.WaitingInput:
			remedy = "answer the question: greatminds run permission REQUEST_ID --option OPTION_ID"
		}
		return hold(j, ActiveRun, remedy, "%s", what)
	}
	return false
}

func openResult(_ World, v *runstore.View, history []*runstore.Run, j *Judgement) bool {
	for _, r := range history {
		res := v.ResultOfRun(r.ID)
		if res == nil {
			continue
		}
		switch res.Status {
		case "received", "applying":
			if h := res.Hold(); h != nil {
				return hold(j, ResultUnresolved, h.Remedy, "result %s is held (%s): %s", res.ID(), h.Code, h.What)
			}
			what := fmt.Sprintf("result %s is %s", res.ID(), res.Status)
			if res.Details != nil && res.Details.Error != "" {
				what += ": " + res.Details.Error
			}
			return hold(j, ResultUnresolved, "", "%s", what)
		case "needs_recovery":
			if h := res.Hold(); h != nil {
				return hold(j, ResultUnresolved, h.Remedy+"; `greatminds run repair --operation "+string(res.ID())+"` looks at once",
					"result %s is held (%s): %s", res.ID(), h.Code, h.What)
			}
			return hold(j, ResultUnresolved, first(res)+fmt.Sprintf("greatminds run repair --operation %s, or with --abandon --reason TEXT", res.ID()),
				"result %s needs recovery: %s", res.ID(), errorOf(res))
		}
	}
	return false
}

func errorOf(res *runstore.Result) string {
	if res.Details == nil || res.Details.Error == "" {
		return "its outcome is not known"
	}
	return res.Details.Error
}

// first is what has to be done before a result can be repaired, ready to stand before the command;
// empty where its record names nothing.
func first(res *runstore.Result) string {
	var remedy string
	// The member is our own; one that is no text says nothing here.
	if res.Details == nil || json.Unmarshal(res.Details.Extra["remedy"], &remedy) != nil || remedy == "" {
		return ""
	}
	return remedy + "; then "
}

func openCommand(_ World, v *runstore.View, history []*runstore.Run, j *Judgement) bool {
	for _, r := range history {
		for _, c := range v.CommandsOfRun(r.ID) {
			switch c.Status {
			case "queued", "starting", "running":
				return hold(j, CommandUnresolved, "", "command %s (%s) is %s", c.ID, c.CommandID, c.Status)
			case "needs_recovery":
				return hold(j, CommandUnresolved, fmt.Sprintf("look at its effects, then greatminds run command-resolve %s --reason TEXT", c.ID),
					"the outcome of command %s (%s) is not known", c.ID, c.CommandID)
			}
		}
	}
	return false
}

func openOperation(_ World, v *runstore.View, _ []*runstore.Run, j *Judgement) bool {
	for _, o := range v.OperationsOfTask(runstore.TaskID(j.Task.ID)) {
		if o.Kind != runstore.ResultOperation && o.Open() {
			return hold(j, OperationOpen, fmt.Sprintf("greatminds run repair --operation %s", o.ID),
				"operation %s is %s", o.ID, o.Status)
		}
	}
	return false
}

func accountLogin(_ World, v *runstore.View, _ []*runstore.Run, j *Judgement) bool {
	if j.Account.Hold != policy.AccountNeedsLogin {
		return false
	}
	what, remedy := AccountLogin(v, j.Binding.Account, runstore.RunID(j.Account.SourceRun))
	return hold(j, string(policy.AccountNeedsLogin), remedy, "%s", what)
}

func repeat(_ World, v *runstore.View, history []*runstore.Run, j *Judgement) bool {
	r := j.Repeat
	if r.Hold == policy.None {
		return false
	}
	j.NextAt = r.NextAt
	last := history[len(history)-1]
	retry := fmt.Sprintf("greatminds run retry %s", last.ID)
	switch r.Hold {
	case policy.RetryBackoff, policy.NoProgressBackoff:
		return hold(j, string(r.Hold), "", "next attempt at %s%s", r.NextAt.UTC().Format(time.RFC3339), failureOf(last))
	case policy.StartupRetryLimit:
		return hold(j, string(r.Hold), beforeRetry(last, j.Binding)+retry, "%d starts of this revision have failed%s", r.Failures, failureOf(last))
	case policy.NoProgressLimit:
		return hold(j, string(r.Hold), beforeRetry(last, j.Binding)+retry, "%d of %d turns ended without a decision that moves the task%s",
			r.Turns, j.Binding.MaxNoProgressTurns, failureOf(last))
	}
	if what, ok := decided(r.Hold, last, v.ResultOfRun(last.ID)); ok {
		remedy := retry
		if r.Hold == policy.HumanInput {
			remedy = "write the answer into the task's file, then " + retry
		}
		return hold(j, string(r.Hold), remedy, "%s", what)
	}
	of := "of this revision"
	if string(last.TaskRevision) != string(j.Task.Revision) && Left(last) == string(j.Task.Revision) {
		of = "was at work when the task was changed to this, and"
	}
	return hold(j, string(r.Hold), beforeRetry(last, j.Binding)+retry, "run %s %s ended %s (%s)%s", last.ID, of, last.State, last.Reason, causeOf(last))
}

// accountHold holds what runs under an account that its provider has limited, or that failed to
// start again and again. An operator's retry waits too: E-504.
func accountHold(_ World, _ *runstore.View, _ []*runstore.Run, j *Judgement) bool {
	a, name := j.Account, j.Binding.Account
	switch a.Hold {
	case policy.AccountBackoff:
		j.NextAt = a.NextAt
		return hold(j, string(a.Hold), "", "account %s had %d failed starts; next at %s",
			name, a.Failures, a.NextAt.UTC().Format(time.RFC3339))
	case policy.AccountRateLimit, policy.AccountQuota:
		j.NextAt = a.NextAt
		what, remedy := LimitWords(name, a.Limit, a.NextAt)
		return hold(j, string(a.Hold), remedy, "%s", what)
	}
	return false
}

// place holds what could only fail for want of a folder or a branch.
func place(w World, _ *runstore.View, _ []*runstore.Run, j *Judgement) bool {
	r := w.Places.Workspaces[j.Binding.ID]
	if w.Places.Worktrees.Requires(j.Kind) {
		r = w.Places.Branch
	}
	if r == nil {
		return false
	}
	j.NextAt = w.Places.LookAt
	return hold(j, string(r.Code), r.Remedy, "%s", r.What)
}

func capacity(w World, v *runstore.View, _ []*runstore.Run, j *Judgement) bool {
	project, binding, account := 0, 0, 0
	for _, r := range v.ActiveRuns() {
		project++
		if r.BindingID == j.Binding.ID {
			binding++
		}
		if r.Account == j.Binding.Account {
			account++
		}
	}
	switch limit := w.Contract.AccountLimit(j.Binding.Account); {
	case project >= w.Contract.MaxRunning:
		return hold(j, ProjectCapacity, "", "%d of max_running %d runs are active", project, w.Contract.MaxRunning)
	case binding >= j.Binding.MaxRunning:
		return hold(j, BindingCapacity, "", "%d of %d runs of binding %s are active", binding, j.Binding.MaxRunning, j.Binding.ID)
	case account >= limit:
		return hold(j, AccountCapacity, "", "%d of %d runs of account %s are active", account, limit, j.Binding.Account)
	}
	return false
}

// trouble holds what would be claimed if the daemon could.
func trouble(w World, _ *runstore.View, _ []*runstore.Run, j *Judgement) bool {
	if w.Trouble == nil {
		return false
	}
	j.NextAt = w.TroubleUntil
	return hold(j, string(w.Trouble.Code), w.Trouble.Remedy, "%s", w.Trouble.What)
}
