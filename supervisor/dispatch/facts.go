package dispatch

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"time"

	"greatminds/contract"
	"greatminds/runstore"
	"greatminds/supervisor/policy"
	"greatminds/tasks"
)

// Attempts turns the ended runs of a task, oldest first, into what the policy reads.
func Attempts(w World, v *runstore.View, history []*runstore.Run) []policy.Attempt {
	out := make([]policy.Attempt, 0, len(history))
	for _, r := range history {
		if !r.State.Terminal() {
			continue
		}
		a := policy.Attempt{
			RunID: string(r.ID), Queue: queueOf(r.TaskPath), Revision: string(r.TaskRevision), Left: Left(r),
			Pinned: policy.Contracts{Execution: r.ConfigSHA256, Binding: r.BindingSHA256, Schema: r.SchemaSHA256},
			State:  string(r.State), Reason: r.Reason, EndedAt: endOf(r), Waited: w.waited(r.ID),
			PromptStarted: true, HasCommand: len(v.CommandsOfRun(r.ID)) > 0,
			Progress: r.DomainProgress != nil, Interactive: r.ConversationID != nil, RetryAuthorized: r.RetryAuthorized,
		}
		readOutcome(&a, r.Outcome)
		if res := v.ResultOfRun(r.ID); res != nil {
			a.HasResult, a.ResultStatus, a.Decision = true, res.Status, res.Envelope.Decision
		}
		out = append(out, a)
	}
	return out
}

// LeftMember is the member of a run's record with the revision of the task's file at the run's end. It is
// there where that is not the revision that the run was given.
const LeftMember = "task_revision_left"

// Left is what a run has in its [LeftMember], empty where there is none.
func Left(r *runstore.Run) string {
	var revision string
	// The member is our own; one that is no text says nothing.
	_ = json.Unmarshal(r.Extra[LeftMember], &revision)
	return revision
}

func (w World) waited(id runstore.RunID) time.Duration {
	if w.Waited == nil {
		return 0
	}
	return w.Waited(id)
}

// endOf is when a run ended. A run of an older store has only the time of its last change.
func endOf(r *runstore.Run) time.Time {
	if r.EndedAt != nil {
		return moment(*r.EndedAt)
	}
	return moment(r.UpdatedAt)
}

func readOutcome(a *policy.Attempt, o *runstore.Outcome) {
	if o == nil {
		return
	}
	if o.PromptStarted != nil {
		a.PromptStarted = *o.PromptStarted
	}
	// An activity that nobody recorded counts as one: unknown is never "no".
	a.PrePromptActivity = o.PrePromptActivity == nil || *o.PrePromptActivity
	a.LaunchFault = o.ErrorType == "FileNotFoundError" || o.ErrorType == "PermissionError"
}

// Accounts judges every account of the contract's bindings.
func Accounts(w World, v *runstore.View) map[string]policy.AccountVerdict {
	byAccount := map[string][]policy.AccountRun{}
	for account, runs := range v.AccountRuns() {
		for _, r := range runs {
			byAccount[account] = append(byAccount[account], accountRun(w, v, r))
		}
	}
	initial := time.Duration(w.Contract.AccountRetryInitialSeconds) * time.Second
	max := time.Duration(w.Contract.AccountRetryMaxSeconds) * time.Second
	out := map[string]policy.AccountVerdict{}
	for _, b := range w.Contract.Bindings {
		if _, done := out[b.Account]; !done {
			out[b.Account] = policy.Account(byAccount[b.Account], initial, max, w.Now).With(LimitOf(w, v, b.Account), w.Now)
		}
	}
	return out
}

// LimitOf is the limit on record of an account, zero for none.
func LimitOf(w World, v *runstore.View, account string) policy.Limit {
	hold := v.AccountHold(account)
	if hold == nil {
		return policy.Limit{}
	}
	l := policy.Limit{ID: hold.ID, Kind: hold.Kind, Code: hold.RPCCode, SourceRun: string(hold.SourceRun),
		ObservedAt: moment(hold.ObservedAt), Ended: !hold.Active()}
	if hold.Until != nil {
		l.Until = moment(*hold.Until)
	}
	if w.HeldFor != nil {
		l.Waited = w.HeldFor(hold.ID)
	}
	return l
}

