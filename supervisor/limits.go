package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"greatminds/contract"
	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
	"greatminds/supervisor/policy"
	"greatminds/transport"
)

// limitReasons are the reasons of runs that end because their account is limited.
var limitReasons = map[string]string{
	contract.LimitRate:  string(policy.AccountRateLimit),
	contract.LimitQuota: string(policy.AccountQuota),
}

// limitSeen is a limit of an account that an agent has answered with.
type limitSeen struct {
	id   string
	rule contract.AccountLimitError
	at   time.Time // by the monotonic clock
}

// limited ends a run whose agent answered with an error code that its manifest lists as a limit of
// its account, and remembers the limit for the account's other runs. Nothing but the code decides:
// no word that an agent or its provider writes.
func (e *execution) limited(err error) (ending, bool) {
	var te *transport.Error
	if !errors.As(err, &te) || te.Code == nil {
		return ending{}, false
	}
	for _, rule := range e.agent.AccountLimitErrors {
		if rule.Code != *te.Code {
			continue
		}
		if e.limit == nil {
			e.limit = &limitSeen{id: runstore.NewID(), rule: rule, at: time.Now()}
		}
		e.outcome.errorCode, e.outcome.errorType = te.Code, "RequestError"
		e.outcome.what = fmt.Sprintf("the agent answered with code %d, which agents.%s lists as %s of its account", rule.Code, e.agent.ID, rule.Kind)
		return ending{runstore.Failed, limitReasons[rule.Kind], err}, true
	}
	return ending{}, false
}

// holdAccount makes a limit durable as soon as it is known, so that nobody is claimed under the
// account while its run is being ended. What the store does not take now is recorded with the end.
func (d *Daemon) holdAccount(ctx context.Context, e *execution) {
	if e.limit == nil {
		return
	}
	d.limits.note(e.limit.id, e.limit.at)
	if err := d.update(ctx, func(tx *runstore.Tx) error { return d.recordLimit(tx, e) }); err != nil {
		d.log.Error("limit of an account not recorded; it is tried again with the run's end", "run_id", e.run.ID, "account", e.run.Account, "err", err)
		return
	}
	d.log.Warn("account limited", "run_id", e.run.ID, "account", e.run.Account, "kind", e.limit.rule.Kind, "code", e.limit.rule.Code)
}

// recordLimit puts the limit that a run has seen on its record, and holds its account; once.
func (d *Daemon) recordLimit(tx *runstore.Tx, e *execution) error {
	if e.limit == nil || tx.Run(e.run.ID).AccountLimit != nil {
		return nil
	}
	observed := tx.Now().Add(-time.Since(e.limit.at))
	seen := policy.Limit{ID: e.limit.id, Kind: e.limit.rule.Kind, Code: e.limit.rule.Code, SourceRun: string(e.run.ID), ObservedAt: observed}
	if cooldown := e.limit.rule.CooldownSeconds; cooldown != nil {
		seen.Until = observed.Add(time.Duration(*cooldown) * time.Second)
	}
	facts := map[string]any{"hold_id": seen.ID, "kind": seen.Kind, "rpc_code": seen.Code, "observed_at": runstore.Epoch(observed), "account": e.run.Account}
	e.outcome.accountLimit = facts
	err := tx.EditRun(e.run.ID, func(r *runstore.Run) {
		r.AccountLimit, r.Outcome = raw(facts), e.outcomeRecord(e.stats())
	})
	if err != nil {
		return err
	}
	tx.Emit("account_limit_observed", e.run.ID, facts)
	held := dispatch.LimitOf(d.world(), tx.View, e.run.Account).With(seen, tx.Now())
	hold := runstore.AccountHold{Account: e.run.Account, ID: held.ID, Kind: held.Kind, ObservedAt: runstore.Epoch(held.ObservedAt),
		RPCCode: held.Code, SourceRun: runstore.RunID(held.SourceRun)}
	if !held.Until.IsZero() {
		until := runstore.Epoch(held.Until)
		hold.Until = &until
	}
	return tx.HoldAccount(hold)
}

// stats is what was counted of the conversation, nothing where there was none.
func (e *execution) stats() transport.Stats {
	if e.session == nil {
		return transport.Stats{}
	}
	return e.session.Stats()
}

// maxLimits bounds the limits of which it is remembered when they were observed.
const maxLimits = 1024

// limits remembers by the monotonic clock when limits were observed in this process, so that a wall
// clock that is set makes no hold of an account longer than it was meant to be.
type limits struct {
	began time.Time // of the process

	mu    sync.Mutex
	at    map[string]time.Time
	order []string
	// forgot: not all that were observed in this process are remembered.
	forgot bool
}

// note remembers when a limit was observed, before anybody can see it.
func (l *limits) note(id string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = map[string]time.Time{}
	}
	l.at[id] = at
	l.order = append(l.order, id)
	if len(l.order) > maxLimits {
		delete(l.at, l.order[0])
		l.order, l.forgot = l.order[1:], true
	}
}

// waited is for how long at least a limit has been on record. One that an earlier process has
// observed is older than this one.
func (l *limits) waited(id string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch at, known := l.at[id]; {
	case known:
		return time.Since(at)
	case l.forgot:
		return 0
	}
	return time.Since(l.began)
}
