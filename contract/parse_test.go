package contract_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// The pieces that most tests vary. Line 4 is the manifest, line 6 the binding.
const (
	root = "version: 1\nmax_running: 2\nagents:\n  a: {transport: acp, argv: [x], adapter_version: v, harness_version: v%s}\nbindings:\n  b: {role: DEVELOPER, agent: a%s}\n"
)

func withAgentField(f string) string   { return fmt.Sprintf(root, ", "+f, "") }
func withBindingField(f string) string { return fmt.Sprintf(root, "", ", "+f) }
func withRootField(f string) string    { return fmt.Sprintf(root, "", "") + f + "\n" }
func withCommandField(f string) string {
	return fmt.Sprintf(root, "", "") + "commands:\n  c: {argv: [x], roles: [TESTER], " + f + "}\n"
}
func replaced(old, new string) string {
	text := fmt.Sprintf(root, "", "")
	if !strings.Contains(text, old) {
		panic("nothing to replace")
	}
	return strings.Replace(text, old, new, 1)
}

// E-002, E-007, E-033, E-034, E-035
func TestEachFaultIsRefusedWithPlaceValueAndRemedy(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"E-002 version 2", replaced("version: 1", "version: 2"), "c.yaml:1:10: version is 2; write an integer from 1 to 1"},
		{"E-002 version as text", replaced("version: 1", `version: "1"`), `c.yaml:1:10: version is text "1", but must be an integer; write 1 without quotes`},
		{"E-002 version as float", replaced("version: 1", "version: 1.0"), "c.yaml:1:10: version is a number with a decimal point 1.0"},
		{"E-002 version true", replaced("version: 1", "version: true"), "c.yaml:1:10: version is true or false true"},
		{"E-002 no version", replaced("version: 1\n", ""), "c.yaml:1:1: version is missing; add it"},
		{"no agents", "version: 1\nbindings: {}\n", "agents is missing"},
		{"agents without value", "version: 1\nagents:\nbindings: {}\n", "c.yaml:2:8: agents: there is no value here"},
		{"agents as list", "version: 1\nagents: []\nbindings: {}\n", "c.yaml:2:9: agents is a list, but must be a mapping"},
		{"root as list", "- version\n", "c.yaml:1:1"},
		{"E-007 other transport", replaced("transport: acp", "transport: stdio"), `c.yaml:4:18: agents.a.transport "stdio" is unknown; write one of acp`},
		{"E-007 no transport", replaced("transport: acp, ", ""), "c.yaml:4:6: agents.a.transport is missing"},
		{"E-033 at the root", withRootField("max_runing: 1"), `c.yaml:7:1: unknown field "max_runing"; did you mean max_running?`},
		{"E-033 in an agent", withAgentField("enviroment: {}"), `unknown field "enviroment" in agents.a; did you mean environment?`},
		{"E-033 in a binding", withBindingField("max_runing: 3"), `c.yaml:6:34: unknown field "max_runing" in bindings.b; did you mean max_running?`},
		{"E-033 in a command", withCommandField("timout_seconds: 3"), `unknown field "timout_seconds" in commands.c; did you mean timeout_seconds?`},
		{"E-033 in stand", withRootField("stand: {profile: []}"), `unknown field "profile" in stand; did you mean profiles?`},
		{"E-033 in a limit error", withAgentField("account_limit_errors: [{code: 1, kind: quota_exhausted, x: 1}]"), `unknown field "x" in agents.a.account_limit_errors[0]; remove it; known here: code, kind, cooldown_seconds`},
		{"idle limit of 0", withBindingField("idle_timeout_seconds: 0"), "bindings.b.idle_timeout_seconds is 0; write an integer from 1"},
		{"idle limit as text", withBindingField(`idle_timeout_seconds: "90"`), "write 90 without quotes"},
		{"idle limit true", withBindingField("idle_timeout_seconds: true"), "bindings.b.idle_timeout_seconds is true or false true"},
		{"idle limit with a point", withBindingField("idle_timeout_seconds: 1.5"), "bindings.b.idle_timeout_seconds is a number with a decimal point 1.5"},
		{"idle limit beyond the prompt", withBindingField("timeout_seconds: 60, idle_timeout_seconds: 61"),
			"bindings.b.idle_timeout_seconds 61 is not below its timeout_seconds 60, so that it would never end a turn; write less than that, or raise timeout_seconds"},
		{"idle limit of the whole prompt", withBindingField("idle_timeout_seconds: 60, timeout_seconds: 60"), "idle_timeout_seconds 60 is not below its timeout_seconds 60"},
		{"idle limit beyond the default prompt", withBindingField("idle_timeout_seconds: 1800"), "idle_timeout_seconds 1800 is not below its timeout_seconds 1800"},
		{"E-034 scheduling", withBindingField("scheduling: auto"), `bindings.b.scheduling "auto" is unknown; write one of queue, on-demand`},
		{"E-034 permission", withBindingField("permission: allow"), `bindings.b.permission "allow" is unknown; write one of ask, deny, allow-workspace`},
		{"E-034 session", withBindingField("session: old"), `bindings.b.session "old" is unknown`},
		{"E-034 purpose", withCommandField("purpose: fun"), `commands.c.purpose "fun" is unknown`},
		{"E-034 role", replaced("DEVELOPER", "developer"), `bindings.b.role "developer" is no role of the schema`},
		{"E-034 role of a command", withRootField("commands: {c: {argv: [x], roles: [TESTER, NOBODY]}}"), `commands.c.roles[1] "NOBODY" is no role`},
		{"E-034 agent", replaced("agent: a", "agent: z"), `c.yaml:6:31: there is no agent "z"`},
		{"E-035 at the root", withRootField("max_running: 3"), `c.yaml:7:1: key "max_running" is repeated, first on line 2`},
		{"E-035 two blocks", withRootField("bindings: {}"), `key "bindings" is repeated, first on line 5`},
		{"E-035 two agents", replaced("bindings:\n", "  'a': {}\nbindings:\n"), `key "a" is repeated, first on line 4`},
		{"E-035 in an environment", withAgentField("environment: {A: B, A: C}"), `agents.a.environment: key "A" is repeated`},
		{"argv as text", replaced("argv: [x]", `argv: "x y && z"`), `c.yaml:4:29: agents.a.argv is text "x y && z", but must be a list`},
		{"argv empty", replaced("argv: [x]", "argv: []"), "agents.a.argv is empty"},
		{"argv with a blank", replaced("argv: [x]", `argv: [x, "\u00a0"]`), "agents.a.argv[1] is blank"},
		{"argv with a number", replaced("argv: [x]", "argv: [x, 5]"), `agents.a.argv[1] is an integer 5, but must be text; quote it: "5"`},
		{"argv with NUL", replaced("argv: [x]", `argv: ["x\0"]`), "a NUL character"},
		{"version that is a number", replaced("adapter_version: v", "adapter_version: 1.10"), `agents.a.adapter_version is a number with a decimal point 1.10, but must be text; quote it: "1.10"`},
		{"environment child", withAgentField("environment: {1A: B}"), `"1A" in agents.a.environment is no name of an environment variable`},
		{"environment parent", withAgentField("environment: {A: B-C}"), `agents.a.environment.A "B-C" is no name of an environment variable`},
		{"required_env", withAgentField("required_env: [A B]"), `agents.a.required_env[0] "A B" is no name`},
		{"capability", withAgentField("required_capabilities: [a..b]"), `"a..b" is no dotted path`},
		{"auth_method blank", withAgentField("auth_method: ' '"), "agents.a.auth_method is blank"},
		{"reserved code", withAgentField("account_limit_errors: [{code: -32000, kind: quota_exhausted}]"), "-32000 is reserved by JSON-RPC"},
		{"code too large", withAgentField("account_limit_errors: [{code: 2147483648, kind: quota_exhausted}]"), "code is 2147483648; write an integer from -2147483648 to 2147483647"},
		{"code repeated", withAgentField("account_limit_errors: [{code: 5, kind: quota_exhausted}, {code: 5, kind: quota_exhausted}]"), "account_limit_errors[1].code 5 is repeated"},
		{"rate_limit without cooldown", withAgentField("account_limit_errors: [{code: 5, kind: rate_limit}]"), "is a rate_limit without cooldown_seconds"},
		{"quota with cooldown", withAgentField("account_limit_errors: [{code: 5, kind: quota_exhausted, cooldown_seconds: 1}]"), "is quota_exhausted and has cooldown_seconds"},
		{"cooldown too long", withAgentField("account_limit_errors: [{code: 5, kind: rate_limit, cooldown_seconds: 86401}]"), "cooldown_seconds is 86401"},
		{"17 limit errors", withAgentField("account_limit_errors: [" + strings.TrimSuffix(limitErrors(17), ", ") + "]"), "has 17 entries, but 16 are the limit"},
		{"name", replaced("  b: {", "  b.c: {"), `"b.c" in bindings is no simple name`},
		{"long name", replaced("  b: {", "  "+strings.Repeat("b", 201)+": {"), "is no simple name"},
		{"account", withBindingField("account: a.b"), `bindings.b.account "a.b" is no simple name`},
		{"account limit", withRootField("account_limits: {a: 0}"), "account_limits.a is 0"},
		{"max_running 0", withBindingField("max_running: 0"), "bindings.b.max_running is 0; write an integer from 1"},
		{"max_running true", withBindingField("max_running: true"), "bindings.b.max_running is true or false true, but must be an integer"},
		{"max_running as text", withBindingField(`max_running: "2"`), `write 2 without quotes`},
		{"timeout past all bounds", withBindingField("timeout_seconds: 99999999999999999999"), "timeout_seconds is 99999999999999999999; write an integer from 1 to 1000000000"},
		{"bytes past all bounds", withCommandField("max_output_bytes: 9007199254740992"), "from 1 to 9007199254740991"},
		{"octal", withBindingField("timeout_seconds: 010"), "bindings.b.timeout_seconds: some readers take 010 for a number; quote it, or write 8"},
		{"progress turns", withBindingField("max_no_progress_turns: 21"), "max_no_progress_turns is 21; write an integer from 1 to 20"},
		{"startup retries", withBindingField("max_startup_retries: 21"), "from 0 to 20"},
		{"events", withRootField("max_runtime_events: 99"), "from 100 to 1000000"},
		{"cost without currency", withBindingField("max_reported_session_cost: 1"), "has no currency"},
		{"currency without cost", withBindingField("reported_cost_currency: USD"), "has no cost"},
		{"currency", withBindingField("max_reported_session_cost: 1, reported_cost_currency: usd"), `"usd" is no currency`},
		{"cost 0", withBindingField("max_reported_session_cost: 0.0, reported_cost_currency: USD"), "max_reported_session_cost is 0.0"},
		{"cost below 0", withBindingField("max_reported_session_cost: -1, reported_cost_currency: USD"), "max_reported_session_cost is -1"},
		{"cost above 1e100", withBindingField("max_reported_session_cost: 1.0e+101, reported_cost_currency: USD"), "max_reported_session_cost is 1.0e+101"},
		{"cost past all floats", withBindingField("max_reported_session_cost: 1.0e+999, reported_cost_currency: USD"), "max_reported_session_cost is 1.0e+999"},
		{"cost as text", withBindingField("max_reported_session_cost: '1', reported_cost_currency: USD"), `max_reported_session_cost is text "1"`},
		{"cwd absolute", withCommandField("cwd: /x"), `commands.c.cwd "/x" must be relative`},
		{"cwd outside", withCommandField("cwd: a/../b"), "stay inside it"},
		{"authorized as a word", withCommandField("authorized: yes"), "some readers take yes for true or false; quote it, or write true"},
		{"authorized as a number", withCommandField("authorized: 1"), "commands.c.authorized is an integer 1, but must be true or false"},
		{"revision as a number", withCommandField("environment_revision: 1"), `quote it: "1"`},
		{"null", withBindingField("model: null"), "bindings.b.model: null is no value here; quote it, or leave the field out"},
		{"stand authorized without profiles", withRootField("stand: {authorized: true}"), "stand is authorized without profiles"},
		{"stand authorized with none", withRootField("stand: {authorized: true, profiles: []}"), "stand is authorized without profiles"},
		{"stand profile twice", withRootField("stand: {profiles: [a, a]}"), `stand.profiles names "a" twice`},
		{"stand output", withRootField("stand: {max_output_bytes: 67108865}"), "from 1 to 67108864"},
		{"stand as list", withRootField("stand: []"), "stand is a list, but must be a mapping"},
		{"merge key", replaced("b: {", "b: &b {") + "  c: {<<: *b, role: TESTER}\n", "merge key <<; write the fields out"},
		{"further document", withRootField("---\nversion: 1"), "a further document begins here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refusedWith(t, parseError(t, c.text), refusal.CodeContractInvalid, c.want)
		})
	}
}

