package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"greatminds/internal/execgate"
)

// probeLimit bounds the question whether an interpreter works.
const probeLimit = 30 * time.Second

// pip installs packages of PyPI into a new virtual environment.
func (b *bench) pip(ctx context.Context, r recipe, dir string) error {
	python, err := b.findPython(ctx, r.python)
	if err != nil {
		return err
	}
	const remedy = "it worked a moment ago; try again"
	if err := b.installer(ctx, []string{python, "-m", "venv", dir}, b.environ, dir, remedy); err != nil {
		return err
	}
	argv := append([]string{filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"}, r.packages...)
	return b.installer(ctx, argv, b.environ, dir, remedy)
}

// findPython looks for an interpreter of one of the versions that can make a virtual environment:
// on PATH, then among those of pyenv. Finding none is an error that says where it looked.
func (b *bench) findPython(ctx context.Context, versions []string) (string, error) {
	var looked []string
	for _, version := range versions {
		for _, candidate := range b.pythons(ctx, version) {
			// A name on PATH may be pyenv's, and lead nowhere.
			out, err := b.probe(ctx, candidate, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])")
			if err == nil && out == version {
				return candidate, nil
			}
			looked = append(looked, fmt.Sprintf("%s (%v)", candidate, err))
		}
	}
	return "", fmt.Errorf("no Python %s with venv; looked at %s; install one, for example pyenv install %s",
		strings.Join(versions, " or "), strings.Join(looked, ", "), versions[0])
}

// pythons are the places where a version may be, as argv heads.
func (b *bench) pythons(ctx context.Context, version string) []string {
	out := []string{"python" + version}
	root, err := b.probe(ctx, "pyenv", "root")
	if err != nil {
		return out // no pyenv here
	}
	found, err := filepath.Glob(filepath.Join(root, "versions", version+".*", "bin", "python"+version))
	if err != nil {
		return out // a root whose name is no pattern
	}
	slices.Reverse(found)
	return append(out, found...)
}

// probe runs a short program and returns what it printed.
func (b *bench) probe(ctx context.Context, argv ...string) (string, error) {
	out, err := execgate.RunTool(ctx, execgate.Tool{Argv: argv, Env: b.environ, Dir: b.cache, MaxOutput: 1 << 16, Timeout: probeLimit})
	if err == nil && out.Code != 0 {
		first, _, _ := strings.Cut(strings.TrimSpace(string(out.Stderr)), "\n")
		err = fmt.Errorf("status %d: %s", out.Code, first)
	}
	return strings.TrimSpace(string(out.Stdout)), err
}
