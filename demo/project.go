package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"greatminds/fixtures/sample"
	"greatminds/internal/execgate"
)

func (s *story) makeProject(ctx context.Context) error {
	if err := os.MkdirAll(s.project, 0o755); err != nil {
		return err
	}
	for name, text := range sample.Files {
		if err := os.WriteFile(filepath.Join(s.project, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if _, err := s.git(ctx, "init", "-q", "-b", "main"); err != nil {
		return err
	}
	return s.commit(ctx, "greeter: greet people")
}

// commit records everything under a made-up identity, so that none has to be configured.
func (s *story) commit(ctx context.Context, subject string) error {
	if _, err := s.git(ctx, "add", "-A"); err != nil {
		return err
	}
	_, err := s.git(ctx, "-c", "user.name=Demo", "-c", "user.email=demo@example.invalid", "-c", "commit.gpgSign=false",
		"commit", "-q", "--no-verify", "-m", subject)
	return err
}

func (s *story) git(ctx context.Context, args ...string) (string, error) {
	out, err := execgate.RunTool(ctx, execgate.Tool{Argv: append([]string{"git"}, args...), Env: s.env(), Dir: s.project,
		MaxOutput: 1 << 20, Timeout: time.Minute})
	if err != nil {
		return "", fmt.Errorf("git %v: %w", args, err)
	}
	if out.Code != 0 {
		return "", fmt.Errorf("git %v ended with status %d: %s", args, out.Code, out.Stderr)
	}
	return string(bytes.TrimSpace(out.Stdout)), nil
}

// setUp writes the contract and runs `greatminds setup` with it, then commits what it made.
func (s *story) setUp(ctx context.Context) error {
	file := filepath.Join(s.root, "execution.yaml")
	if err := os.WriteFile(file, []byte(s.contractText()), 0o600); err != nil {
		return err
	}
	if _, err := s.cli(ctx, "", "setup", "--project-dir", s.project, "--execution-config", file); err != nil {
		return err
	}
	if err := s.commit(ctx, "greatminds: set the project up"); err != nil {
		return err
	}
	base, err := s.git(ctx, "rev-parse", "HEAD")
	s.base = base
	return err
}

var created = regexp.MustCompile(`([0-9]{4}-[a-z0-9-]+)\.yaml`)

// fileTask does what a person does: `task new`, then `plan`.
func (s *story) fileTask(ctx context.Context) error {
	const planner = "ARCHITECT-PLANNER"
	about := "Greet leaves out the first name. go test shows it. Mend Greet in greeter.go; change no test."
	if s.Instruction != "" {
		about = s.Instruction
	}
	out, err := s.cli(ctx, planner, "task", "new", "--stream", "product", "--title", "Greet names everybody",
		"--kind", "bugfix", "--scope", "backend", "--description", about)
	if err != nil {
		return err
	}
	found := created.FindStringSubmatch(out)
	if found == nil {
		return fmt.Errorf("greatminds task new printed no task: %q", out)
	}
	s.task = found[1]
	if _, err := s.cli(ctx, planner, "plan", s.task, "--triage", "A small mistake with a test that shows it.",
		"--scope", "backend", "--assignee-role", "DEVELOPER", "--base-commit", s.base, "--plan-kind", "bugfix", "--mode", "A",
		"--stand-required", "false", "--body", "Join all names in Greet. Evidence: go test passes."); err != nil {
		return err
	}
	return s.writeScripts()
}

// contractText is the project's execution.yaml. JSON strings are YAML strings.
func (s *story) contractText() string {
	var b bytes.Buffer
	b.WriteString("version: 1\nmax_running: 1\nagents:\n")
	for _, st := range s.Stages {
		fmt.Fprintf(&b, "  %s-agent:\n    transport: acp\n    argv: %s\n    adapter_version: \"demo\"\n    harness_version: \"demo\"\n",
			st.ID, quoted(s.agentArgv(st.ID)))
		if len(s.Agent) > 0 {
			fmt.Fprintf(&b, "    environment: %s\n", s.passed())
			if s.Auth != "" {
				fmt.Fprintf(&b, "    auth_method: %s\n", quoted(s.Auth))
			}
		}
	}
	b.WriteString("bindings:\n")
	for _, st := range s.Stages {
		fmt.Fprintf(&b, "  %s:\n", st.ID)
		members := s.binding(st)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			fmt.Fprintf(&b, "    %s: %s\n", name, quoted(members[name]))
		}
	}
	fmt.Fprintf(&b, "commands:\n  unit-tests:\n    argv: [go, test, ./...]\n    roles: [DEVELOPER, TESTER]\n    timeout_seconds: 240\n    environment: %s\n    purpose: validation\n", s.goVariables())
	return b.String()
}

// binding are the members of one binding, by their names.
func (s *story) binding(st sample.Stage) map[string]any {
	m := map[string]any{"role": st.Role, "agent": st.ID + "-agent", "scheduling": "queue", "session": "new",
		"permission": s.policy(), "account": "demo", "timeout_seconds": 240}
	if len(s.Agent) > 0 {
		// On a busy machine the first start of a large agent can outlast the handshake's time
		// limit; the next ones find its files in memory.
		m["max_startup_retries"] = 5
		for name, value := range map[string]string{"model": s.Model, "mode": s.Mode} {
			if value != "" {
				m[name] = value
			}
		}
	}
	maps.Copy(m, s.Binding)
	return m
}

func (s *story) policy() string {
	switch {
	case len(s.Agent) == 0:
		return "allow-workspace"
	case s.Permission != "":
		return s.Permission
	}
	return "ask"
}

// goVariables passes on what says where Go keeps its caches and toolchain.
func (s *story) goVariables() string {
	m := map[string]string{}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOROOT", "GOTOOLCHAIN", "GOFLAGS", "GOPROXY", "TMPDIR"} {
		m[name] = name
	}
	return quoted(m)
}

func (s *story) passed() string {
	m := map[string]string{}
	for _, name := range s.Pass {
		m[name] = name
	}
	return quoted(m)
}

func (s *story) agentArgv(stage string) []string {
	if len(s.Agent) > 0 {
		return s.Agent
	}
	return append(append([]string{}, s.CLI...), AgentCommand, "--script", s.scriptPath(stage))
}

func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("demo: a plain value does not encode: " + err.Error())
	}
	return string(b)
}
