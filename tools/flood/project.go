package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"greatminds/fixtures/gobuild"
	"greatminds/fixtures/sample"
)

// The limits that the bad agents meet.
const (
	// turnLimit is the timeout_seconds of their bindings.
	turnLimit = 6 * time.Second
	// requestLimit is the runtime's own for initialize.
	requestLimit = 30 * time.Second
	// cancelGrace is how long a cancelled turn may take to give its stop reason, leaveGrace how long a
	// process may take to leave at the end of its input, and termGrace after SIGTERM: an agent that
	// ignores everything takes all of them.
	cancelGrace, leaveGrace, termGrace = 2 * time.Second, time.Second, 2 * time.Second
)

// kind is one kind of agent.
type kind struct {
	id, role, queue string
	bindings        []string
	steps           []step
	// text is how long its tasks' description is, in bytes; 0 for a short one.
	text int
	// tasks is how many tasks a bad one gets.
	tasks int
	// limit is when its runs have to end, counted from the beginning that from names; graces is
	// what the ladder gives an agent like this one on top.
	limit, graces time.Duration
	from          string
}

type step = map[string]any

var (
	cancelled = step{"on": "session/cancel", "steps": []step{{"end_turn": "p", "reason": "cancelled"}}}

	good = kind{id: "good", role: "DEVELOPER", queue: "feature_dev", bindings: []string{"good-1", "good-2"}, limit: time.Minute, steps: []step{
		{"handshake": step{}}, {"prompt": "p"}, {"say": "I look."}, {"ask": "q", "title": "Run the tests", "kind": "execute"},
		{"await": "q", "within_ms": 60000},
		{"cli": []string{"run", "submit", "--json", `{"decision":"no_change","payload":{"reason":"all is well"}}`}},
		{"end_turn": "p"},
	}}

	bad = []kind{
		{id: "flooding", role: "TESTER", queue: "feature_test", bindings: []string{"flooding"}, tasks: 5, limit: turnLimit, from: "first_prompt_started", steps: []step{
			{"handshake": step{}}, cancelled, {"prompt": "p"},
			{"raw": `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"again"}}}}` + "\n", "repeat": 100000},
		}},
		{id: "long-line", role: "UI-DEVELOPER", queue: "feature_ui_dev", bindings: []string{"long-line"}, tasks: 5, limit: turnLimit, from: "first_prompt_started", steps: []step{
			{"handshake": step{}}, cancelled, {"prompt": "p"},
			{"raw": `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`},
			{"raw": "0123456789", "repeat": 5 << 20}, {"raw": `"}}}}` + "\n"},
		}},
		{id: "dead", role: "TECHNICAL-WRITER", queue: "feature_docs", bindings: []string{"dead"}, tasks: 1, limit: requestLimit, from: "process_recorded", steps: []step{}},
		// Its task is longer than a pipe takes.
		{id: "ignoring", role: "READER", queue: "feature_docs_review", bindings: []string{"ignoring"}, tasks: 3, text: 120 << 10, limit: turnLimit, graces: cancelGrace + leaveGrace + termGrace, from: "first_prompt_started", steps: []step{
			{"handshake": step{}}, {"ignore_signals": []string{"TERM", "INT", "HUP"}}, {"stop_reading": true},
			{"hang": true},
		}},
	}
)

// binaries are the programs that are run, as paths.
type binaries struct{ greatminds, agent string }

func build(ctx context.Context, folder string) (b binaries, err error) {
	if b.greatminds, err = gobuild.Program(ctx, folder, gobuild.Greatminds); err != nil {
		return b, err
	}
	b.agent, err = gobuild.Program(ctx, folder, gobuild.FakeAgent)
	return b, err
}

// project is one project with six bindings.
type project struct {
	binaries
	folder, dir string
	filed       int
}

func newProject(ctx context.Context, built binaries, folder string) (*project, error) {
	p := &project{binaries: built, folder: folder, dir: filepath.Join(folder, "project")}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(sample.Files)) {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(sample.Files[name]), 0o644); err != nil {
			return nil, err
		}
	}
	contract := filepath.Join(folder, "execution.yaml")
	if err := os.WriteFile(contract, []byte(p.contract()), 0o600); err != nil {
		return nil, err
	}
	for _, argv := range [][]string{
		{"git", "init", "-q", "-b", "main"}, {"git", "add", "-A"}, p.commit("start"),
		{built.greatminds, "setup", "--project-dir", p.dir, "--execution-config", contract},
		{"git", "add", "-A"}, p.commit("set up"),
	} {
		if err := p.call(ctx, argv...); err != nil {
			return nil, err
		}
	}
	return p, p.writeScripts()
}

func (p *project) commit(subject string) []string {
	return []string{"git", "-c", "user.name=Flood", "-c", "user.email=flood@example.invalid", "-c", "commit.gpgSign=false", "commit", "-q", "-m", subject}
}

func (p *project) call(ctx context.Context, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = p.dir, p.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return nil
}

// env is the environment of everything: nothing of the caller's but where programs are.
func (p *project) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.folder, "TMPDIR=" + p.folder, "GIT_CONFIG_NOSYSTEM=1"}
}

func kinds() []kind { return append([]kind{good}, bad...) }

// state is where a binding's script and trace are: outside the project, whose files are its source.
func (p *project) state(binding string) string { return filepath.Join(p.folder, "agents", binding) }

func (p *project) writeScripts() error {
	for _, k := range kinds() {
		for _, b := range k.bindings {
			if err := os.MkdirAll(p.state(b), 0o755); err != nil {
				return err
			}
			doc := step{"version": 1, "launches": []step{{"steps": k.steps}}}
			if err := os.WriteFile(filepath.Join(p.state(b), "agent-script.json"), asJSON(doc), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// contract is the project's execution.yaml; a JSON value is a YAML value.
func (p *project) contract() string {
	agents, bindings := step{}, step{}
	for _, k := range kinds() {
		for _, b := range k.bindings {
			agents[b] = step{"transport": "acp", "argv": []string{p.agent, "--script", filepath.Join(p.state(b), "agent-script.json")},
				"adapter_version": "1", "harness_version": "1"}
			seconds := int(k.limit / time.Second)
			if k.from != "first_prompt_started" {
				seconds = 60
			}
			bindings[b] = step{"role": k.role, "agent": b, "account": b, "scheduling": "queue", "session": "new", "permission": "ask",
				"max_running": 1, "timeout_seconds": seconds, "max_startup_retries": 0, "max_no_progress_turns": 1}
		}
	}
	return string(asJSON(step{"version": 1, "max_running": 6, "agents": agents, "bindings": bindings}))
}

// file puts one more task of a kind into its queue, whole at once.
func (p *project) file(k kind) error {
	p.filed++
	id := fmt.Sprintf("%04d-%s", p.filed, k.id)
	text := "Look whether all is well. " + strings.Repeat("word ", k.text/5)
	task := step{"id": id, "stream": "product", "title": "Look at it", "reporter": "ARCHITECT-PLANNER", "opened_at": "2026-01-05T09:00:00Z",
		"priority": "normal", "kind": "research", "scope": "backend", "description": text, "blocks": []any{}}
	draft := filepath.Join(p.folder, id+".yaml")
	if err := os.WriteFile(draft, asJSON(task), 0o644); err != nil {
		return err
	}
	return os.Rename(draft, filepath.Join(p.dir, ".greatminds", k.queue, id+".yaml"))
}

func asJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("flood: a plain value does not encode: " + err.Error())
	}
	return append(data, '\n')
}
