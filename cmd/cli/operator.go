package cli

import (
	"context"
	"errors"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/supervisor/control"
)

// operatorOnly refuses to an assigned agent what no operation of the daemon does: to one that carries
// any part of a run's credential, and, where a daemon serves the project, to whoever descends from it,
// whatever its environment says. Where a daemon is there and does not say, nothing is allowed. Without
// one no agent lives that it could have started.
func (a *app) operatorOnly(ctx context.Context, p contract.Project, doing string) error {
	if err := a.notAssigned(doing); err != nil {
		return err
	}
	c, err := a.newCall(p, "operator.check", struct{}{})
	if err != nil {
		return err
	}
	_, err = askDaemon(ctx, p, c, 0)
	switch r, _ := refusal.Find(err); {
	case err == nil, errors.Is(err, control.ErrNoDaemon):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case r != nil && r.Code == refusal.CodeOperatorOnly:
		return refusal.New(refusal.CodeOperatorOnly, r.Remedy, "an assigned agent may not %s: %s", doing, r.What)
	case r != nil:
		return err
	}
	return &refusal.Refusal{Code: refusal.CodeDaemonSilent, Err: err,
		What:   "the daemon of " + p.Root + " does not answer, so it cannot be told whether one of its agents asks to " + doing,
		Remedy: "look at `greatminds daemon status`; when the daemon hangs, end it and try again"}
}

// notAssigned refuses what an assigned agent may not do, to a caller that carries a run's credential.
func (a *app) notAssigned(doing string) error {
	if a.Getenv("GREATMINDS_RUN_ID") != "" || a.Getenv("GREATMINDS_RUN_TOKEN") != "" {
		return refusal.New(refusal.CodeOperatorOnly, "leave it to the operator", "an assigned agent may not %s", doing)
	}
	return nil
}
