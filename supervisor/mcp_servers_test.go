package supervisor

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"greatminds/runstore"
)

// set gives the daemon further variables.
func (h *house) set(variables map[string]string) {
	h.o.Getenv = func(name string) string {
		if v, there := variables[name]; there {
			return v
		}
		return os.Getenv(name)
	}
}

const (
	offersHTTP = `{"handshake":{"stop_after":"initialize","agentCapabilities":{"loadSession":true,"mcpCapabilities":{"http":true}}}},`
	sandboxed  = `, mcp_servers: {shell: {command: [sh, -c, "exit 0"], environment: {KEY: MCP_TEST_KEY}},` +
		` web: {type: http, url: "https://web.example/mcp", headers: {Authorization: MCP_TEST_AUTH}}}`
)

// given are the assertions on the servers of a request that opens a session.
func given(list ...string) string {
	var all []string
	for i := 0; i+1 < len(list); i += 2 {
		all = append(all, fmt.Sprintf("%q:%s", "/params/mcpServers/"+list[i], list[i+1]))
	}
	return strings.Join(all, ",")
}

// The servers of an agent are passed to a new session and to a loaded one: our own first, with the
// run's credential, then the configured ones, with an absolute path and the values of their variables,
// which stand in no file of the project and in no log.
//
// E-062 E-189 E-227
func TestASessionIsGivenItsMCPServers(t *testing.T) {
	t.Parallel()
	const key, auth = "key-0123456789", "Bearer auth-0123456789"
	sh, err := filepath.Abs("/bin/sh")
	must(t, err)
	exe, err := os.Executable()
	must(t, err)
	h := newHouse(t, plan{agent: sandboxed, session: "resume-if-compatible"})
	h.set(map[string]string{"MCP_TEST_KEY": key, "MCP_TEST_AUTH": auth, "PATH": "/nowhere:" + filepath.Dir(sh)})
	asserted := given("0/name", `"greatminds"`, "0/command", quoted(exe), "0/args", `["greatminds","mcp"]`, "0/env/0/name", `"GREATMINDS_PROJECT_DIR"`,
		"0/env/0/value", quoted(h.root), "0/env/1/value", `"DEVELOPER"`, "0/env/2/name", `"GREATMINDS_RUN_ID"`, "0/env/3/name", `"GREATMINDS_RUN_TOKEN"`, "0/type", "null",
		"1/name", `"shell"`, "1/command", quoted(sh), "1/args", `["-c","exit 0"]`, "1/env", `[{"name":"KEY","value":"`+key+`"}]`,
		"2/name", `"web"`, "2/type", `"http"`, "2/url", `"https://web.example/mcp"`, "2/headers", `[{"name":"Authorization","value":"`+auth+`"}]`, "3", "null")
	h.task("feature_dev", taskID)
	h.script(offersHTTP + `{"expect":"session/new","assert":{` + asserted + `}},{"reply":"session/new","result":{"sessionId":"sess-1"}},{"prompt":"p"},` +
		`{"say":"` + key + `"},{"end_turn":"p"}`)
	must(t, h.once())
	h.again()
	h.script(offersHTTP + `{"expect":"session/load","assert":{` + asserted + `}},{"reply":"session/load","result":{}},{"prompt":"p"},` + noChange + `{"end_turn":"p"}`)
	must(t, h.once())
	checked := h.traced("assert")
	for _, a := range checked {
		if a["ok"] != true {
			t.Errorf("launch %v: %v is %v", a["launch"], a["ptr"], a["got"])
		}
	}
	if n := strings.Count(asserted, "/params/"); len(checked) != 2*n {
		t.Errorf("%d of %d assertions were made", len(checked), 2*n)
	}
	if r := last(h.read()); r.State != runstore.Completed || r.Outcome.SessionStrategy != "loaded" {
		t.Errorf("got %s (%s), strategy %s", r.State, r.Reason, r.Outcome.SessionStrategy)
	}
	for _, secret := range []string{key, auth, "auth-0123456789"} {
		if h.said(secret) {
			t.Errorf("the log holds %s", secret)
		}
		for _, dir := range []string{".greatminds", "coordination"} {
			h.lacks(dir, secret)
		}
	}
}

// lacks checks that no file of a folder holds a text.
func (h *house) lacks(dir, text string) {
	h.t.Helper()
	must(h.t, filepath.WalkDir(h.file(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			h.t.Errorf("%s holds %s", path, text)
		}
		return err
	}))
}

