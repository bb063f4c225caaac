package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"greatminds/internal/durable"
	"greatminds/internal/execgate"
)

// installLimit bounds one install. The largest is some 460 MB unpacked.
const installLimit = 8 * time.Minute

// node24 is Node itself, as the package that has its program and needs no script.
var node24 = recipe{name: "node24", packages: []string{"node-linux-%A@24.21.0"}, program: "%I/node_modules/node-linux-%A/bin/node"}

// prepare installs the agent and what runs it. Only the folders are filled in.
func (b *bench) prepare(ctx context.Context, r recipe) (p place, err error) {
	if r.node24 {
		dir, err := b.install(ctx, node24, "")
		if err != nil {
			return p, fmt.Errorf("node 24: %w", err)
		}
		p.node = place{install: dir}.fill(node24.program)
	}
	p.install, err = b.install(ctx, r, p.node)
	return p, err
}

// install puts the pinned packages into the cache, once, and returns their folder. node is the
// program of the Node to run npm with, empty for the one on PATH.
//
// The cache has one folder for each list of pinned packages. The installer works in a folder
// beside it, which takes its name only when the agent's program is there: what stands in the
// cache is whole, and an interrupted install leaves nothing that could be taken for one. A lock
// file beside it keeps two runs apart.
func (b *bench) install(ctx context.Context, r recipe, node string) (dir string, err error) {
	packages := place{}.fill(strings.Join(r.packages, "+"))
	dir = filepath.Join(b.cache, strings.NewReplacer("/", "-").Replace(strings.TrimLeft(packages, "@")))
	if err := os.MkdirAll(b.cache, 0o755); err != nil {
		return "", err
	}
	lock, err := durable.Lock(ctx, dir+".lock", fmt.Sprintf("%d\n", os.Getpid()))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if r.programIn(dir) == nil {
		return dir, nil
	}
	fmt.Fprintf(b.out, "installing %s into %s\n", strings.ReplaceAll(packages, "+", " "), dir)
	partial := dir + ".partial"
	// An earlier run may have been stopped halfway, or somebody has cleaned the cache halfway.
	if err := errors.Join(os.RemoveAll(partial), os.RemoveAll(dir)); err != nil {
		return "", err
	}
	if err := b.fetch(ctx, r, node, partial); err != nil {
		return "", errors.Join(err, os.RemoveAll(partial))
	}
	return dir, os.Rename(partial, dir)
}

// programIn looks for the agent's program below an install folder.
func (r recipe) programIn(dir string) error {
	info, err := os.Stat(place{install: dir}.fill(r.program))
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", info.Name())
	}
	return err
}

// fetch installs into a new folder and looks for the program there.
func (b *bench) fetch(ctx context.Context, r recipe, node, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var err error
	if len(r.python) > 0 {
		err = b.pip(ctx, r, dir)
	} else {
		err = b.npm(ctx, r, node, dir)
	}
	if err != nil {
		return err
	}
	if err := r.programIn(dir); err != nil {
		return fmt.Errorf("installed is %s, but its program is not there: %w", strings.Join(r.packages, " "), err)
	}
	return nil
}

// npm installs packages of npm. No script of a package runs.
func (b *bench) npm(ctx context.Context, r recipe, node, dir string) error {
	// Without it npm would look for a project in the folders above.
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true}`), 0o644); err != nil {
		return err
	}
	environ := b.environ
	if node != "" {
		// npm is a script whose first line looks for node on PATH.
		environ = withPath(environ, filepath.Dir(node))
	}
	argv := []string{"npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"}
	for _, p := range r.packages {
		argv = append(argv, place{}.fill(p))
	}
	return b.installer(ctx, argv, environ, dir, "npm must be on PATH; Debian: apt-get install npm")
}

// installer runs one program that installs; remedy is what to do when it cannot be started.
func (b *bench) installer(ctx context.Context, argv, environ []string, dir, remedy string) error {
	out, err := execgate.RunTool(ctx, execgate.Tool{Argv: argv, Env: environ, Dir: dir, Timeout: installLimit})
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w (%s)", strings.Join(argv, " "), err, remedy)
	case out.Code != 0:
		return fmt.Errorf("%s ended with status %d: %s", strings.Join(argv, " "), out.Code, tail(append(out.Stderr, out.Stdout...)))
	}
	return nil
}

// withPath gives an environment whose PATH begins with the folder.
func withPath(environ []string, dir string) []string {
	out := []string{"PATH=" + dir + string(os.PathListSeparator) + valueOf(environ, "PATH")}
	for _, v := range environ {
		if !strings.HasPrefix(v, "PATH=") {
			out = append(out, v)
		}
	}
	return out
}

// tail is the end of an output, where its reason stands.
func tail(output []byte) string {
	const most = 2000
	return strings.TrimSpace(string(output[max(0, len(output)-most):]))
}
