// Package usage is the record of what an agent reports of its use: the durable member usage of a
// run, written and read in one place, and how it reads to a person.
//
// The invariant kept: the record holds numbers, currencies and our own words, nothing else that the
// agent sent. A report that is missing or invalid says so, and never reads as zero. The shape is the
// original's: {version, source, session, tokens, cost_accounting}, where session and tokens are the
// latest samples, each {at, data} with its own time. Ours alone is ledger_sequence.
// Spec: "Reported usage observations".
package usage

import (
	"encoding/json"

	"greatminds/supervisor/policy"
	"greatminds/transport"
)

// Source says where the values come from: they are as a decoder of ACP read them, not the bytes of
// the wire.
const Source = "acp_sdk_decoded"

// Record is a run's member usage.
type Record struct {
	Version int    `json:"version"`
	Source  string `json:"source"`
	// Session is the latest sample of context and cost, Tokens that of the latest prompt's answer.
	Session *Sample[Session] `json:"session,omitempty"`
	Tokens  *Sample[Tokens]  `json:"tokens,omitempty"`
	// Cost is the account of the session's cost; nil before the run had a session.
	Cost *policy.CostAccount `json:"cost_accounting,omitempty"`
	// LedgerSequence is the sequence of the event with which Cost was written: of two runs of one
	// session the one with the higher sequence knows more.
	LedgerSequence uint64 `json:"ledger_sequence,omitempty"`
}

// Sample is one observation and its time, in seconds of the Unix epoch.
type Sample[T any] struct {
	At   float64 `json:"at"`
	Data T       `json:"data"`
}

// Session is one usage_update.
type Session struct {
	Context Context `json:"context"`
	Cost    Cost    `json:"cost"`
}

// Context is how full the context window is: occupancy, which may go down, and no spend.
type Context struct {
	Scope  string         `json:"scope"` // context
	Status policy.Reading `json:"status"`
	// Values holds used and size, in tokens, as far as they were reported.
	Values map[string]int64 `json:"values,omitempty"`
}

// Cost is what the session cost so far, as the agent reports it.
type Cost struct {
	Scope    string         `json:"scope"` // session
	Status   policy.Reading `json:"status"`
	Amount   *json.Number   `json:"amount,omitempty"`
	Currency *string        `json:"currency,omitempty"`
}

// Tokens is the usage of one prompt's answer. Whether it is per turn or cumulative is unknown, and
// its categories may overlap: nothing is added up.
type Tokens struct {
	Scope  string         `json:"scope"` // unknown
	Status policy.Reading `json:"status"`
	// Values holds the counters that were reported, by their names in ACP.
	Values map[string]int64 `json:"values,omitempty"`
	// Invalid names those that were no counters.
	Invalid []string `json:"invalid,omitempty"`
}

// Read decodes a run's member usage; nil where there is none, or none of this form.
func Read(raw json.RawMessage) *Record {
	if len(raw) == 0 {
		return nil
	}
	r := new(Record)
	if json.Unmarshal(raw, r) != nil || r.Version != 1 {
		return nil
	}
	return r
}

// Encode returns the record as a run's member usage.
func (r Record) Encode() (json.RawMessage, error) {
	r.Version, r.Source = 1, Source
	return json.Marshal(r)
}

// SessionOf is the sample of one usage_update.
func SessionOf(u transport.UsageReport) Session {
	s := Session{Context: Context{Scope: "context", Status: policy.Reported}, Cost: Cost{Scope: "session", Status: policy.Reading(u.Cost.Reading)}}
	for name, c := range map[string]transport.Counter{"used": u.Used, "size": u.Size} {
		switch {
		case c.Reading == transport.Reported:
			s.Context.Values = put(s.Context.Values, name, c.Value)
		case c.Reading == transport.Invalid || s.Context.Status == policy.Reported:
			s.Context.Status = policy.Reading(c.Reading)
		}
	}
	if u.Cost.Reading == transport.Reported {
		s.Cost.Amount, s.Cost.Currency = &u.Cost.Amount, &u.Cost.Currency
	}
	return s
}

// TokensOf is the sample of one prompt's answer.
func TokensOf(t transport.Tokens) Tokens {
	out := Tokens{Scope: "unknown", Status: policy.Reading(t.Reading)}
	if t.Reading == "" {
		out.Status = policy.Missing
	}
	for _, c := range []struct {
		name string
		transport.Counter
	}{{"inputTokens", t.Input}, {"outputTokens", t.Output}, {"totalTokens", t.Total}, {"thoughtTokens", t.Thought},
		{"cachedReadTokens", t.CachedRead}, {"cachedWriteTokens", t.CachedWritten}} {
		switch c.Reading {
		case transport.Reported:
			out.Values = put(out.Values, c.name, c.Value)
		case transport.Invalid:
			out.Invalid = append(out.Invalid, c.name)
		}
	}
	return out
}

func put(m map[string]int64, name string, v int64) map[string]int64 {
	if m == nil {
		m = map[string]int64{}
	}
	m[name] = v
	return m
}

// CostOf is a reported cost as the policy reads it.
func CostOf(c transport.Cost) policy.CostReport {
	return policy.CostReport{Reading: policy.Reading(c.Reading), Amount: c.Amount, Currency: c.Currency}
}
