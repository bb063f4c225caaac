package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"greatminds/fixtures/gobuild"
)

// program is one tool under measurement.
type program struct {
	name, cli string
	coordd    []string
	status    []string // the arguments that print the status as JSON
	// ready is the file that tells that the daemon is ready, with the words in it; without a
	// file the daemon's log says so.
	readyFile, readyWords string
}

func build(ctx context.Context, work string) (program, error) {
	cli, err := gobuild.Program(ctx, work, gobuild.Greatminds)
	if err != nil {
		return program{}, err
	}
	return program{name: "ours", cli: cli, coordd: []string{cli, "coordd"}, status: []string{"run", "status", "--json"}, readyWords: "coordd ready"}, nil
}

func originalIn(bin string) program {
	return program{name: "original", cli: filepath.Join(bin, "greatminds"), coordd: []string{filepath.Join(bin, "greatminds"), "coordd", "--foreground"},
		status:    []string{"run", "status"},
		readyFile: "daemon.json", readyWords: `"ready"`}
}

const contract = `version: 1
agents:
  dev:
    transport: acp
    argv: [/bin/true]
    adapter_version: "1"
    harness_version: "1"
bindings:
  dev: {role: DEVELOPER, agent: dev, scheduling: queue, session: new}
`

// blockedTask is one of the tasks that an idle daemon has around it.
const blockedTask = `id: %s
stream: product
title: Waits for something
reporter: ARCHITECT-PLANNER
opened_at: "2026-01-05T09:00:00Z"
priority: normal
kind: bugfix
scope: backend
blocks: []
`

const blockedTasks = 200

// project is one project of one program.
type project struct {
	program
	dir string
}

func (p project) store() string { return filepath.Join(p.dir, ".greatminds", ".runtime") }

// newProject sets up a project, with the program itself, and blocked tasks in it.
func newProject(ctx context.Context, prog program, dir string, blocked int) (project, error) {
	p := project{program: prog, dir: dir}
	file := filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".yaml")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return p, err
	}
	if err := os.WriteFile(file, []byte(contract), 0o600); err != nil {
		return p, err
	}
	for _, argv := range [][]string{
		{"git", "init", "-q", "-b", "main"},
		{"git", "-c", "user.name=scale", "-c", "user.email=scale@example.invalid", "commit", "-q", "--allow-empty", "-m", "start"},
		{prog.cli, "setup", "--project-dir", dir, "--execution-config", file},
	} {
		if _, err := p.call(ctx, argv...); err != nil {
			return p, err
		}
	}
	for i := range blocked {
		id := fmt.Sprintf("%04d-waits", i+1)
		name := filepath.Join(dir, ".greatminds", "feature_blocked", id+".yaml")
		if err := os.WriteFile(name, fmt.Appendf(nil, blockedTask, id), 0o644); err != nil {
			return p, err
		}
	}
	return p, nil
}

// call runs a command line in the project and returns what it printed.
func (p project) call(ctx context.Context, argv ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = p.dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", strings.Join(argv, " "), err, out, stderr.String())
	}
	return out, nil
}
