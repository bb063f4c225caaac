package supervisor_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lab is a pipeline's project with one scripted agent and a daemon of its own.
type lab struct {
	*pipeline
	daemon *exec.Cmd
	said   chan struct{} // closed when the daemon's log has ended
	log    bytes.Buffer
	extra  []string // further variables of the daemon
	// terminal is our end of the one that the daemon runs on, nil without.
	terminal *os.File
}

// oneAgent is a contract with one developer. more is added to the agent, binding to the binding.
func oneAgent(cli, script, more, binding string) string {
	return "version: 1\nagents:\n  dev:\n    transport: acp\n    argv: [" + quote(cli) + ", demo-agent, --script, " + quote(script) + "]\n" +
		"    adapter_version: \"1\"\n    harness_version: \"1\"\n" + more +
		"bindings:\n  dev: {role: DEVELOPER, agent: dev, scheduling: queue, session: new" + binding + "}\n"
}

func quote(s string) string { b, _ := json.Marshal(s); return string(b) }

// newLab makes a project whose one task stands in feature_dev, and whose agent plays the steps.
func newLab(t testing.TB, steps string, agent, binding string) *lab {
	t.Helper()
	p := &pipeline{cli: faultBinary(t), root: t.TempDir()}
	l := &lab{pipeline: p}
	p.project = filepath.Join(p.root, "project")
	must(t, os.MkdirAll(p.project, 0o755))
	must(t, os.WriteFile(filepath.Join(p.project, "a.txt"), []byte("a\n"), 0o644))
	p.git(t, "init", "-q", "-b", "main")
	p.commit(t, "start")
	script := p.script("dev")
	must(t, os.MkdirAll(filepath.Dir(script), 0o755))
	must(t, os.WriteFile(script, []byte(`{"version":1,"launches":[{"steps":[`+steps+`]}]}`), 0o644))
	contract := filepath.Join(p.root, "execution.yaml")
	must(t, os.WriteFile(contract, []byte(oneAgent(p.cli, script, agent, binding)), 0o600))
	p.run(t, "", "setup", "--project-dir", p.project, "--execution-config", contract)
	p.commit(t, "set up")
	p.base = p.git(t, "rev-parse", "HEAD")
	p.task = "0001-sample"
	must(t, os.WriteFile(filepath.Join(p.project, ".greatminds", "feature_dev", p.task+".yaml"), []byte(sampleTask), 0o644))
	return l
}

const sampleTask = `id: 0001-sample
stream: product
title: Sample task
reporter: ARCHITECT-PLANNER
opened_at: "2026-01-05T09:00:00Z"
priority: normal
kind: bugfix
scope: backend
blocks: []
`

// start starts the daemon, and ends it with the test.
func (l *lab) start(t testing.TB) {
	t.Helper()
	l.daemon = exec.Command(l.cli, "coordd", "--project-dir", l.project)
	l.daemon.Env = append(l.env(), l.extra...)
	l.daemon.Dir = l.project
	stderr, err := l.daemon.StderrPipe()
	must(t, err)
	must(t, l.daemon.Start())
	ready := make(chan struct{})
	l.said = make(chan struct{})
	go func() {
		defer close(l.said)
		lines, told := bufio.NewScanner(stderr), false
		for lines.Scan() {
			l.log.WriteString(lines.Text() + "\n")
			if !told && strings.Contains(lines.Text(), "coordd ready") {
				told = true
				close(ready)
			}
		}
		if !told {
			close(ready)
		}
	}()
	t.Cleanup(func() {
		_ = l.daemon.Process.Signal(syscall.SIGCONT) // a daemon that has ended needs no signal
		_ = l.daemon.Process.Signal(syscall.SIGTERM)
		<-l.said
		_ = l.daemon.Wait() // its status is checked where it matters
		if t.Failed() {
			t.Logf("coordd said:\n%s", l.log.String())
		}
		l.nothingLeft(t)
	})
	<-ready
}

// kill ends the daemon as a crash would, and waits until it has ended.
func (l *lab) kill(t testing.TB) {
	t.Helper()
	must(t, l.daemon.Process.Kill())
	<-l.said
	_ = l.daemon.Wait() // it was killed: its status says nothing
	l.nothingLeft(t)
}

// marked waits until the agent says so.
func (l *lab) marked(t testing.TB, name string) map[string]any {
	t.Helper()
	return l.traced(t, func(e map[string]any) bool { return e["kind"] == "mark" && e["name"] == name })
}