func limitErrors(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{code: %d, kind: quota_exhausted}, ", i)
	}
	return b.String()
}

func TestAllFaultsOfAFileComeAtOnceInItsOrder(t *testing.T) {
	text := "version: 2\nmax_running: \"2\"\nagents:\n  a:\n    transport: acp\n    argv: x\n    adapter_version: 1.10\nbindings:\n  b:\n    role: NOBODY\n    agent: c\n    timeout_seconds: 010\n    max_runing: 1\nextra: yes\n"
	r, _ := refusal.Find(parseError(t, text))
	var got []string
	for _, reason := range r.Reasons {
		got = append(got, reason.Place)
	}
	want := []string{"c.yaml:1:10", "c.yaml:2:14", "c.yaml:5:5", "c.yaml:6:11", "c.yaml:7:22", "c.yaml:10:11", "c.yaml:11:12", "c.yaml:12:22", "c.yaml:13:5", "c.yaml:14:1", "c.yaml:14:8"}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("places (-want +got):\n%s\n%v", d, r)
	}
	if r.Status() != refusal.Invalid || !strings.HasPrefix(r.What, "c.yaml: the execution contract is not valid (11 faults)") {
		t.Fatalf("status %d, what %q", r.Status(), r.What)
	}
	// A refused mapping is still looked into, and a merge key causes no faults of its own making.
	merged := "version: 1\nagents: &a\n  a: {transport: tcp, argv: [x], adapter_version: v, harness_version: v}\nbindings:\n  b: &b {role: NOBODY, agent: a}\n  c: {<<: *b, max_running: 0}\n"
	r, _ = refusal.Find(parseError(t, merged))
	got = nil
	for _, reason := range r.Reasons {
		got = append(got, reason.Place)
	}
	want = []string{"c.yaml:2:9", "c.yaml:3:18", "c.yaml:5:6", "c.yaml:5:16", "c.yaml:6:7", "c.yaml:6:11", "c.yaml:6:28"}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("places (-want +got):\n%s\n%v", d, r)
	}
	many := "version: 1\nagents: {}\nbindings: {}\n"
	for i := range 70 {
		many += fmt.Sprintf("x%d: 1\n", i)
	}
	r, _ = refusal.Find(parseError(t, many))
	if n := len(r.Reasons); n != 51 || r.Reasons[50].What != "and 20 more faults" {
		t.Fatalf("%d reasons, the last %v", n, r.Reasons[n-1])
	}
}

