package transport_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"greatminds/transport"
)

const secret = "do-not-print"

var (
	stdioServer = transport.MCPServer{Name: "files", Type: transport.MCPStdio, Command: "/bin/files", Args: []string{"--root", secret},
		Env: []transport.Variable{{Name: "KEY", Value: secret}}}
	httpServer = transport.MCPServer{Name: "web", Type: transport.MCPHTTP, URL: "https://x.test/" + secret,
		Headers: []transport.Variable{{Name: "Authorization", Value: secret}}}
	sseServer = transport.MCPServer{Name: "old", Type: transport.MCPSSE, URL: "http://x.test/sse"}
)

const allServers = `[{"name":"files","command":"/bin/files","args":["--root","` + secret + `"],"env":[{"name":"KEY","value":"` + secret + `"}]},` +
	`{"type":"http","name":"web","url":"https://x.test/` + secret + `","headers":[{"name":"Authorization","value":"` + secret + `"}]},` +
	`{"type":"sse","name":"old","url":"http://x.test/sse","headers":[]}]`

// E-227: what the client offers the agent is in the session's request, however it is opened.
func TestMCPServersOnTheWire(t *testing.T) {
	t.Parallel()
	offers := func(more string) string {
		return `{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true,"sse":true}` + more + `}}`
	}
	for _, c := range []struct {
		name, agent, method, answer, load string
		servers                           []transport.MCPServer
		want                              string
	}{
		{"new", offers(""), "session/new", `{"sessionId":"s1"}`, "",
			[]transport.MCPServer{stdioServer, httpServer, sseServer}, allServers},
		{"load", offers(`,"loadSession":true`), "session/load", `{}`, "s1",
			[]transport.MCPServer{stdioServer, httpServer, sseServer}, allServers},
		{"resume", offers(`,"sessionCapabilities":{"resume":{}}`), "session/resume", `{}`, "s1",
			[]transport.MCPServer{stdioServer, httpServer, sseServer}, allServers},
		{"stdio needs no capability, and its lists are never null", `{"protocolVersion":1}`, "session/new", `{"sessionId":"s1"}`, "",
			[]transport.MCPServer{{Name: "bare", Type: transport.MCPStdio, Command: "/bin/true"}},
			`[{"name":"bare","command":"/bin/true","args":[],"env":[]}]`},
		{"none", `{"protocolVersion":1}`, "session/new", `{"sessionId":"s1"}`, "", nil, `[]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, seen := handshake(t, func(o *transport.Options) { o.MCPServers, o.LoadSession = c.servers, c.load },
				step{"initialize", c.agent}, step{c.method, c.answer})
			if got.err != nil {
				t.Fatal(got.err)
			}
			var params struct {
				Servers json.RawMessage `json:"mcpServers"`
			}
			if err := json.Unmarshal(seen[1].Params, &params); err != nil || string(params.Servers) != c.want {
				t.Errorf("got %s %v\nwant %s", params.Servers, err, c.want)
			}
		})
	}
}

// A server that the agent cannot reach costs no session.
func TestMCPServersNotOffered(t *testing.T) {
	t.Parallel()
	const web, sse = `{"http":true}`, `{"sse":true}`
	for _, c := range []struct {
		name, offers, load string
		server             transport.MCPServer
		phase              transport.Phase
	}{
		{"http of none", `{}`, "", httpServer, transport.PhaseNew},
		{"http beside sse", sse, "", httpServer, transport.PhaseNew},
		{"http false", `{"http":false}`, "", httpServer, transport.PhaseNew},
		{"http null", `{"http":null}`, "", httpServer, transport.PhaseNew},
		{"sse beside http", web, "", sseServer, transport.PhaseNew},
		{"capabilities of no object", `true`, "", sseServer, transport.PhaseNew},
		{"a type nobody knows", web, "", transport.MCPServer{Name: "web", Type: "acp"}, transport.PhaseNew},
		{"no type", web, "", transport.MCPServer{Name: "web"}, transport.PhaseNew},
		{"on load", sse, "s1", httpServer, transport.PhaseLoad},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := handshake(t, func(o *transport.Options) {
				o.MCPServers, o.LoadSession = []transport.MCPServer{stdioServer, c.server}, c.load
			}, step{"initialize", `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"mcpCapabilities":` + c.offers + `}}`})
			e := wantKind(t, got.err, transport.Configuration, c.phase)
			if !strings.Contains(e.What, `"`+c.server.Name+`"`) || strings.Contains(e.Error(), secret) {
				t.Errorf("got %q, want the server's name and nothing of its values", e.What)
			}
		})
	}
}

// Nothing of what a server is started or called with gets into a log or a message.
func TestMCPServersShowNoValues(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := transport.Options{MCPServers: []transport.MCPServer{stdioServer, httpServer}}
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("x", "server", stdioServer, "variable", stdioServer.Env[0], "list", o.MCPServers, "options", o)
	fmt.Fprintf(&log, "%v %+v %#v %s %v %#v %v", stdioServer, httpServer, stdioServer, httpServer, httpServer.Headers,
		stdioServer.Env, o)
	if strings.Contains(log.String(), secret) {
		t.Errorf("got %s", log.String())
	}
	for _, name := range []string{"files", "web", "KEY", "Authorization"} {
		if !strings.Contains(log.String(), name) {
			t.Errorf("%s is not named in %s", name, log.String())
		}
	}
}
