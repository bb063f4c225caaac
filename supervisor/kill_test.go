package supervisor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/fixtures/sample"
)

// killPoints are the moments of a pipeline at which the daemon is killed, each a named step of
// the fault seam.
var killPoints = []struct{ name, step string }{
	{"agent starting", "walk.launch"},
	{"prompt running", "walk.first_prompt_activity"},
	{"command running", "command.open"},
	{"result received", "result.receive"},
	{"between merge and move", "apply.move"},
	{"between move and journal", "apply.journal"},
}

// E-153 E-203 E-214 E-238 E-239 E-240
func TestADaemonKilledAnywhereLosesAndRepeatsNothing(t *testing.T) {
	binary := faultBinary(t)
	for _, point := range killPoints {
		for _, side := range []string{"before", "after"} {
			t.Run(side+" "+point.name, func(t *testing.T) {
				t.Parallel()
				p := newPipeline(t, binary)
				p.killAt(t, side+":"+point.step)
				p.finish(t)
				p.check(t)
			})
		}
	}
}

// E-216 E-118
func TestAMergedTaskIsNotMergedAgainByLaterPasses(t *testing.T) {
	p := newPipeline(t, faultBinary(t))
	p.finish(t)
	head := p.git(t, "rev-parse", "main")
	p.once(t)
	p.once(t)
	if again := p.git(t, "rev-parse", "main"); again != head {
		t.Fatalf("main moved from %s to %s without work", head, again)
	}
	p.check(t)
}

var buildOnce struct {
	sync.Once
	dir, path string
	err       error
}

// faultBinary is greatminds built with the fault seam, and never shipped.
func faultBinary(t testing.TB) string {
	t.Helper()
	buildOnce.Do(func() {
		dir, err := os.MkdirTemp("", "greatminds-fault-")
		if err != nil {
			buildOnce.err = err
			return
		}
		buildOnce.dir, buildOnce.path = dir, filepath.Join(dir, "greatminds")
		out, err := exec.Command("go", "build", "-tags", "faultseam", "-o", buildOnce.path, "greatminds/cmd/greatminds").CombinedOutput()
		if err != nil {
			buildOnce.err = fmt.Errorf("build: %w\n%s", err, out)
		}
	})
	if buildOnce.err != nil {
		t.Fatal(buildOnce.err)
	}
	return buildOnce.path
}

// pipeline is one project with a planned task and three scripted agents.
type pipeline struct {
	cli, root, project, task, base string
}

func newPipeline(t testing.TB, cli string) *pipeline {
	t.Helper()
	p := &pipeline{cli: cli, root: t.TempDir()}
	p.project = filepath.Join(p.root, "project")
	must(t, os.MkdirAll(p.project, 0o755))
	for name, text := range sample.Files {
		must(t, os.WriteFile(filepath.Join(p.project, name), []byte(text), 0o644))
	}
	p.git(t, "init", "-q", "-b", "main")
	p.commit(t, "start")
	contract := filepath.Join(p.root, "execution.yaml")
	must(t, os.WriteFile(contract, []byte(p.contract()), 0o600))
	p.run(t, "", "setup", "--project-dir", p.project, "--execution-config", contract)
	p.commit(t, "set up")
	p.base = p.git(t, "rev-parse", "HEAD")
	const planner = "ARCHITECT-PLANNER"
	out := p.run(t, planner, "task", "new", "--stream", "product", "--title", "Greet everybody", "--kind", "bugfix", "--scope", "backend")
	p.task = regexp.MustCompile(`[0-9]{4}-[a-z0-9-]+`).FindString(filepath.Base(strings.TrimSpace(out)))
	p.run(t, planner, "plan", p.task, "--triage", "clear", "--scope", "backend", "--assignee-role", "DEVELOPER", "--base-commit", p.base,
		"--plan-kind", "bugfix", "--mode", "A", "--stand-required", "false", "--body", "mend it")
	for _, st := range sample.Stages {
		must(t, os.MkdirAll(filepath.Dir(p.script(st.ID)), 0o755))
		must(t, os.WriteFile(p.script(st.ID), sample.Script(st.ID, p.base, time.Now()), 0o644))
	}
	return p
}

