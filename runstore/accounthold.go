package runstore

import "greatminds/internal/refusal"

// AccountHold is a limit that a provider has told of an account, and until when nothing new runs
// under that account. One at most is on record for each account: the newest observation, with what
// of earlier ones still counts. It outlasts the run that it was observed in, wherever that is.
type AccountHold struct {
	Account string `json:"account"`
	// ID is 32 hex digits, new with every observation, so that an operator resumes what they have
	// looked at and not what has been observed since.
	ID string `json:"id"`
	// Kind is rate_limit or quota_exhausted.
	Kind string `json:"kind"`
	// ObservedAt is in seconds of the Unix epoch.
	ObservedAt float64 `json:"observed_at"`
	// RPCCode is the JSON-RPC error code that the agent's manifest lists.
	RPCCode   int   `json:"rpc_code"`
	SourceRun RunID `json:"source_run"`
	// Status is active or resolved. An active hold whose time is over holds nothing.
	Status string `json:"status"`
	// Until is when the hold ends by itself; nil where only an operator ends it.
	Until *float64 `json:"until"`
	// Resolution is what the operator said who ended it, ResolvedAt is when.
	Resolution string   `json:"resolution,omitempty"`
	ResolvedAt *float64 `json:"resolved_at,omitempty"`
	Extra      Members  `json:"-"`
}

// The statuses of an account's hold.
const (
	holdActive   = "active"
	holdResolved = "resolved"
)

// Active tells whether nobody has ended the hold; its time may be over all the same.
func (a *AccountHold) Active() bool { return a.Status == holdActive }

// AccountHold returns the hold on record for an account, nil where there is none.
func (v *View) AccountHold(account string) *AccountHold { return lookup(v.h.accountHolds, account) }

// AccountHolds returns the holds on record by account.
func (v *View) AccountHolds() map[string]*AccountHold {
	all := make(map[string]*AccountHold, v.h.accountHolds.len())
	v.h.accountHolds.each(func(account string, hold *AccountHold) bool { all[account] = hold; return true })
	return all
}

// HoldAccount puts an active hold on record, in place of the account's earlier one. The caller
// emits the event that says why.
func (tx *Tx) HoldAccount(hold AccountHold) error {
	if hold.Account == "" || hold.ID == "" {
		return refusal.New(refusal.CodeRecordInvalid, "this is a fault of the program: report it", "hold %q of account %q", hold.ID, hold.Account)
	}
	hold.Status, hold.Resolution, hold.ResolvedAt = holdActive, "", nil
	return tx.putAccountHold(&hold)
}

// ResumeAccount ends the hold of an account on behalf of an operator and emits account_resumed. The
// hold that was ended already with the same reason is returned again. It fails with
// [refusal.CodeAccountHold] where another hold is on record, or none, or where the hold was ended
// for another reason.
func (tx *Tx) ResumeAccount(account, id, reason string) (*AccountHold, error) {
	const look = "look at the account in `greatminds run status`"
	old := tx.AccountHold(account)
	switch {
	case old == nil:
		return nil, refusal.New(refusal.CodeAccountHold, look, "account %q has no hold", account)
	case old.ID != id:
		return nil, refusal.New(refusal.CodeAccountHold, look+", then resume that one",
			"hold %q of account %q is not the one on record, which is %s", id, account, old.ID)
	case !old.Active() && old.Resolution == reason:
		return old, nil
	case !old.Active():
		return nil, refusal.New(refusal.CodeAccountHold, look, "hold %s of account %q has already been ended, for another reason: %s", id, account, old.Resolution)
	}
	next, at := *old, tx.at()
	next.Status, next.Resolution, next.ResolvedAt = holdResolved, reason, &at
	if err := tx.putAccountHold(&next); err != nil {
		return nil, err
	}
	tx.Emit("account_resumed", "", map[string]any{"account": account, "hold_id": id})
	return tx.AccountHold(account), nil
}

func (tx *Tx) putAccountHold(hold *AccountHold) error {
	stored, err := normal(hold)
	if err != nil {
		return unstorable("account hold", hold.ID, err)
	}
	tx.View.h.putAccountHold(stored)
	tx.touch(inAccountHolds, stored.Account)
	return nil
}