func TestAliasBombCostsNothing(t *testing.T) {
	text := fmt.Sprintf(root, "", "") + "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 30 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 9), ","))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	refusedWith(t, parseError(t, text), refusal.CodeContractInvalid, "alias *a0", "anchor &a0")
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 16 {
		t.Fatalf("allocated %d MiB", got)
	}
}

// E-006, E-008, E-010
func TestEveryFieldArrives(t *testing.T) {
	text := `version: 1
max_running: 3
account_limits: {z: 2, a: 1}
account_retry_initial_seconds: 6
account_retry_max_seconds: 61
max_runtime_events: 101
agents:
  claude:
    transport: acp
    argv: [npx, -y, "a b", "$X;*"]
    adapter_version: "1.10"
    harness_version: v2
    environment: {CHILD: PARENT, A: B}
    required_env: [PARENT]
    required_capabilities: [loadSession]
    optional_capabilities: [promptCapabilities.image]
    auth_method: key
    account_limit_errors: [{code: 429, kind: rate_limit, cooldown_seconds: 60}, {code: 430, kind: quota_exhausted}]
bindings:
  dev: {role: DEVELOPER, agent: claude, workspace: sub, scheduling: queue, permission: deny, session: new, model: m1, mode: m2, reasoning: high, account: z, max_running: 2, timeout_seconds: 9, max_prompt_bytes: 10, max_session_input_bytes: 11, max_reported_session_cost: 2.50, reported_cost_currency: USD, max_no_progress_turns: 3, max_startup_retries: 0, retry_initial_seconds: 4, retry_max_seconds: 5}
  rev: {role: ARCHITECT-REVIEWER, agent: claude, model: other}
commands:
  test: {argv: [go, test], roles: [TESTER, DEVELOPER], cwd: sub, timeout_seconds: 7, max_output_bytes: 8, environment: {X: Y}, required_env: [Y], environment_revision: r, purpose: deployment, authorized: true}
stand: {profiles: [p], authorized: true, timeout_seconds: 12, max_output_bytes: 13, environment_revision: s}
`
	key, model, mode, reasoning, currency, other, cooldown := "key", "m1", "m2", "high", "USD", "other", 60
	cost := contract.FloatNumber(2.5)
	want := &contract.Contract{Version: 1, MaxRunning: 3, AccountRetryInitialSeconds: 6, AccountRetryMaxSeconds: 61, MaxRuntimeEvents: 101,
		AccountLimits: []contract.AccountLimit{{Account: "a", MaxRunning: 1}, {Account: "z", MaxRunning: 2}},
		Agents: []contract.Agent{{ID: "claude", Argv: []string{"npx", "-y", "a b", "$X;*"}, AdapterVersion: "1.10", HarnessVersion: "v2",
			Environment: []contract.EnvRef{{Child: "A", Parent: "B"}, {Child: "CHILD", Parent: "PARENT"}}, RequiredEnv: []string{"PARENT"},
			RequiredCapabilities: []string{"loadSession"}, OptionalCapabilities: []string{"promptCapabilities.image"}, AuthMethod: &key,
			AccountLimitErrors: []contract.AccountLimitError{{Code: 429, Kind: contract.LimitRate, CooldownSeconds: &cooldown}, {Code: 430, Kind: contract.LimitQuota}}, SupervisorTools: contract.ToolsBoth}},
		Bindings: []contract.Binding{
			{ID: "dev", Role: "DEVELOPER", Agent: "claude", Workspace: "sub", Scheduling: "queue", Permission: "deny", Session: "new", Model: &model, Mode: &mode, Reasoning: &reasoning,
				Account: "z", MaxRunning: 2, TimeoutSeconds: 9, MaxPromptBytes: 10, MaxSessionInputBytes: 11, MaxReportedSessionCost: &cost, ReportedCostCurrency: &currency,
				MaxNoProgressTurns: 3, MaxStartupRetries: 0, RetryInitialSeconds: 4, RetryMaxSeconds: 5},
			{ID: "rev", Role: "ARCHITECT-REVIEWER", Agent: "claude", Workspace: ".", Scheduling: "on-demand", Permission: "ask", Session: "resume-if-compatible", Model: &other,
				Account: "default", MaxRunning: 1, TimeoutSeconds: 1800, MaxPromptBytes: 262144, MaxSessionInputBytes: 1048576,
				MaxNoProgressTurns: 1, MaxStartupRetries: 2, RetryInitialSeconds: 5, RetryMaxSeconds: 60}},
		Commands: []contract.Command{{ID: "test", Argv: []string{"go", "test"}, Roles: []contract.Role{"TESTER", "DEVELOPER"}, Cwd: "sub", TimeoutSeconds: 7, MaxOutputBytes: 8,
			Environment: []contract.EnvRef{{Child: "X", Parent: "Y"}}, RequiredEnv: []string{"Y"}, EnvironmentRevision: "r", Purpose: "deployment", Authorized: true}},
		Stand: &contract.Stand{Profiles: []string{"p"}, Authorized: true, TimeoutSeconds: 12, MaxOutputBytes: 13, EnvironmentRevision: "s"}}
	got := parsed(t, text)
	if d := cmp.Diff(want, got, cmp.AllowUnexported(contract.Number{})); d != "" {
		t.Fatalf("contract (-want +got):\n%s", d)
	}
	agent, okAgent := got.Agent("claude")
	binding, okBinding := got.Binding("rev")
	command, okCommand := got.Command("test")
	if !okAgent || !okBinding || !okCommand || agent.ID != "claude" || binding.ID != "rev" || command.ID != "test" {
		t.Fatal("a lookup by id failed")
	}
	for _, id := range []string{"", "none"} {
		if _, ok := got.Agent(id); ok {
			t.Error("an agent that is not there was found")
		}
		if _, ok := got.Binding(id); ok {
			t.Error("a binding that is not there was found")
		}
		if _, ok := got.Command(id); ok {
			t.Error("a command that is not there was found")
		}
	}
	if got.AccountLimit("a") != 1 || got.AccountLimit("nobody") != 3 {
		t.Error("account limits: an account without an entry is bounded by the project")
	}
	var shown struct{ Execution map[string]any }
	if err := json.Unmarshal(got.Document("f", contract.EmbeddedSchema()), &shown); err != nil || len(shown.Execution) != 9 {
		t.Fatalf("document: %v %v", shown, err)
	}
}

