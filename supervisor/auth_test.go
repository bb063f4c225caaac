package supervisor

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"greatminds/runstore"
)

// The answers of an agent that offers a login and loading, up to where it refuses.
const (
	hello   = `{"expect":"initialize","save":"i","within_ms":30000},{"reply":"i","result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"authMethods":[{"id":"key","name":"Key"},{"id":"web","name":"Web"}]}},`
	settled = `{"expect":"session/new","save":"n","within_ms":30000},{"reply":"n","result":{"sessionId":"s","configOptions":[{"id":"m","name":"M","category":"model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}],"modes":{"currentModeId":"x","availableModes":[{"id":"x","name":"X"},{"id":"y","name":"Y"}]}}},`
)

func refusing(method string, code int) string {
	return fmt.Sprintf(`{"expect":%q,"save":"x","within_ms":30000},{"reply":"x","error":{"code":%d,"message":"please log in","data":{"loginUrl":"https://login.invalid"}}}`, method, code)
}

// waitsForLogin wants the newest run to wait for a login without a process, and says so of it and of
// its account.
func (h *house) waitsForLogin(v *runstore.View) *runstore.Run {
	h.t.Helper()
	r := last(v)
	if r.State != runstore.WaitingAuth || r.Reason != authRequired || r.Process != nil || r.Outcome.ErrorCode == nil || *r.Outcome.ErrorCode != authRequiredRPCCode {
		h.t.Fatalf("got %s (%s), process %+v, outcome %+v", r.State, r.Reason, r.Process, r.Outcome)
	}
	if len(v.OpenPermissions()) > 0 {
		h.t.Error("a question is left open")
	}
	return r
}

// An agent that wants a login, wherever it says so, leaves its run waiting for the operator: over
// restarts, without another start, method or account. Others of its account wait with it, those of
// another do not; after the login one retry goes on.
//
// E-022 E-023 E-025 E-490 E-511
func TestAnAgentThatWantsALoginWaitsForIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan  plan
		auths int // calls of authenticate
	}{
		"initialize":   {plan{steps: refusing("initialize", -32000)}, 0},
		"authenticate": {plan{steps: hello + refusing("authenticate", -32000), agent: ", auth_method: key"}, 1},
		"session/new":  {plan{steps: hello + refusing("session/new", -32000)}, 0},
		"session/new after a login": {plan{steps: hello + `{"expect":"authenticate","save":"a","within_ms":30000},{"reply":"a","result":{}},` +
			refusing("session/new", -32000), agent: ", auth_method: web"}, 1},
		"session/set_config_option":   {plan{steps: hello + settled + refusing("session/set_config_option", -32000), binding: ", model: b"}, 0},
		"session/set_mode":            {plan{steps: hello + settled + refusing("session/set_mode", -32000), binding: ", mode: y"}, 0},
		"session/prompt":              {plan{steps: `{"handshake":{}},` + refusing("session/prompt", -32000)}, 0},
		"prompt after words":          {plan{steps: `{"handshake":{}},{"prompt":"p"},{"say":"let me see"},{"reply":"p","error":{"code":-32000,"message":"m"}}`}, 0},
		"prompt with a question open": {plan{steps: `{"handshake":{}},{"prompt":"p"},{"ask":"q"},{"sleep_ms":200},{"reply":"p","error":{"code":-32000,"message":"m"}}`}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.plan.binding += ", max_startup_retries: 5, retry_initial_seconds: 1"
			c.plan.commands = elsewhere
			if strings.Contains(c.plan.agent, "auth_method") {
				c.plan.commands = ""
			}
			h := newHouse(t, c.plan)
			h.task("feature_dev", taskID)
			must(t, h.once())
			r := h.waitsForLogin(h.read())
			starts, auths := h.starts(), h.received("authenticate")
			if starts != 1 || auths != c.auths {
				t.Errorf("%d starts, %d calls of authenticate", starts, auths)
			}
			h.script(`{"handshake":{"authMethods":[{"id":"key"},{"id":"web"}]}},{"prompt":"p"},{"end_turn":"p"}`)
			h.task("feature_dev", "0002-same-account")
			if c.plan.commands != "" {
				h.task("feature_test", "0003-elsewhere")
			}
			must(t, h.once())
			must(t, h.once())
			for _, other := range h.read().Runs()[1:] {
				if other.Account == r.Account {
					t.Errorf("run %s of the account that waits for a login", other.ID)
				}
			}
			if got := h.read().Run(r.ID); got.State != runstore.WaitingAuth || got.Reason != authRequired {
				t.Errorf("after restarts it is %s (%s)", got.State, got.Reason)
			}
			if c.plan.commands != "" && len(h.read().Runs()) != 2 {
				t.Errorf("%d runs: the other account waits too", len(h.read().Runs()))
			}
			if strings.Contains(c.plan.agent, "auth_method") {
				h.script(hello + `{"expect":"authenticate","save":"a","within_ms":30000},{"reply":"a","result":{}},{"expect":"session/new","save":"n","within_ms":30000},{"reply":"n","result":{"sessionId":"t"}},{"prompt":"p"},{"end_turn":"p"}`)
			} else if c.plan.binding != "" && strings.Contains(name, "set_") {
				return // what it was asked to set is not offered by the script above
			}
			h.start()
			if a := h.assigned("0002-same-account"); a.Reason != "account_authentication_required" || !strings.Contains(a.Remedy, "greatminds run retry "+string(r.ID)) {
				t.Errorf("got %+v", a)
			}
			if a := h.assigned(taskID); a.Reason != "active_run" || !strings.Contains(a.Remedy, "log the agent in, then greatminds run retry "+string(r.ID)) {
				t.Errorf("got %+v", a)
			}
			must(t, h.operator("run.retry", map[string]any{"run_id": r.ID}))
			h.until("the retry and the other task have run", func(v *runstore.View) bool {
				done := 0
				for _, x := range v.Runs() {
					if x.Account == r.Account && x.State == runstore.Completed {
						done++
					}
				}
				return done == 2
			})
			h.sane()
		})
	}
}

