package contract_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

const servers = `mcp_servers: {files: {command: [npx, -y, files], environment: {TOKEN: FILES_TOKEN, A: B}},` +
	` search: {type: http, url: "https://search.example/mcp?v=1", headers: {X-Two: TWO, Authorization: SEARCH_AUTH}},` +
	` old: {type: sse, url: "http://127.0.0.1:9/sse"}}`

func TestMCPServersAreReadWithNamesOfVariablesOnly(t *testing.T) {
	a, _ := parsed(t, withAgentField(servers)).Agent("a")
	want := []contract.MCPServer{
		{Name: "files", Type: "stdio", Command: []string{"npx", "-y", "files"}, Environment: []contract.EnvRef{{Child: "A", Parent: "B"}, {Child: "TOKEN", Parent: "FILES_TOKEN"}}},
		{Name: "search", Type: "http", URL: "https://search.example/mcp?v=1", Headers: []contract.HeaderRef{{Name: "Authorization", Parent: "SEARCH_AUTH"}, {Name: "X-Two", Parent: "TWO"}}},
		{Name: "old", Type: "sse", URL: "http://127.0.0.1:9/sse", Headers: []contract.HeaderRef{}},
	}
	if d := cmp.Diff(want, a.MCPServers); d != "" || a.SupervisorTools != contract.ToolsBoth {
		t.Errorf("tools %q, servers (-want +got):\n%s", a.SupervisorTools, d)
	}
}

// What is not set leaves no trace, and what is set to the default leaves none either: a contract
// that the original reads keeps its fingerprint.
func TestFieldsOfOursEnterTheFingerprintOnlyWhenTheySaySomething(t *testing.T) {
	plain := parsed(t, withAgentField("auth_method: x"))
	for _, f := range []string{"mcp_servers: {}", "supervisor_tools: both"} {
		if got := parsed(t, withAgentField("auth_method: x, "+f)); got.SHA256() != plain.SHA256() {
			t.Errorf("%s changes the contract to %s", f, got.Canonical())
		}
	}
	seen := map[string]string{plain.SHA256(): "nothing"}
	for _, f := range []string{"supervisor_tools: cli", "supervisor_tools: mcp", servers, "mcp_servers: {s: {command: [x]}}", "mcp_servers: {s: {command: [y]}}",
		"mcp_servers: {t: {command: [x]}}", "mcp_servers: {s: {command: [x], environment: {A: B}}}", "mcp_servers: {s: {type: http, url: 'http://h/'}}",
		"mcp_servers: {s: {type: sse, url: 'http://h/'}}", "mcp_servers: {s: {type: sse, url: 'http://h/', headers: {A: B}}}"} {
		c := parsed(t, withAgentField(f))
		if other, twice := seen[c.SHA256()]; twice {
			t.Errorf("%s and %s have one fingerprint", f, other)
		}
		seen[c.SHA256()] = f
		back, err := contract.FromCanonical(c.Canonical())
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if d := cmp.Diff(c, back, cmp.AllowUnexported(contract.Number{})); d != "" {
			t.Errorf("%s pinned and read back (-before +after):\n%s", f, d)
		}
	}
}

