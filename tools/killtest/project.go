package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// executionsFile is where the configured command says that it began and that it came to its end. It
// lies outside the project, whose files are what the command judges.
const executionsFile = "executions"

// project is one project under test.
type project struct {
	built  binaries
	drawn  projectPlan
	folder string // its own temporary folder
	dir    string // the repository in it
	base   string // the commit that tasks start from
	ledger *ledger
	watch  *watch
	daemon *daemon
	// settled are runs that were seen to be over.
	settled map[string]shown
	// doctor says that the program under test can examine a project by itself.
	doctor bool
	// slowest is the longest that something below a dead daemon took to end.
	slowest time.Duration
	// tasks and merges are those that the last picture shows.
	tasks, merges int

	mu       sync.Mutex
	findings []finding
}

// found notes a broken promise.
func (p *project) found(k kind, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.findings = append(p.findings, finding{k, fmt.Sprintf(format, args...)})
}

func (p *project) isSound() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.findings) == 0
}

// newProject makes a repository, sets it up and writes the agents' scripts.
func newProject(ctx context.Context, built binaries, parent string, drawn projectPlan) (*project, error) {
	p := &project{built: built, drawn: drawn, folder: filepath.Join(parent, fmt.Sprintf("round-%d", drawn.first)), ledger: newLedger(), settled: map[string]shown{}}
	p.dir = filepath.Join(p.folder, "project")
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(p.dir, "README"), []byte("A project to be killed.\n"), 0o644); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "start"}} {
		if _, err := p.git(ctx, args...); err != nil {
			return nil, err
		}
	}
	contract := filepath.Join(p.folder, "execution.yaml")
	if err := os.WriteFile(contract, []byte(p.contract()), 0o600); err != nil {
		return nil, err
	}
	if err := p.must(ctx, "setup", "--project-dir", p.dir, "--execution-config", contract); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", "set up"}} {
		if _, err := p.git(ctx, args...); err != nil {
			return nil, err
		}
	}
	var err error
	if p.base, err = p.git(ctx, "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	if err := p.writeScripts(); err != nil {
		return nil, err
	}
	help, err := p.call(ctx, "", "run", "--help")
	if err != nil {
		return nil, err
	}
	p.doctor = strings.Contains(help.out, "doctor")
	p.watch, err = p.watchAll()
	return p, err
}

// must makes a call that has no reason to fail.
func (p *project) must(ctx context.Context, args ...string) error {
	c, err := p.call(ctx, "", args...)
	if err == nil && !c.done() {
		err = fmt.Errorf("%s: status %d: %s", c, c.status, c.err)
	}
	return err
}

func (p *project) writeScripts() error {
	for _, st := range stages {
		data, err := agentScript(st.id, p.base, p.drawn, time.Now())
		if err != nil {
			return err
		}
		path := p.script(st.id)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(p.folder, executionsFile), nil, 0o644)
}

func (p *project) script(stage string) string {
	return filepath.Join(p.folder, "agents", stage, "agent-script.json")
}

// contract is the project's execution.yaml. A JSON string is a YAML string.
func (p *project) contract() string {
	quote := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			panic("killtest: a path does not encode: " + err.Error())
		}
		return string(b)
	}
	var b strings.Builder
	b.WriteString("version: 1\nmax_running: 4\naccount_retry_initial_seconds: 1\naccount_retry_max_seconds: 1\nagents:\n")
	for _, st := range stages {
		fmt.Fprintf(&b, "  %s: {transport: acp, argv: [%s, --script, %s], adapter_version: \"1\", harness_version: \"1\"}\n",
			st.id, quote(p.built.agent), quote(p.script(st.id)))
	}
	b.WriteString("bindings:\n")
	for _, st := range stages {
		fmt.Fprintf(&b, "  %s: {role: %s, agent: %s, account: %s, scheduling: queue, session: new, permission: ask, max_running: 3, timeout_seconds: 60, "+
			"max_startup_retries: 20, max_no_progress_turns: 20, retry_initial_seconds: 1, retry_max_seconds: 1}\n", st.id, st.role, st.id, st.id)
	}
	log := filepath.Join(p.folder, executionsFile)
	command := `echo "start $GREATMINDS_MARK" >>"$0"; sleep 0.04; echo "end $GREATMINDS_MARK" >>"$0"`
	fmt.Fprintf(&b, "commands:\n  %s: {argv: [sh, -c, %s, %s], roles: [TESTER], timeout_seconds: 60}\n", commandID, quote(command), quote(log))
	return b.String()
}

// env is the operator's environment.
func (p *project) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.folder, "TMPDIR=" + p.folder, "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0"}
}

// gitLimit bounds one look with git.
const gitLimit = 20 * time.Second

// git runs git in the user's checkout. It takes no lock that the work would trip over.
func (p *project) git(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, gitLimit)
	defer cancel()
	words := append([]string{"-c", "user.name=T", "-c", "user.email=t@example.invalid", "-c", "gc.auto=0"}, args...)
	cmd := exec.CommandContext(ctx, "git", words...)
	cmd.Dir, cmd.Env = p.dir, p.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := startOwn(cmd); err != nil {
		return "", err
	}
	err := cmd.Wait()
	ours.ended(cmd.Process.Pid)
	if err != nil {
		return out.String(), fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// watchAll watches what tells that work goes on.
func (p *project) watchAll() (*watch, error) {
	runtime := filepath.Join(p.dir, ".greatminds")
	if err := os.MkdirAll(filepath.Join(runtime, ".runtime"), 0o700); err != nil {
		return nil, err
	}
	always := func(kind string) folderKind { return func(string) string { return kind } }
	folders := map[string]folderKind{
		filepath.Join(runtime, ".runtime"): func(name string) string {
			if name == "journal.jsonl" {
				return storeGrew
			}
			return ""
		},
		runtime: func(name string) string {
			if name == "journal.ndjson" {
				return journalGrew
			}
			return ""
		},
		p.folder: func(name string) string {
			if name == executionsFile {
				return commandRan
			}
			return ""
		},
		filepath.Join(p.dir, ".git"): func(name string) string {
			if name == "index.lock" {
				return gitMoved
			}
			return ""
		},
		filepath.Join(p.dir, ".git", "refs", "heads"): always(gitMoved),
	}
	for _, queue := range []string{"feature_dev", "feature_test", "feature_review", "verified"} {
		folder := filepath.Join(runtime, queue)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
		folders[folder] = always(taskMoved)
	}
	for _, st := range stages {
		folders[filepath.Dir(p.script(st.id))] = func(name string) string {
			if name == "trace.jsonl" {
				return agentSpoke
			}
			return ""
		}
	}
	return watchFolders(folders)
}
