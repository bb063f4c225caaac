package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/policy"
)

// What a session still takes: bytes of input, and, where the binding limits it, cost. Both are checked
// before each prompt, the first one before a process is started wherever the session is known by
// then, and debited durably before the prompt is sent. Spec: "Bounded client input", "Reported usage observations".

// firstPrompt is the reservation of a run's first prompt. Every later one has an id of its own.
const firstPrompt = "first-prompt"

// errUsageBudget ends a prompt whose session has reached its cost budget.
var errUsageBudget = errors.New("the session's reported cost ends the prompt")

// overrun is a prompt that a budget does not let go out. Nothing of it was reserved or sent.
type overrun struct {
	*refusal.Refusal
	// input is outcome.input_budget, usage outcome.usage_budget; one of them is set.
	input, usage map[string]any
}

func (o *overrun) Unwrap() error { return o.Refusal }

// overBudget ends a run whose prompt was not let out.
func (e *execution) overBudget(o *overrun) ending {
	e.outcome.inputBudget, e.outcome.usageBudget = o.input, o.usage
	if o.usage != nil {
		return e.failed(usageBudget, "", o)
	}
	return e.failed(inputBudget, "InputBudgetExceeded", o)
}

// sessionKey names the session whose budgets count.
func (e *execution) sessionKey() sessionKey {
	return sessionKey{e.run.AgentSHA256, e.workspace, e.session.ID()}
}

// admitContext refuses, before a process is started, a first prompt that could not be sent: one that
// is too large, or that the saved session does not take.
func (d *Daemon) admitContext(e *execution) (ending, bool) {
	n := int64(len(e.prompt))
	if over := e.overPrompt(n); over != nil {
		return e.overBudget(over), false
	}
	if !e.reopens {
		return ending{}, true // it will be a new session
	}
	k := sessionKey{e.run.AgentSHA256, e.workspace, e.saved}
	past, err := d.sessions.past(d.store.View, k)
	if err != nil {
		return storeFailed(err), false
	}
	facts := d.sessions.now(d.store.View(), k, past)
	if over := e.overSession(k.id, facts, n, facts.account(true)); over != nil {
		return e.overBudget(over), false
	}
	return ending{}, true
}

// overSession checks what the session still takes.
func (e *execution) overSession(session string, f sessionFacts, n int64, a policy.CostAccount) *overrun {
	if over := e.overInput(session, f, n); over != nil {
		return over
	}
	return e.overCost(session, a.Before(e.costBudget()), a)
}

// overPrompt checks one prompt of n bytes. E-560.
func (e *execution) overPrompt(n int64) *overrun {
	limit := int64(e.binding.MaxPromptBytes)
	if n <= limit {
		return nil
	}
	return &overrun{input: map[string]any{"budget": "prompt", "limit_bytes": limit, "used_bytes": 0, "requested_bytes": n},
		Refusal: refusal.New(refusal.CodePromptTooLarge, "shorten the task, or raise max_prompt_bytes of binding "+e.binding.ID,
			"the prompt has %d bytes, binding %s allows %d", n, e.binding.ID, limit)}
}

// overInput checks n more bytes for the session. E-564, E-572, E-573.
func (e *execution) overInput(session string, f sessionFacts, n int64) *overrun {
	limit := int64(e.binding.MaxSessionInputBytes)
	budget := map[string]any{"budget": "session", "limit_bytes": limit, "used_bytes": f.sent, "requested_bytes": n, "session_id": session}
	switch {
	case f.sentUnknown:
		budget["used_bytes"], budget["reason"] = nil, "session_history_unknown"
		return &overrun{input: budget, Refusal: refusal.New(refusal.CodePromptTooLarge, newSession(e.binding),
			"what session %s has taken before is on no record", session)}
	case f.sent+n > limit:
		return &overrun{input: budget, Refusal: refusal.New(refusal.CodePromptTooLarge,
			"raise max_session_input_bytes of binding "+e.binding.ID+", or "+newSession(e.binding),
			"session %s has taken %d bytes, %d more would pass its limit of %d", session, f.sent, n, limit)}
	}
	return nil
}

// costBudget is the binding's; none where it has none.
func (e *execution) costBudget() policy.CostBudget {
	if e.binding.MaxReportedSessionCost == nil || e.binding.ReportedCostCurrency == nil {
		return policy.CostBudget{}
	}
	return policy.CostBudget{Limit: json.Number(e.binding.MaxReportedSessionCost.String()), Currency: *e.binding.ReportedCostCurrency}
}

// overCost says a hold of the session's cost budget with its values; nil where there is none.
// E-546, E-547, E-549, E-553..E-555.
func (e *execution) overCost(session string, hold policy.CostHold, a policy.CostAccount) *overrun {
	if hold == policy.NoCostHold {
		return nil
	}
	b := e.costBudget()
	return &overrun{usage: map[string]any{"budget": "reported_session_cost", "reason": string(hold), "limit": b.Limit, "required_currency": b.Currency,
		"amount": a.Amount, "currency": a.Currency, "session_id": session},
		Refusal: refusal.New(refusal.CodeUsageBudget, costRemedy(e.binding), "%s", costHeld(hold, session, e.binding.ID, a, b))}
}

