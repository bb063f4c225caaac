package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"greatminds/demo"
	"greatminds/internal/execgate"
	"greatminds/tools/realagents/model"
)

// bench holds what all agents share.
type bench struct {
	cache  string
	folder string // for this run
	cli    string
}

// row is what was seen of one agent.
type row struct {
	Agent       string       `json:"agent"`
	Packages    []string     `json:"packages"`
	AgentInfo   []string     `json:"agent_info"`
	Permissions []permission `json:"permissions"`
	Merge       string       `json:"merge"`
	Files       []string     `json:"files"`
	ModelCalls  int64        `json:"model_calls"`
	Seconds     float64      `json:"seconds"`
	Note        string       `json:"note,omitempty"`
	Error       string       `json:"error,omitempty"`
}

// permission is one question and how the operator's command answered it.
type permission struct {
	Stage   string   `json:"stage"`
	Tool    string   `json:"tool_kind"`
	Options []string `json:"options"`
	Chosen  string   `json:"chosen"`
	Status  int      `json:"exit_status"`
}

// build makes the command line that both the demo and the agents' own calls go through.
func (b *bench) build(ctx context.Context) (err error) {
	if b.folder, err = os.MkdirTemp("", "realagents-"); err != nil {
		return err
	}
	b.cli = filepath.Join(b.folder, "greatminds")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", b.cli, "greatminds/cmd/greatminds").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build greatminds: %w\n%s", err, out)
	}
	return nil
}

func (b *bench) cleanUp() {
	if err := os.RemoveAll(b.folder); err != nil {
		fmt.Fprintln(os.Stderr, "Error: left behind:", err)
	}
}

