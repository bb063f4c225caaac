package audit

import (
	"cmp"
	"fmt"
	"slices"

	"greatminds/runstore"
	"greatminds/supervisor/policy"
	"greatminds/supervisor/usage"
)

// costs looks at what is on record of the sessions' reported cost: a prompt is pending exactly where
// its outcome is unknown, and no run of a session knows less, or doubts less, than one before it.
func (a *audit) costs() {
	type key struct{ agent, workspace, session string }
	type entry struct {
		run    *runstore.Run
		record *usage.Record
	}
	sessions := map[key][]entry{}
	for _, r := range a.View.Runs() {
		record := usage.Read(r.Usage)
		if record == nil || record.Cost == nil {
			continue
		}
		a.pending(r, record)
		if r.SessionID != nil && record.LedgerSequence > 0 {
			k := key{r.AgentSHA256, r.Workspace, *r.SessionID}
			sessions[k] = append(sessions[k], entry{r, record})
		}
	}
	for _, entries := range sessions {
		slices.SortFunc(entries, func(x, y entry) int { return cmp.Compare(x.record.LedgerSequence, y.record.LedgerSequence) })
		for i := 1; i < len(entries); i++ {
			before, after := entries[i-1], entries[i]
			if !policy.Follows(*before.record.Cost, *after.record.Cost) {
				a.add(Finding{Component: "runtime", Code: "cost_account_reset", Severity: Error, Place: "run " + string(after.run.ID), Remedy: reportIt,
					What: fmt.Sprintf("run %s knows less of what session %s has cost than run %s did before", after.run.ID, *after.run.SessionID, before.run.ID)})
			}
		}
	}
}

// pending compares a run's account with its outcome. Records of the original are settled in a way of
// their own.
func (a *audit) pending(r *runstore.Run, record *usage.Record) {
	if !r.State.Terminal() || record.LedgerSequence == 0 {
		return
	}
	begun := r.Outcome != nil && r.Outcome.PromptStarted != nil && *r.Outcome.PromptStarted
	ended := r.Outcome != nil && r.Outcome.StopReason != nil
	uncertain := begun && !ended
	if record.Cost.Pending == uncertain {
		return
	}
	what := fmt.Sprintf("run %s has ended with a prompt of unknown outcome, which its cost account does not have", r.ID)
	if !uncertain {
		what = fmt.Sprintf("run %s has ended, and the cost account of its session has a prompt pending that it did not leave", r.ID)
	}
	a.add(Finding{Component: "runtime", Code: "cost_account_unsettled", Severity: Error, Place: "run " + string(r.ID), What: what, Remedy: reportIt})
}