// costRemedy is what leads on. A retry alone leads to the same session's account again. E-556.
func costRemedy(b contract.Binding) string {
	if b.Session == contract.SessionNew {
		return "raise max_reported_session_cost of binding " + b.ID + ", or " + newSession(b)
	}
	return newSession(b) + ", or revise its max_reported_session_cost and reported_cost_currency"
}

// newSession leads to a session with budgets of its own. They follow the id that the agent gives, and
// one that gives the same id to each session has one for all of them.
func newSession(b contract.Binding) string {
	if b.Session == contract.SessionNew {
		return "let the agent of binding " + b.ID + " give each session an id of its own"
	}
	return "set `session: new` for binding " + b.ID
}

func costHeld(hold policy.CostHold, session, binding string, a policy.CostAccount, b policy.CostBudget) string {
	reported := "nothing yet"
	if a.Amount != nil && a.Currency != nil {
		reported = fmt.Sprintf("%s %s", *a.Amount, *a.Currency)
	}
	limit := fmt.Sprintf("binding %s allows less than %s %s", binding, b.Limit, b.Currency)
	switch hold {
	case policy.CostLimitReached:
		return fmt.Sprintf("session %s has cost %s as its agent reports it; %s", session, reported, limit)
	case policy.CostUnavailable:
		return fmt.Sprintf("the last prompt of session %s ended without a new report of its cost (reported: %s); %s", session, reported, limit)
	case policy.CurrencyMismatch:
		return fmt.Sprintf("session %s reports its cost in another currency (%s), and nothing is converted; %s", session, reported, limit)
	case policy.InvalidCost:
		return fmt.Sprintf("session %s has reported a cost that is no amount (before: %s); %s", session, reported, limit)
	case policy.CostRegressed:
		return fmt.Sprintf("the reported cost of session %s went down (highest: %s), so what it has cost is not known; %s", session, reported, limit)
	case policy.CurrencyChanged:
		return fmt.Sprintf("session %s has changed the currency of its cost (before: %s); %s", session, reported, limit)
	}
	return fmt.Sprintf("what session %s has cost is not known: how a prompt of it ended, or what came before, is on no record (reported: %s); %s", session, reported, limit)
}

// admitPrompt checks a prompt and debits it, before it is sent: the debit stands when the send's
// outcome is unknown, and so does that a prompt was started. id is the prompt's own in this run;
// the same prompt again debits nothing more. It fails with an [*overrun] where a budget says no.
// E-551, E-562, E-565, E-570.
func (d *Daemon) admitPrompt(ctx context.Context, e *execution, id, text string) error {
	n, limit, session := int64(len(text)), int64(e.binding.MaxSessionInputBytes), e.session.ID()
	if over := e.overPrompt(n); over != nil {
		return over
	}
	offset, before, saved := time.Since(e.began), e.outcome, e.usage.recorded()
	repeated := false
	err := d.update(ctx, func(tx *runstore.Tx) (err error) {
		e.outcome = before
		if old, again := tx.Reservations(e.run.ID)[id]; again && old.RequestedBytes == n {
			repeated = true
			return nil
		}
		facts := d.sessions.now(tx.View, e.sessionKey(), e.past)
		account, _ := e.usage.joined(facts, e.run.ID)
		if over := e.overSession(session, facts, n, account); over != nil {
			return over
		}
		used := facts.sent + n
		err = tx.Reserve(e.run.ID, id, runstore.Reservation{RequestedBytes: n, UsedBytes: used, LimitBytes: limit})
		if err != nil {
			return err
		}
		e.outcome.reserved, e.outcome.sessionReserved, e.outcome.prompted = before.reserved+n, used, true
		tx.Emit("usage_prompt_begin", e.run.ID, map[string]any{"held": false, "request_id": id})
		if saved, err = e.usage.save(tx, e.run.ID, account.Begun()); err != nil {
			return err
		}
		begun := e.outcomeRecord(e.session.Stats())
		if err := tx.EditRun(e.run.ID, func(r *runstore.Run) { r.Outcome = begun }); err != nil {
			return err
		}
		return tx.Stage(e.run.ID, "first_prompt_started", offset)
	})
	if err != nil {
		e.outcome = before
		return err
	}
	if repeated {
		return nil // it began when it was debited, and may have ended since
	}
	e.usage.keep(saved)
	e.usage.begin()
	return nil
}

// costEnded is the end of a run whose cost budget ended its prompt, or lets no other one go; ok is
// false where the budget says nothing. completed says that the turn would have been one.
func (e *execution) costEnded(completed bool) (_ ending, ok bool) {
	last, next, account := e.usage.ended()
	if last == policy.NoCostHold && completed {
		last = next
	}
	if last == policy.NoCostHold {
		return ending{}, false
	}
	return e.overBudget(e.overCost(e.session.ID(), last, account)), true
}
