package transport_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/transport"
)

// E-227
func TestHandshakeOnTheWire(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	var stages []transport.Stage
	p.options.Observe = func(s transport.Stage) { stages = append(stages, s) }
	done := p.open(context.Background())
	m := p.expect("initialize")
	want := `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false},` +
		`"clientInfo":{"name":"greatminds","version":"test"}}`
	if string(m.Params) != want {
		t.Errorf("initialize: got %s, want %s", m.Params, want)
	}
	p.reply(m, plainAgent)
	m = p.expect("session/new")
	if want := `{"cwd":"/work/space","mcpServers":[]}`; string(m.Params) != want {
		t.Errorf("session/new: got %s, want %s", m.Params, want)
	}
	p.reply(m, `{"sessionId":"s1"}`)
	got := p.wait(done)
	if got.err != nil {
		t.Fatal(got.err)
	}
	negotiated := transport.Negotiated{
		ProtocolVersion: 1, AgentName: "fixture", AgentVersion: "1.2", AuthMethods: []string{"key"},
		Capabilities: map[string]bool{"loadSession": true, "promptCapabilities.image": true, "promptCapabilities.audio": false},
		Strategy:     transport.NewContext,
	}
	if diff := cmp.Diff(negotiated, got.s.Negotiated()); diff != "" {
		t.Error(diff)
	}
	if want := []transport.Stage{transport.StageProtocolReady, transport.StageSessionReady}; !slices.Equal(stages, want) {
		t.Errorf("got stages %v, want %v", stages, want)
	}
	if got.s.ID() != "s1" {
		t.Errorf("got session %q", got.s.ID())
	}
}

// step is one answer of the agent's side of a handshake.
type step struct {
	method string
	// result is the answer, or error when it starts with "!"; "" leaves it unanswered.
	result string
}