// traced waits, on inotify, for the first line of the agent's trace that is wanted.
func (l *lab) traced(t testing.TB, want func(map[string]any) bool) map[string]any {
	t.Helper()
	trace := filepath.Join(filepath.Dir(l.script("dev")), "trace.jsonl")
	var found map[string]any
	if !awaitChange(t, []string{filepath.Dir(trace)}, func() bool {
		found = l.find(t, trace, want)
		return found != nil
	}) {
		data, _ := os.ReadFile(trace) // only for the message
		t.Fatalf("the agent's trace does not hold what was waited for:\n%s\n%s", data, l.log.String())
	}
	return found
}

// awaitChange looks again whenever something changes in one of the folders, which it makes where they
// are missing, until the condition holds. It is false when that takes longer than 90 s.
func awaitChange(t testing.TB, folders []string, holds func() bool) bool {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	must(t, err)
	defer unix.Close(fd)
	for _, folder := range folders {
		must(t, os.MkdirAll(folder, 0o755))
		_, err = unix.InotifyAddWatch(fd, folder, unix.IN_MODIFY|unix.IN_CREATE|unix.IN_CLOSE_WRITE|unix.IN_MOVED_TO)
		must(t, err)
	}
	for limit := time.Now().Add(90 * time.Second); !holds(); {
		left := time.Until(limit)
		if left <= 0 {
			return false
		}
		if ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1); ready == 1 && err == nil {
			var buf [16 << 10]byte
			_, err = unix.Read(fd, buf[:])
			must(t, err)
		}
	}
	return true
}

func (l *lab) find(t testing.TB, trace string, want func(map[string]any) bool) map[string]any {
	t.Helper()
	data, err := os.ReadFile(trace)
	if os.IsNotExist(err) {
		return nil
	}
	must(t, err)
	for _, line := range strings.Split(string(data), "\n") {
		var e map[string]any
		if json.Unmarshal([]byte(line), &e) == nil && want(e) {
			return e
		}
	}
	return nil
}

// launches counts the agent's starts.
func (l *lab) launches(t testing.TB) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(l.script("dev")), "trace.jsonl"))
	if os.IsNotExist(err) {
		return 0
	}
	must(t, err)
	return strings.Count(string(data), `"kind":"start"`)
}

// release lets an agent that waits for a file go on.
func (l *lab) release(t testing.TB, name string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(filepath.Dir(l.script("dev")), "go-"+name), nil, 0o644))
}

// agentEnv is the environment of the running agent.
func (l *lab) agentEnv(t testing.TB) map[string]string {
	t.Helper()
	start := l.traced(t, func(e map[string]any) bool { return e["kind"] == "start" })
	data, err := os.ReadFile(filepath.Join("/proc", jsonNumber(start["pid"]), "environ"))
	must(t, err)
	env := map[string]string{}
	for _, v := range strings.Split(string(data), "\x00") {
		if name, value, ok := strings.Cut(v, "="); ok {
			env[name] = value
		}
	}
	return env
}

func jsonNumber(v any) string { b, _ := json.Marshal(v); return string(b) }

// attempt runs one command that may fail.
func (l *lab) attempt(env []string, args ...string) (status int, stdout, stderr string) {
	cmd := exec.Command(l.cli, args...)
	cmd.Dir, cmd.Env = l.project, env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return -1, "", err.Error()
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// statusDoc is what the tests read of `run status`.
type statusDoc struct {
	Paused bool
	Runs   map[string]struct {
		ID, State, Reason, Workspace string
		TaskRevision                 string `json:"task_revision"`
		ConfigSHA                    string `json:"config_sha256"`
		SchemaSHA                    string `json:"schema_sha256"`
		Process                      *struct{ PID int }
		WorkspacePlan                *struct{ Kind, Path string }   `json:"workspace_plan"`
		WorkspaceIdentity            *struct{ Head, Branch string } `json:"workspace_identity"`
		Timings                      map[string]float64
		Outcome                      struct {
			PromptStarted bool    `json:"prompt_started"`
			ErrorType     string  `json:"error_type"`
			ErrorCode     *int    `json:"error_code"`
			Elapsed       float64 `json:"elapsed_seconds"`
		}
	}
	Permissions map[string]struct{ ID, Status, Reason string }
	Results     map[string]struct{ Status string }
	Assignments []struct {
		TaskID string `json:"task_id"`
		Reason string
		What   string
		Remedy string
	}
}

func (l *lab) status(t testing.TB) statusDoc {
	t.Helper()
	var doc statusDoc
	must(t, json.Unmarshal([]byte(l.run(t, "", "run", "status", "--json", "--project-dir", l.project)), &doc))
	return doc
}
