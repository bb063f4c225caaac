package mcpservers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/supervisor/mcpservers"
	"greatminds/transport"
)

func TestServersOfAManifestBecomeThoseOfASession(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"server": 0o755, "text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"KEY": "k1", "BROKEN": "two\nlines"}
	place := mcpservers.Place{Getenv: func(name string) string { return env[name] }, Workspace: dir, Environment: []string{"PATH=" + dir}}
	stdio := func(argv ...string) contract.MCPServer {
		return contract.MCPServer{Name: "docs", Type: contract.MCPStdio, Command: argv, Environment: []contract.EnvRef{{Child: "API_KEY", Parent: "KEY"}}}
	}
	remote := func(parent string) contract.MCPServer {
		return contract.MCPServer{Name: "web", Type: contract.MCPHTTP, URL: "http://127.0.0.1:1/", Headers: []contract.HeaderRef{{Name: "Authorization", Parent: parent}}}
	}
	for name, c := range map[string]struct {
		server contract.MCPServer
		want   transport.MCPServer
		refuse string
	}{
		"a program by its name": {server: stdio("server", "-v"), want: transport.MCPServer{Name: "docs", Type: transport.MCPStdio,
			Command: filepath.Join(dir, "server"), Args: []string{"-v"}, Env: []transport.Variable{{Name: "API_KEY", Value: "k1"}}}},
		"a program in the workspace": {server: stdio("./server"), want: transport.MCPServer{Name: "docs", Type: transport.MCPStdio,
			Command: dir + "/./server", Args: []string{}, Env: []transport.Variable{{Name: "API_KEY", Value: "k1"}}}},
		"a header": {server: remote("KEY"), want: transport.MCPServer{Name: "web", Type: transport.MCPType("http"), URL: "http://127.0.0.1:1/",
			Headers: []transport.Variable{{Name: "Authorization", Value: "k1"}}}},
		"a program that is not there": {server: stdio("nothing"), refuse: "MCP server docs of agent a cannot be started"},
		"a file that is no program":   {server: stdio("./text"), refuse: "agents.a.mcp_servers.docs.command"},
		"a folder":                    {server: stdio(dir), refuse: "cannot be started"},
		"a header of two lines":       {server: remote("BROKEN"), refuse: "the variable BROKEN cannot be sent as header Authorization"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := place.Resolve("a", c.server)
			if c.refuse != "" {
				r, ok := refusal.Find(err)
				if !ok || r.Code != refusal.CodeMCPServer || !strings.Contains(r.What, c.refuse) || strings.Contains(r.What, "two") {
					t.Fatalf("got %v", err)
				}
				return
			}
			if d := cmp.Diff(c.want, got); err != nil || d != "" {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
		})
	}
	if d := cmp.Diff([]string{"UNSET"}, place.Unset(remote("UNSET"))); d != "" {
		t.Error(d)
	}
	if missing := place.Unset(remote("KEY")); missing != nil {
		t.Errorf("%v are set", missing)
	}
}