func (p *pipeline) script(stage string) string {
	return filepath.Join(p.root, "agents", stage, "agent-script.json")
}

func (p *pipeline) contract() string {
	var b strings.Builder
	b.WriteString("version: 1\nagents:\n")
	for _, st := range sample.Stages {
		fmt.Fprintf(&b, "  %s:\n    transport: acp\n    argv: [%q, demo-agent, --script, %q]\n    adapter_version: \"1\"\n    harness_version: \"1\"\n", st.ID, p.cli, p.script(st.ID))
	}
	b.WriteString("bindings:\n")
	for _, st := range sample.Stages {
		fmt.Fprintf(&b, "  %s: {role: %s, agent: %s, scheduling: queue, session: new, permission: allow-workspace, timeout_seconds: 60}\n", st.ID, st.Role, st.ID)
	}
	b.WriteString("commands:\n  unit-tests: {argv: [sleep, \"0.3\"], roles: [TESTER], timeout_seconds: 60}\n")
	return b.String()
}

// killAt runs a daemon that is killed at the step, and proves that the step was reached and that
// nothing the daemon had started is left.
func (p *pipeline) killAt(t *testing.T, fault string) {
	t.Helper()
	reached := filepath.Join(p.root, "reached")
	cmd := exec.Command(p.cli, "coordd", "--once", "--project-dir", p.project)
	cmd.Env = append(p.env(), "GREATMINDS_FAULT="+fault, "GREATMINDS_FAULT_REACHED="+reached)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the daemon was not killed at %s: %v\n%s", fault, err, stderr.String())
	}
	if _, err := os.Stat(reached); err != nil {
		t.Fatalf("%s was not reached: %v", fault, err)
	}
	p.nothingLeft(t)
}

// nothingLeft waits, on pidfds, for every process that carries this project in its environment.
// They have all been told to end by then; one that stays is a failure.
func (p *pipeline) nothingLeft(t testing.TB) {
	t.Helper()
	mark := []byte("GREATMINDS_PROJECT_DIR=" + p.project)
	marked := []byte("GREATMINDS_MARK=")
	limit := time.Now().Add(10 * time.Second)
	for _, pid := range processes(t) {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%s/environ", pid))
		cwd, _ := os.Readlink(fmt.Sprintf("/proc/%s/cwd", pid)) // a process that ended meanwhile has none
		ours := bytes.Contains(env, mark) || bytes.Contains(env, marked) && strings.HasPrefix(cwd, p.root)
		if err != nil || !ours {
			continue
		}
		var n int
		if _, err := fmt.Sscan(pid, &n); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdOpen(n, 0)
		if err != nil {
			continue // gone
		}
		var ready int
		for err = unix.EINTR; errors.Is(err, unix.EINTR); { // the runtime's own signals come at any time
			left := max(int(time.Until(limit).Milliseconds()), 1)
			ready, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, left)
		}
		must(t, unix.Close(fd))
		if ready == 0 || err != nil {
			cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%s/cmdline", pid)) // only for the message
			t.Fatalf("process %s is left: %q (%v)", pid, bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '}), err)
		}
	}
}

func processes(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	must(t, err)
	var out []string
	for _, e := range entries {
		if c := e.Name()[0]; c >= '0' && c <= '9' {
			out = append(out, e.Name())
		}
	}
	return out
}

var remedies = regexp.MustCompile(`greatminds (run (?:retry|repair|command-resolve)[^,;]*)`)

