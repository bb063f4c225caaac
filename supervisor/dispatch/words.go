package dispatch

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"greatminds/contract"
	"greatminds/runstore"
	"greatminds/supervisor/policy"
)

// beforeRetry is what has to be done before a retry leads on, ready to stand before the command: the
// budgets of a session outlast every run, and coordd reads its contract when it begins. E-556, E-574.
func beforeRetry(r *runstore.Run, b contract.Binding) string {
	var what string
	switch {
	case r.Reason == "reported_usage_budget" && b.Session == contract.SessionNew:
		return "revise max_reported_session_cost and reported_cost_currency of binding " + b.ID +
			", or remove both, and restart coordd, where its sessions cost more or report no cost; a new session begins with "
	case r.Reason == "reported_usage_budget":
		what = "or revise max_reported_session_cost and reported_cost_currency"
	case r.Reason == "session_load_unavailable" && b.Session != contract.SessionNew:
		return "set `session: new` for binding " + b.ID + ", restart coordd, then "
	case r.Reason == "input_budget_exceeded" && b.Session == contract.SessionNew:
		return "shorten the task, or raise max_prompt_bytes or max_session_input_bytes of binding " + b.ID + " and restart coordd, then "
	case r.Reason == "input_budget_exceeded":
		what = "shorten the task, or raise max_prompt_bytes or max_session_input_bytes"
	case r.Reason == "configuration_error":
		return "mend what it names, restart coordd where that was in coordination/execution.yaml, then "
	default:
		return ""
	}
	return "set `session: new` for binding " + b.ID + ", " + what + ", restart coordd where you changed coordination/execution.yaml, then "
}

// failureOf says after a count of attempts how the newest of them failed, since that is what a retry
// would meet again; empty where it did not fail.
func failureOf(last *runstore.Run) string {
	if last.State == runstore.Completed {
		return ""
	}
	return fmt.Sprintf("; the newest, run %s, ended %s (%s)%s", last.ID, last.State, last.Reason, causeOf(last))
}

// Cause is what is known of why a run failed or waits: what its outcome says, and of a question that
// nobody answered what became of it; empty where nothing is known.
func Cause(r *runstore.Run) string {
	var what string
	if r.Outcome != nil {
		// The member is our own; one that is no text says nothing here.
		_ = json.Unmarshal(r.Outcome.Extra["error_what"], &what)
	}
	if what == "" && r.State == runstore.WaitingInput && r.Process == nil && r.Reason == "permission_required" {
		return "a question of its agent was not answered in time, or was open when the daemon stopped; it is closed"
	}
	return what
}

// causeOf is the cause after a colon; empty where there is none.
func causeOf(r *runstore.Run) string {
	if what := Cause(r); what != "" {
		return ": " + what
	}
	return ""
}

// LimitWords says what an account that is limited waits for, and the command that ends the wait. A
// zero next is never.
func LimitWords(account string, l policy.Limit, next time.Time) (what, remedy string) {
	resume := fmt.Sprintf("greatminds run account-resume %s --hold-id %s --reason TEXT", account, l.ID)
	if next.IsZero() {
		return fmt.Sprintf("the provider of account %s has told run %s that its quota is used up (code %d); nothing runs under it until you resume it",
			account, l.SourceRun, l.Code), "see to the quota, then " + resume
	}
	return fmt.Sprintf("the provider of account %s has told run %s to slow down (code %d); it goes on by itself at %s",
		account, l.SourceRun, l.Code, next.UTC().Format(time.RFC3339)), "wait, or go on at once: " + resume
}

// LoginWords says what a run in waiting_auth waits for, and what leads it on: variables that the
// daemon's environment has to have, where its outcome names some, else a login. A retry alone leads
// on from neither.
func LoginWords(r *runstore.Run) (what, remedy string) {
	what = fmt.Sprintf("run %s is %s (%s)%s", r.ID, r.State, r.Reason, causeOf(r))
	remedy = "log the agent in"
	if names := missing(r); len(names) > 0 {
		remedy = "set " + strings.Join(names, ", ") + " in the environment of coordd and start it again"
	}
	return what, fmt.Sprintf("%s, then greatminds run retry %s", remedy, r.ID)
}

// missing are the variables that the run's outcome says are not set.
func missing(r *runstore.Run) []string {
	if r.Outcome == nil {
		return nil
	}
	var names []string
	// The member is our own; one of another shape says nothing here.
	_ = json.Unmarshal(r.Outcome.Extra["missing_environment"], &names)
	return names
}

// AccountLogin says what the run waits for that its whole account waits for, and what leads it on.
func AccountLogin(v *runstore.View, account string, source runstore.RunID) (what, remedy string) {
	r := v.Run(source)
	if r == nil {
		return fmt.Sprintf("account %s waits for run %s", account, source), fmt.Sprintf("log in, then greatminds run retry %s", source)
	}
	what, remedy = LoginWords(r)
	return "account " + account + ": " + what, remedy
}
