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

// record is a protocol record as it is stored.
type record struct {
	Version    int
	Negotiated *struct {
		At   float64
		Data map[string]any
	}
	Tools []struct {
		At   float64
		Data map[string]any
	} `json:"tool_events"`
	Truncated bool `json:"tool_events_truncated"`
	Error     *struct {
		At   float64
		Data map[string]any
	}
	Stop *struct {
		At   float64
		Data map[string]any
	}
}

func recordOf(t *testing.T, r *runstore.Run) (p record) {
	t.Helper()
	must(t, json.Unmarshal(r.Protocol, &p))
	return p
}

// observed are the kinds of the protocol_observed events of a run, in order.
func observed(t *testing.T, v *runstore.View, id runstore.RunID) (kinds []string) {
	t.Helper()
	for _, e := range v.Events(0, 10000) {
		if e.Kind == "protocol_trace_truncated" && *e.RunID == id {
			kinds = append(kinds, "truncated")
		}
		if e.Kind == "protocol_observed" && *e.RunID == id {
			var data struct{ Kind, Phase string }
			must(t, json.Unmarshal(e.Data, &data))
			if data.Phase == "" && data.Kind != "tool" {
				t.Errorf("event %s does not hold what was observed: %s", e.Kind, e.Data)
			}
			kinds = append(kinds, data.Kind)
		}
	}
	return kinds
}

// holds tells which files below the runtime folder hold a text, but for the feeds, which are for people.
func (h *house) holds(text string) (files []string) {
	h.t.Helper()
	must(h.t, filepath.WalkDir(h.file(".greatminds"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(path, "/.runtime/activity/") {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			files = append(files, path)
		}
		return err
	}))
	return files
}

const busy = `{"handshake":{"agentCapabilities":{"loadSession":true,"canaryCapability":true,"_meta":{"x":"CANARY"}}}},{"prompt":"p"},` +
	`{"raw":"CANARY on standard error\n","to":"stderr"},{"say":"CANARY text"},` +
	`{"update":{"sessionUpdate":"tool_call","toolCallId":"CANARY-id","title":"CANARY title","kind":"edit","status":"pending","locations":[{"path":"/CANARY"},{"path":"/x"}],` +
	`"content":[{"type":"content","content":{"type":"text","text":"CANARY"}}],"rawInput":{"k":"CANARY"},"_meta":{"m":"CANARY"}}},` +
	`{"update":{"sessionUpdate":"tool_call_update","toolCallId":"CANARY-id","status":"CANARY status","kind":"CANARY kind","rawOutput":"CANARY"}},`

// E-655 E-657 E-659 E-665
func TestTheProtocolRecordHoldsNoTextOfTheAgent(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: busy + `{"end_turn":"p"}`})
	h.task("feature_dev", "0001-a")
	h.task("feature_dev", "0002-b")
	must(t, h.once())
	v := h.read()
	references := map[string]bool{}
	for _, r := range v.Runs() {
		p := recordOf(t, r)
		if p.Version != 1 || p.Negotiated.Data["protocol_version"] != 1.0 || p.Negotiated.Data["phase"] != "initialize" || p.Negotiated.At < r.CreatedAt {
			t.Errorf("negotiated: %+v", p.Negotiated)
		}
		if c, ok := p.Negotiated.Data["capabilities"].(map[string]any); !ok || c["loadSession"] != true || len(c) > 8 || c["canaryCapability"] != nil {
			t.Errorf("capabilities: %v", p.Negotiated.Data["capabilities"])
		}
		if len(p.Tools) != 2 || p.Truncated {
			t.Fatalf("tools: %+v", p.Tools)
		}
		for i, want := range []map[string]any{{"update": "tool_call", "kind": "edit", "status": "pending", "content_count": 1.0, "location_count": 2.0},
			{"update": "tool_call_update", "kind": "other", "status": "other", "content_count": 0.0, "location_count": 0.0}} {
			want["phase"], want["tool_reference"] = "prompt", p.Tools[0].Data["tool_reference"]
			if got := p.Tools[i].Data; fmt.Sprint(got) != fmt.Sprint(want) || p.Tools[i].At < r.CreatedAt {
				t.Errorf("tool %d: got %v, want %v", i, got, want)
			}
		}
		reference := fmt.Sprint(p.Tools[0].Data["tool_reference"])
		if references[reference] || len(reference) != 16 {
			t.Errorf("the reference %q is that of the other run's tool", reference)
		}
		references[reference] = true
		if p.Stop == nil || p.Stop.Data["reason"] != "end_turn" || p.Stop.Data["phase"] != "prompt" || p.Error != nil {
			t.Errorf("stop %+v, error %+v", p.Stop, p.Error)
		}
		if got := fmt.Sprint(observed(t, v, r.ID)); got != "[negotiated stop tool]" {
			t.Errorf("observed %s", got)
		}
	}
	if len(references) != 2 {
		t.Fatalf("%d runs", len(references))
	}
	if files := h.holds("CANARY"); len(files) > 0 || h.said("CANARY") {
		t.Errorf("agent text stands in %v, in the log: %v", files, h.said("CANARY"))
	}
}