// finish restarts the daemon and follows the remedy of each hold until the task is merged. A
// hold without a remedy is a failure: nothing may be stuck without a way out.
func (p *pipeline) finish(t *testing.T) {
	t.Helper()
	for round := 0; round < 6; round++ {
		p.once(t)
		if p.queue(t) == "verified" {
			return
		}
		reason, remedy := p.held(t)
		words := remedies.FindStringSubmatch(remedy)
		if words == nil {
			t.Fatalf("the task is held (%s) and no command is named: %q", reason, remedy)
		}
		args := strings.Fields(strings.ReplaceAll(words[1], "TEXT", "looked-at-it"))
		p.run(t, "", append(args, "--project-dir", p.project)...)
	}
	t.Fatalf("not merged after six rounds; it stands in %s", p.queue(t))
}

func (p *pipeline) once(t *testing.T) {
	t.Helper()
	p.run(t, "", "coordd", "--once", "--project-dir", p.project)
}

// check holds the project against the invariants.
func (p *pipeline) check(t *testing.T) {
	t.Helper()
	if q := p.queue(t); q != "verified" {
		t.Errorf("got queue %s, want verified", q)
	}
	if n := strings.Fields(p.git(t, "rev-list", "--merges", "main")); len(n) != 1 {
		t.Errorf("got %d merges, want 1", len(n))
	}
	if got := p.git(t, "show", "main:greeter.go"); got+"\n" != sample.Fixed {
		t.Errorf("the merge does not hold the work:\n%s", got)
	}
	if dirty := p.git(t, "status", "--porcelain"); dirty != "" {
		t.Errorf("the repository is not clean:\n%s", dirty)
	}
	p.oneLineEach(t)
	p.nothingLeft(t)
}

// oneLineEach checks that every transition stands in the journal exactly once, and in order.
func (p *pipeline) oneLineEach(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.project, ".greatminds", "journal.ndjson"))
	must(t, err)
	seen, operations := map[string]int{}, map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var e struct {
			From, To    string
			OperationID string `json:"operation_id"`
		}
		must(t, json.Unmarshal([]byte(line), &e))
		if e.From != e.To {
			seen[e.From+" → "+e.To]++
		}
		if e.OperationID != "" {
			operations[e.OperationID]++
		}
	}
	for _, move := range []string{"feature_dev → feature_test", "feature_test → feature_review", "feature_review → verified"} {
		if seen[move] != 1 {
			t.Errorf("%s stands %d times in the journal, want once:\n%s", move, seen[move], data)
		}
	}
	for id, n := range operations {
		if n != 1 {
			t.Errorf("operation %s stands %d times in the journal", id, n)
		}
	}
}

// queue is where the task stands; it must stand in exactly one.
func (p *pipeline) queue(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(p.project, ".greatminds", "*", p.task+".yaml"))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("the task stands in %d queues: %v", len(found), found)
	}
	return filepath.Base(filepath.Dir(found[0]))
}

func (p *pipeline) held(t *testing.T) (reason, remedy string) {
	t.Helper()
	var doc struct {
		Assignments []struct {
			TaskID string `json:"task_id"`
			Reason string
			Remedy string
		}
	}
	must(t, json.Unmarshal([]byte(p.run(t, "", "run", "status", "--json", "--project-dir", p.project)), &doc))
	for _, a := range doc.Assignments {
		if a.TaskID == p.task {
			return a.Reason, a.Remedy
		}
	}
	t.Fatalf("no assignment speaks of task %s: %+v", p.task, doc.Assignments)
	return "", ""
}

func (p *pipeline) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.root, "GIT_CONFIG_NOSYSTEM=1", "TMPDIR=" + p.root,
		"GOCACHE=" + os.Getenv("GOCACHE")}
}

func (p *pipeline) run(t testing.TB, role string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.cli, args...)
	cmd.Dir, cmd.Env = p.project, p.env()
	if role != "" {
		cmd.Env = append(cmd.Env, "GREATMINDS_ROLE="+role)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("greatminds %s: %v\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

func (p *pipeline) git(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=T", "-c", "user.email=t@example.invalid"}, args...)...)
	cmd.Dir, cmd.Env = p.project, p.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (p *pipeline) commit(t testing.TB, subject string) {
	t.Helper()
	p.git(t, "add", "-A")
	p.git(t, "commit", "-q", "-m", subject)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