// What an agent answers is quoted where it says why a run failed, and is masked there as everywhere.
//
// E-062
func TestNoSecretStandsInAFailure(t *testing.T) {
	t.Parallel()
	const secret = "CANARY-5f2c-of-the-agent"
	modes := `"modes":{"currentModeId":"` + secret + `","availableModes":[{"id":"` + secret + `","name":"X"}]}`
	for name, p := range map[string]plan{
		"stop reason": {steps: `{"handshake":{}},{"prompt":"p"},{"end_turn":"p","reason":"` + secret + `"}`},
		"mode":        {steps: `{"handshake":{"stop_after":"initialize"}},{"expect":"session/new","save":"n"},{"reply":"n","result":{"sessionId":"s",` + modes + `}},{"until_eof":true}`, binding: ", mode: ask"},
		"auth method": {steps: `{"expect":"initialize","save":"i"},{"reply":"i","result":{"protocolVersion":1,"authMethods":[{"id":"` + secret + `","name":"X"}]}},{"until_eof":true}`, agent: ", auth_method: key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.agent += ", environment: {KEY: FAILURE_TEST_KEY}"
			h := newHouse(t, p)
			h.set(map[string]string{"FAILURE_TEST_KEY": secret})
			h.task("feature_dev", taskID)
			must(t, h.once())
			if r := last(h.read()); r.State != runstore.Failed {
				t.Errorf("got %s (%s)", r.State, r.Reason)
			}
			if h.said(secret) {
				t.Error("the log holds it")
			}
			h.lacks(".greatminds", secret)
		})
	}
}

func quoted(s string) string { b, _ := json.Marshal(s); return string(b) }

// What stands against a server is found before a process costs anything, and said with the server's
// name and what helps. A variable that is not set is waited for, as one of required_env is, and is
// never passed on as empty.
//
// E-227 E-489
func TestAnMCPServerThatCannotBePassedCostsNoProcess(t *testing.T) {
	one := func(fields string) string { return ", mcp_servers: {extra: {" + fields + "}}" }
	for _, c := range []struct {
		name, agent string
		set         map[string]string
		state       runstore.State
		reason      string
		words       []string
	}{
		{"unset header", one("type: http, url: 'http://h/', headers: {A: MCP_TEST_UNSET}"), nil, runstore.WaitingAuth, authRequired, []string{"extra", "MCP_TEST_UNSET"}},
		{"empty header", one("type: sse, url: 'http://h/', headers: {A: MCP_TEST_UNSET}"), map[string]string{"MCP_TEST_UNSET": ""}, runstore.WaitingAuth, authRequired, []string{"MCP_TEST_UNSET"}},
		{"unset variable", one("command: [sh], environment: {A: MCP_TEST_UNSET, B: MCP_TEST_ALSO}"), nil, runstore.WaitingAuth, authRequired, []string{"MCP_TEST_UNSET, MCP_TEST_ALSO"}},
		{"no such program", one("command: [no-such-program]"), nil, runstore.Failed, configurationError, []string{"extra", "no-such-program", "agents.dev.mcp_servers.extra.command"}},
		{"no such file", one("command: [/no/such/program]"), nil, runstore.Failed, configurationError, []string{"extra", "/no/such/program"}},
		{"a folder", one("command: [/]"), nil, runstore.Failed, configurationError, []string{"extra", "/ is no program"}},
		{"two lines in a header", one("type: http, url: 'http://h/', headers: {A: MCP_TEST_SET}"), map[string]string{"MCP_TEST_SET": "unshown\r\nunshown"}, runstore.Failed, configurationError, []string{"MCP_TEST_SET", "line break"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`, agent: c.agent})
			h.set(c.set)
			h.task("feature_dev", taskID)
			must(t, h.once())
			r := last(h.read())
			if r.State != c.state || r.Reason != c.reason || len(h.traced("start")) != 0 {
				t.Fatalf("got %s (%s), %d starts", r.State, r.Reason, len(h.traced("start")))
			}
			for _, w := range c.words {
				if !strings.Contains(what(t, r), w) {
					t.Errorf("%q does not say %q", what(t, r), w)
				}
			}
			if h.said("unshown") || strings.Contains(what(t, r), "unshown") {
				t.Errorf("the value is shown: %q", what(t, r))
			}
		})
	}
}

// A type that the agent does not offer fails the run by name, after a handshake and before a prompt.
func TestAnMCPServerThatTheAgentDoesNotOfferIsNamed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"end_turn":"p"}`, agent: `, mcp_servers: {web: {type: sse, url: "http://h/"}}`})
	h.task("feature_dev", taskID)
	must(t, h.once())
	if r := last(h.read()); r.State != runstore.Failed || r.Reason != configurationError || *r.Outcome.PromptStarted ||
		!strings.Contains(what(t, r), `MCP server "web"`) || !strings.Contains(what(t, r), "mcp_servers") {
		t.Errorf("got %s (%s): %q", r.State, r.Reason, what(t, r))
	}
}

// supervisor_tools decides whether our own server is passed, and what the first prompt tells.
func TestAnAgentIsToldOfTheToolsThatItHas(t *testing.T) {
	for tools, c := range map[string]struct {
		server     string
		has, lacks []string
	}{
		"":                        {`"greatminds"`, []string{"MCP server `greatminds`", "run submit --json"}, nil},
		", supervisor_tools: mcp": {`"greatminds"`, []string{"MCP server `greatminds`"}, []string{"run submit --json"}},
		", supervisor_tools: cli": {"null", []string{"run submit --json"}, []string{"MCP"}},
	} {
		t.Run(tools, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{agent: tools, steps: `{"handshake":{"stop_after":"initialize"}},{"expect":"session/new","assert":{` + given("0/name", c.server) + `}},` +
				`{"reply":"session/new","result":{"sessionId":"sess-1"}},{"prompt":"p"},{"end_turn":"p"}`})
			h.task("feature_dev", taskID)
			must(t, h.once())
			if checked := h.traced("assert"); len(checked) != 1 || checked[0]["ok"] != true {
				t.Errorf("got %v", checked)
			}
			told, _, _ := strings.Cut(h.prompts()[0], "\n\n")
			for _, w := range c.has {
				if !strings.Contains(told, w) {
					t.Errorf("%q is not in %s", w, told)
				}
			}
			for _, w := range c.lacks {
				if strings.Contains(told, w) {
					t.Errorf("%q is in %s", w, told)
				}
			}
		})
	}
}

