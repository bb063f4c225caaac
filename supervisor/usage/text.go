package usage

import (
	"encoding/json"
	"fmt"
	"strings"

	"greatminds/supervisor/policy"
)

// Text says in one line what a run's member usage holds, for a person; empty where it holds nothing
// that would tell something. The currency is the agent's word: escape the line before it is shown.
func Text(raw json.RawMessage) string {
	r := Read(raw)
	if r == nil {
		return ""
	}
	var parts []string
	if r.Session != nil {
		parts = append(parts, r.Session.Data.Context.text()+" (occupancy)")
	}
	if r.Cost != nil {
		parts = append(parts, costText(*r.Cost))
	}
	if r.Tokens != nil && r.Tokens.Data.Status != policy.Missing {
		parts = append(parts, r.Tokens.Data.text())
	}
	return strings.Join(parts, "; ")
}

func (c Context) text() string {
	used, u := c.Values["used"]
	size, s := c.Values["size"]
	switch {
	case u && s:
		return "context " + short(used) + " of " + short(size) + " tokens"
	case u:
		return "context " + short(used) + " tokens"
	}
	return "context " + string(c.Status)
}

// costText never shows an amount as if it were certain where it is not.
func costText(a policy.CostAccount) string {
	text := "session cost not reported"
	switch {
	case a.Amount != nil && a.Currency != nil:
		text = fmt.Sprintf("reported session cost %s %s (as the agent reports it, not a bill)", *a.Amount, *a.Currency)
	case a.Status == policy.Invalid:
		text = "session cost invalid"
	}
	switch {
	case a.Error != nil:
		text += ", in doubt: " + string(*a.Error)
	case a.Pending:
		text += ", a prompt is pending"
	}
	return text
}

func (t Tokens) text() string {
	if t.Status != policy.Reported {
		return "last prompt's tokens " + string(t.Status)
	}
	var parts []string
	for _, c := range [][2]string{{"inputTokens", "in"}, {"outputTokens", "out"}, {"totalTokens", "total"}, {"thoughtTokens", "thought"},
		{"cachedReadTokens", "cache read"}, {"cachedWriteTokens", "cache written"}} {
		if n, ok := t.Values[c[0]]; ok {
			parts = append(parts, short(n)+" "+c[1])
		}
	}
	return "last prompt's tokens as reported: " + strings.Join(parts, ", ")
}

// short writes a count in three digits or so.
func short(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 10_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}