// E-656 E-662 E-663: the trace takes 64 observations; what comes later changes neither it nor its times, the stop and the
// error are still recorded, and every update counts.
func TestAFullTraceSaysSoAndTakesNothingMore(t *testing.T) {
	t.Parallel()
	const tools = `{"repeat":100,"steps":[{"update":{"sessionUpdate":"tool_call","toolCallId":"t${n}","title":"t","kind":"read"}}]},`
	for name, end := range map[string]string{"stop": `{"end_turn":"p"}`, "error": `{"reply":"p","error":{"code":-32603,"message":"CANARY"}}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: talking + tools + end})
			h.task("feature_dev", taskID)
			must(t, h.once())
			v := h.read()
			r := last(v)
			p := recordOf(t, r)
			if len(p.Tools) != 64 || !p.Truncated || *r.Outcome.Updates != 101 {
				t.Errorf("%d tool events, truncated %v, %d updates", len(p.Tools), p.Truncated, *r.Outcome.Updates)
			}
			if (p.Stop != nil) != (name == "stop") || (p.Error != nil) != (name == "error") {
				t.Errorf("stop %+v, error %+v", p.Stop, p.Error)
			}
			got := fmt.Sprint(observed(t, v, r.ID))
			if want := "[negotiated " + name + " tool truncated]"; got != want {
				t.Errorf("observed %s, want %s", got, want)
			}
		})
	}
}

// E-658 E-660: each stage of the protocol is told apart, with the code that the agent answered and a category of ours.
func TestTheStageThatFailedIsNamed(t *testing.T) {
	t.Parallel()
	const hello = `{"expect":"initialize"},{"reply":"initialize","result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"key","name":"Key"}]}},`
	refused := func(method string) string {
		return `{"expect":"` + method + `"},{"reply":"` + method + `","error":{"code":-32050,"message":"CANARY message","data":"CANARY data"}},{"until_eof":true}`
	}
	for phase, c := range map[string]struct {
		plan plan
		code any
	}{
		"preflight":    {plan{steps: talking, agent: `, required_env: [NOBODY_SETS_THIS]`}, -32000.0},
		"initialize":   {plan{steps: refused("initialize")}, -32050.0},
		"authenticate": {plan{steps: hello + refused("authenticate"), agent: ", auth_method: key"}, -32050.0},
		"session_new":  {plan{steps: hello + refused("session/new")}, -32050.0},
		"configure":    {plan{steps: talking + `{"end_turn":"p"}`, binding: ", mode: plan"}, nil},
		"prompt":       {plan{steps: talking + `{"reply":"p","error":{"code":-32050,"message":"CANARY message"}}`}, -32050.0},
	} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, c.plan)
			h.task("feature_dev", taskID)
			must(t, h.once())
			p := recordOf(t, last(h.read()))
			if p.Error == nil || p.Error.Data["phase"] != phase || p.Error.Data["rpc_code"] != c.code {
				t.Fatalf("got %+v, want phase %s with code %v", p.Error, phase, c.code)
			}
			category, ok := p.Error.Data["exception"].(string)
			if !ok || len(category) > 40 || strings.Contains(category, " ") {
				t.Errorf("the category is %v", p.Error.Data["exception"])
			}
			if talked := phase != "preflight" && phase != "initialize"; (p.Negotiated != nil) != talked {
				t.Errorf("negotiated: %+v", p.Negotiated)
			}
			if files := h.holds("CANARY"); len(files) > 0 || h.said("CANARY") {
				t.Errorf("the agent's words stand in %v, in the log: %v", files, h.said("CANARY"))
			}
		})
	}
}

