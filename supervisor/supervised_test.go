package supervisor_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const untilReleased = `{"handshake":{}},{"prompt":"p"},{"mark":"ready"},{"wait_file":"go","within_ms":90000},`

// E-012 E-013 E-014 E-015 E-031 E-032
func TestAnAssignedAgentFindsItsWayBack(t *testing.T) {
	t.Parallel()
	l := newLab(t, untilReleased+`{"cli":["run","submit","--json","{\"decision\":\"no_change\",\"payload\":{}}"]},{"end_turn":"p"}`, "", "")
	decoys := filepath.Join(l.root, "decoys")
	must(t, os.MkdirAll(decoys, 0o755))
	decoy := []byte("#!/bin/sh\ntouch " + decoys + "/ran\nexit 9\n")
	for _, path := range []string{filepath.Join(decoys, "greatminds"), filepath.Join(l.project, "greatminds")} {
		must(t, os.WriteFile(path, decoy, 0o755))
	}
	l.extra = []string{"PATH=" + decoys + ":" + os.Getenv("PATH"), "SECRET_OF_THE_DAEMON=x"}
	l.start(t)
	l.marked(t, "ready")

	env := l.agentEnv(t)
	for name, want := range map[string]string{"GREATMINDS_PROJECT_DIR": l.project, "GREATMINDS_ROLE": "DEVELOPER"} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
	if len(env["GREATMINDS_RUN_ID"]) != 32 || len(env["GREATMINDS_RUN_TOKEN"]) != 43 || env["SECRET_OF_THE_DAEMON"] != "" {
		t.Errorf("got run id %q, a token of %d characters, the daemon's secret %q", env["GREATMINDS_RUN_ID"], len(env["GREATMINDS_RUN_TOKEN"]), env["SECRET_OF_THE_DAEMON"])
	}

	worktree := filepath.Join(l.project, ".worktrees", l.task)
	var doc struct {
		CLI       []string `json:"cli_argv"`
		Workspace string
		RunID     string `json:"run_id"`
	}
	// Without PATH, from the workspace, with nothing but the run's own identity.
	cmd := exec.Command(l.cli, "run", "contract")
	cmd.Dir = worktree
	cmd.Env = []string{"GREATMINDS_PROJECT_DIR=" + l.project, "GREATMINDS_RUN_ID=" + env["GREATMINDS_RUN_ID"], "GREATMINDS_RUN_TOKEN=" + env["GREATMINDS_RUN_TOKEN"]}
	out, err := cmd.Output()
	must(t, err)
	must(t, json.Unmarshal(out, &doc))
	if len(doc.CLI) == 0 || !filepath.IsAbs(doc.CLI[0]) || doc.Workspace != worktree || doc.RunID != env["GREATMINDS_RUN_ID"] {
		t.Errorf("got cli_argv %q, workspace %q, run %q", doc.CLI, doc.Workspace, doc.RunID)
	}
	prompt := l.prompt(t)
	for _, word := range []string{"cli_argv", "run command", "run submit", worktree} {
		if !strings.Contains(prompt, word) {
			t.Errorf("the prompt does not name %q", word)
		}
	}
	for _, run := range l.status(t).Runs {
		if run.Workspace != worktree || run.WorkspacePlan == nil || run.WorkspacePlan.Kind != "task_worktree" ||
			run.WorkspaceIdentity == nil || run.WorkspaceIdentity.Head != l.base || run.WorkspaceIdentity.Branch != "task/"+l.task {
			t.Errorf("got workspace %q, plan %+v, identity %+v", run.Workspace, run.WorkspacePlan, run.WorkspaceIdentity)
		}
	}
	l.release(t, "go")
	got := l.traced(t, func(e map[string]any) bool { return e["kind"] == "cli" })
	if rc, ok := got["rc"].(float64); !ok || rc != 0 {
		t.Errorf("the agent's own call ended with %v", got)
	}
	if _, err := os.Stat(filepath.Join(decoys, "ran")); err == nil {
		t.Error("a decoy was executed in place of the assigned command line")
	}
}