// A login that is wanted when a saved session is loaded waits as well, and no new session is made.
func TestALoginWantedAtALoadWaits(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: `{"handshake":{"agentCapabilities":{"loadSession":true},"sessionId":"old"}},{"prompt":"p"},{"end_turn":"p"}`, session: "resume-if-compatible"})
	h.task("feature_dev", taskID)
	must(t, h.once())
	first := last(h.read())
	h.script(hello + refusing("session/load", -32000))
	h.start()
	must(t, h.operator("run.retry", map[string]any{"run_id": first.ID}))
	h.until("the login is waited for", func(v *runstore.View) bool { return len(v.Runs()) == 2 && last(v).State == runstore.WaitingAuth })
	must(t, h.end())
	must(t, h.once())
	h.waitsForLogin(h.read())
	if n := h.received("session/new"); n != 1 || h.received("session/load") != 1 {
		t.Errorf("%d new sessions, %d loads", n, h.received("session/load"))
	}
}

// A method that is not offered, and one that the agent refuses, fail in so many words, are not
// tried again, and no other method is.
//
// E-024
func TestALoginThatFailsIsToldAndNotRepeated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan                plan
		reason, what, phase string
		auths               int
	}{
		"not offered": {plan{steps: hello + `{"until_eof":true}`, agent: ", auth_method: oauth"}, configurationError, `auth_method "oauth" is not among the advertised ["key" "web"]`, "authenticate", 0},
		"none offered": {plan{steps: `{"expect":"initialize","save":"i","within_ms":30000},{"reply":"i","result":{"protocolVersion":1,"agentCapabilities":{}}},{"until_eof":true}`, agent: ", auth_method: key"},
			configurationError, `auth_method "key" is not among the advertised []`, "authenticate", 0},
		"refused":              {plan{steps: hello + refusing("authenticate", -32603), agent: ", auth_method: key"}, protocolError, "the agent answered authenticate with an error", "authenticate", 1},
		"unknown to the agent": {plan{steps: hello + refusing("authenticate", -32602), agent: ", auth_method: web"}, protocolError, "the agent answered authenticate with an error", "authenticate", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.plan.binding = ", max_startup_retries: 5, retry_initial_seconds: 1"
			h := newHouse(t, c.plan)
			h.task("feature_dev", taskID)
			must(t, h.once())
			must(t, h.once())
			v := h.read()
			r := last(v)
			if r.State != runstore.Failed || r.Reason != c.reason || len(v.Runs()) != 1 || h.received("authenticate") != c.auths || h.received("session/new") != 0 {
				t.Errorf("got %s (%s), %d runs, %d calls of authenticate, %d sessions", r.State, r.Reason, len(v.Runs()), h.received("authenticate"), h.received("session/new"))
			}
			if what := string(r.Outcome.Extra["error_what"]); !strings.Contains(strings.ReplaceAll(what, `\"`, `"`), c.what) {
				t.Errorf("the outcome says %s", what)
			}
			if !strings.Contains(string(r.Protocol), `"phase":"`+c.phase+`"`) || strings.Contains(string(r.Protocol), "please log in") {
				t.Errorf("the protocol record is %s", r.Protocol)
			}
		})
	}
}

// A required variable that is missing, or empty, costs no start of the agent; with a value it does.
//
// E-018 E-019
func TestARequiredVariableIsThereOrNothingStarts(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: fine, agent: ", environment: {KEY: WANTED}, required_env: [WANTED]"})
	value, set := "", false
	h.o.Getenv = func(name string) string {
		if name != "WANTED" {
			return os.Getenv(name)
		}
		if !set {
			return ""
		}
		return value
	}
	h.task("feature_dev", taskID)
	for _, there := range []bool{false, true} { // set to nothing is as good as not set
		set = there
		must(t, h.once())
		r := h.waitsForLogin(h.read())
		if what := string(r.Outcome.Extra["error_what"]); h.starts() != 0 || *r.Outcome.PromptStarted || !strings.Contains(what, "WANTED") {
			t.Errorf("%d starts, the outcome says %s", h.starts(), what)
		}
	}
	value = "sesame"
	h.start()
	must(t, h.operator("run.retry", map[string]any{"run_id": last(h.read()).ID}))
	h.until("the retry has run", func(v *runstore.View) bool { return len(v.Runs()) == 2 && last(v).State == runstore.Completed })
}
