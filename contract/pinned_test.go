package contract_test

import (
	"bytes"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// drawn is any valid contract.
func drawn(t *rapid.T) *contract.Contract {
	name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_-]{0,12}`)
	variable := rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_]{0,8}`)
	// Any text that is not blank and has no NUL, in any script.
	text := rapid.Custom(func(t *rapid.T) string {
		return "x" + strings.ReplaceAll(rapid.StringOfN(rapid.Rune(), 0, 12, -1).Draw(t, "text"), "\x00", "")
	})
	maybe := rapid.Ptr(text, true)
	count := rapid.IntRange(1, 1_000_000_000)
	environment := func(label string) []contract.EnvRef {
		refs := []contract.EnvRef{}
		for _, child := range sortedSet(rapid.SliceOfNDistinct(variable, 0, 4, rapid.ID).Draw(t, label)) {
			refs = append(refs, contract.EnvRef{Child: child, Parent: variable.Draw(t, label)})
		}
		return refs
	}
	list := func(g *rapid.Generator[string], least int, label string) []string {
		return rapid.SliceOfN(g, least, 3).Draw(t, label)
	}
	c := &contract.Contract{Version: 1, MaxRunning: count.Draw(t, "max"), AccountLimits: []contract.AccountLimit{},
		AccountRetryInitialSeconds: count.Draw(t, "initial"), AccountRetryMaxSeconds: count.Draw(t, "longest"),
		MaxRuntimeEvents: rapid.IntRange(100, 1_000_000).Draw(t, "events"), Agents: []contract.Agent{}, Bindings: []contract.Binding{}, Commands: []contract.Command{}}
	for _, account := range sortedSet(rapid.SliceOfNDistinct(name, 0, 3, rapid.ID).Draw(t, "accounts")) {
		c.AccountLimits = append(c.AccountLimits, contract.AccountLimit{Account: account, MaxRunning: count.Draw(t, "limit")})
	}
	ids := rapid.SliceOfNDistinct(name, 1, 3, rapid.ID).Draw(t, "agents")
	for _, id := range ids {
		a := contract.Agent{ID: id, Argv: list(text, 1, "argv"), AdapterVersion: text.Draw(t, "adapter"), HarnessVersion: text.Draw(t, "harness"),
			Environment: environment("environment"), RequiredEnv: list(variable, 0, "required"), RequiredCapabilities: list(name, 0, "capabilities"),
			OptionalCapabilities: list(name, 0, "optional"), AuthMethod: maybe.Draw(t, "auth"), AccountLimitErrors: []contract.AccountLimitError{}}
		for _, code := range rapid.SliceOfNDistinct(rapid.IntRange(-31999, math.MaxInt32), 0, 3, rapid.ID).Draw(t, "codes") {
			e := contract.AccountLimitError{Code: code, Kind: contract.LimitQuota}
			if rapid.Bool().Draw(t, "rate") {
				cooldown := rapid.IntRange(1, 86400).Draw(t, "cooldown")
				e.Kind, e.CooldownSeconds = contract.LimitRate, &cooldown
			}
			a.AccountLimitErrors = append(a.AccountLimitErrors, e)
		}
		a.SupervisorTools = rapid.SampledFrom([]contract.SupervisorTools{contract.ToolsBoth, contract.ToolsCLI, contract.ToolsMCP}).Draw(t, "tools")
		for _, server := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID).Draw(t, "servers") {
			s := contract.MCPServer{Name: server, Type: contract.MCPStdio}
			if rapid.Bool().Draw(t, "local") {
				s.Command, s.Environment = append([]string{"x"}, list(text, 0, "command")...), environment("variables")
			} else {
				s.Type, s.URL, s.Headers = rapid.SampledFrom([]string{"http", "sse"}).Draw(t, "type"), "https://h/"+name.Draw(t, "path"), []contract.HeaderRef{}
				for _, header := range environment("headers") {
					if header.Child == strings.ToLower(header.Child) { // names that differ in case alone are one
						s.Headers = append(s.Headers, contract.HeaderRef{Name: header.Child, Parent: header.Parent})
					}
				}
			}
			a.MCPServers = append(a.MCPServers, s)
		}
		c.Agents = append(c.Agents, a)
	}
	for _, id := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID).Draw(t, "bindings") {
		b := contract.Binding{ID: id, Role: rapid.SampledFrom([]contract.Role{"DEVELOPER", "TESTER", "USER"}).Draw(t, "role"), Agent: rapid.SampledFrom(ids).Draw(t, "agent"),
			Workspace: text.Draw(t, "workspace"), Scheduling: rapid.SampledFrom([]string{"queue", "on-demand"}).Draw(t, "scheduling"),
			Permission: rapid.SampledFrom([]string{"ask", "deny", "allow-workspace"}).Draw(t, "permission"), Session: rapid.SampledFrom([]string{"new", "resume-if-compatible"}).Draw(t, "session"),
			Model: maybe.Draw(t, "model"), Mode: maybe.Draw(t, "mode"), Reasoning: maybe.Draw(t, "reasoning"), Account: name.Draw(t, "account"),
			MaxRunning: count.Draw(t, "n"), TimeoutSeconds: count.Draw(t, "n"), MaxPromptBytes: count.Draw(t, "n"), MaxSessionInputBytes: count.Draw(t, "n"),
			MaxNoProgressTurns: rapid.IntRange(1, 20).Draw(t, "turns"), MaxStartupRetries: rapid.IntRange(0, 20).Draw(t, "retries"),
			RetryInitialSeconds: count.Draw(t, "n"), RetryMaxSeconds: count.Draw(t, "n")}
		if rapid.Bool().Draw(t, "has a cost") {
			cost, currency := amount(t), rapid.StringMatching(`[A-Z]{3}`).Draw(t, "currency")
			b.MaxReportedSessionCost, b.ReportedCostCurrency = &cost, &currency
		}
		c.Bindings = append(c.Bindings, b)
	}
	for _, id := range rapid.SliceOfNDistinct(name, 0, 2, rapid.ID).Draw(t, "commands") {
		c.Commands = append(c.Commands, contract.Command{ID: id, Argv: list(text, 1, "argv"), Roles: []contract.Role{"TESTER", "READER"}[:rapid.IntRange(1, 2).Draw(t, "roles")],
			Cwd: name.Draw(t, "cwd"), TimeoutSeconds: count.Draw(t, "n"), MaxOutputBytes: count.Draw(t, "n"), Environment: environment("environment"),
			RequiredEnv: list(variable, 0, "required"), EnvironmentRevision: text.Draw(t, "revision"),
			Purpose: rapid.SampledFrom([]string{"validation", "deployment", "publication"}).Draw(t, "purpose"), Authorized: rapid.Bool().Draw(t, "authorized")})
	}
	if rapid.Bool().Draw(t, "stand") {
		c.Stand = &contract.Stand{Profiles: append([]string{"p"}, rapid.SliceOfNDistinct(text, 0, 3, rapid.ID).Draw(t, "profiles")...), Authorized: rapid.Bool().Draw(t, "authorized"),
			TimeoutSeconds: count.Draw(t, "n"), MaxOutputBytes: rapid.IntRange(1, 67108864).Draw(t, "n"), EnvironmentRevision: text.Draw(t, "revision")}
	}
	return c
}

