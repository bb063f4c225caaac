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

// installLimit bounds one npm install. The largest package is some 350 MB unpacked.
const installLimit = 5 * time.Minute

// install puts the pinned packages into the cache, once, and returns their folder.
//
// The cache has one folder for each list of pinned packages. npm works in a folder beside it,
// which takes its name only when the agent's program is there: what stands in the cache is
// whole, and an interrupted install leaves nothing that could be taken for one. A lock file
// beside it keeps two runs apart.
func (b *bench) install(ctx context.Context, r recipe) (dir string, err error) {
	name := strings.NewReplacer("/", "-").Replace(strings.TrimLeft(strings.Join(r.packages, "+"), "@"))
	dir = filepath.Join(b.cache, name)
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
	fmt.Fprintf(b.out, "installing %s into %s\n", strings.Join(r.packages, " "), dir)
	partial := dir + ".partial"
	// An earlier run may have been stopped halfway, or somebody has cleaned the cache halfway.
	if err := errors.Join(os.RemoveAll(partial), os.RemoveAll(dir)); err != nil {
		return "", err
	}
	if err := b.npm(ctx, r, partial); err != nil {
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

// npm installs into a new folder and looks for the program there. No script of a package runs.
func (b *bench) npm(ctx context.Context, r recipe, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// Without it npm would look for a project in the folders above.
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true}`), 0o644); err != nil {
		return err
	}
	argv := append([]string{"npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"}, r.packages...)
	out, err := execgate.RunTool(ctx, execgate.Tool{Argv: argv, Env: b.environ, Dir: dir, Timeout: installLimit})
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w (npm must be on PATH; Debian: apt-get install npm)", strings.Join(argv, " "), err)
	case out.Code != 0:
		return fmt.Errorf("%s ended with status %d: %s", strings.Join(argv, " "), out.Code, tail(append(out.Stderr, out.Stdout...)))
	}
	if err := r.programIn(dir); err != nil {
		return fmt.Errorf("npm installed %s, but its program is not there: %w", strings.Join(r.packages, " "), err)
	}
	return nil
}

// tail is the end of an output, where its reason stands.
func tail(output []byte) string {
	const most = 2000
	return strings.TrimSpace(string(output[max(0, len(output)-most):]))
}
