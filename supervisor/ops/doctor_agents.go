package ops

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"greatminds/contract"
	"greatminds/internal/knownagents"
	"greatminds/runstore"
	"greatminds/supervisor/audit"
)

// silent names bindings whose permission policy reaches nothing: those of an agent that is known
// never to ask, or not to ask in the mode that it will be in; and those of which nobody can tell but the
// agent's own configuration, until a run of it has asked.
func (d *doctor) silent(c *contract.Contract, v *runstore.View) {
	d.inspected("agents")
	for _, b := range c.Bindings {
		agent, ok := c.Agent(b.Agent)
		if !ok {
			continue
		}
		known, edition, ok := recognize(agent, v)
		if !ok {
			continue
		}
		mode := ""
		if b.Mode != nil {
			mode = *b.Mode
		}
		why := known.Silence(edition, mode)
		if why == "" && known.Asking == knownagents.AsksByOwnConfig && !hasAsked(agent, v) {
			d.report.add(audit.Finding{Component: "agents", Code: "agent_asks_by_own_config", Severity: audit.Warning, Place: "binding " + b.ID,
				What: fmt.Sprintf("binding %s has `permission: %s`, but its agent %s is %s, which asks only where its own configuration says so, and it has not asked yet: %s",
					b.ID, b.Permission, agent.ID, known.Title, strings.Join(known.Notes[:1], "")),
				Remedy: fmt.Sprintf("set that, then see it ask: greatminds agent probe %s --prompt 'Write a file.'", agent.ID)})
		}
		if why == "" {
			continue
		}
		d.report.add(audit.Finding{Component: "agents", Code: "agent_does_not_ask", Severity: audit.Warning, Place: "binding " + b.ID,
			What: fmt.Sprintf("binding %s has `permission: %s`, but its agent %s is %s, and %s: no tool call of it will be decided on",
				b.ID, b.Permission, agent.ID, known.Title, why),
			Remedy: unsilence(b, known)})
	}
}

// maxAsked bounds the finished runs that are looked through for a question.
const maxAsked = 1000

// hasAsked tells whether a run of the same manifest asked for a permission: one in the hot state, or one
// of the newest finished ones, wherever they are. What of the history cannot be read is another finding's.
func hasAsked(a contract.Agent, v *runstore.View) bool {
	v = v.Apart()
	finished, _, _ := v.History("", maxAsked)
	sha := a.SHA256()
	for _, r := range slices.Concat(v.Runs(), finished) {
		if r.AgentSHA256 == sha && len(v.PermissionsOfRun(r.ID)) > 0 {
			return true
		}
	}
	return false
}

// unsilence says what makes an agent ask.
func unsilence(b contract.Binding, known knownagents.Agent) string {
	if known.Asking == knownagents.AsksInMode {
		return fmt.Sprintf("set `mode: %s` for binding %s in coordination/execution.yaml", known.Mode, b.ID)
	}
	return fmt.Sprintf("give binding %s another agent, or let this one work only where it may do anything", b.ID)
}

// recognize tells which known agent a manifest starts: by what the newest run of the same manifest
// has on record as the agent's own name, else by its argv.
func recognize(a contract.Agent, v *runstore.View) (knownagents.Agent, knownagents.Edition, bool) {
	sha := a.SHA256()
	var newest *runstore.Run
	for _, r := range v.Runs() {
		if r.AgentSHA256 == sha && len(r.Protocol) > 0 && (newest == nil || r.CreatedAt > newest.CreatedAt) {
			newest = r
		}
	}
	if newest != nil {
		var record struct {
			Negotiated struct {
				Data struct{ Agent struct{ Name string } }
			}
		}
		// A record of another form says nothing, like one of an agent that gave no name.
		_ = json.Unmarshal(newest.Protocol, &record)
		if known, edition, ok := knownagents.ByName(record.Negotiated.Data.Agent.Name); ok {
			return known, edition, true
		}
	}
	known, edition, _, ok := knownagents.Match(a.Argv)
	return known, edition, ok
}
