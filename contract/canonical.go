package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"greatminds/internal/yamldoc"
)

// object is a JSON object with its members in the order in which people are shown them.
type object []member

type member struct {
	key string
	val any
}

// appendJSON appends a value as JSON without insignificant space and with every character
// outside ASCII escaped. Sorted objects have their keys in byte order.
func appendJSON(b []byte, v any, sorted bool) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return yamldoc.AppendString(b, v, true)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case bool:
		return strconv.AppendBool(b, v)
	case Number:
		return append(b, v.String()...)
	case json.RawMessage:
		return append(b, v...)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item, sorted)
		}
		return append(b, ']')
	case object:
		if sorted {
			v = slices.Clone(v)
			slices.SortFunc(v, func(x, y member) int { return strings.Compare(x.key, y.key) })
		}
		b = append(b, '{')
		for i, m := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(yamldoc.AppendString(b, m.key, true), ':')
			b = appendJSON(b, m.val, sorted)
		}
		return append(b, '}')
	}
	panic("contract: no JSON form for this value") // ours: the objects below hold nothing else
}

func list[T any](items []T, each func(T) any) []any {
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = each(item)
	}
	return out
}

func words[T ~string](items []T) []any { return list(items, func(s T) any { return string(s) }) }

func environment(refs []EnvRef) []any {
	return list(refs, func(e EnvRef) any { return []any{e.Child, e.Parent} })
}

// or is the value that a pointer leads to, nil for none.
func or[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func (c *Contract) object() object {
	var stand any
	if c.Stand != nil {
		stand = c.Stand.object()
	}
	return object{
		{"agents", list(c.Agents, func(a Agent) any { return a.object() })},
		{"bindings", list(c.Bindings, func(b Binding) any { return b.object() })},
		{"max_running", c.MaxRunning},
		{"account_limits", list(c.AccountLimits, func(l AccountLimit) any { return []any{l.Account, l.MaxRunning} })},
		{"commands", list(c.Commands, func(k Command) any { return k.object() })},
		{"stand", stand},
		{"account_retry_initial_seconds", c.AccountRetryInitialSeconds},
		{"account_retry_max_seconds", c.AccountRetryMaxSeconds},
		{"max_runtime_events", c.MaxRuntimeEvents},
	}
}

func (a Agent) object() object {
	o := object{
		{"id", a.ID},
		{"argv", words(a.Argv)},
		{"adapter_version", a.AdapterVersion},
		{"harness_version", a.HarnessVersion},
		{"environment", environment(a.Environment)},
		{"required_env", words(a.RequiredEnv)},
		{"required_capabilities", words(a.RequiredCapabilities)},
		{"optional_capabilities", words(a.OptionalCapabilities)},
		{"auth_method", or(a.AuthMethod)},
		{"account_limit_errors", list(a.AccountLimitErrors, func(e AccountLimitError) any {
			return object{{"code", e.Code}, {"kind", e.Kind}, {"cooldown_seconds", or(e.CooldownSeconds)}}
		})},
	}
	if len(a.MCPServers) > 0 {
		o = append(o, member{"mcp_servers", list(a.MCPServers, func(s MCPServer) any { return s.object() })})
	}
	if a.SupervisorTools != ToolsBoth {
		o = append(o, member{"supervisor_tools", string(a.SupervisorTools)})
	}
	return o
}

func (s MCPServer) object() object {
	if s.Type == MCPStdio {
		return object{{"id", s.Name}, {"type", s.Type}, {"command", words(s.Command)}, {"environment", environment(s.Environment)}}
	}
	return object{{"id", s.Name}, {"type", s.Type}, {"url", s.URL},
		{"headers", list(s.Headers, func(h HeaderRef) any { return []any{h.Name, h.Parent} })}}
}

func (b Binding) object() object {
	o := object{
		{"id", b.ID},
		{"role", string(b.Role)},
		{"agent", b.Agent},
		{"workspace", b.Workspace},
		{"scheduling", b.Scheduling},
		{"permission", b.Permission},
		{"session", b.Session},
		{"model", or(b.Model)},
		{"mode", or(b.Mode)},
		{"reasoning", or(b.Reasoning)},
		{"account", b.Account},
		{"max_running", b.MaxRunning},
		{"timeout_seconds", b.TimeoutSeconds},
		{"max_prompt_bytes", b.MaxPromptBytes},
		{"max_session_input_bytes", b.MaxSessionInputBytes},
		{"max_reported_session_cost", or(b.MaxReportedSessionCost)},
		{"reported_cost_currency", or(b.ReportedCostCurrency)},
		{"max_no_progress_turns", b.MaxNoProgressTurns},
		{"max_startup_retries", b.MaxStartupRetries},
		{"retry_initial_seconds", b.RetryInitialSeconds},
		{"retry_max_seconds", b.RetryMaxSeconds},
	}
	// What only we have enters when it is set, so that all other bindings keep the original's fingerprint.
	if b.IdleTimeoutSeconds != nil {
		o = append(o, member{"idle_timeout_seconds", *b.IdleTimeoutSeconds})
	}
	return o
}

func (k Command) object() object {
	return object{
		{"id", k.ID},
		{"argv", words(k.Argv)},
		{"roles", words(k.Roles)},
		{"cwd", k.Cwd},
		{"timeout_seconds", k.TimeoutSeconds},
		{"max_output_bytes", k.MaxOutputBytes},
		{"environment", environment(k.Environment)},
		{"required_env", words(k.RequiredEnv)},
		{"environment_revision", k.EnvironmentRevision},
		{"purpose", k.Purpose},
		{"authorized", k.Authorized},
	}
}

func (s *Stand) object() object {
	return object{
		{"profiles", words(s.Profiles)},
		{"authorized", s.Authorized},
		{"timeout_seconds", s.TimeoutSeconds},
		{"max_output_bytes", s.MaxOutputBytes},
		{"environment_revision", s.EnvironmentRevision},
	}
}

// Canonical is the contract as JSON with sorted keys, defaults filled in, no insignificant
// space, and every character outside ASCII escaped. Two files that ask for the same have the
// same bytes here. It is what is pinned when a run is claimed, and what SHA256 digests; it holds
// names of environment variables but never a value. Spec: "Secret values".
func (c *Contract) Canonical() []byte { return appendJSON(nil, c.object(), true) }

// SHA256 is the contract's fingerprint: the lowercase hex digest of Canonical.
func (c *Contract) SHA256() string { return digest(c.Canonical()) }

// SHA256 is the fingerprint of the manifest's canonical object.
func (a Agent) SHA256() string { return digest(appendJSON(nil, a.object(), true)) }

// SHA256 is the fingerprint of the binding's canonical object.
func (b Binding) SHA256() string { return digest(appendJSON(nil, b.object(), true)) }

// SHA256 is the fingerprint of the command's canonical object.
func (k Command) SHA256() string { return digest(appendJSON(nil, k.object(), true)) }

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// indented is the JSON form that people are shown: two blanks a level, and a line end.
func indented(o object) []byte {
	var b bytes.Buffer
	// Our own encoder made it, so it cannot be anything but JSON.
	if err := json.Indent(&b, appendJSON(nil, o, false), "", "  "); err != nil {
		panic("contract: own JSON does not parse: " + err.Error())
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// Document is the answer of `project execution`: version, source, sha256, schema_sha256 and
// execution with every default, as indented JSON with a line end.
func (c *Contract) Document(source string, s *Schema) []byte {
	return indented(object{
		{"version", c.Version},
		{"source", source},
		{"sha256", c.SHA256()},
		{"schema_sha256", s.SHA256},
		{"execution", c.object()},
	})
}
