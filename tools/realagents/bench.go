package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"greatminds/demo"
	"greatminds/internal/execgate"
	"greatminds/tools/realagents/model"
)

const (
	// buildLimit bounds the build of greatminds, also with an empty build cache.
	buildLimit = 5 * time.Minute
	// storyLimit bounds one agent's way to the merge. It takes well under a minute on a quiet
	// machine, but the first start of an agent alone may take one on a busy one.
	storyLimit = 8 * time.Minute
	// closeLimit is what requests under way get when the model stand-in ends.
	closeLimit = 5 * time.Second
)

// bench runs one agent after the other. What all of them share stands in it.
type bench struct {
	cache   string    // folder of the installed agents
	source  string    // folder to build greatminds from
	environ []string  // of npm and go; an agent gets PATH of it alone
	out     io.Writer // what a person follows
	log     io.Writer // requests to the stand-in; nil for none
	now     func() time.Time

	folder string   // of this run, temporary
	cli    string   // the built greatminds
	golang []string // variables that say where Go keeps its caches
}

// run tries all agents and returns one row for each, also for those that failed or that an
// interruption left out. What it made on disk is gone then, but for the folders that rows name.
func (b *bench) run(ctx context.Context, agents []recipe) (rows []row, err error) {
	if b.folder, err = os.MkdirTemp("", "realagents-"); err != nil {
		return nil, err
	}
	kept := false
	defer func() {
		if !kept {
			err = errors.Join(err, os.RemoveAll(b.folder))
		}
	}()
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	for _, r := range agents {
		fmt.Fprintf(b.out, "== %s\n", r.name)
		one := b.try(ctx, r)
		if one.Error != "" {
			fmt.Fprintf(b.out, "FAILED %s: %s\n", r.name, one.Error)
		}
		kept = kept || one.Kept != ""
		rows = append(rows, one)
	}
	return rows, nil
}

// build makes the command line that both the demo and the agents' own calls go through, and
// asks where Go keeps its caches: the sample's `go test` runs with the agent's HOME.
func (b *bench) build(ctx context.Context) error {
	b.cli = filepath.Join(b.folder, "greatminds")
	golang := func(args ...string) (string, error) {
		out, err := execgate.RunTool(ctx, execgate.Tool{Argv: append([]string{"go"}, args...), Env: b.environ, Dir: b.source, Timeout: buildLimit})
		if err == nil && out.Code != 0 {
			err = fmt.Errorf("status %d: %s", out.Code, tail(out.Stderr))
		}
		if err != nil {
			return "", fmt.Errorf("go %s (run this inside the repository of greatminds): %w", strings.Join(args, " "), err)
		}
		return string(out.Stdout), nil
	}
	if _, err := golang("build", "-o", b.cli, "greatminds/cmd/greatminds"); err != nil {
		return err
	}
	names := []string{"GOCACHE", "GOMODCACHE"}
	values, err := golang(append([]string{"env"}, names...)...)
	if err != nil {
		return err
	}
	for i, value := range strings.Split(strings.TrimSuffix(values, "\n"), "\n") {
		b.golang = append(b.golang, names[i]+"="+value)
	}
	return nil
}

// try takes one agent from its install to its row. Its folder stays when it failed by itself.
func (b *bench) try(ctx context.Context, r recipe) row {
	out := newRow(r)
	out.Lacks = r.lacks(valueOf(b.environ, "PATH"))
	folder := filepath.Join(b.folder, r.name)
	err := b.measure(ctx, r, folder, &out)
	_, statErr := os.Stat(folder)
	switch {
	case ctx.Err() != nil:
		err = errors.Join(fmt.Errorf("interrupted: %w", context.Cause(ctx)), os.RemoveAll(folder))
	case err == nil:
		err = os.RemoveAll(folder)
	case statErr == nil:
		out.Kept = folder
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// measure installs the agent and has it play its part, each with its time.
func (b *bench) measure(ctx context.Context, r recipe, folder string, out *row) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	began := b.now()
	p, err := b.prepare(ctx, r)
	installed := b.now()
	out.InstallSeconds = installed.Sub(began).Seconds()
	if err != nil {
		return err
	}
	err = b.withModel(ctx, r, p, folder, out)
	out.Seconds = b.now().Sub(installed).Seconds()
	return errors.Join(err, out.missing())
}

// withModel runs the story beside a stand-in of its own, so that its requests are this agent's.
func (b *bench) withModel(ctx context.Context, r recipe, p place, folder string, out *row) (err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(folder, "model.ndjson"), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	both := io.Writer(log)
	if b.log != nil {
		both = io.MultiWriter(log, b.log)
	}
	server, err := model.Start(model.Options{Now: b.now, Log: both})
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		err = errors.Join(err, server.Close(end))
		out.ModelRequests, out.AssignedRequests = server.Requests(), server.Assigned()
	}()
	p.home, p.model, p.path = filepath.Join(folder, "home"), server.URL(), valueOf(b.environ, "PATH")
	argv, env, err := r.launch(p)
	if err != nil {
		return err
	}
	return b.story(ctx, r, argv, env, folder, out)
}

// story runs the demo with the agent, answers its questions, and looks at what it left.
func (b *bench) story(ctx context.Context, r recipe, argv []string, env map[string]string, folder string, out *row) error {
	o := operator{cli: b.cli, environ: slices.Clone(b.golang)}
	var pass []string
	for name, value := range env {
		o.environ = append(o.environ, name+"="+value)
		pass = append(pass, name)
	}
	err := demo.Run(ctx, demo.Options{CLI: []string{b.cli}, Agent: argv, Auth: r.auth, Mode: r.mode, Pass: pass, Keep: true, Brief: true, Folder: folder,
		Out: b.out, Now: b.now, Environ: o.environ, Getenv: func(name string) string { return valueOf(o.environ, name) }, Limit: storyLimit,
		Question: func(ctx context.Context, project, id string) error {
			o.project = project
			p, err := o.answer(ctx, id)
			if p != nil {
				out.Permissions = append(out.Permissions, *p)
			}
			return err
		}})
	projects, globErr := filepath.Glob(filepath.Join(folder, "greatminds-demo-*", "greeter"))
	if globErr != nil || len(projects) != 1 {
		return errors.Join(err, globErr, fmt.Errorf("the demo left %d projects in %s, want 1", len(projects), folder))
	}
	o.project = projects[0]
	return errors.Join(err, o.inspect(context.WithoutCancel(ctx), err == nil, out))
}

func valueOf(environ []string, name string) string {
	for _, v := range environ {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}