// handshake plays steps and returns what Open returned, and the requests in their order. A request
// that is left unanswered is taken back by the client.
func handshake(t *testing.T, change func(*transport.Options), steps ...step) (opened, []message) {
	t.Helper()
	p := newPeer(t)
	p.options.DrainTimeout = patience // for what is written last
	if change != nil {
		change(&p.options)
	}
	done := p.open(context.Background())
	var seen []message
	for _, s := range steps {
		m := p.expect(s.method)
		seen = append(seen, m)
		switch {
		case s.result == "":
		case s.result[0] == '!':
			p.send(`{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, s.result[1:])
		default:
			p.reply(m, s.result)
		}
	}
	got := p.wait(done)
	if last := len(steps) - 1; steps[last].result == "" {
		p.takenBack(seen[last])
	}
	if got.err != nil {
		// The failed session is closed: whatever it wrote is there to be read to the end.
		if line, err := p.lines.ReadString('\n'); err == nil {
			t.Errorf("after the failure the client wrote %s", line)
		}
		if got.s == nil {
			t.Error("no session beside the error")
		}
	}
	return got, seen
}

// takenBack reads the notice that nobody waits for the answer to a request any more.
func (p *peer) takenBack(m message) {
	p.t.Helper()
	if got, want := string(p.expect("$/cancel_request").Params), `{"requestId":`+string(m.ID)+`}`; got != want {
		p.t.Errorf("got %s, want %s", got, want)
	}
}

// E-226
func TestOtherProtocolVersionsEndTheHandshake(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{`{"protocolVersion":2}`, `{"protocolVersion":0}`, `{"protocolVersion":99}`,
		`{"protocolVersion":"1"}`, `{"protocolVersion":1.5}`, `{"protocolVersion":null}`, `{}`, `null`,
		`{"protocolVersion":1,"protocolVersion":1}`} {
		t.Run(answer, func(t *testing.T) {
			got, _ := handshake(t, nil, step{"initialize", answer})
			wantKind(t, got.err, transport.Protocol, transport.PhaseInitialize)
		})
	}
	got, _ := handshake(t, nil, step{"initialize", `{"protocolVersion":1.0}`}, step{"session/new", `{"sessionId":"s1"}`})
	if got.err != nil {
		t.Errorf("1.0 is 1: %v", got.err)
	}
}

// E-021 E-022 E-024 E-025
func TestAuthentication(t *testing.T) {
	t.Parallel()
	key := func(o *transport.Options) { o.AuthMethod = "key" }
	t.Run("the configured method comes before the session", func(t *testing.T) {
		got, seen := handshake(t, key, step{"initialize", plainAgent}, step{"authenticate", `{}`},
			step{"session/new", `{"sessionId":"s1"}`})
		if got.err != nil || got.s.Negotiated().AuthMethod != "key" || string(seen[1].Params) != `{"methodId":"key"}` {
			t.Fatalf("got %v, params %s", got.err, seen[1].Params)
		}
	})
	t.Run("a method that is not advertised", func(t *testing.T) {
		got, _ := handshake(t, func(o *transport.Options) { o.AuthMethod = "oauth" }, step{"initialize", plainAgent})
		e := wantKind(t, got.err, transport.Configuration, transport.PhaseAuthenticate)
		if !strings.Contains(e.What, `"oauth"`) || !strings.Contains(e.What, `"key"`) {
			t.Errorf("got %q, want both names", e.What)
		}
	})
	t.Run("no method, no call", func(t *testing.T) {
		got, _ := handshake(t, nil, step{"initialize", plainAgent}, step{"session/new", `{"sessionId":"s1"}`})
		if got.err != nil {
			t.Fatal(got.err)
		}
	})
	t.Run("a session that needs a login", func(t *testing.T) {
		got, _ := handshake(t, nil, step{"initialize", plainAgent}, step{"session/new", `!{"code":-32000,"message":"login"}`})
		wantKind(t, got.err, transport.AuthRequired, transport.PhaseNew)
	})
	t.Run("a method that is not enough", func(t *testing.T) {
		got, _ := handshake(t, key, step{"initialize", plainAgent}, step{"authenticate", `!{"code":-32000,"message":"login"}`})
		wantKind(t, got.err, transport.AuthRequired, transport.PhaseAuthenticate)
	})
}

func TestSessionAnswersThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{`{}`, `null`, `{"sessionId":""}`, `{"sessionId":7}`, `{"sessionId":"` + strings.Repeat("s", 5000) + `"}`} {
		got, _ := handshake(t, nil, step{"initialize", plainAgent}, step{"session/new", answer})
		wantKind(t, got.err, transport.Protocol, transport.PhaseNew)
	}
}

func TestRequiredCapabilities(t *testing.T) {
	t.Parallel()
	agent := `{"protocolVersion":1,"agentCapabilities":{"loadSession":false,"promptCapabilities":{"image":true},"sessionCapabilities":{"list":{},"fork":null}}}`
	for path, offered := range map[string]bool{
		"promptCapabilities.image": true, "sessionCapabilities.list": true, "promptCapabilities": true,
		"loadSession": false, "sessionCapabilities.fork": false, "promptCapabilities.audio": false, "a.b.c": false, "": false,
	} {
		need := func(o *transport.Options) { o.RequiredCapabilities = []string{path} }
		if offered {
			if got, _ := handshake(t, need, step{"initialize", agent}, step{"session/new", `{"sessionId":"s1"}`}); got.err != nil {
				t.Errorf("%s: %v", path, got.err)
			}
			continue
		}
		got, _ := handshake(t, need, step{"initialize", agent})
		wantKind(t, got.err, transport.Configuration, transport.PhaseInitialize)
	}
}

// Optional capabilities are looked up like required ones, told one by one, and never refused for.
func TestOptionalCapabilities(t *testing.T) {
	t.Parallel()
	ask := func(o *transport.Options) {
		o.OptionalCapabilities = []string{"loadSession", "promptCapabilities.image", "sessionCapabilities.list", "a.b.c", "mcpCapabilities.http"}
	}
	for agent, want := range map[string]map[string]bool{
		`{"protocolVersion":1}`: {"loadSession": false, "promptCapabilities.image": false, "sessionCapabilities.list": false, "a.b.c": false, "mcpCapabilities.http": false},
		`{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":false},"sessionCapabilities":{"list":{}},"a":{"b":{"c":null}},"mcpCapabilities":[]}}`: {
			"loadSession": true, "promptCapabilities.image": false, "sessionCapabilities.list": true, "a.b.c": false, "mcpCapabilities.http": false},
	} {
		got, _ := handshake(t, ask, step{"initialize", agent}, step{"session/new", `{"sessionId":"s1"}`})
		if got.err != nil {
			t.Fatal(got.err)
		}
		if diff := cmp.Diff(want, got.s.Negotiated().Optional); diff != "" {
			t.Error(diff)
		}
	}
}

func TestUnusableOptions(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.options.Cwd = "relative"
	s, err := transport.Open(context.Background(), p.options)
	wantKind(t, err, transport.Configuration, transport.PhasePreflight)
	if s != nil || p.options.Stdin.Close() == nil {
		t.Error("want no session and closed pipes")
	}
	_, err = transport.Open(context.Background(), transport.Options{Cwd: "/"})
	wantKind(t, err, transport.Transport, transport.PhasePreflight)
}

func option(id, category, current string, values ...string) string {
	type value struct {
		Value string `json:"value"`
		Name  string `json:"name"`
	}
	list := []value{}
	for _, v := range values {
		list = append(list, value{v, v})
	}
	b, _ := json.Marshal(map[string]any{"id": id, "name": id, "type": "select", "category": category, "currentValue": current, "options": list})
	return string(b)
}

// toggle is an option of type boolean.
func toggle(id, category string) string {
	return `{"id":"` + id + `","name":"x","type":"boolean","category":"` + category + `","currentValue":false}`
}

func models(current string, values ...string) string {
	return "[" + option("m", "model", current, values...) + "]"
}

// E-251 E-252 E-253
func TestSettings(t *testing.T) {
	t.Parallel()
	all := func(o *transport.Options) { o.Model, o.Mode, o.Reasoning = "big", "ask", "high" }
	model := func(o *transport.Options) { o.Model = "big" }
	mode := func(o *transport.Options) { o.Mode = "ask" }
	with := func(members string) step { return step{"session/new", `{"sessionId":"s1",` + members + `}`} }
	set := func(options string) step {
		return step{"session/set_config_option", `{"configOptions":[` + options + `]}`}
	}
	initialize := step{"initialize", plainAgent}
	small := option("m", "model", "small", "small", "big")
	modes := option("md", "mode", "auto", "auto", "ask")
	think := option("think", "thought_level", "low", "low", "high")
	grouped := `{"id":"m","category":"model","type":"select","currentValue":"small","options":[{"group":"g","name":"G","options":[{"value":"big","name":"B"}]}]}`
	for name, c := range map[string]struct {
		change func(*transport.Options)
		steps  []step
		kind   transport.Kind
		says   string
	}{
		"E-252 model, mode, reasoning, each from the options returned last": {all, []step{with(`"configOptions":[` + small + `]`),
			set(option("m", "model", "big", "small", "big") + "," + modes),
			set(option("md", "mode", "ask", "auto", "ask") + "," + think),
			set(option("think", "thought_level", "high", "low", "high"))}, "", ""},
		"grouped options, beside ones of unknown type": {model, []step{with(`"configOptions":[{"id":"x","type":"slider","category":"model"},` + grouped + `]`),
			set(option("m", "model", "big"))}, "", ""},
		"E-251 no option of the category": {model, []step{with(`"configOptions":[` + modes + `]`)}, transport.Configuration, "category model"},
		"E-251 no options at all":         {model, []step{with(`"x":1`)}, transport.Configuration, "category model"},
		"E-251 a value that is not offered": {model, []step{with(`"configOptions":` + models("small", "small", "tiny"))},
			transport.Configuration, `"tiny"`},
		"E-251 reasoning that the chosen model does not have": {func(o *transport.Options) { o.Model, o.Reasoning = "big", "high" },
			[]step{with(`"configOptions":[` + small + "," + think + `]`), set(option("m", "model", "big", "big"))},
			transport.Configuration, "category thought_level"},
		"E-253 an answer that reports another value": {model, []step{with(`"configOptions":[` + small + `]`), set(small)},
			transport.Configuration, `reports "small"`},
		"E-253 an answer without the option": {model, []step{with(`"configOptions":[` + small + `]`), set(modes)},
			transport.Configuration, "not confirmed"},
		"E-253 an empty answer": {model, []step{with(`"configOptions":[` + small + `]`), {"session/set_config_option", `{}`}},
			transport.Configuration, "not confirmed"},
		"a refusal": {model, []step{with(`"configOptions":[` + small + `]`), {"session/set_config_option", `!{"code":-32602,"message":"no"}`}},
			transport.Configuration, "refused"},
		"a setting that needs a login": {model, []step{with(`"configOptions":[` + small + `]`), {"session/set_config_option", `!{"code":-32000,"message":"no"}`}},
			transport.AuthRequired, ""},
		"a mode through set_mode where only modes are offered": {mode, []step{
			with(`"modes":{"currentModeId":"auto","availableModes":[{"id":"auto","name":"a"},{"id":"ask","name":"b"}]}`),
			{"session/set_mode", `{}`}}, "", ""},
		"a mode through its config option where both are offered": {mode, []step{
			with(`"modes":{"currentModeId":"auto","availableModes":[{"id":"ask","name":"b"}]},"configOptions":[` + modes + `]`),
			set(option("md", "mode", "ask", "ask"))}, "", ""},
		"a mode that is not offered": {mode, []step{
			with(`"modes":{"currentModeId":"auto","availableModes":[{"id":"auto","name":"a"}]}`)}, transport.Configuration, `"auto"`},
		"a mode's category of a type that nobody sets, beside modes": {mode, []step{
			with(`"modes":{"currentModeId":"auto","availableModes":[{"id":"ask","name":"b"}]},"configOptions":[` + toggle("md", "mode") + `]`),
			{"session/set_mode", `{}`}}, "", ""},
		"a boolean option beside the wanted one": {model, []step{with(`"configOptions":[` + toggle("fast", "model") + "," + small + `]`),
			set(toggle("fast", "model") + "," + option("m", "model", "big", "small", "big"))}, "", ""},
		"only a boolean option of the category": {model, []step{with(`"configOptions":[` + toggle("fast", "model") + `]`)},
			transport.Configuration, "category model"},
		"options that are no objects": {model, []step{with(`"configOptions":[null,7,"x",[],{},` + small + `]`),
			set(`null,{"id":"m"},` + option("m", "model", "big", "big"))}, "", ""},
		"an option without a category is of none": {model, []step{with(`"configOptions":[{"id":"model","type":"select","currentValue":"small","options":[{"value":"big","name":"b"}]}]`)},
			transport.Configuration, "category model"},
		"a category of the agent's own": {func(o *transport.Options) { o.Reasoning = "high" },
			[]step{with(`"configOptions":[` + option("thinking", "thinking", "low", "low", "high") + `]`)}, transport.Configuration, "category thought_level"},
		"two options of the category": {model, []step{with(`"configOptions":[` + option("m0", "model", "x", "x") + "," + small + `]`),
			set(option("m0", "model", "x", "x") + "," + option("m", "model", "big", "big"))}, "", ""},
		"a value in force already is confirmed all the same": {model, []step{with(`"configOptions":[` + option("m", "model", "big", "big") + `]`),
			set(option("m", "model", "big", "big"))}, "", ""},
		"models beside the config options are not set": {model, []step{with(`"models":{"currentModelId":"small","availableModels":[{"modelId":"big","name":"B"}]}`)},
			transport.Configuration, "category model"},
		"E-253 an answer with the value as another type": {model, []step{with(`"configOptions":[` + small + `]`),
			set(`{"id":"m","category":"model","type":"select","currentValue":true,"options":[]}`)}, transport.Configuration, "not confirmed"},
		"E-253 null": {model, []step{with(`"configOptions":[` + small + `]`), {"session/set_config_option", `null`}},
			transport.Configuration, "not confirmed"},
		"modes that are null":  {mode, []step{with(`"modes":null`)}, transport.Configuration, "category mode"},
		"modes without a list": {mode, []step{with(`"modes":{"currentModeId":"ask"}`)}, transport.Configuration, `"ask"`},
		"a mode that is refused": {mode, []step{
			with(`"modes":{"currentModeId":"auto","availableModes":[{"id":"ask","name":"a"}]}`),
			{"session/set_mode", `!{"code":-32603,"message":"no"}`}}, transport.Configuration, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := handshake(t, c.change, append([]step{initialize}, c.steps...)...)
			if c.kind != "" {
				if e := wantKind(t, got.err, c.kind, transport.PhaseConfigure); !strings.Contains(e.What, c.says) {
					t.Errorf("got %q, want %q in it", e.What, c.says)
				}
				return
			}
			if got.err != nil {
				t.Fatal(got.err)
			}
			n := got.s.Negotiated()
			var asked transport.Options
			c.change(&asked)
			if n.Model != asked.Model || n.Mode != asked.Mode || n.Reasoning != asked.Reasoning {
				t.Errorf("got %+v, want model %q, mode %q and reasoning %q", n, asked.Model, asked.Mode, asked.Reasoning)
			}
		})
	}
}

// E-252
func TestSettingsNameTheOptionAndTheValue(t *testing.T) {
	t.Parallel()
	got, seen := handshake(t, func(o *transport.Options) { o.Model, o.Reasoning = "big", "high" }, step{"initialize", plainAgent},
		step{"session/new", `{"sessionId":"s1","configOptions":[` + option("think", "thought_level", "low", "low") + "," + option("m", "model", "small", "big") + `]}`},
		step{"session/set_config_option", `{"configOptions":[` + option("m", "model", "big", "big") + "," + option("effort", "thought_level", "low", "high") + `]}`},
		step{"session/set_config_option", `{"configOptions":[` + option("effort", "thought_level", "high", "high") + `]}`})
	if got.err != nil {
		t.Fatal(got.err)
	}
	for i, want := range []string{`{"configId":"m","sessionId":"s1","value":"big"}`, `{"configId":"effort","sessionId":"s1","value":"high"}`} {
		if string(seen[2+i].Params) != want {
			t.Errorf("got %s, want %s", seen[2+i].Params, want)
		}
	}
}

// An answer without options counts when the agent has sent them as an update; a mode counts
// unless an update says otherwise.
func TestSettingsReadBackFromUpdates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		update string
		mode   string
		ok     bool
	}{
		"options in an update":       {`{"sessionUpdate":"config_option_update","configOptions":` + models("big", "big") + `}`, "", true},
		"other options in it":        {`{"sessionUpdate":"config_option_update","configOptions":` + models("small", "big") + `}`, "", false},
		"the mode in an update":      {`{"sessionUpdate":"current_mode_update","currentModeId":"ask"}`, "ask", true},
		"another mode in it":         {`{"sessionUpdate":"current_mode_update","currentModeId":"auto"}`, "ask", false},
		"an unrelated update":        {`{"sessionUpdate":"session_info_update","title":"x"}`, "ask", true},
		"a malformed one counts not": {`{"sessionUpdate":"current_mode_update","currentModeId":7}`, "ask", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			method := "session/set_mode"
			if p.options.Mode = c.mode; c.mode == "" {
				p.options.Model, method = "big", "session/set_config_option"
			}
			done := p.open(context.Background())
			p.reply(p.expect("initialize"), plainAgent)
			p.reply(p.expect("session/new"), `{"sessionId":"s1","configOptions":`+models("small", "big")+
				`,"modes":{"currentModeId":"x","availableModes":[{"id":"ask","name":"a"}]}}`)
			m := p.expect(method)
			p.update(c.update)
			p.reply(m, `{}`)
			got := p.wait(done)
			if c.ok && got.err != nil {
				t.Fatal(got.err)
			}
			if !c.ok {
				wantKind(t, got.err, transport.Configuration, transport.PhaseConfigure)
			}
		})
	}
}
