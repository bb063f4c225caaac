package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"greatminds/runstore"
)

const (
	// offersLoad begins a script of an agent whose sessions can be loaded.
	offersLoad = `{"handshake":{"agentCapabilities":{"loadSession":true}}},{"prompt":"p"},`
	// loading begins one that is asked to load, and goes as far as that.
	loading = `{"expect":"initialize"},{"reply":"initialize","result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}},` +
		`{"expect":"session/load","assert":{"/params/sessionId":"sess-1"}},`
)

// counts are the run's protocol counts.
func counts(t *testing.T, r *runstore.Run) map[string]int64 {
	t.Helper()
	var c map[string]int64
	if raw := r.Outcome.Extra["protocol_counts"]; raw != nil {
		must(t, json.Unmarshal(raw, &c))
	}
	return c
}

func what(t *testing.T, r *runstore.Run) string {
	t.Helper()
	var s string
	if raw := r.Outcome.Extra["error_what"]; raw != nil {
		must(t, json.Unmarshal(raw, &s))
	}
	return s
}

// A load that fails is no new session, by itself or when it is tried again: the saved one stays on
// record until the operator asks for another. Case C048, through a background run.
//
// E-248 E-250
func TestALoadThatFailsReplacesNothing(t *testing.T) {
	for _, code := range []int{-32002, -32602, -32603, -32601, 404} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{session: "resume-if-compatible"})
			h.task("feature_dev", taskID)
			fails := loading + fmt.Sprintf(`{"reply":"session/load","error":{"code":%d,"message":"Resource not found"}},{"until_eof":true}`, code)
			h.resumes(fails)
			for launch := 1; launch <= 2; launch++ {
				must(t, h.once())
				must(t, h.once()) // nothing is tried again unasked
				v := h.read()
				r := last(v)
				if r.State != runstore.Failed || r.Reason != sessionUnavailable || r.Outcome.ErrorCode == nil || *r.Outcome.ErrorCode != code ||
					*r.Outcome.PromptStarted || len(v.Runs()) != launch+1 || *run0(v).SessionID != "sess-1" || r.SessionID != nil {
					t.Fatalf("got %s (%s), %+v, %d runs", r.State, r.Reason, r.Outcome, len(v.Runs()))
				}
				if w := what(t, r); !strings.Contains(w, "session: new") || !strings.Contains(w, "binding dev") {
					t.Errorf("the operator is told %q", w)
				}
				h.wantSent(launch, "initialize", "session/load")
				h.again()
			}
			h.edit("resume-if-compatible", "new")
			h.script(`{"handshake":{"sessionId":"sess-2"}},{"prompt":"p"},{"end_turn":"p"}`)
			must(t, h.once())
			if r := last(h.read()); r.State != runstore.Completed || *r.SessionID != "sess-2" || r.Outcome.SessionStrategy != "new_context" {
				t.Errorf("got %s (%s), %+v", r.State, r.Reason, r.Outcome)
			}
		})
	}
}

// The agent that answers with another session has not loaded this one.
func TestALoadThatNamesAnotherSession(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{session: "resume-if-compatible"})
	h.task("feature_dev", taskID)
	h.resumes(loading + `{"reply":"session/load","result":{"sessionId":"sess-9"}},{"until_eof":true}`)
	must(t, h.once())
	if r := last(h.read()); r.Reason != sessionUnavailable || *r.Outcome.PromptStarted {
		t.Errorf("got %s (%s)", r.State, r.Reason)
	}
}

// Replayed history is counted, and is nothing of the run's own. Case C050, through a background run.
func TestReplayedHistoryIsNotTheRuns(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{session: "resume-if-compatible"})
	h.task("feature_dev", taskID)
	h.resumes(loading + `{"repeat":250,"steps":[{"update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"CANARY q ${n}"}}},` +
		`{"update":{"sessionUpdate":"tool_call","toolCallId":"old${n}","title":"t","kind":"edit","status":"completed"}}]},` +
		`{"reply":"session/load","result":{}},{"prompt":"p"},{"say":"two"},{"update":{"sessionUpdate":"tool_call","toolCallId":"now","title":"t","kind":"read"}},{"end_turn":"p"}`)
	must(t, h.once())
	r := last(h.read())
	if r.State != runstore.Completed || r.Outcome.SessionStrategy != "loaded" || *r.SessionID != "sess-1" ||
		counts(t, r)["replayed_updates"] != 500 || *r.Outcome.Updates != 502 || !*r.Outcome.PrePromptActivity {
		t.Errorf("got %s (%s), %+v, %v", r.State, r.Reason, r.Outcome, counts(t, r))
	}
	var protocol struct {
		Tools []struct {
			Data struct{ Phase, Kind string }
		} `json:"tool_events"`
	}
	must(t, json.Unmarshal(r.Protocol, &protocol))
	if len(protocol.Tools) != 1 || protocol.Tools[0].Data.Kind != "read" {
		t.Errorf("got %s", r.Protocol)
	}
	if r.Timings["first_prompt_activity"] < r.Timings["first_prompt_started"] {
		t.Errorf("replay counts as activity of the prompt: %v", r.Timings)
	}
	for _, name := range []string{".greatminds/.runtime/state.json", ".greatminds/.runtime/journal"} {
		if data, err := os.ReadFile(h.file(name)); err == nil && strings.Contains(string(data), "CANARY") {
			t.Errorf("%s holds replayed text", name)
		}
	}
}

