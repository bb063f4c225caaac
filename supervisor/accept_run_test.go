package supervisor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// traceLines are the lines of the agent's trace of one kind.
func (l *lab) traceLines(t *testing.T, kind string) (out []map[string]any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(l.script("dev")), "trace.jsonl"))
	must(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var e map[string]any
		must(t, json.Unmarshal([]byte(line), &e))
		if e["kind"] == kind {
			out = append(out, e)
		}
	}
	return out
}

// received are the methods that one launch of the agent was sent, in order.
func (l *lab) received(t *testing.T, launch int) []string {
	t.Helper()
	var out []string
	for _, e := range l.traceLines(t, "recv") {
		if m, ok := e["m"].(string); ok && e["launch"] == float64(launch) {
			out = append(out, m)
		}
	}
	return out
}

// events are the kinds of the run's events, in order.
func (l *lab) events(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(l.run(t, "", "run", "events", "--limit", "10000", "--project-dir", l.project)), "\n") {
		var e struct{ Kind string }
		must(t, json.Unmarshal([]byte(line), &e))
		out = append(out, e.Kind)
	}
	return out
}

// What an agent starts inherits the run's identity, however deep it starts it.
//
// E-015
func TestAGrandchildOfTheAgentHasTheRunsIdentity(t *testing.T) {
	t.Parallel()
	l := newLab(t, "", "", "")
	seen := filepath.Join(filepath.Dir(l.script("dev")), "go-seen")
	inner := "env > '" + seen + ".new' && mv '" + seen + ".new' '" + seen + "'"
	must(t, os.WriteFile(l.script("dev"), []byte(`{"version":1,"launches":[{"steps":[{"handshake":{}},{"prompt":"p"},`+
		`{"spawn":{"name":"tool","argv":["sh","-c",`+quote(`sh -c "`+inner+`"`)+`]}},{"wait_file":"seen","within_ms":60000},{"end_turn":"p"}]}]}`), 0o644))
	l.once(t)
	data, err := os.ReadFile(seen)
	must(t, err)
	env := map[string]string{}
	for _, line := range strings.Split(string(data), "\n") {
		if name, value, ok := strings.Cut(line, "="); ok {
			env[name] = value
		}
	}
	run := ""
	for id := range l.status(t).Runs {
		run = id
	}
	for name, want := range map[string]string{"GREATMINDS_RUN_ID": run, "GREATMINDS_ROLE": "DEVELOPER", "GREATMINDS_PROJECT_DIR": l.project} {
		if env[name] != want || want == "" {
			t.Errorf("a grandchild has %s=%q, want %q", name, env[name], want)
		}
	}
	if len(env["GREATMINDS_RUN_TOKEN"]) != 43 {
		t.Errorf("a grandchild's credential has %d characters", len(env["GREATMINDS_RUN_TOKEN"]))
	}
}

