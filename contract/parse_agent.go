package contract

import (
	"slices"
	"strings"

	"greatminds/internal/yamldoc"
)

func (r *contractReader) agents(n *yamldoc.Node, path string) {
	if n.Kind == yamldoc.Mapping && r.agentsRead == nil {
		r.agentsRead = map[string]bool{}
	}
	r.entries(n, path, checkName, func(id string, n *yamldoc.Node, path string) {
		r.agentsRead[id] = true
		a := Agent{ID: id, Environment: []EnvRef{}, RequiredEnv: []string{}, RequiredCapabilities: []string{},
			OptionalCapabilities: []string{}, AccountLimitErrors: []AccountLimitError{}, SupervisorTools: ToolsBoth}
		var transport string
		r.object(n, path,
			field{"transport", true, choice(&r.reader, &transport, "acp")},
			field{"argv", true, filled(&r.reader, &a.Argv, nil)},
			field{"adapter_version", true, r.text(&a.AdapterVersion)},
			field{"harness_version", true, r.text(&a.HarnessVersion)},
			field{"environment", false, r.environment(&a.Environment)},
			field{"required_env", false, texts(&r.reader, &a.RequiredEnv, checkVariable)},
			field{"required_capabilities", false, texts(&r.reader, &a.RequiredCapabilities, checkCapability)},
			field{"optional_capabilities", false, texts(&r.reader, &a.OptionalCapabilities, checkCapability)},
			field{"auth_method", false, r.optional(&a.AuthMethod)},
			field{"account_limit_errors", false, r.limitErrors(&a.AccountLimitErrors)},
			field{"mcp_servers", false, r.mcpServers(&a.MCPServers)},
			field{"supervisor_tools", false, choice(&r.reader, &a.SupervisorTools, ToolsMCP, ToolsCLI, ToolsBoth)},
		)
		r.c.Agents = append(r.c.Agents, a)
	})
}

// environment reads child names and the parent names that their values come from.
func (r *reader) environment(into *[]EnvRef) value {
	return func(n *yamldoc.Node, path string) {
		refs := []EnvRef{}
		r.entries(n, path, checkVariable, func(child string, n *yamldoc.Node, path string) {
			ref := EnvRef{Child: child}
			r.checked(&ref.Parent, checkVariable)(n, path)
			refs = append(refs, ref)
		})
		slices.SortFunc(refs, func(a, b EnvRef) int { return strings.Compare(a.Child, b.Child) })
		*into = refs
	}
}

// maxLimitErrors bounds account_limit_errors.
const maxLimitErrors = 16

func (r *reader) limitErrors(into *[]AccountLimitError) value {
	return func(n *yamldoc.Node, path string) {
		list, codes := []AccountLimitError{}, map[int]bool{}
		ok := r.items(n, path, func(n *yamldoc.Node, path string) {
			before := r.faults.Len()
			e, code := r.limitError(n, path)
			if r.faults.Len() == before && codes[e.Code] {
				r.faults.Add(code, "keep one entry for each code", "%s.code %d is repeated", path, e.Code)
			}
			codes[e.Code] = true
			list = append(list, e)
		})
		if ok && len(n.Items) > maxLimitErrors {
			r.faults.Add(n, "keep the most telling ones", "%s has %d entries, but %d are the limit", path, len(n.Items), maxLimitErrors)
		}
		*into = list
	}
}

func (r *reader) limitError(n *yamldoc.Node, path string) (AccountLimitError, *yamldoc.Node) {
	var e AccountLimitError
	var cooldown int
	r.object(n, path,
		field{"code", true, r.count(&e.Code, -1<<31, 1<<31-1)},
		field{"kind", true, choice(r, &e.Kind, LimitRate, LimitQuota)},
		field{"cooldown_seconds", false, func(n *yamldoc.Node, path string) {
			e.CooldownSeconds = &cooldown
			r.count(&cooldown, 1, 86400)(n, path)
		}},
	)
	code := n.Get("code")
	switch {
	case e.Code >= -32768 && e.Code <= -32000:
		r.faults.Add(code, "use one of the agent's own codes", "%s.code %d is reserved by JSON-RPC (-32768 to -32000)", path, e.Code)
	case e.Kind == LimitRate && e.CooldownSeconds == nil:
		r.faults.Add(n, "add cooldown_seconds from 1 to 86400", "%s is a rate_limit without cooldown_seconds", path)
	case e.Kind == LimitQuota && e.CooldownSeconds != nil:
		r.faults.Add(n.Get("cooldown_seconds"), "remove it: the operator resumes the account",
			"%s is quota_exhausted and has cooldown_seconds", path)
	}
	return e, code
}