// prompt is the text that the agent was sent; the scripted agent writes it beside its trace.
func (l *lab) prompt(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(l.script("dev")), "*prompt*"))
	must(t, err)
	for _, f := range found {
		data, err := os.ReadFile(f)
		must(t, err)
		if len(data) > 0 {
			return string(data)
		}
	}
	t.Fatalf("no prompt beside the trace: %v", found)
	return ""
}

// E-189 E-062
func TestACredentialStandsInNoFile(t *testing.T) {
	t.Parallel()
	l := newLab(t, untilReleased+`{"end_turn":"p"}`, "", "")
	l.start(t)
	l.marked(t, "ready")
	token := l.agentEnv(t)["GREATMINDS_RUN_TOKEN"]
	if token == "" {
		t.Fatal("the agent has no credential")
	}
	must(t, filepath.WalkDir(l.project, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), token) {
			t.Errorf("%s holds the credential", path)
		}
		return err
	}))
	out := l.run(t, "", "run", "status", "--json", "--project-dir", l.project)
	if strings.Contains(out, "token") {
		t.Error("run status shows something of the credential")
	}
	for _, name := range []string{"journal.jsonl", "state.json"} {
		info, err := os.Stat(filepath.Join(l.project, ".greatminds", ".runtime", name))
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode().Perm())
		}
	}
	l.release(t, "go")
}

// E-236 E-169 E-170
func TestASecondDaemonIsTurnedAwayAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t, untilReleased+`{"end_turn":"p"}`, "", "")
	lock := filepath.Join(l.project, ".greatminds", ".runtime", "supervisor.lock")
	must(t, os.MkdirAll(filepath.Dir(lock), 0o700))
	must(t, os.WriteFile(lock, []byte("1\n"), 0o600)) // a text that proves nothing
	inode := inodeOf(t, lock)
	l.start(t)
	l.marked(t, "ready")
	began := time.Now()
	for _, args := range [][]string{{"coordd"}, {"coordd", "--once"}} {
		code, out, stderr := l.attempt(l.env(), append(args, "--project-dir", l.project)...)
		if code != 4 || out != "" || !strings.Contains(stderr, fmt.Sprint(l.daemon.Process.Pid)) {
			t.Errorf("%v: got status %d, stdout %q, stderr %q", args, code, out, stderr)
		}
	}
	// A holder that is waited for is waited for 30 s.
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("two refusals took %v", took)
	}
	if again := inodeOf(t, lock); again != inode {
		t.Errorf("the lock file was replaced: inode %d became %d", inode, again)
	}
	l.release(t, "go")
	l.traced(t, func(e map[string]any) bool { return e["kind"] == "stdin_eof" })
	if n := l.launches(t); n != 1 {
		t.Errorf("the agent was launched %d times", n)
	}
}

func inodeOf(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("no inode")
	}
	return stat.Ino
}

// E-220
func TestNobodyWritesAroundAHungDaemon(t *testing.T) {
	t.Parallel()
	l := newLab(t, untilReleased+`{"end_turn":"p"}`, "", "")
	l.start(t)
	l.marked(t, "ready")
	before := l.storeBytes(t)
	must(t, l.daemon.Process.Signal(syscall.SIGSTOP))
	must(t, unix.Waitid(unix.P_PID, l.daemon.Process.Pid, nil, unix.WSTOPPED, nil))
	code, out, stderr := l.attempt(l.env(), "run", "pause", "--project-dir", l.project)
	if code != 4 || out != "" || !strings.Contains(stderr, fmt.Sprint(l.daemon.Process.Pid)) {
		t.Errorf("got status %d, stdout %q, stderr %q", code, out, stderr)
	}
	// Reading needs no lease, and says that it read around the daemon.
	code, out, stderr = l.attempt(l.env(), "run", "status", "--json", "--project-dir", l.project)
	if code != 0 || !strings.Contains(out, `"runs"`) || stderr == "" {
		t.Errorf("status beside a hung daemon: %d, %q", code, stderr)
	}
	if after := l.storeBytes(t); after != before {
		t.Error("the store changed while the daemon was stopped")
	}
	must(t, l.daemon.Process.Signal(syscall.SIGCONT))
	l.run(t, "", "run", "pause", "--project-dir", l.project)
	if !l.status(t).Paused {
		t.Error("the daemon that goes on did not take the pause")
	}
	l.release(t, "go")
}