// A command that is asked for over MCP is the one that the command line would run: the receipt tells
// how it ended, with its output, and the same request again runs nothing.
//
// E-076 E-077 E-174
func TestACommandOverMCPHasOneReceipt(t *testing.T) {
	t.Parallel()
	ask := `{"mcp":"greatminds","call":"command","arguments":{"command_id":"hello","request_id":"one","wait_seconds":60}},`
	h := newHouse(t, plan{commands: "commands: {hello: {argv: [sh, -c, 'echo hello >> out.txt; echo said'], roles: [DEVELOPER]}}\n",
		steps: talking + ask + ask + `{"mcp":"greatminds","call":"command_status","arguments":{"request_id":"one"}},` +
			`{"mcp":"greatminds","call":"command","arguments":{"command_id":"other"}},{"mcp":"greatminds","call":"command_status","arguments":{"request_id":"two"}},` +
			`{"cli":["run","command-status","one"]},{"mcp":"greatminds","call":"submit","arguments":{"decision":"no_change","payload":{"reason":"done"}}},{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	must(t, h.once())
	var outs []string
	for _, e := range h.traced("mcp") {
		outs = append(outs, strings.Join(strings.Fields(fmt.Sprint(e["is_error"], e["out"])), ""))
	}
	if len(outs) != 6 || !strings.HasPrefix(outs[0], "false") || !strings.Contains(outs[0], `"exit_code":0`) || !strings.Contains(outs[0], "said") ||
		outs[1] != outs[0] || outs[2] != outs[0] || !strings.Contains(outs[3], `true{"version":1,"error":{"code":"command_unknown"`) ||
		!strings.Contains(outs[4], `true{"version":1,"error":{"code":"run_credential"`) || !strings.Contains(outs[5], `"received"`) {
		t.Fatalf("got %s", strings.Join(outs, "\n"))
	}
	if said := h.traced("cli")[0]; said["rc"] != 0.0 || !strings.HasSuffix(outs[0], strings.Join(strings.Fields(said["out"].(string)), "")) {
		t.Errorf("the command line shows %v", said)
	}
	if text, err := os.ReadFile(h.file("out.txt")); err != nil || string(text) != "hello\n" {
		t.Errorf("the command ran %q, %v", text, err)
	}
	v := h.read()
	if n := len(v.CommandsOfRun(run0(v).ID)); n != 1 || run0(v).State != runstore.Completed {
		t.Errorf("%d commands are on record, the run is %s", n, run0(v).State)
	}
}