// The parts' fingerprints change with their own contents only.
func TestFingerprintsOfParts(t *testing.T) {
	one, two := parsed(t, withBindingField("max_running: 1")), parsed(t, withBindingField("max_running: 2"))
	if one.Bindings[0].SHA256() == two.Bindings[0].SHA256() || one.Agents[0].SHA256() != two.Agents[0].SHA256() || one.SHA256() == two.SHA256() {
		t.Error("a change of the binding")
	}
	if one.SHA256() != parsed(t, withBindingField("timeout_seconds: 1800")).SHA256() {
		t.Error("a default that is written out changes the fingerprint")
	}
	c := parsed(t, withCommandField("cwd: x"))
	if c.Commands[0].SHA256() == parsed(t, withCommandField("cwd: y")).Commands[0].SHA256() {
		t.Error("a change of the command")
	}
	for _, sum := range []string{one.SHA256(), one.Agents[0].SHA256(), one.Bindings[0].SHA256(), c.Commands[0].SHA256()} {
		if len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
			t.Errorf("%q is no fingerprint", sum)
		}
	}
}

// E-011, E-018
func TestParsingLooksAtNothingOutsideTheFile(t *testing.T) {
	dir := t.TempDir()
	marker := filepath.Join(dir, "started")
	text := withAgentField("environment: {CHILD: SURELY_UNSET_VARIABLE}, required_env: [SURELY_UNSET_VARIABLE]")
	text = strings.Replace(text, "argv: [x]", "argv: [/bin/touch, "+marker+"]", 1)
	text = strings.Replace(text, "agent: a", "agent: a, workspace: "+filepath.Join(dir, "no/such/folder"), 1)
	c := parsed(t, text)
	parsed(t, strings.Replace(text, "/bin/touch", "/no/such/program", 1))
	if c.Agents[0].Environment[0] != (contract.EnvRef{Child: "CHILD", Parent: "SURELY_UNSET_VARIABLE"}) {
		t.Fatalf("environment %v", c.Agents[0].Environment)
	}
	if _, err := os.Lstat(marker); err == nil {
		t.Fatal("the agent was started")
	}
}