func (l *lab) storeBytes(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, name := range []string{"state.json", "journal.jsonl"} {
		data, err := os.ReadFile(filepath.Join(l.project, ".greatminds", ".runtime", name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

// E-206
func TestATaskWithAnOpenDecisionIsNotMovedByHand(t *testing.T) {
	t.Parallel()
	l := newLab(t, `{"handshake":{}},{"prompt":"p"},{"cli":["run","submit","--json","{\"decision\":\"no_change\",\"payload\":{}}"]},{"mark":"ready"},`+
		`{"wait_file":"go","within_ms":90000},{"end_turn":"p"}`, "", "")
	l.start(t)
	l.marked(t, "ready")
	for _, id := range []string{l.task, "1", "0001"} {
		code, out, stderr := l.attempt(append(l.env(), "GREATMINDS_ROLE=DEVELOPER"), "task", "mv", id, "feature_blocked", "--reason", "x")
		if code != 4 || out != "" {
			t.Errorf("task mv %s: got status %d, %q %q", id, code, out, stderr)
		}
	}
	if q := l.queue(t); q != "feature_dev" {
		t.Errorf("the task stands in %s", q)
	}
	l.release(t, "go")
}

// E-017
func TestArgvReachesExecLiterally(t *testing.T) {
	t.Parallel()
	l := newLab(t, `{"handshake":{}},{"prompt":"p"},{"end_turn":"p"}`, "", "")
	file := filepath.Join(l.project, "coordination", "execution.yaml")
	text, err := os.ReadFile(file)
	must(t, err)
	odd := []string{"$HOME", "*", "; touch pwned", "a  b", "`id`", "ü\u2028"}
	var words []string
	for _, w := range odd {
		words = append(words, quote(w))
	}
	must(t, os.WriteFile(file, []byte(strings.Replace(string(text), "]\n", ", "+strings.Join(words, ", ")+"]\n", 1)), 0o600))
	l.once(t)
	start := l.traced(t, func(e map[string]any) bool { return e["kind"] == "start" })
	argv, _ := start["argv"].([]any)
	if len(argv) < len(odd) {
		t.Fatalf("got argv %v", argv)
	}
	for i, want := range odd {
		if got := argv[len(argv)-len(odd)+i]; got != want {
			t.Errorf("word %d: got %q, want %q", i, got, want)
		}
	}
}

// E-019
func TestAMissingRequiredVariableStopsTheLaunch(t *testing.T) {
	t.Parallel()
	l := newLab(t, `{"handshake":{}}`, "    environment: {KEY: SOME_KEY}\n    required_env: [SOME_KEY]\n", "")
	l.once(t)
	l.once(t)
	doc := l.status(t)
	if len(doc.Runs) != 1 || l.launches(t) != 0 {
		t.Fatalf("got %d runs and %d launches", len(doc.Runs), l.launches(t))
	}
	for _, r := range doc.Runs {
		if r.State != "waiting_auth" || r.Reason != "authentication_required" || r.Process != nil || r.Outcome.ErrorCode == nil || *r.Outcome.ErrorCode != -32000 {
			t.Errorf("got %+v", r)
		}
	}
}

// E-009
func TestATimeoutBoundsEachPrompt(t *testing.T) {
	t.Parallel()
	l := newLab(t, `{"handshake":{}},{"prompt":"p"},{"hang":true}`, "", ", timeout_seconds: 1")
	l.once(t)
	for _, r := range l.status(t).Runs {
		took := r.Timings["cleanup_complete"] - r.Timings["first_prompt_started"]
		if r.State != "failed" || r.Reason != "timeout" || took < 1 || took > 30 {
			t.Errorf("got %s/%s after %.1f s", r.State, r.Reason, took)
		}
	}
}

// E-489
func TestAMissingExecutableWaitsForThePerson(t *testing.T) {
	t.Parallel()
	l := newLab(t, `{"handshake":{}}`, "", "")
	file := filepath.Join(l.project, "coordination", "execution.yaml")
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, []byte(strings.Replace(string(text), quote(l.cli), `"/nowhere/agent"`, 1)), 0o600))
	l.once(t)
	l.once(t)
	doc := l.status(t)
	if len(doc.Runs) != 1 {
		t.Fatalf("got %d runs, want 1", len(doc.Runs))
	}
	for _, r := range doc.Runs {
		if r.State != "failed" || r.Reason != "configuration_error" || r.Outcome.ErrorType != "FileNotFoundError" {
			t.Errorf("got %s/%s, %s", r.State, r.Reason, r.Outcome.ErrorType)
		}
	}
	if a := doc.Assignments[0]; a.Reason != "revision_already_attempted" || !strings.Contains(a.Remedy, "run retry") {
		t.Errorf("got %+v", a)
	}
}

// E-036
func TestAMissingWorkspaceIsAHoldAndNoClaim(t *testing.T) {
	t.Parallel()
	l := newLab(t, `{"handshake":{}}`, "", ", workspace: not-there")
	path := filepath.Join(l.project, ".greatminds", "feature_dev", l.task+".yaml")
	must(t, os.WriteFile(path, []byte(strings.Replace(sampleTask, "kind: bugfix", "kind: research", 1)), 0o644))
	l.once(t)
	doc := l.status(t)
	if len(doc.Runs) != 0 || len(doc.Assignments) != 1 {
		t.Fatalf("got %d runs and assignments %+v", len(doc.Runs), doc.Assignments)
	}
	if a := doc.Assignments[0]; a.Reason != "workspace_missing" || !strings.Contains(a.What, "not-there") || a.Remedy == "" {
		t.Errorf("got %+v", a)
	}
}

// E-200 E-245
func TestATurnWithoutADecisionMovesNothingAndIsNotRepeated(t *testing.T) {
	t.Parallel()
	l := newLab(t, `{"handshake":{}},{"prompt":"p"},{"say":"all done, verified, merged"},{"end_turn":"p"}`, "", "")
	path := filepath.Join(l.project, ".greatminds", "feature_dev", l.task+".yaml")
	before, err := os.ReadFile(path)
	must(t, err)
	l.once(t)
	l.once(t)
	after, err := os.ReadFile(path)
	must(t, err)
	doc := l.status(t)
	if string(after) != string(before) || l.launches(t) != 1 || doc.Assignments[0].Reason != "no_progress_limit" {
		t.Errorf("got %d launches, hold %+v, file changed %v", l.launches(t), doc.Assignments[0], string(after) != string(before))
	}
	// E-154: the documents of the run are there by their hash.
	for _, r := range doc.Runs {
		for _, name := range []string{"execution-" + r.ConfigSHA, "schema-" + r.SchemaSHA} {
			if _, err := os.Stat(filepath.Join(l.project, ".greatminds", ".runtime", "contracts", name+".json")); err != nil {
				t.Error(err)
			}
		}
	}
}

// E-056 E-057 E-058 E-059
func TestAQuestionDoesNotOutliveItsSupervisor(t *testing.T) {
	t.Parallel()
	l := newLab(t, `{"handshake":{}},{"prompt":"p"},{"ask":"q"},{"mark":"asked"},{"await":"q","within_ms":90000},{"end_turn":"p"}`, "", "")
	l.start(t)
	l.marked(t, "asked")
	question := l.pending(t)
	l.kill(t)
	l.once(t)
	doc := l.status(t)
	for _, r := range doc.Runs {
		if r.State != "waiting_input" || r.Process != nil {
			t.Errorf("got %s with process %v", r.State, r.Process)
		}
	}
	if p := doc.Permissions[question]; p.Status != "cancelled" || p.Reason != "supervisor_restart" {
		t.Errorf("got question %+v", p)
	}
	if code, out, _ := l.attempt(l.env(), "run", "permission", question, "--option", "ok"); code != 3 || out != "" {
		t.Errorf("a late answer got status %d, %q", code, out)
	}
	l.once(t)
	if n := l.launches(t); n != 1 {
		t.Errorf("launched %d times before any retry", n)
	}
}

// pending waits for the one open question and returns its id.
func (l *lab) pending(t *testing.T) string {
	t.Helper()
	limit := time.Now().Add(30 * time.Second)
	for time.Now().Before(limit) {
		for id, p := range l.status(t).Permissions {
			if p.Status == "pending" {
				return id
			}
		}
	}
	t.Fatal("no question is pending")
	return ""
}

// A project path longer than a socket path may be works like any other.
func TestALongProjectPath(t *testing.T) {
	t.Parallel()
	l := newLab(t, untilReleased+`{"end_turn":"p"}`, "", "")
	long := filepath.Join(l.root, strings.Repeat("d", 90), strings.Repeat("e", 90))
	must(t, os.MkdirAll(filepath.Dir(long), 0o755))
	must(t, os.Rename(l.project, long))
	l.project = long
	if len(long) < 180 {
		t.Fatalf("the path has only %d bytes", len(long))
	}
	l.start(t)
	l.marked(t, "ready")
	l.run(t, "", "run", "pause", "--project-dir", l.project)
	if !l.status(t).Paused {
		t.Error("the daemon did not take the pause")
	}
	l.release(t, "go")
}

// E-166
func TestAMalformedStoreIsRefusedUntouched(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"cut": `{"version": 1, "runs": {`, "empty": "", "no object": "[]", "newer": `{"version": 99}`} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, `{"handshake":{}}`, "", "")
			state := filepath.Join(l.project, ".greatminds", ".runtime", "state.json")
			must(t, os.MkdirAll(filepath.Dir(state), 0o700))
			must(t, os.WriteFile(state, []byte(text), 0o600))
			for _, args := range [][]string{{"coordd", "--once"}, {"run", "status", "--json"}, {"run", "pause"}} {
				code, out, stderr := l.attempt(l.env(), append(args, "--project-dir", l.project)...)
				if code != 4 || out != "" || !strings.Contains(stderr, "state.json") {
					t.Errorf("%v: got status %d, stdout %q, stderr %q", args, code, out, stderr)
				}
			}
			after, err := os.ReadFile(state)
			must(t, err)
			if string(after) != text || l.launches(t) != 0 {
				t.Error("the store was touched, or an agent launched")
			}
		})
	}
}

// A daemon outlives the reader of its log, as of `coordd 2>&1 | head`, and ends cleanly.
func TestALogThatNobodyReadsEndsNoDaemon(t *testing.T) {
	l := newLab(t, untilReleased+`{"end_turn":"p"}`, "", "")
	r, w, err := os.Pipe()
	must(t, err)
	daemon := exec.Command(l.cli, "coordd", "--project-dir", l.project)
	daemon.Env, daemon.Dir, daemon.Stderr = l.env(), l.project, w
	must(t, daemon.Start())
	must(t, w.Close())
	for lines := bufio.NewScanner(r); lines.Scan() && !strings.Contains(lines.Text(), "coordd ready"); {
	}
	must(t, r.Close())
	must(t, daemon.Process.Signal(syscall.SIGTERM))
	if err := daemon.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	l.nothingLeft(t)
}
