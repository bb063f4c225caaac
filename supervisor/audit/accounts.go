package audit

import "fmt"

// accounts looks at every limit that a run has met: its account is on record as held, or as resumed
// since.
func (a *audit) accounts() {
	for _, r := range a.View.Runs() {
		if r.AccountLimit != nil && a.View.AccountHold(r.Account) == nil {
			a.add(Finding{Component: "accounts", Code: "account_hold_missing", Severity: Error, Place: "run " + string(r.ID), Remedy: reportIt,
				What: fmt.Sprintf("run %s met a limit of account %s, of which no hold is on record", r.ID, r.Account)})
		}
	}
}
