package transport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/transport"
)

const offering = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"vendor":{"x":[1]}},"agentInfo":{"name":"n","version":"1"},
	"authMethods":[{"id":"key","name":"API key","type":"env_var"},{"name":"nameless"},7]}`

func TestWhatTheAgentOffersIsKept(t *testing.T) {
	t.Parallel()
	got, _ := handshake(t, nil, step{"initialize", strings.ReplaceAll(offering, "\n", "")}, step{"session/new", `{"sessionId":"s1",` +
		`"modes":{"currentModeId":"auto","availableModes":[{"id":"auto","name":"Auto"},{"id":"default","name":"Ask"},{"name":"x"}]},` +
		`"models":{"currentModelId":"m1","availableModels":[{"modelId":"m1","name":"One"}]},` +
		`"configOptions":[{"id":"mode","name":"Mode","category":"mode","type":"select","currentValue":"auto","options":[{"value":"auto"},{"group":"g","options":[{"value":"default"}]}]},` +
		`{"id":"fast","type":"boolean","currentValue":true},{"type":"select"}]}`})
	if got.err != nil {
		t.Fatal(got.err)
	}
	want := transport.Offer{Capabilities: []byte(`{"loadSession":true,"vendor":{"x":[1]}}`),
		AuthMethods: []transport.AuthMethod{{ID: "key", Name: "API key", Type: "env_var"}},
		Modes:       []transport.Choice{{ID: "auto", Name: "Auto"}, {ID: "default", Name: "Ask"}}, Mode: "auto",
		Models: []transport.Choice{{ID: "m1", Name: "One"}}, Model: "m1",
		Options: []transport.ConfigOption{{ID: "mode", Name: "Mode", Category: "mode", Type: "select", Current: "auto", Values: []string{"auto", "default"}},
			{ID: "fast", Type: "boolean", Current: "true"}}}
	if diff := cmp.Diff(want, got.s.Offer()); diff != "" {
		t.Error(diff)
	}
}

func TestAnOfferIsBounded(t *testing.T) {
	t.Parallel()
	many := func(format string) string {
		var b strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&b, format+",", i)
		}
		return b.String()[:b.Len()-1]
	}
	got, _ := handshake(t, nil, step{"initialize", `{"protocolVersion":1,"agentCapabilities":{"pad":"` + strings.Repeat("x", 70<<10) + `"},"authMethods":[` + many(`{"id":"a%d"}`) + `]}`},
		step{"session/new", `{"sessionId":"s1","modes":{"availableModes":[` + many(`{"id":"m%d"}`) + `]},"configOptions":[` + many(`{"id":"o%d"}`) + `]}`})
	if got.err != nil {
		t.Fatal(got.err)
	}
	o := got.s.Offer()
	if o.Capabilities != nil || len(o.AuthMethods) != 32 || len(o.Modes) != 256 || len(o.Options) != 32 {
		t.Errorf("kept %d bytes of capabilities, %d methods, %d modes, %d options", len(o.Capabilities), len(o.AuthMethods), len(o.Modes), len(o.Options))
	}
}

func TestInitializeOnlyMakesNoSession(t *testing.T) {
	t.Parallel()
	got, seen := handshake(t, func(o *transport.Options) { o.InitializeOnly, o.AuthMethod = true, "key" },
		step{"initialize", strings.ReplaceAll(offering, "\n", "")}, step{"authenticate", `{}`})
	if got.err != nil || len(seen) != 2 {
		t.Fatalf("got %v after %d requests", got.err, len(seen))
	}
	if got.s.ID() != "" || got.s.Negotiated().AuthMethod != "key" || got.s.Offer().Capabilities == nil {
		t.Errorf("got session %q, %+v", got.s.ID(), got.s.Negotiated())
	}
	_, err := got.s.Prompt(t.Context(), "hello")
	wantKind(t, err, transport.Configuration, transport.PhasePrompt)
}