func amount(t *rapid.T) contract.Number {
	if rapid.Bool().Draw(t, "whole") {
		digits := rapid.StringMatching(`[1-9][0-9]{0,90}`).Draw(t, "digits")
		v, _ := new(big.Int).SetString(digits, 10)
		return contract.IntegerNumber(v)
	}
	return contract.FloatNumber(rapid.Float64Range(math.SmallestNonzeroFloat64, 1e100).Draw(t, "amount"))
}

func sortedSet(names []string) []string {
	out := append([]string{}, names...)
	for i := range out {
		for j := i + 1; j < len(out); j++ {
			if out[j] < out[i] {
				out[i], out[j] = out[j], out[i]
			}
		}
	}
	return out
}

func TestPinnedContractReadsBackWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawn(t)
		pinned := c.Canonical()
		if bytes.ContainsFunc(pinned, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
			t.Fatalf("not plain ASCII: %s", pinned)
		}
		back, err := contract.FromCanonical(pinned)
		if err != nil {
			t.Fatalf("%v\n%s", err, pinned)
		}
		if d := cmp.Diff(c, back, cmp.AllowUnexported(contract.Number{})); d != "" {
			t.Fatalf("(-before +after):\n%s", d)
		}
		if back.SHA256() != c.SHA256() {
			t.Fatal("the fingerprint changed")
		}
	})
}

