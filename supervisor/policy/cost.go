package policy

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// The account of what one session has cost, as its agent reports it. Amounts are only ever
// compared, exactly as they were written: never summed, never converted, never estimated.
//
// The invariant kept: what has once been doubted stays in doubt, and the amount never goes down, so
// that no report, crash or load sets a budget back. Spec: "Reported usage observations".

// Reading says whether something was reported, and usable.
type Reading string

// The readings.
const (
	Missing  Reading = "missing"
	Invalid  Reading = "invalid"
	Reported Reading = "reported"
)

// CostHold says why a session's cost budget lets no prompt go on, in the words of
// outcome.usage_budget.reason. NoCostHold lets it go on.
type CostHold string

// The holds. The doubts among them are kept in the account's member error.
const (
	NoCostHold CostHold = ""
	// CostLimitReached: the reported cost is at or above the limit.
	CostLimitReached CostHold = "cost_limit_reached"
	// CostUnavailable: a completed prompt brought no new report.
	CostUnavailable CostHold = "cost_unavailable"
	// CurrencyMismatch: the agent reports in another currency than the binding expects.
	CurrencyMismatch CostHold = "currency_mismatch"
	// CostHistoryUnknown is the doubt about a session of which a prompt's end, or what came before,
	// is on no record.
	CostHistoryUnknown CostHold = "session_history_unknown"
	// InvalidCost is the doubt of a cost that was no amount.
	InvalidCost CostHold = "invalid_cost"
	// CostRegressed is the doubt of a cumulative cost that went down.
	CostRegressed CostHold = "cost_regressed"
	// CurrencyChanged is the doubt of a session that changed its currency.
	CurrencyChanged CostHold = "currency_changed"
)

// CostReport is one report of a session's cost so far.
type CostReport struct {
	Reading Reading
	// Amount is as the agent wrote it, Currency its code; both only where Reading is Reported.
	Amount   json.Number
	Currency string
}

// CostBudget is a binding's limit. The zero value is no budget.
type CostBudget struct {
	Limit    json.Number
	Currency string
}

// CostAccount is the durable member cost_accounting of a run: what is known of its session's cost.
// The zero value is no account; use [NewCostAccount].
type CostAccount struct {
	// Amount is the highest amount reported, nil before the first report.
	Amount *json.Number `json:"amount"`
	// CompletedPrompts counts the prompts of the session that ended with a stop reason.
	CompletedPrompts int64   `json:"completed_prompts"`
	Currency         *string `json:"currency"`
	// Error is the first doubt, nil without one. It stays.
	Error *CostHold `json:"error"`
	// Fresh says that a report came while the session's last prompt was pending.
	Fresh bool `json:"fresh"`
	// Pending says that a prompt may have been sent and has not ended with a stop reason.
	Pending bool    `json:"pending"`
	Status  Reading `json:"status"`
}

// NewCostAccount is the account of a session that has just been made.
func NewCostAccount() CostAccount { return CostAccount{Status: Missing} }

// UnknownCostAccount is the account of a session that was used before, nobody knows how.
func UnknownCostAccount() CostAccount { return NewCostAccount().Doubt(CostHistoryUnknown) }

// Doubt returns the account with a doubt. The first one stands.
func (a CostAccount) Doubt(why CostHold) CostAccount {
	if a.Error == nil {
		a.Error = &why
	}
	return a
}

// Opened is the account as a further run takes it over with the session: a prompt that still is
// pending then has an unknown outcome. E-552.
func (a CostAccount) Opened() CostAccount {
	if a.Pending {
		a.Pending, a.Fresh = false, false
		return a.Doubt(CostHistoryUnknown)
	}
	return a
}

// Begun is the account with a prompt that is about to be sent.
func (a CostAccount) Begun() CostAccount {
	a.Pending, a.Fresh = true, false
	return a
}

// Finished is the account after a prompt that ended with a stop reason.
func (a CostAccount) Finished() CostAccount {
	if a.Pending {
		a.Pending = false
		a.CompletedPrompts++
	}
	return a
}

// Reported is the account after a report. One that is missing says nothing. E-553, E-554.
func (a CostAccount) Reported(r CostReport) CostAccount {
	if r.Reading == Missing {
		return a
	}
	amount, ok := exact(r.Amount)
	if r.Reading != Reported || !ok || amount.Sign() < 0 || r.Currency == "" {
		a.Status, a.Fresh = Invalid, false
		return a.Doubt(InvalidCost)
	}
	if a.Amount != nil {
		known, readable := exact(*a.Amount)
		switch {
		case !readable || a.Currency == nil:
			return a.Doubt(CostHistoryUnknown)
		case *a.Currency != r.Currency:
			return a.Doubt(CurrencyChanged)
		case amount.Cmp(known) < 0:
			return a.Doubt(CostRegressed)
		}
	}
	a.Amount, a.Currency, a.Status, a.Fresh = &r.Amount, &r.Currency, Reported, a.Fresh || a.Pending
	return a
}

// Follows tells whether an account may stand where another one stood before: it has all its doubts,
// and no lower amount.
func Follows(before, after CostAccount) bool {
	if after.Error != nil {
		return true // nothing goes on from a doubt but a doubt
	}
	if before.Error != nil || before.Pending || after.CompletedPrompts < before.CompletedPrompts {
		return false
	}
	if before.Amount == nil {
		return true
	}
	return before.Currency != nil && after.Currency != nil && *before.Currency == *after.Currency && after.Amount != nil &&
		reaches(after.Amount, *before.Amount)
}

// During judges the account while a prompt is under way. E-546, E-547, E-555.
func (a CostAccount) During(b CostBudget) CostHold {
	if b == (CostBudget{}) {
		return NoCostHold
	}
	same := a.Currency != nil && *a.Currency == b.Currency
	switch {
	case same && reaches(a.Amount, b.Limit):
		return CostLimitReached
	case a.Error != nil:
		return *a.Error
	case a.Amount != nil && !same:
		return CurrencyMismatch
	}
	return NoCostHold
}

// Before judges the account before a prompt is sent. A session that has completed none may send one
// without a known cost. E-548, E-549.
func (a CostAccount) Before(b CostBudget) CostHold {
	hold := a.During(b)
	switch {
	case hold != NoCostHold || b == (CostBudget{}):
		return hold
	case a.Pending:
		return CostHistoryUnknown
	case a.CompletedPrompts > 0 && !a.Fresh:
		return CostUnavailable
	}
	return NoCostHold
}

// reaches tells whether an amount is at or above the limit. What cannot be compared counts as above.
func reaches(amount *json.Number, limit json.Number) bool {
	if amount == nil {
		return false
	}
	a, ok := exact(*amount)
	l, fine := exact(limit)
	return !ok || !fine || a.Cmp(l) >= 0
}

// maxExponent bounds the decimal exponents of amounts: a contract's limit goes to 1e100.
const maxExponent = 400

// exact reads a JSON number without rounding. It fails on what is none, and on numbers that only
// their exponent makes large or small.
func exact(n json.Number) (*big.Rat, bool) {
	mantissa, exponent, has := strings.Cut(strings.ToLower(string(n)), "e")
	if has {
		e, err := strconv.Atoi(exponent)
		if err != nil || e < -maxExponent || e > maxExponent {
			return nil, false
		}
	}
	if len(mantissa) > maxExponent || !json.Valid([]byte(n)) || strings.Trim(mantissa, "-.0123456789") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}