func accountRun(w World, v *runstore.View, r *runstore.Run) policy.AccountRun {
	a := policy.AccountRun{RunID: string(r.ID), ClaimedAt: moment(r.CreatedAt), EndedAt: endOf(r), Waited: w.waited(r.ID), WaitingAuth: r.State == runstore.WaitingAuth}
	if r.StartupReadyAt != nil {
		a.ReadyAt = moment(*r.StartupReadyAt)
	}
	if r.State == runstore.Failed {
		a.Failed = Attempts(w, v, []*runstore.Run{r})[0].StartupFailure()
	}
	return a
}

func pinned(w World, b contract.Binding) policy.Contracts {
	return policy.Contracts{Execution: w.ContractSHA256, Binding: b.SHA256(), Schema: w.Schema.SHA256}
}

func limits(b contract.Binding) policy.Limits {
	return policy.Limits{MaxStartupRetries: b.MaxStartupRetries, MaxNoProgressTurns: b.MaxNoProgressTurns,
		RetryInitial: time.Duration(b.RetryInitialSeconds) * time.Second, RetryMax: time.Duration(b.RetryMaxSeconds) * time.Second}
}

// bindingsFor lists the queue bindings whose role claims tasks from the queue. The parking queue
// is swept mechanically and never given to an agent. E-243, E-246.
func bindingsFor(w World, queue contract.Queue) []contract.Binding {
	spec, ok := w.Schema.Queue(queue)
	if !ok || spec.Kind != contract.QueueActive {
		return nil
	}
	var out []contract.Binding
	for _, b := range w.Contract.Bindings {
		if b.Scheduling != contract.SchedulingQueue {
			continue
		}
		for _, r := range w.Schema.Roles {
			if r.Name == b.Role && slices.Contains(r.ClaimsFrom, queue) {
				out = append(out, b)
			}
		}
	}
	return out
}

// unclaimable judges files that no claim can be made of.
func unclaimable(w World, f tasks.Found) (Judgement, bool) {
	j := Judgement{Candidate: Candidate{Task: f.Ref}}
	spec, ok := w.Schema.Queue(f.Queue)
	switch {
	case !ok || spec.Kind == contract.QueueTerminal || spec.Kind == contract.QueueState:
		return Judgement{}, false
	case f.Problem != nil || f.Task == nil:
		hold(&j, TaskUnreadable, f.Remedy(), "%v", f.Problem)
	case spec.Kind == contract.QueueParking:
		hold(&j, Blocked, fmt.Sprintf("see what it waits for with `greatminds task show %s`; once that is done, `GREATMINDS_ROLE=%s greatminds task mv %s QUEUE` moves it on",
			f.ID, spec.Owner, f.ID), "the task waits in %s, and is not resumed by itself", f.Queue)
	case len(bindingsFor(w, f.Queue)) == 0:
		hold(&j, NoBinding, ownerRemedy(spec, f.ID), "no queue binding has a role that claims from %s", f.Queue)
	default:
		return Judgement{}, false
	}
	return j, true
}

func ownerRemedy(spec contract.QueueSpec, id tasks.ID) string {
	if spec.Name == "feature_inbox" || spec.Name == "feature_plan" {
		return fmt.Sprintf("plan it: greatminds plan %s", id)
	}
	return fmt.Sprintf("give a binding of role %s `scheduling: queue` and restart coordd, or move the task yourself", spec.Owner)
}

var priorities = map[string]int{"high": 0, "normal": 1, "low": 2}

// ordered puts tasks into the order in which they are claimed: priority, then id.
func ordered(found []tasks.Found) []tasks.Found {
	out := append([]tasks.Found(nil), found...)
	rank := func(f tasks.Found) int {
		if f.Task == nil {
			return len(priorities)
		}
		return priorities[f.Task.Priority]
	}
	sort.SliceStable(out, func(i, j int) bool {
		if a, b := rank(out[i]), rank(out[j]); a != b {
			return a < b
		}
		return out[i].ID < out[j].ID
	})
	return out
}

func queueOf(path string) string {
	for i := range path {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return ""
}

func moment(seconds float64) time.Time {
	whole := int64(seconds)
	return time.Unix(whole, int64((seconds-float64(whole))*1e9))
}