// E-660: loading a session is a stage of its own.
func TestAFailedLoadNamesItsStage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{session: "resume-if-compatible"})
	h.task("feature_dev", taskID)
	h.resumes(loading + `{"reply":"session/load","error":{"code":-32050,"message":"CANARY"}},{"until_eof":true}`)
	must(t, h.once())
	if p := recordOf(t, last(h.read())); p.Error == nil || p.Error.Data["phase"] != "session_load" || p.Error.Data["rpc_code"] != -32050.0 {
		t.Errorf("got %+v", p.Error)
	}
}

// E-661: the same fact again is no second observation, and leaves the first its time.
func TestTheSameFactIsRecordedOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"repeat":5,"steps":[{"update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress"}}]},` +
		`{"update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}},{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	must(t, h.once())
	v := h.read()
	r := last(v)
	if p := recordOf(t, r); len(p.Tools) != 2 || p.Tools[0].Data["status"] != "in_progress" || p.Tools[1].Data["status"] != "completed" {
		t.Errorf("tools: %+v", p.Tools)
	}
	first := renew(nil, 1, map[string]any{"a": 1})
	if again := renew(first, 2, map[string]any{"a": 1}); again != first || again.At != 1 {
		t.Errorf("the same fact became %+v", again)
	}
	if other := renew(first, 2, map[string]any{"a": 2}); other.At != 2 {
		t.Errorf("another fact is %+v", other)
	}
}

// E-654: what was recorded outlives the daemon that recorded it, and the events that told of it.
func TestTheProtocolRecordOutlivesACrashAndItsEvents(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: busy + `{"wait_file":"go","within_ms":60000},{"end_turn":"p"}`, root: "max_runtime_events: 100\n"})
	h.task("feature_dev", taskID)
	h.start()
	v := h.until("the turn was sampled", func(v *runstore.View) bool { r := last(v); return r != nil && len(recordIn(r).Tools) == 2 })
	before := string(last(v).Protocol)
	h.disk.Crash()
	h.halt()
	<-h.ended
	h.d, h.o.Seam = nil, nil
	must(t, h.once())
	r := last(h.read())
	if r.State != runstore.Interrupted || string(r.Protocol) != before {
		t.Errorf("the run is %s, its record\n%s\nwas\n%s", r.State, r.Protocol, before)
	}
	h.open()
	for range 150 { // others' events push its own out
		must(t, h.operator("run.pause", nil))
		must(t, h.operator("run.resume", nil))
	}
	h.shut()
	v = h.read()
	if got := observed(t, v, r.ID); len(got) > 0 {
		t.Fatalf("the events are still there: %v", got)
	}
	if r := last(v); string(r.Protocol) != before {
		t.Errorf("the record became\n%s", r.Protocol)
	}
}

func recordIn(r *runstore.Run) (p record) {
	_ = json.Unmarshal(r.Protocol, &p) // none yet
	return p
}

// E-664: what was seen of tools stands in for no evidence.
func TestAProtocolObservationIsNoEvidence(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: talking + `{"update":{"sessionUpdate":"tool_call","toolCallId":"ran-tests","title":"go test","kind":"execute","status":"completed"}},` +
		`{"cli":["run","submit","--json","{\"decision\":\"no_change\",\"payload\":{\"reason\":\"done\",\"command_evidence\":[\"ran-tests\"]}}"]},{"end_turn":"p"}`})
	h.task("feature_dev", taskID)
	must(t, h.once())
	v := h.read()
	told := h.traced("cli")
	if len(told) != 1 || told[0]["rc"] == 0.0 || v.ResultOfRun(last(v).ID) != nil {
		t.Errorf("the decision: %v, %+v", told, v.ResultOfRun(last(v).ID))
	}
	if len(recordOf(t, last(v)).Tools) != 1 {
		t.Error("the tool was not seen")
	}
}
