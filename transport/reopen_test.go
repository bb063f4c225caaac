package transport_test

import (
	"strings"
	"testing"

	"greatminds/transport"
)

// E-248 E-249
func TestLoading(t *testing.T) {
	t.Parallel()
	load := func(o *transport.Options) { o.LoadSession = "old" }
	t.Run("loaded where the agent offers it", func(t *testing.T) {
		got, seen := handshake(t, load, step{"initialize", plainAgent}, step{"session/load", `{}`})
		if got.err != nil || got.s.ID() != "old" || got.s.Negotiated().Strategy != transport.Loaded {
			t.Fatalf("got %v %q", got.err, got.s.Negotiated().Strategy)
		}
		if want := `{"cwd":"/work/space","mcpServers":[],"sessionId":"old"}`; string(seen[1].Params) != want {
			t.Errorf("got %s, want %s", seen[1].Params, want)
		}
	})
	t.Run("an empty answer is one", func(t *testing.T) {
		got, _ := handshake(t, load, step{"initialize", plainAgent}, step{"session/load", `null`})
		if got.err != nil {
			t.Fatal(got.err)
		}
	})
	t.Run("a new session where it does not", func(t *testing.T) {
		got, _ := handshake(t, load, step{"initialize", `{"protocolVersion":1}`}, step{"session/new", `{"sessionId":"s2"}`})
		if got.err != nil || got.s.ID() != "s2" || got.s.Negotiated().Strategy != transport.NewLoadUnavailable {
			t.Fatalf("got %v %+v", got.err, got.s.Negotiated())
		}
	})
	for name, code := range map[string]string{"not found": "-32002", "invalid": "-32602", "internal": "-32603"} {
		t.Run("a failed load replaces nothing: "+name, func(t *testing.T) {
			got, _ := handshake(t, load, step{"initialize", plainAgent}, step{"session/load", `!{"code":` + code + `,"message":"no"}`})
			wantKind(t, got.err, transport.SessionUnavailable, transport.PhaseLoad)
		})
	}
}

const (
	onlyResumes = `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{}}}}`
	loadsToo    = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{}}}}`
)

// E-248 E-249: which way a saved session is opened.
func TestReopening(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, agent string
		method      string
		strategy    transport.Strategy
	}{
		{"load before resume", loadsToo, "session/load", transport.Loaded},
		{"resume where nothing loads", onlyResumes, "session/resume", transport.Resumed},
		{"loadSession false", strings.Replace(loadsToo, "true", "false", 1), "session/resume", transport.Resumed},
		{"loadSession null", strings.Replace(loadsToo, "true", "null", 1), "session/resume", transport.Resumed},
		{"loadSession of another type", strings.Replace(loadsToo, "true", `"yes"`, 1), "session/resume", transport.Resumed},
		{"resume null", strings.Replace(onlyResumes, "{}", "null", 1), "session/new", transport.NewLoadUnavailable},
		{"resume false", strings.Replace(onlyResumes, "{}", "false", 1), "session/new", transport.NewLoadUnavailable},
		{"sessionCapabilities of no object", `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":true}}`, "session/new",
			transport.NewLoadUnavailable},
		{"nothing offered", `{"protocolVersion":1}`, "session/new", transport.NewLoadUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, seen := handshake(t, func(o *transport.Options) { o.LoadSession = "s1" },
				step{"initialize", c.agent}, step{c.method, `{"sessionId":"s1"}`})
			if got.err != nil || got.s.ID() != "s1" || got.s.Negotiated().Strategy != c.strategy {
				t.Errorf("got %v %q, want strategy %q", got.err, got.s.Negotiated().Strategy, c.strategy)
			}
			if c.method != "session/new" && string(seen[1].Params) != `{"cwd":"/work/space","mcpServers":[],"sessionId":"s1"}` {
				t.Errorf("got %s", seen[1].Params)
			}
		})
	}
}

// A session that must be the saved one is never replaced.
func TestRequireSession(t *testing.T) {
	t.Parallel()
	must := func(o *transport.Options) { o.LoadSession, o.RequireSession = "s1", true }
	got, _ := handshake(t, must, step{"initialize", `{"protocolVersion":1}`})
	wantKind(t, got.err, transport.SessionUnavailable, transport.PhaseLoad)
	got, _ = handshake(t, must, step{"initialize", onlyResumes}, step{"session/resume", `{}`})
	if got.err != nil || got.s.Negotiated().Strategy != transport.Resumed {
		t.Errorf("got %v", got.err)
	}
	got, _ = handshake(t, func(o *transport.Options) { o.RequireSession = true }, step{"initialize", `{"protocolVersion":1}`},
		step{"session/new", `{"sessionId":"s1"}`})
	if got.err != nil {
		t.Errorf("nothing saved, nothing required: %v", got.err)
	}
}

// The session that answers is exactly the saved one.
func TestAnotherSessionAnswers(t *testing.T) {
	t.Parallel()
	for name, method := range map[string]string{loadsToo: "session/load", onlyResumes: "session/resume"} {
		for _, answer := range []string{`{"sessionId":"s2"}`, `{"sessionId":""}`, `{"sessionId":7}`, `{"sessionId":{}}`,
			`{"sessionId":"s1","sessionId":"s2"}`, `{"sessionId":"S1"}`} {
			t.Run(method+answer, func(t *testing.T) {
				got, _ := handshake(t, func(o *transport.Options) { o.LoadSession = "s1" }, step{"initialize", name}, step{method, answer})
				if kindOf(got.err) != transport.SessionUnavailable || got.s.Negotiated().Strategy != "" {
					t.Errorf("got %v, strategy %q", got.err, got.s.Negotiated().Strategy)
				}
			})
		}
		for _, answer := range []string{`{}`, `null`, `[]`, `true`, `{"sessionId":null}`, `{"sessionId":"s1","modes":null}`} {
			t.Run(method+answer, func(t *testing.T) {
				got, _ := handshake(t, func(o *transport.Options) { o.LoadSession = "s1" }, step{"initialize", name}, step{method, answer})
				if got.err != nil || got.s.ID() != "s1" {
					t.Errorf("got %v", got.err)
				}
			})
		}
	}
}

// A resume that fails is as honest as a load that does.
func TestFailedResume(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"-32002", "-32601", "-32602", "-32603", "404"} {
		got, _ := handshake(t, func(o *transport.Options) { o.LoadSession = "s1" }, step{"initialize", onlyResumes},
			step{"session/resume", `!{"code":` + code + `,"message":"no"}`})
		wantKind(t, got.err, transport.SessionUnavailable, transport.PhaseResume)
	}
	got, _ := handshake(t, func(o *transport.Options) { o.LoadSession = "s1" }, step{"initialize", onlyResumes},
		step{"session/resume", `!{"code":-32000,"message":"login"}`})
	wantKind(t, got.err, transport.AuthRequired, transport.PhaseResume)
}
