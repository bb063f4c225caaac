package supervisor

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"greatminds/runstore"
	"greatminds/supervisor/policy"
	"greatminds/supervisor/usage"
	"greatminds/transport"
)

// usageWatch holds what an agent reports of its use while its run goes on, and ends a prompt that its
// cost budget does not let go on. Its zero value is ready. Spec: "Reported usage observations".
type usageWatch struct {
	mu sync.Mutex
	// session and tokens are the latest samples; those on record are in saved.
	session *usage.Sample[usage.Session]
	tokens  *usage.Sample[usage.Tokens]
	saved   usage.Record
	// account is the session's, once opened. What was reported before waits in early.
	account policy.CostAccount
	opened  bool
	early   []policy.CostReport
	// budget and stop are those of the prompt under way; stop is nil between prompts. hold is why the
	// budget ended it.
	budget policy.CostBudget
	stop   context.CancelCauseFunc
	hold   policy.CostHold
	// finished says that a prompt's end is not on record yet.
	finished bool
}

// maxEarly bounds the reports that wait for the session's account; of more the last counts.
const maxEarly = 16

// observe takes one update. A replayed one is history, and tells nothing of now.
func (w *usageWatch) observe(u transport.Update, at time.Time) {
	if u.Usage == nil || u.Replayed {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.session = &usage.Sample[usage.Session]{At: runstore.Epoch(at), Data: usage.SessionOf(*u.Usage)}
	report := usage.CostOf(u.Usage.Cost)
	switch {
	case w.opened:
		w.account = w.account.Reported(report)
		w.check()
	case report.Reading == policy.Missing:
	case len(w.early) < maxEarly:
		w.early = append(w.early, report)
	default:
		w.early[maxEarly-1] = report
	}
}

// check ends the prompt under way where its budget says so. The lock is held.
func (w *usageWatch) check() {
	if w.stop == nil || w.hold != policy.NoCostHold {
		return
	}
	if w.hold = w.account.During(w.budget); w.hold != policy.NoCostHold {
		w.stop(errUsageBudget)
	}
}

// open takes over the session's account.
func (w *usageWatch) open(a policy.CostAccount) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.early {
		a = a.Reported(r)
	}
	w.account, w.opened, w.early = a, true, nil
}

// joined is the account as it is now. Where another run has used the session meanwhile, nobody knows
// whose reports count.
func (w *usageWatch) joined(f sessionFacts, run runstore.RunID) (a policy.CostAccount, opened bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opened && f.writer != run {
		w.account = w.account.Doubt(policy.CostHistoryUnknown)
	}
	return w.account, w.opened
}

// begin notes that a prompt is on record.
func (w *usageWatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.account = w.account.Begun()
}

// watch lets the budget end the prompt under way, until finish.
func (w *usageWatch) watch(b policy.CostBudget, stop context.CancelCauseFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budget, w.stop, w.hold = b, stop, policy.NoCostHold
	w.check() // a report may have come since the prompt was admitted
}

// finish takes the end of a prompt. Without a stop reason its outcome is not known: it stays pending.
func (w *usageWatch) finish(turn transport.Turn, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = nil
	if turn.StopReason == "" {
		return
	}
	w.tokens = &usage.Sample[usage.Tokens]{At: runstore.Epoch(at), Data: usage.TokensOf(turn.Tokens)}
	w.account, w.finished = w.account.Finished(), true
}

// ended says why the budget ended the last prompt, and why it lets no other one go, where it does.
func (w *usageWatch) ended() (last, next policy.CostHold, _ policy.CostAccount) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hold, w.account.Before(w.budget), w.account
}

// recorded is what is on record.
func (w *usageWatch) recorded() usage.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.saved
}

// news tells whether something was observed that is not on record.
func (w *usageWatch) news() (old usage.Record, news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.saved, w.session != w.saved.Session || w.tokens != w.saved.Tokens
}

// save puts what is known into the run's record, with events of what was observed since the last
// time. The caller notes what it returns with keep, once it is durable.
func (w *usageWatch) save(tx *runstore.Tx, run runstore.RunID, a policy.CostAccount) (usage.Record, error) {
	w.mu.Lock()
	r, old := usage.Record{Session: w.session, Tokens: w.tokens, Cost: &a}, w.saved
	w.mu.Unlock()
	if r.Session != old.Session {
		tx.Emit("usage_observed", run, map[string]any{"kind": "session", "context": r.Session.Data.Context, "cost": r.Session.Data.Cost})
	}
	if r.Tokens != old.Tokens {
		t := r.Tokens.Data
		tx.Emit("usage_observed", run, map[string]any{"kind": "tokens", "scope": t.Scope, "status": t.Status, "values": t.Values})
	}
	r.LedgerSequence = tx.Sequence()
	raw, err := r.Encode()
	if err != nil {
		return r, err
	}
	return r, tx.EditRun(run, func(r *runstore.Run) { r.Usage = raw })
}

// keep notes what is on record.
func (w *usageWatch) keep(r usage.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saved = r
}

// prepare is the record with which a run takes the session over.
func (w *usageWatch) prepare(tx *runstore.Tx, run runstore.RunID, a policy.CostAccount) (json.RawMessage, error) {
	tx.Emit("usage_session_prepared", run, map[string]any{"amount": a.Amount, "currency": a.Currency, "status": a.Status, "error": a.Error})
	return usage.Record{Cost: &a, LedgerSequence: tx.Sequence()}.Encode()
}

// Update notes what the agent reports of its use.
func (h handler) Update(u transport.Update) error {
	h.usage.observe(u, h.d.o.Now())
	return h.execution.Update(u)
}

// saveUsage makes new observations durable, and with them what is known of the session's cost.
func (d *Daemon) saveUsage(tx *runstore.Tx, e *execution) (usage.Record, error) {
	a, opened := e.usage.joined(d.sessions.now(tx.View, e.sessionKey(), e.past), e.run.ID)
	if old, news := e.usage.news(); !opened || !news {
		return old, nil
	}
	return e.usage.save(tx, e.run.ID, a)
}

// settleUsage makes the end of a run's prompts durable, in the transaction that records the run's
// end: what is pending then stays pending, as an uncertain send.
func (d *Daemon) settleUsage(tx *runstore.Tx, e *execution) error {
	if e.session == nil || tx.Run(e.run.ID).SessionID == nil {
		return nil // there never was an account
	}
	a, _ := e.usage.joined(d.sessions.now(tx.View, e.sessionKey(), e.past), e.run.ID)
	if e.usage.finished {
		last, next, _ := e.usage.ended()
		tx.Emit("usage_prompt_finish", e.run.ID, map[string]any{"held": last != policy.NoCostHold || next != policy.NoCostHold,
			"completed_prompts": a.CompletedPrompts})
	}
	_, err := e.usage.save(tx, e.run.ID, a)
	return err
}
