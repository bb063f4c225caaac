package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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

	pipeline  bool       // whether to run the demo's whole story
	scenarios []scenario // to put each agent through

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
		if one.keeps() {
			kept = true
		} else if err := os.RemoveAll(filepath.Join(b.folder, r.name)); err != nil {
			return nil, err
		}
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

// try takes one agent from its install to its row. The folders of what failed by itself stay.
func (b *bench) try(ctx context.Context, r recipe) row {
	out := newRow(r)
	out.Lacks = r.lacks(valueOf(b.environ, "PATH"))
	if err := b.measure(ctx, r, &out); err != nil {
		out.Error = err.Error()
	} else {
		out.Error = out.faults()
	}
	return out
}

// measure installs the agent and has it play all that is asked for, each with its time. What fails
// after the install stands in the row; an error is of the agent that could not be run.
func (b *bench) measure(ctx context.Context, r recipe, out *row) error {
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	began := b.now()
	p, err := b.prepare(ctx, r)
	out.InstallSeconds = b.now().Sub(began).Seconds()
	if err != nil {
		return err
	}
	if b.pipeline {
		began := b.now()
		out.PipelineAt = &began
		out.Kept, err = b.in(ctx, r, p, pipeline, func(l launched) error { return b.story(ctx, r, l, out) })
		out.Seconds, out.Pipeline = b.now().Sub(began).Seconds(), merged
		if err != nil {
			out.Pipeline, out.PipelineError = failed, err.Error()
		}
	}
	for _, sc := range b.scenarios {
		out.Cells = append(out.Cells, b.cell(ctx, r, p, sc, out))
	}
	return nil
}

func interrupted(ctx context.Context) error {
	return fmt.Errorf("interrupted: %w", context.Cause(ctx))
}

// launched is an agent that is ready to be started, beside its model.
type launched struct {
	argv []string
	env  map[string]string
	// pass are the names of env.
	pass   []string
	folder string // of this launch alone
	model  *model.Server
}

// in does something in a new folder, beside a stand-in of its own, so that the requests are this
// launch's. The folder is kept, and named, when that failed by itself.
func (b *bench) in(ctx context.Context, r recipe, p place, what string, do func(launched) error) (kept string, err error) {
	if ctx.Err() != nil {
		return "", interrupted(ctx)
	}
	folder := filepath.Join(b.folder, r.name, what)
	err = b.withModel(ctx, r, p, folder, do)
	if ctx.Err() != nil {
		return "", errors.Join(interrupted(ctx), os.RemoveAll(folder))
	}
	if err == nil {
		return "", os.RemoveAll(folder)
	}
	return folder, err
}

func (b *bench) withModel(ctx context.Context, r recipe, p place, folder string, do func(launched) error) (err error) {
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
	}()
	p.home, p.model, p.path = filepath.Join(folder, "home"), server.URL(), valueOf(b.environ, "PATH")
	l := launched{folder: folder, model: server}
	if l.argv, l.env, err = r.launch(p); err != nil {
		return err
	}
	l.pass = slices.Sorted(maps.Keys(l.env))
	return do(l)
}

// operator is the person beside a launched agent. The daemon has its variables, to pass them on.
func (b *bench) operator(l launched) operator {
	o := operator{cli: b.cli, environ: slices.Clone(b.golang)}
	for _, name := range l.pass {
		o.environ = append(o.environ, name+"="+l.env[name])
	}
	return o
}

// story runs the demo with the agent, answers its questions, and looks at what it left.
func (b *bench) story(ctx context.Context, r recipe, l launched, out *row) error {
	o := b.operator(l)
	err := demo.Run(ctx, demo.Options{CLI: []string{b.cli}, Agent: l.argv, Auth: r.auth, Mode: r.mode, Pass: l.pass, Keep: true, Brief: true,
		Folder: l.folder, Out: b.out, Now: b.now, Environ: o.environ, Getenv: func(name string) string { return valueOf(o.environ, name) },
		Limit: storyLimit, Question: func(ctx context.Context, project, id string) error {
			o.project = project
			p, err := o.answer(ctx, id, "allow_once")
			if p != nil {
				out.Permissions = append(out.Permissions, *p)
			}
			return err
		}})
	out.ModelRequests, out.AssignedRequests = l.model.Requests(), l.model.Assigned()
	projects, globErr := filepath.Glob(filepath.Join(l.folder, "greatminds-demo-*", "greeter"))
	if globErr != nil || len(projects) != 1 {
		return errors.Join(err, globErr, fmt.Errorf("the demo left %d projects in %s, want 1", len(projects), l.folder))
	}
	o.project = projects[0]
	err = errors.Join(err, o.inspect(context.WithoutCancel(ctx), err == nil, out))
	if still := left(b.cli, naming(l.folder)); len(still) > 0 {
		err = errors.Join(err, fmt.Errorf("left are %s", names(still)))
	}
	return errors.Join(err, out.missing())
}

// cell puts the agent through one scenario and compares what was seen with what is expected.
func (b *bench) cell(ctx context.Context, r recipe, p place, sc scenario, out *row) cell {
	fmt.Fprintf(b.out, "-- %s %s\n", r.name, sc.name)
	want, why := expected(r, sc)
	c := cell{Scenario: sc.name, Expected: want, Why: why, Seen: facts{}, Permissions: []permission{}}
	began := b.now()
	c.At = began
	var err error
	c.Kept, err = b.in(ctx, r, p, sc.name, func(l launched) error {
		s, err := b.play(ctx, r, sc, l)
		c.Seen, c.Permissions = s.seen, s.permissions
		out.heard(s.info)
		if diff := want.differs(s.seen); err == nil && diff != "" {
			err = errors.New(diff)
		}
		return err
	})
	c.Seconds = b.now().Sub(began).Seconds()
	if err != nil {
		c.Error = err.Error()
	}
	fmt.Fprintf(b.out, "   %.1f s: %s %s\n", c.Seconds, c.Seen, c.Error)
	return c
}

func valueOf(environ []string, name string) string {
	for _, v := range environ {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}