// E-020
func TestSecretValuesStayOut(t *testing.T) {
	text := withAgentField("environment: {API_KEY: VAULT_KEY}, required_env: [VAULT_KEY]")
	var sums []string
	for _, secret := range []string{"s3cret-one", "s3cret-two"} {
		t.Setenv("VAULT_KEY", secret)
		c := parsed(t, text)
		sums = append(sums, c.SHA256())
		if strings.Contains(string(c.Canonical())+string(c.Document("f", contract.EmbeddedSchema())), "s3cret") {
			t.Fatal("a value is in the document")
		}
	}
	if sums[0] != sums[1] {
		t.Fatal("the fingerprint depends on a value")
	}
}

// E-001
func TestLoadFindsTheFile(t *testing.T) {
	dir := t.TempDir()
	p := contract.Project{Root: dir}
	schema := contract.EmbeddedSchema()
	_, err := contract.Load(p, "", schema)
	refusedWith(t, err, refusal.CodeContractMissing, filepath.Join(dir, "coordination/execution.yaml"), "greatminds setup")
	write(t, filepath.Join(dir, "coordination/execution.yaml"), fmt.Sprintf(root, "", ""))
	c, err := contract.Load(p, "", schema)
	if err != nil || len(c.Bindings) != 1 {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "draft.yaml")
	write(t, other, "version: 1\nagents: {}\nbindings: {}\nmax_running: 77\n")
	c, err = contract.Load(p, other, schema)
	if err != nil || c.MaxRunning != 77 {
		t.Fatal(err)
	}
	if text := string(c.Document(other, schema)); !strings.Contains(text, `"source": "`+other+`"`) {
		t.Fatalf("document %s", text)
	}
	write(t, other, "version: 1\nagents: {}\nbindings: 7\n")
	_, err = contract.Load(p, other, schema)
	refusedWith(t, err, refusal.CodeContractInvalid, other+":3:11")
}

func TestReadFileTakesRegularFilesOfBoundedSizeOnly(t *testing.T) {
	dir := t.TempDir()
	_, err := contract.ReadFile(dir)
	refusedWith(t, err, refusal.CodeContractUnreadable, "not a regular file")
	_, err = contract.ReadFile("/dev/null")
	refusedWith(t, err, refusal.CodeContractUnreadable, "not a regular file")
	long := filepath.Join(dir, "long")
	write(t, long, "# "+strings.Repeat("x", 3<<20))
	data, err := contract.ReadFile(long)
	if err != nil || len(data) != 1<<20+1 {
		t.Fatalf("read %d bytes (%v)", len(data), err)
	}
	_, err = contract.Load(contract.Project{}, long, contract.EmbeddedSchema())
	refusedWith(t, err, refusal.CodeContractInvalid, "1048576 are the limit")
}