// A load without an answer ends with the limit of a request. Case C052, through a background run; the
// limit is the specification's, so that this takes half a minute.
func TestALoadThatHangs(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{session: "resume-if-compatible"})
	h.task("feature_dev", taskID)
	h.resumes(loading + `{"expect":"$/cancel_request","within_ms":60000},{"until_eof":true}`)
	must(t, h.once())
	r := last(h.read())
	if r.State != runstore.Failed || r.Reason != timeoutReason || *r.Outcome.PromptStarted || *r.Outcome.ElapsedSeconds < 30 || *r.Outcome.ElapsedSeconds > 45 {
		t.Errorf("got %s (%s), %+v", r.State, r.Reason, r.Outcome)
	}
	h.wantSent(1, "initialize", "session/load", "$/cancel_request")
	h.nobody()
}

// Where nothing loads, a session is resumed; where nothing resumes, a new one is made and the
// strategy says so. E-249
func TestWhatTheAgentCannotLoad(t *testing.T) {
	const resumes = `{"expect":"initialize"},{"reply":"initialize","result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{}}}}},` +
		`{"expect":"session/resume","assert":{"/params/sessionId":"sess-1"}},{"reply":"session/resume","result":{}},{"prompt":"p"},{"end_turn":"p"}`
	for _, c := range []struct{ steps, method, strategy, session string }{
		{resumes, "session/resume", "resumed", "sess-1"},
		{`{"handshake":{"sessionId":"sess-2"}},{"prompt":"p"},{"end_turn":"p"}`, "session/new", "new_load_unavailable", "sess-2"},
	} {
		t.Run(c.strategy, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{session: "resume-if-compatible"})
			h.task("feature_dev", taskID)
			h.resumes(c.steps)
			must(t, h.once())
			r := last(h.read())
			if r.State != runstore.Completed || r.Outcome.SessionStrategy != c.strategy || *r.SessionID != c.session {
				t.Errorf("got %s (%s), %+v", r.State, r.Reason, r.Outcome)
			}
			h.wantSent(1, "initialize", c.method, "session/prompt")
		})
	}
}

// A session is gone on with however the run before ended; the process that had it is gone, and a
// new one loads it. E-248
func TestTheSessionOfARunThatDidNotEndWell(t *testing.T) {
	const cancels = offersLoad + `{"say":"at work"},{"on":"session/cancel","steps":[{"end_turn":"p","reason":"cancelled"}]},{"until_eof":true}`
	const deaf = offersLoad + `{"say":"at work"},{"hang":true}`
	for name, c := range map[string]struct {
		steps, binding string
		state          runstore.State
		stop           func(h *house)
	}{
		"cancelled": {cancels, "", runstore.Cancelled, func(h *house) {
			must(h.t, h.operator("run.cancel", map[string]any{"run_id": h.prompted().ID}))
			h.inState(runstore.Cancelled)
		}},
		"cancelled, and deaf": {deaf, "", runstore.Cancelled, func(h *house) {
			must(h.t, h.operator("run.cancel", map[string]any{"run_id": h.prompted().ID}))
			h.inState(runstore.Cancelled)
		}},
		"over its time":    {cancels, ", timeout_seconds: 2", runstore.Failed, func(h *house) { h.inState(runstore.Failed) }},
		"an agent killed":  {offersLoad + `{"say":"at work"},{"exit":{"signal":"KILL"}}`, "", runstore.Failed, func(h *house) { h.inState(runstore.Failed) }},
		"a daemon stopped": {cancels, "", runstore.Interrupted, func(h *house) { h.prompted() }},
		"an error":         {offersLoad + `{"reply":"p","error":{"code":500,"message":"no"}},{"until_eof":true}`, "", runstore.Failed, func(h *house) { h.inState(runstore.Failed) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: c.steps, binding: c.binding, session: "resume-if-compatible"})
			h.task("feature_dev", taskID)
			h.start()
			c.stop(h)
			must(t, h.end())
			if r := last(h.read()); r.State != c.state {
				t.Fatalf("got %s (%s)", r.State, r.Reason)
			}
			h.again()
			h.script(loaded + `{"end_turn":"p"}`)
			must(t, h.once())
			if r := last(h.read()); r.State != runstore.Completed || r.Outcome.SessionStrategy != "loaded" || *r.SessionID != "sess-1" {
				t.Errorf("got %s (%s), %+v", r.State, r.Reason, r.Outcome)
			}
		})
	}
}