// install puts the pinned packages into the cache, once.
func (b *bench) install(ctx context.Context, r recipe) (string, error) {
	dir := filepath.Join(b.cache, strings.NewReplacer("/", "_", "@", "_").Replace(strings.Join(r.packages, "+")))
	done := filepath.Join(dir, ".installed")
	if _, err := os.Stat(done); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true}`), 0o644); err != nil {
		return "", err
	}
	npm := exec.CommandContext(ctx, "npm", append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts"}, r.packages...)...)
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install %v: %w\n%s", r.packages, err, tail(out))
	}
	return dir, os.WriteFile(done, nil, 0o644)
}

func tail(b []byte) []byte { return b[max(0, len(b)-2000):] }

// try runs the whole pipeline with one agent.
func (b *bench) try(ctx context.Context, r recipe) (out row) {
	out = row{Agent: r.name, Packages: r.packages, Note: r.why}
	began := time.Now()
	defer func() { out.Seconds = time.Since(began).Seconds() }()
	install, err := b.install(ctx, r)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	server, err := model.Start()
	if err != nil {
		out.Error = err.Error()
		return out
	}
	defer func() {
		end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Close(end); err != nil && out.Error == "" {
			out.Error = err.Error()
		}
	}()
	home := filepath.Join(b.folder, "home-"+r.name)
	argv, env, err := r.launch(install, home, server.URL(), os.Getenv("PATH"))
	if err != nil {
		out.Error = err.Error()
		return out
	}
	b.pipeline(ctx, r, argv, env, &out)
	out.ModelCalls = server.Requests()
	if out.Error == "" && server.Planned() == 0 {
		out.Error = "the model stand-in saw no request with the assignment"
	}
	return out
}

// pipeline runs the demo with the agent and looks at what it left.
func (b *bench) pipeline(ctx context.Context, r recipe, argv []string, env map[string]string, out *row) {
	folder := filepath.Join(b.folder, "work-"+r.name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		out.Error = err.Error()
		return
	}
	environ, pass := []string{}, []string{}
	for name, value := range env {
		environ = append(environ, name+"="+value)
		pass = append(pass, name)
	}
	// The sample's `go test` needs a cache outside the agent's HOME.
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		if value, err := exec.CommandContext(ctx, "go", "env", name).Output(); err == nil {
			environ = append(environ, name+"="+string(bytes.TrimSpace(value)))
		}
	}
	err := demo.Run(ctx, demo.Options{CLI: []string{b.cli}, Agent: argv, Mode: r.mode, Auth: r.auth, Pass: pass, Keep: true,
		Folder: folder, Out: os.Stdout, Now: time.Now, Environ: environ, Getenv: getenv(environ), Limit: 8 * time.Minute,
		Question: func(ctx context.Context, project, id string) error { return b.answer(ctx, environ, project, id, out) }})
	projects, globErr := filepath.Glob(filepath.Join(folder, "greatminds-demo-*", "greeter"))
	if err = errors.Join(err, globErr); err != nil || len(projects) != 1 {
		out.Error = fmt.Sprintf("%v (project left in %s)", err, folder)
		return
	}
	if err := b.inspect(ctx, environ, projects[0], out); err != nil {
		out.Error = err.Error()
	}
}

func getenv(environ []string) func(string) string {
	return func(name string) string {
		for _, v := range environ {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// operator runs one command as the operator.
func (b *bench) operator(ctx context.Context, environ []string, project string, args ...string) (execgate.ToolOutput, error) {
	return execgate.RunTool(ctx, execgate.Tool{Argv: append([]string{b.cli}, args...), Env: environ, Dir: project, MaxOutput: 16 << 20, Timeout: time.Minute})
}

// answer shows the question with the operator's command and picks the one-time allowance.
func (b *bench) answer(ctx context.Context, environ []string, project, id string, out *row) error {
	shown, err := b.operator(ctx, environ, project, "run", "permission", id, "--json")
	if err != nil || shown.Code != 0 {
		return fmt.Errorf("run permission %s: status %d: %s %w", id, shown.Code, shown.Stderr, err)
	}
	var q struct {
		Tool    struct{ Kind string }
		Options []struct{ OptionID, Name, Kind string }
	}
	if err := json.Unmarshal(shown.Stdout, &q); err != nil {
		return err
	}
	p := permission{Tool: q.Tool.Kind, Stage: fmt.Sprintf("%d", len(out.Permissions)+1)}
	for _, o := range q.Options {
		p.Options = append(p.Options, o.OptionID+" ("+o.Kind+")")
		if o.Kind == "allow_once" && p.Chosen == "" {
			p.Chosen = o.OptionID
		}
	}
	answered, err := b.operator(ctx, environ, project, "run", "permission", id, "--option", p.Chosen)
	p.Status = answered.Code
	out.Permissions = append(out.Permissions, p)
	if err != nil || answered.Code != 0 {
		return fmt.Errorf("run permission %s --option %s: status %d: %s %w", id, p.Chosen, answered.Code, answered.Stderr, err)
	}
	return nil
}

// inspect reads from the project itself what the table says of it.
func (b *bench) inspect(ctx context.Context, environ []string, project string, out *row) error {
	git := func(args ...string) (string, error) {
		got, err := execgate.RunTool(ctx, execgate.Tool{Argv: append([]string{"git"}, args...), Env: execgate.GitEnv(environ), Dir: project, MaxOutput: 1 << 20, Timeout: time.Minute})
		if err == nil && got.Code != 0 {
			err = fmt.Errorf("git %v: %s", args, got.Stderr)
		}
		return strings.TrimSpace(string(got.Stdout)), err
	}
	merge, err := git("log", "-1", "--merges", "--format=%H", "main")
	if err != nil {
		return err
	}
	written, err := git("show", merge+":"+model.WrittenFile)
	if err != nil {
		return fmt.Errorf("the merge does not hold the agent's file: %w", err)
	}
	if written+"\n" != model.WrittenText {
		return fmt.Errorf("the agent's file says %q, want %q", written, model.WrittenText)
	}
	files, err := git("diff", "--name-only", merge+"^1", merge)
	if err != nil {
		return err
	}
	out.Merge, out.Files = merge, strings.Fields(files)
	if len(out.Permissions) == 0 {
		return errors.New("the agent asked for no permission")
	}
	return b.agentInfo(ctx, environ, project, out)
}

func (b *bench) agentInfo(ctx context.Context, environ []string, project string, out *row) error {
	got, err := b.operator(ctx, environ, project, "run", "status", "--json")
	if err != nil {
		return err
	}
	var doc struct {
		Runs map[string]struct {
			Protocol struct {
				Negotiated struct {
					Data struct {
						Agent struct{ Name, Version string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(got.Stdout, &doc); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, r := range doc.Runs {
		a := r.Protocol.Negotiated.Data.Agent
		if text := strings.TrimSpace(a.Name + " " + a.Version); text != "" && !seen[text] {
			seen[text] = true
			out.AgentInfo = append(out.AgentInfo, text)
		}
	}
	return nil
}