func TestPinnedContractMustBeCanonicalToTheLastByte(t *testing.T) {
	c := parsed(t, withBindingField("max_reported_session_cost: 1.5, reported_cost_currency: EUR, model: é"))
	text := string(c.Canonical())
	for name, changed := range map[string]string{
		"nothing":               "",
		"no JSON":               "{",
		"a list":                "[]",
		"a line end":            text + "\n",
		"a second document":     text + text,
		"a blank":               strings.Replace(text, ",", ", ", 1),
		"order of members":      strings.Replace(text, `"account":"default","agent":"a"`, `"agent":"a","account":"default"`, 1),
		"an unknown member":     strings.Replace(text, `"mode":null`, `"mode":null,"mood":null`, 1),
		"a repeated member":     strings.Replace(text, `"mode":null`, `"mode":null,"mode":null`, 1),
		"a missing member":      strings.Replace(text, `"mode":null,`, ``, 1),
		"another type":          strings.Replace(text, `"max_running":1`, `"max_running":"1"`, 1),
		"out of bounds":         strings.Replace(text, `"max_running":1`, `"max_running":0`, 1),
		"an unescaped letter":   strings.Replace(text, `\u00e9`, `é`, 1),
		"another spelling":      strings.Replace(text, `1.5`, `1.50`, 1),
		"an unknown agent":      strings.Replace(text, `"agent":"a"`, `"agent":"z"`, 1),
		"a pair too long":       strings.Replace(text, `"environment":[]`, `"environment":[["A","B","C"]]`, 1),
		"an id that is no name": strings.Replace(text, `"id":"b"`, `"id":"b c"`, 1),
		"an id of another type": strings.Replace(text, `"id":"b"`, `"id":7`, 1),
	} {
		if changed == text {
			t.Fatalf("%s: the test changes nothing", name)
		}
		if _, err := contract.FromCanonical([]byte(changed)); err == nil {
			t.Errorf("%s: accepted %s", name, changed)
		} else {
			refusedWith(t, err, refusal.CodeContractPinned, "pinned contract")
		}
	}
}

func TestNumbersRememberHowTheyWereWritten(t *testing.T) {
	for f, want := range map[float64]string{1: "1.0", 0.5: "0.5", 1e15: "1000000000000000.0", 1e16: "1e+16", 9999999999999998: "9999999999999998.0", 0.0001: "0.0001", 0.00001: "1e-05", 1.5e-7: "1.5e-07", 1e22: "1e+22", 1e100: "1e+100", 5e-324: "5e-324"} {
		n := contract.FloatNumber(f)
		if n.String() != want || n.Float() != f || n.IsInteger() {
			t.Errorf("%g: got %s, %g, integer %v, want %s", f, n, n.Float(), n.IsInteger(), want)
		}
	}
	big1, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	if n := contract.IntegerNumber(big1); n.String() != "123456789012345678901234567890" || !n.IsInteger() || n.Float() != 123456789012345678901234567890 {
		t.Errorf("got %s, %g", n, n.Float())
	}
}

// FuzzFromCanonical: whatever a pinned file has become, it is read back whole or refused.
func FuzzFromCanonical(f *testing.F) {
	schema := contract.EmbeddedSchema()
	for _, text := range []string{"version: 1\nagents: {}\nbindings: {}\n", withBindingField("max_reported_session_cost: 3, reported_cost_currency: EUR"), withCommandField("environment: {A: B}")} {
		c, err := contract.Parse("f", []byte(text), schema)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(c.Canonical())
	}
	f.Add([]byte(`{"agents":[{"id":null}],"bindings":[[]],"account_limits":[[["a"],1]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := contract.FromCanonical(data)
		if err == nil && !bytes.Equal(c.Canonical(), data) {
			t.Fatalf("accepted %q as %q", data, c.Canonical())
		}
		if _, isRefusal := refusal.Find(err); err != nil && !isRefusal {
			t.Fatalf("%v is no refusal", err)
		}
	})
}