// The worktree is there before there is any process to use it, and the first prompt is the whole
// assignment.
//
// E-026 E-247
func TestAnAgentStartsInAReadyWorkspaceWithItsAssignment(t *testing.T) {
	t.Parallel()
	l := newLab(t, `{"handshake":{}},{"prompt":"p"},{"file":{"op":"write","path":"${cwd}/here","text":"x"}},{"end_turn":"p"}`, "", "")
	l.once(t)
	kinds := l.events(t)
	ready, recorded := slices.Index(kinds, "workspace_ready"), slices.Index(kinds, "process_recorded")
	if ready < 0 || recorded < 0 || ready > recorded {
		t.Errorf("workspace_ready is event %d, process_recorded %d: %v", ready, recorded, kinds)
	}
	if _, err := os.Stat(filepath.Join(l.project, ".worktrees", l.task, "here")); err != nil {
		t.Errorf("the agent did not start in the task's worktree: %v", err)
	}
	text := l.prompt(t)
	_, document, _ := strings.Cut(text, "\n\n")
	var doc struct {
		TaskID       string `json:"task_id"`
		TaskRevision string `json:"task_revision"`
		SchemaSHA    string `json:"schema_sha256"`
		Role         string
		Task         map[string]any
		Moves        []struct {
			To string `json:"to_queue"`
		} `json:"allowed_transitions"`
		Format  map[string]any      `json:"result_format"`
		Payload map[string][]string `json:"decision_payload_fields"`
	}
	must(t, json.Unmarshal([]byte(document), &doc))
	for _, r := range l.status(t).Runs {
		if doc.TaskID != l.task || doc.Role != "DEVELOPER" || doc.TaskRevision != r.TaskRevision || doc.SchemaSHA != r.SchemaSHA || doc.SchemaSHA == "" {
			t.Errorf("the assignment is of task %s at %s, role %s, schema %s", doc.TaskID, doc.TaskRevision, doc.Role, doc.SchemaSHA)
		}
	}
	if doc.Task["title"] != "Sample task" || !strings.Contains(document, `"feature_test"`) || len(doc.Moves) == 0 || doc.Format["decision"] == nil || len(doc.Payload["handoff"]) == 0 {
		t.Errorf("the assignment lacks task, moves or result format:\n%s", document)
	}
	if found := regexp.MustCompile(`(?i)heartbeat|wake-?check|inbox|scan (the|all|other|your) queue|poll`).FindString(text); found != "" {
		t.Errorf("the assignment speaks of %q", found)
	}
}

// Inside its turn a run can ask for its assignment again, with the fields that a decision takes
// and those that the daemon fills.
//
// E-171
func TestARunReadsItsContractAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t, untilReleased+`{"end_turn":"p"}`, "", "")
	l.start(t)
	l.marked(t, "ready")
	env := l.agentEnv(t)
	code, out, stderr := l.attempt(append(l.env(), "GREATMINDS_PROJECT_DIR="+l.project, "GREATMINDS_RUN_ID="+env["GREATMINDS_RUN_ID"],
		"GREATMINDS_RUN_TOKEN="+env["GREATMINDS_RUN_TOKEN"]), "run", "contract")
	if code != 0 {
		t.Fatalf("got %d, %s", code, stderr)
	}
	var doc struct {
		RunID     string `json:"run_id"`
		TaskID    string `json:"task_id"`
		Task      map[string]any
		Decision  map[string][]string `json:"decision_payload_fields"`
		Generated map[string][]string `json:"generated_block_fields"`
	}
	must(t, json.Unmarshal([]byte(out), &doc))
	if doc.RunID != env["GREATMINDS_RUN_ID"] || doc.TaskID != l.task || doc.Task["title"] != "Sample task" {
		t.Errorf("run %q, task %q, %v", doc.RunID, doc.TaskID, doc.Task)
	}
	for decision, field := range map[string]string{"handoff": "to_queue", "blocked": "dependencies", "needs_input": "question", "no_change": "reason"} {
		if !slices.Contains(doc.Decision[decision], field) {
			t.Errorf("a decision of kind %s takes %v, want %s among them", decision, doc.Decision[decision], field)
		}
	}
	for block, field := range map[string]string{"implementation": "closed_by", "tests": "closed_at", "review": "reviewed_by"} {
		if !slices.Contains(doc.Generated[block], field) {
			t.Errorf("in a block of kind %s the daemon fills %v, want %s among them", block, doc.Generated[block], field)
		}
	}
	l.release(t, "go")
}

