// Command generate writes the golden contracts: golden/NAME.yaml, and what the original program
// says about each in golden/NAME.json (its sha256 and its execution member).
//
//	go run contract/testdata/generate.go -original PATH-TO-ORIGINAL-GREATMINDS -out contract/testdata/golden
//
// The contracts are made from fixed seeds, so a second run changes nothing. It stops at a
// contract that the original refuses: a golden file must be one that both programs accept.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	original := flag.String("original", "greatminds", "program that prints the golden values")
	out := flag.String("out", "golden", "folder to write to")
	flag.Parse()
	files := written()
	for seed := range uint64(40) {
		g := &generator{rand.New(rand.NewPCG(seed, 3))}
		files[fmt.Sprintf("random-%02d", seed)] = g.contract()
	}
	for name, text := range files {
		path := filepath.Join(*out, name+".yaml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
		answer, err := exec.Command(*original, "project", "execution", "--config", path).Output()
		if err != nil {
			log.Fatalf("%s: %v", path, err)
		}
		var golden struct {
			SHA256    string          `json:"sha256"`
			Execution json.RawMessage `json:"execution"`
		}
		if err := json.Unmarshal(answer, &golden); err != nil {
			log.Fatalf("%s: %v", path, err)
		}
		data, err := json.MarshalIndent(golden, "", "  ")
		if err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*out, name+".json"), append(data, '\n'), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

const agentA = `agents:
  a: {transport: acp, argv: [run-a], adapter_version: "1", harness_version: "2"}
`

// cost is a contract with one reported cost as typed.
func cost(typed string) string {
	return "version: 1\n" + agentA + "bindings:\n  b: {role: TESTER, agent: a, max_reported_session_cost: " + typed +
		", reported_cost_currency: EUR}\n"
}

// written are the contracts that stand for one rule each.
func written() map[string]string {
	const bare = "version: 1\nagents: {}\nbindings: {}\n"
	return map[string]string{
		"empty":              bare,
		"bom-crlf":           "\ufeff" + strings.ReplaceAll("version: 1\n"+agentA+"bindings: {}\n", "\n", "\r\n"),
		"comments-and-marks": "# first\n--- # document\nversion: 1 # one\n\nagents: {} \n\n# between\nbindings: {}\n...\n",
		"flow":               `{"version": 1, agents: {}, bindings: {}, max_running: 9, account_limits: {z: 1, a: 2, "10": 3}}` + "\n",
		"stand-empty":        bare + "stand: {}\n",
		"stand-full":         bare + "stand: {profiles: [b, a, 'C d'], authorized: true, timeout_seconds: 7, max_output_bytes: 67108864, environment_revision: '010'}\n",
		"booleans":           bare + "stand: {authorized: TRUE, profiles: [x]}\ncommands:\n  c: {argv: [x], roles: [TESTER], authorized: True}\n  d: {argv: [x], roles: [TESTER], authorized: false}\n",
		"order":              "version: 1\nbindings:\n  z: {agent: b, role: TESTER}\n  a: {agent: a, role: READER}\nagents:\n  b: {transport: acp, argv: [x], adapter_version: v, harness_version: v}\n  a: {transport: acp, argv: [x], adapter_version: v, harness_version: v}\n",
		"strings": "version: 1\nagents:\n  a:\n    transport: acp\n    adapter_version: 1e3\n    harness_version: 0o17\n    argv:\n" +
			"      - \"\\u00e9 \\U0001F600 \\x7f \\\" \\\\ \\a\\b\\f\\n\\r\\t\\e\\N\\_\\L\\P <>&\"\n      - 'it''s   kept '\n      - é😀 ümlaut\n      - y\n      - n\n      - 09:30\n      - 08\n      - -.5\n      - 1e+3\n      - a#b\n      - http://x:1/y?z={1}\n      - |\n        literal\n          deeper\n\n        end\n      - >-\n        folded\n        text\n\n        next\n          kept\n      - |+\n        keep\n\n      - plain over\n        two lines\n      - \"double over\n        two \\\n        lines\"\nbindings: {}\n",
		"environment":   "version: 1\nagents:\n  a: {transport: acp, argv: [x], adapter_version: v, harness_version: v, environment: {b: B, _: X, A: a, B1: y1, B: z}, required_env: [Z, A, Z]}\nbindings: {}\n",
		"numbers":       bare + "max_running: +12\naccount_retry_max_seconds: 1000000\nmax_runtime_events: 1000000\n",
		"limits":        "version: 1\nagents:\n  a: {transport: acp, argv: [x], adapter_version: v, harness_version: v, auth_method: ' key ', account_limit_errors: [{code: 429, kind: rate_limit, cooldown_seconds: 60}, {code: -1, kind: quota_exhausted}, {code: -2147483648, kind: quota_exhausted}, {code: 2147483647, kind: rate_limit, cooldown_seconds: 86400}]}\nbindings: {}\n",
		"cost-integer":  cost("3"),
		"cost-big":      cost("1" + strings.Repeat("0", 40) + "7"),
		"cost-whole":    cost("3.0"),
		"cost-dot":      cost("3."),
		"cost-half":     cost(".5"),
		"cost-zeros":    cost("010.50"),
		"cost-1e15":     cost("1000000000000000.0"),
		"cost-1e16":     cost("10000000000000000.0"),
		"cost-1e22":     cost("1.0e+22"),
		"cost-1e100":    cost("1.0E+100"),
		"cost-1e-4":     cost("0.0001"),
		"cost-1e-5":     cost("0.00001"),
		"cost-smallest": cost("4.9e-324"),
		"cost-third":    cost("0.3333333333333333333"),
		"cost-17":       cost("9007199254740993.0"),
	}
}

// generator makes varied contracts.
type generator struct{ *rand.Rand }

func (g *generator) pick(words ...string) string { return words[g.IntN(len(words))] }

// maybe adds lines in about a third of the cases.
func (g *generator) maybe(b *strings.Builder, format string, value func() string) {
	if g.IntN(3) == 0 {
		fmt.Fprintf(b, format+"\n", value())
	}
}

func (g *generator) number(most int) func() string {
	return func() string { return fmt.Sprint(1 + g.IntN(most)) }
}

func (g *generator) name() string {
	return g.pick("a", "B", "c-1", "D_2", "9", "x", "long-name-of-something", "Zz") + fmt.Sprint(g.IntN(1000)) + g.pick("", "-", "_", "q")
}

// text is a scalar that reads as text, in one of the ways to write one.
func (g *generator) text() string {
	words := g.pick("a", "model-x", "é", "日本語", "😀", "two words", "a: b", "# no comment", "x#y", "'", `"`, `\`, "{x}", "[y", "*", "&", "!", "%", "@", "`", "1", "1.5", "true", "null", "~", "<&>", "-", "- x", "a\tb", "\u00a0x", "ß\u0301", "?", ": ", "|", ">", "=", "yes", "010", "2026-11-30")
	switch g.IntN(3) {
	case 0:
		return "'" + strings.ReplaceAll(words, "'", "''") + "'"
	case 1:
		return g.pick("plain", "model-2.5", "x/y", "a b c", "ünï", "1e3", "y", "08", "0o17", "a,b.c", "v1.2.3")
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\t", `\t`, "é", `\u00e9`, "😀", `\U0001F600`).Replace(words) + `"`
}

// flowText is text that may also stand in a flow sequence.
func (g *generator) flowText() string {
	for {
		if s := g.text(); s[0] == '"' || s[0] == '\'' || !strings.Contains(s, ",") {
			return s
		}
	}
}

func (g *generator) list(each func() string, least int) func() string {
	return func() string {
		items := make([]string, least+g.IntN(4))
		for i := range items {
			items[i] = each()
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
}

func (g *generator) role() string {
	return g.pick("ARCHITECT-PLANNER", "ARCHITECT-REVIEWER", "DEVELOPER", "UI-DEVELOPER", "LIVE-DEVELOPER", "TECHNICAL-WRITER", "TESTER", "READER", "EXPLORER", "USER", "MAINTAINER")
}

func (g *generator) variable() string {
	return g.pick("HOME", "_x", "API_KEY", "a", "Z9") + fmt.Sprint(g.IntN(100))
}

func (g *generator) environment() string {
	pairs := map[string]string{}
	for range g.IntN(5) {
		pairs[g.variable()] = g.variable()
	}
	var parts []string
	for k, v := range pairs {
		parts = append(parts, k+": "+v)
	}
	// The order is part of the text, and a map has none.
	for i := range parts {
		for j := i + 1; j < len(parts); j++ {
			if parts[j] > parts[i] {
				parts[i], parts[j] = parts[j], parts[i]
			}
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (g *generator) contract() string {
	var b strings.Builder
	b.WriteString("version: 1\n")
	g.maybe(&b, "max_running: %s", g.number(50))
	g.maybe(&b, "account_retry_initial_seconds: %s", g.number(500))
	g.maybe(&b, "account_retry_max_seconds: %s", g.number(500))
	g.maybe(&b, "max_runtime_events: %s", func() string { return fmt.Sprint(100 + g.IntN(999900)) })
	g.maybe(&b, "account_limits: %s", func() string {
		return "{" + g.name() + "x: " + g.number(9)() + ", " + g.name() + "y: " + g.number(9)() + "}"
	})
	var agents []string
	b.WriteString("agents:\n")
	for i := range 1 + g.IntN(3) {
		id := g.name() + fmt.Sprintf("n%d", i)
		agents = append(agents, id)
		fmt.Fprintf(&b, "  %s:\n", id)
		g.agent(&b)
	}
	b.WriteString("bindings:\n")
	for i := range 1 + g.IntN(4) {
		fmt.Fprintf(&b, "  %sn%d:\n    role: %s\n    agent: %s\n", g.name(), i, g.role(), agents[g.IntN(len(agents))])
		g.binding(&b)
	}
	if g.IntN(2) == 0 {
		b.WriteString("commands:\n")
		for i := range 1 + g.IntN(3) {
			fmt.Fprintf(&b, "  %sn%d:\n", g.name(), i)
			g.command(&b)
		}
	}
	g.maybe(&b, "stand: %s", func() string {
		return "{profiles: [" + g.name() + "x, " + g.name() + "y], authorized: " + g.pick("true", "false", "True", "FALSE") + "}"
	})
	return b.String()
}

func (g *generator) agent(b *strings.Builder) {
	fmt.Fprintf(b, "    transport: acp\n    argv: %s\n    adapter_version: %s\n    harness_version: %s\n", g.list(g.flowText, 1)(), g.text(), g.text())
	g.maybe(b, "    environment: %s", g.environment)
	g.maybe(b, "    required_env: %s", g.list(g.variable, 0))
	g.maybe(b, "    required_capabilities: %s", g.list(func() string { return g.pick("loadSession", "promptCapabilities.image", "a.b.c") }, 0))
	g.maybe(b, "    optional_capabilities: %s", g.list(func() string { return g.pick("loadSession", "x.y") }, 0))
	g.maybe(b, "    auth_method: %s", g.text)
}

func (g *generator) binding(b *strings.Builder) {
	g.maybe(b, "    workspace: %s", func() string { return g.pick(".", "/srv/x", "sub/dir", "'../beside'", `"a b"`) })
	g.maybe(b, "    scheduling: %s", func() string { return g.pick("queue", "on-demand") })
	g.maybe(b, "    permission: %s", func() string { return g.pick("ask", "deny", "allow-workspace") })
	g.maybe(b, "    session: %s", func() string { return g.pick("new", "resume-if-compatible") })
	g.maybe(b, "    model: %s", g.text)
	g.maybe(b, "    mode: %s", g.text)
	g.maybe(b, "    reasoning: %s", g.text)
	g.maybe(b, "    account: %s", func() string { return g.name() + "x" })
	g.maybe(b, "    max_running: %s", g.number(20))
	g.maybe(b, "    timeout_seconds: %s", g.number(100000))
	g.maybe(b, "    max_prompt_bytes: %s", g.number(1<<40))
	g.maybe(b, "    max_session_input_bytes: %s", g.number(1<<40))
	if g.IntN(3) == 0 {
		amount := g.pick(fmt.Sprint(g.IntN(100)+1), fmt.Sprintf("%d.%d", g.IntN(1000), 1+g.IntN(100000)), fmt.Sprintf("%d.%de-%d", 1+g.IntN(9), g.IntN(100), g.IntN(30)), fmt.Sprintf("%d.%de+%d", 1+g.IntN(9), g.IntN(100), g.IntN(30)))
		fmt.Fprintf(b, "    max_reported_session_cost: %s\n    reported_cost_currency: %s\n", amount, g.pick("USD", "EUR", "JPY"))
	}
	g.maybe(b, "    max_no_progress_turns: %s", g.number(20))
	g.maybe(b, "    max_startup_retries: %s", func() string { return fmt.Sprint(g.IntN(21)) })
	g.maybe(b, "    retry_initial_seconds: %s", g.number(500))
	g.maybe(b, "    retry_max_seconds: %s", g.number(500))
}

func (g *generator) command(b *strings.Builder) {
	fmt.Fprintf(b, "    argv: %s\n    roles: %s\n", g.list(g.flowText, 1)(), g.list(g.role, 1)())
	g.maybe(b, "    cwd: %s", func() string { return g.pick(".", "sub", "./sub/", "a//b", "'~'", "a..b") })
	g.maybe(b, "    timeout_seconds: %s", g.number(100000))
	g.maybe(b, "    max_output_bytes: %s", g.number(1<<40))
	g.maybe(b, "    environment: %s", g.environment)
	g.maybe(b, "    required_env: %s", g.list(g.variable, 0))
	g.maybe(b, "    environment_revision: %s", g.text)
	g.maybe(b, "    purpose: %s", func() string { return g.pick("validation", "deployment", "publication") })
	g.maybe(b, "    authorized: %s", func() string { return g.pick("true", "false") })
}
