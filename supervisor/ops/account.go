package ops

import (
	"context"

	"greatminds/runstore"
)

// AccountResumeArgs end the hold of an account.
type AccountResumeArgs struct {
	Account string `json:"account"`
	// Hold is the hold that the operator has looked at.
	Hold   string `json:"hold_id"`
	Reason string `json:"reason"`
}

// runAccountResume ends a limit that an account's provider has told of. It starts nothing by itself:
// what was tried under the account waits for its own retry. Reference: run account-resume.
func runAccountResume(ctx context.Context, r *request) (any, error) {
	var args AccountResumeArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	if err := checkReason(args.Reason); err != nil {
		return nil, err
	}
	answer, err := r.change(ctx, func(tx *runstore.Tx) (any, error) {
		return tx.ResumeAccount(args.Account, args.Hold, args.Reason)
	})
	if err == nil {
		r.Log.Info("account resumed", "account", args.Account, "hold_id", args.Hold)
		r.Daemon.Wake()
	}
	return answer, err
}