// A login is the operator's: the daemon selects the method that was configured, or none, and
// supplies nothing else.
//
// E-021 E-023 E-025
func TestALoginIsLeftToTheOperator(t *testing.T) {
	t.Parallel()
	const initialized = `{"expect":"initialize"},{"reply":"initialize","result":{"protocolVersion":1,"agentCapabilities":{},` +
		`"authMethods":[{"id":"browser","name":"In a browser"},{"id":"key","name":"By key"}]}},`
	for _, c := range []struct{ name, agent, steps, want string }{
		{"a method that asks for one", "    auth_method: browser\n", `{"expect":"authenticate"},{"reply":"authenticate","error":{"code":-32000,"message":"open the page, then paste the code"}},{"until_eof":true}`,
			"initialize authenticate"},
		{"no method", "", `{"expect":"session/new"},{"reply":"session/new","error":{"code":-32000,"message":"log in first"}},{"until_eof":true}`,
			"initialize session/new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, initialized+c.steps, c.agent, "")
			l.once(t)
			l.once(t)
			for _, r := range l.status(t).Runs {
				if r.State != "waiting_auth" || r.Process != nil || r.Outcome.PromptStarted {
					t.Errorf("the run is %s (%s), prompted %v", r.State, r.Reason, r.Outcome.PromptStarted)
				}
			}
			if got := strings.Join(l.received(t, 0), " "); got != c.want || l.launches(t) != 1 {
				t.Errorf("in %d launches the agent was sent %s, want %s once", l.launches(t), got, c.want)
			}
			if reason, remedy := l.held(t); reason != "active_run" || !strings.Contains(remedy, "log the agent in") {
				t.Errorf("the task is held as %s, %q", reason, remedy)
			}
		})
	}
}

// An earlier session is loaded for the same manifest and binding alone, and never for
// `session: new`.
//
// E-248 E-250
func TestOnlyASessionOfTheSameSettingsIsLoaded(t *testing.T) {
	t.Parallel()
	const fresh = `{"steps":[{"handshake":{"agentCapabilities":{"loadSession":true}}},{"prompt":"p"},{"end_turn":"p"}]}`
	const loads = `{"steps":[{"expect":"initialize"},{"reply":"initialize","result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"authMethods":[]}},` +
		`{"expect":"session/load","save":"l","assert":{"/params/sessionId":"sess-1"}},{"reply":"l","result":{}},{"prompt":"p"},{"end_turn":"p"}]}`
	l := newLab(t, "", "", "")
	must(t, os.WriteFile(l.script("dev"), []byte(`{"version":1,"launches":[`+strings.Join([]string{fresh, loads, fresh, fresh, fresh}, ",")+`]}`), 0o644))
	file := filepath.Join(l.project, "coordination", "execution.yaml")
	edit := func(old, new string) {
		text, err := os.ReadFile(file)
		must(t, err)
		if !strings.Contains(string(text), old) {
			t.Fatalf("the contract has no %q", old)
		}
		must(t, os.WriteFile(file, []byte(strings.Replace(string(text), old, new, 1)), 0o600))
	}
	edit("session: new", "session: resume-if-compatible")
	for launch, c := range []struct {
		name, old, new, method string
	}{
		{"the first", "session: resume-if-compatible", "session: resume-if-compatible", "session/new"},
		{"the same settings", "session: resume-if-compatible", "session: resume-if-compatible", "session/load"},
		{"another manifest", `adapter_version: "1"`, `adapter_version: "2"`, "session/new"},
		{"another binding", "session: resume-if-compatible", "session: resume-if-compatible, timeout_seconds: 61", "session/new"},
		{"session: new", "session: resume-if-compatible", "session: new", "session/new"},
	} {
		edit(c.old, c.new)
		if launch > 0 {
			runs := l.status(t).Runs
			for id := range runs {
				if l.isLast(t, id) {
					l.run(t, "", "run", "retry", id)
				}
			}
		}
		l.once(t)
		if got := strings.Join(l.received(t, launch), " "); got != "initialize "+c.method+" session/prompt" {
			t.Fatalf("%s: launch %s was sent %q, want %s", c.name, strconv.Itoa(launch), got, c.method)
		}
	}
	asserted := l.traceLines(t, "assert")
	if len(asserted) != 1 || asserted[0]["ok"] != true {
		t.Errorf("the session that was loaded: %v", asserted)
	}
}

// isLast tells whether the run is the newest of its task.
func (l *lab) isLast(t *testing.T, id string) bool {
	t.Helper()
	var doc struct {
		Runs map[string]struct {
			CreatedAt float64 `json:"created_at"`
		}
	}
	must(t, json.Unmarshal([]byte(l.run(t, "", "run", "status", "--json", "--project-dir", l.project)), &doc))
	for other := range doc.Runs {
		if doc.Runs[other].CreatedAt > doc.Runs[id].CreatedAt {
			return false
		}
	}
	return true
}