func TestEachFaultOfAnMCPServerIsRefusedWithPlaceAndRemedy(t *testing.T) {
	server := func(fields string) string { return "mcp_servers: {s: {" + fields + "}}" }
	for _, c := range []struct{ name, field, want string }{
		{"reserved name", "mcp_servers: {greatminds: {command: [x]}}", `c.yaml:4:88: "greatminds" in agents.a.mcp_servers is reserved for the supervisor's own server; rename it`},
		{"reserved in capitals", "mcp_servers: {GreatMinds: {command: [x]}}", "is reserved"},
		{"no simple name", "mcp_servers: {'a b': {command: [x]}}", `"a b" in agents.a.mcp_servers is no simple name`},
		{"twice", "mcp_servers: {s: {command: [x]}, s: {command: [x]}}", `key "s" is repeated`},
		{"a list", "mcp_servers: [s]", "agents.a.mcp_servers is a list, but must be a mapping"},
		{"a text", "mcp_servers: {s: npx}", `agents.a.mcp_servers.s is text "npx", but must be a mapping`},
		{"unknown type", server("type: tcp"), `agents.a.mcp_servers.s.type "tcp" is unknown; write one of stdio, http, sse`},
		{"unknown field", server("command: [x], comand: [y]"), `unknown field "comand" in agents.a.mcp_servers.s; did you mean command?`},
		{"stdio without command", server("type: stdio"), "agents.a.mcp_servers.s.command is missing: a server of type stdio needs one; add it"},
		{"default type without command", server(""), "agents.a.mcp_servers.s.command is missing"},
		{"empty command", server("command: []"), "agents.a.mcp_servers.s.command is empty"},
		{"command as text", server("command: npx -y x"), `agents.a.mcp_servers.s.command is text "npx -y x", but must be a list`},
		{"relative command", server("command: [./x]"), `agents.a.mcp_servers.s.command[0] "./x" is a relative path; write its absolute path, or a bare name`},
		{"stdio with url", server("command: [x], url: 'http://h/'"), "agents.a.mcp_servers.s.url is no field of a server of type stdio"},
		{"stdio with headers", server("command: [x], headers: {A: B}"), "agents.a.mcp_servers.s.headers is no field of a server of type stdio"},
		{"http with command", server("type: http, url: 'http://h/', command: [x]"), "agents.a.mcp_servers.s.command is no field of a server of type http"},
		{"sse with environment", server("type: sse, url: 'http://h/', environment: {A: B}"), "agents.a.mcp_servers.s.environment is no field of a server of type sse"},
		{"http without url", server("type: http"), "agents.a.mcp_servers.s.url is missing: a server of type http needs one"},
		{"no URL", server("type: http, url: x"), "agents.a.mcp_servers.s.url is no http or https URL; write it as https://host/path"},
		{"a file", server("type: http, url: 'file:///x'"), "is no http or https URL"},
		{"URL as number", server("type: http, url: 5"), "is no http or https URL"},
		{"a fragment", server("type: http, url: 'http://h/#x'"), "has a fragment"},
		{"header name", server("type: http, url: 'http://h/', headers: {'A B': C}"), `"A B" in agents.a.mcp_servers.s.headers is no name of an HTTP header`},
		{"header twice", server("type: http, url: 'http://h/', headers: {X-A: C, x-a: C}"), "agents.a.mcp_servers.s.headers.x-a is there twice: header names have no case"},
		{"child name", server("command: [x], environment: {1A: B}"), `"1A" in agents.a.mcp_servers.s.environment is no name of an environment variable`},
		{"too many", "mcp_servers: {" + many(33) + "}", "agents.a.mcp_servers has 33 entries, but 32 are the limit"},
		{"tools", "supervisor_tools: none", `agents.a.supervisor_tools "none" is unknown; write one of mcp, cli, both`},
	} {
		t.Run(c.name, func(t *testing.T) {
			refusedWith(t, parseError(t, withAgentField(c.field)), refusal.CodeContractInvalid, c.want, "c.yaml:4:")
		})
	}
}

func many(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("s%d: {command: [x]}", i))
	}
	return strings.Join(list, ", ")
}

// A secret that somebody writes where a variable's name belongs is refused, and not said again.
func TestASecretCannotBeWrittenIntoTheContract(t *testing.T) {
	const secret = "sk-live-0123456789"
	for _, f := range []string{
		"command: [x], environment: {TOKEN: " + secret + "}", "command: [x], environment: {TOKEN: 'Bearer " + secret + "'}",
		"type: http, url: 'http://h/', headers: {Authorization: 'Bearer " + secret + "'}",
		"type: http, url: 'http://user:" + secret + "@h/'", "type: http, url: 'http://" + secret + "@h/'",
		"type: sse, url: 'http://h/?x=1&api_key=" + secret + "'", "type: sse, url: 'http://h/?token=" + secret + "'",
		"type: sse, url: 'http://h/#" + secret + "'", "type: sse, url: 'h/" + secret + "'",
	} {
		err := parseError(t, withAgentField("mcp_servers: {s: {"+f+"}}"))
		refusedWith(t, err, refusal.CodeContractInvalid, "c.yaml:4:")
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the refusal says the secret again: %v", f, err)
		}
	}
	// What may be written holds names alone.
	if text := parsed(t, withAgentField(servers)).Canonical(); !bytes.Contains(text, []byte(`"headers":[["Authorization","SEARCH_AUTH"],["X-Two","TWO"]]`)) {
		t.Errorf("got %s", text)
	}
}