// A run that has left for the history still lends its session. E-248
func TestTheSessionOfARunInTheHistory(t *testing.T) {
	t.Parallel()
	const other = "0002-other"
	h := newHouse(t, plan{steps: offersLoad + `{"end_turn":"p"}`, session: "resume-if-compatible"})
	h.o.EagerHistory, h.o.MinJournal = true, 1
	h.task("feature_dev", taskID)
	must(t, h.once())
	first := run0(h.read()).ID
	h.script(`{"handshake":{"sessionId":"sess-2"}},{"prompt":"p"},{"end_turn":"p"}`)
	h.task("feature_dev", other)
	must(t, h.once())
	must(t, h.once())
	v := h.read()
	if slices.ContainsFunc(v.Runs(), func(r *runstore.Run) bool { return r.ID == first }) || v.Run(first) == nil {
		t.Fatalf("the first run is not in the history: %d runs are hot", len(v.Runs()))
	}
	h.open()
	must(t, h.operator("run.retry", map[string]any{"run_id": first}))
	h.shut()
	h.script(loaded + `{"end_turn":"p"}`)
	must(t, h.once())
	if r := last(h.read()); string(r.TaskID) != taskID || r.State != runstore.Completed || r.Outcome.SessionStrategy != "loaded" || *r.SessionID != "sess-1" {
		t.Errorf("got %s of %s (%s), %+v", r.State, r.TaskID, r.Reason, r.Outcome)
	}
}

// A session that is known to have been sent nothing is no saved one.
func TestASessionWithoutAPromptIsNotGoneOnWith(t *testing.T) {
	no, yes := false, true
	for _, c := range []struct {
		name    string
		outcome *runstore.Outcome
		want    bool
	}{
		{"known to be empty", &runstore.Outcome{PromptStarted: &no}, true},
		{"prompted", &runstore.Outcome{PromptStarted: &yes}, false},
		{"not told", &runstore.Outcome{}, false},
		{"no outcome", nil, false},
	} {
		if got := neverPrompted(&runstore.Run{Outcome: c.outcome}); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

// The agent's session is closed before its input is, also after a cancel; an agent that refuses or
// that never answers only has that counted, and one that is gone is not asked.
func TestTheSessionIsClosed(t *testing.T) {
	const offers = `{"handshake":{"agentCapabilities":{"sessionCapabilities":{"close":{}}}}},{"prompt":"p"},`
	for _, c := range []struct {
		name, steps string
		state       runstore.State
		asked       bool
		failed      int64
	}{
		{"answered", offers + `{"end_turn":"p"},{"expect":"session/close","assert":{"/params/sessionId":"sess-1"}},{"reply":"session/close","result":{}}`, runstore.Completed, true, 0},
		{"refused", offers + `{"end_turn":"p"},{"expect":"session/close"},{"reply":"session/close","error":{"code":-32601,"message":"no"}}`, runstore.Completed, true, 1},
		{"never answered", offers + `{"end_turn":"p"}`, runstore.Completed, true, 1},
		{"after an error", offers + `{"reply":"p","error":{"code":-32603,"message":"no"}},{"expect":"session/close"},{"reply":"session/close","result":{}}`, runstore.Failed, true, 0},
		{"gone", offers + `{"exit":{"code":1}}`, runstore.Failed, false, 0},
		{"not offered", `{"handshake":{}},{"prompt":"p"},{"end_turn":"p"}`, runstore.Completed, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: c.steps})
			h.task("feature_dev", taskID)
			must(t, h.once())
			r := last(h.read())
			if r.State != c.state || counts(t, r)["session_close_failed"] != c.failed {
				t.Errorf("got %s (%s), counts %v", r.State, r.Reason, counts(t, r))
			}
			if asked := slices.Contains(h.sent(0), "session/close"); asked != c.asked {
				t.Errorf("the agent was sent %q", h.sent(0))
			}
			h.nobody()
		})
	}
}

// What the agent offers of the optional capabilities is on record, and nothing is refused for them.
func TestOptionalCapabilities(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: offersLoad + `{"end_turn":"p"}`, agent: ", optional_capabilities: [loadSession, promptCapabilities.image]"})
	h.task("feature_dev", taskID)
	must(t, h.once())
	r := last(h.read())
	var protocol struct {
		Negotiated struct {
			Data struct {
				Optional map[string]bool `json:"optional_capabilities"`
			}
		}
	}
	must(t, json.Unmarshal(r.Protocol, &protocol))
	if got := protocol.Negotiated.Data.Optional; r.State != runstore.Completed || len(got) != 2 || !got["loadSession"] || got["promptCapabilities.image"] {
		t.Errorf("got %s (%s), %v", r.State, r.Reason, got)
	}
}
