package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// npm stands for the real one: it tells what it was called with, and installs as its NPM says.
const npm = `#!/bin/sh
echo "$PWD: $*" >> "$NPM_CALLS"
case $NPM in
fails) mkdir -p node_modules/half; echo "npm error E404 no such version" >&2; exit 1 ;;
empty) exit 0 ;;
path) echo "PATH=$PATH" >> "$NPM_CALLS" ;;
esac
mkdir -p node_modules/sample && ln -s "$NPM_AGENT" node_modules/sample/agent
`

// sample is the recipe that it installs.
var sample = recipe{name: "sample", packages: []string{"@some/sample@1.2.3", "more@4.5.6"}, program: "%I/node_modules/sample/agent"}

// withNPM gives a bench that finds the npm above, and a function that reads its calls.
func withNPM(t *testing.T, behaviour string) (*bench, func() string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "npm"), []byte(npm), 0o755); err != nil {
		t.Fatal(err)
	}
	agent, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(dir, "calls")
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	b := &bench{cache: filepath.Join(dir, "cache"), out: &bytes.Buffer{},
		environ: append(os.Environ(), "NPM="+behaviour, "NPM_CALLS="+calls, "NPM_AGENT="+agent)}
	return b, func() string {
		said, err := os.ReadFile(calls)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(said)
	}
}

const sampleFolder = "some-sample@1.2.3+more@4.5.6"

func TestAnInstallIsMadeOnce(t *testing.T) {
	b, calls := withNPM(t, "")
	for range 2 {
		dir, err := b.install(t.Context(), sample, "")
		if err != nil || dir != filepath.Join(b.cache, sampleFolder) {
			t.Fatalf("installed into %q, %v", dir, err)
		}
		if err := sample.programIn(dir); err != nil {
			t.Error(err)
		}
	}
	want := filepath.Join(b.cache, sampleFolder) + ".partial: install --no-audit --no-fund --ignore-scripts --loglevel=error @some/sample@1.2.3 more@4.5.6\n"
	if got := calls(); got != want {
		t.Errorf("npm was called with\n%swant\n%s", got, want)
	}
	wantInCache(t, b, sampleFolder, sampleFolder+".lock")
}

func TestAFailedInstallLeavesNothingThatCountsAsOne(t *testing.T) {
	for behaviour, want := range map[string]string{
		"fails": "ended with status 1: npm error E404 no such version",
		"empty": "installed is @some/sample@1.2.3 more@4.5.6, but its program is not there",
	} {
		b, _ := withNPM(t, behaviour)
		if _, err := b.install(t.Context(), sample, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("npm %s: the error is %v, want %q in it", behaviour, err, want)
		}
		wantInCache(t, b, sampleFolder+".lock")
	}
}

func TestAnInterruptedInstallIsMadeAgain(t *testing.T) {
	for _, left := range []string{sampleFolder + ".partial", sampleFolder} {
		b, calls := withNPM(t, "")
		if err := os.MkdirAll(filepath.Join(b.cache, left, "node_modules", "half"), 0o755); err != nil {
			t.Fatal(err)
		}
		dir, err := b.install(t.Context(), sample, "")
		if err != nil || strings.Count(calls(), "\n") != 1 {
			t.Fatalf("%s: %v, npm was called with %q", left, err, calls())
		}
		if _, err := os.Stat(filepath.Join(dir, "node_modules", "half")); !os.IsNotExist(err) {
			t.Errorf("%s: the half install is still there: %v", left, err)
		}
		wantInCache(t, b, sampleFolder, sampleFolder+".lock")
	}
}

func TestWithoutNPMTheRowSaysSo(t *testing.T) {
	b, _ := withNPM(t, "")
	b.environ = []string{"PATH=/nowhere"}
	if _, err := b.install(t.Context(), sample, ""); err == nil || !strings.Contains(err.Error(), "npm must be on PATH") {
		t.Errorf("the error is %v", err)
	}
}

func wantInCache(t *testing.T, b *bench, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(b.cache)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the cache has %q, want %q", got, want)
	}
}

// Under the Node that is installed npm takes an old release of an agent that needs a newer one.
func TestNPMRunsOnTheAgentsOwnNode(t *testing.T) {
	b, calls := withNPM(t, "")
	r := sample
	r.node24 = true
	r.interpreter = "%N"
	installed := filepath.Join(b.cache, strings.TrimPrefix(place{}.fill(node24.packages[0]), "@"))
	node := place{install: installed}.fill(node24.program)
	if err := os.MkdirAll(filepath.Dir(node), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(node, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	b.environ = append(b.environ, "NPM=path")
	p, err := b.prepare(t.Context(), r)
	if err != nil || p.node != node {
		t.Fatalf("node is %q, %v; want %q", p.node, err, node)
	}
	if got := calls(); !strings.Contains(got, "PATH="+filepath.Dir(node)+string(os.PathListSeparator)) {
		t.Errorf("npm was called with %s, want %s first on PATH", got, filepath.Dir(node))
	}
}
