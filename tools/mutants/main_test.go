package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The tool tells a test that notices from one that does not, from an edit that no longer fits, from
// one that does not build, and from a test that is not there.
func TestOnlyATestThatPassedAndThenFailsHasNoticed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module m\n\ngo 1.24\n",
		"a.go":      "package m\n\nfunc double(n int) int { return 2 * n }\n",
		"a_test.go": "package m\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif double(2) != 4 {\n\t\tt.Fatal(1)\n\t}\n}\n\nfunc TestWrong(t *testing.T) { t.Fatal(1) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	passed := map[[2]string]bool{}
	good := mutant{Promise: "p", File: "a.go", Old: "2 * n", New: "3 * n", Package: ".", Test: "TestTwo"}
	with := func(f func(*mutant)) mutant { m := good; f(&m); return m }
	for name, c := range map[string]struct {
		m    mutant
		want string
	}{
		"noticed":           {good, ""},
		"not noticed":       {with(func(m *mutant) { m.New = "n + n" }), "passes all the same"},
		"out of date":       {with(func(m *mutant) { m.Old = "4 * n" }), "0 times"},
		"more than once":    {with(func(m *mutant) { m.Old = "n" }), "times"},
		"does not build":    {with(func(m *mutant) { m.New = "nothing" }), "does not build"},
		"no such test":      {with(func(m *mutant) { m.Test = "TestTw" }), "no such test"},
		"failing before":    {with(func(m *mutant) { m.Test = "TestWrong" }), "does not pass without"},
		"no such file":      {with(func(m *mutant) { m.File = "b.go" }), "b.go"},
		"noticed once more": {good, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := judge(ctx, dir, c.m, passed)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// Every edit of our own list still fits the source, and its test is there: moved code would
// otherwise be noticed only by who runs the whole list.
func TestOurOwnListIsUpToDate(t *testing.T) {
	all, err := read("mutants.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join("..", "..")
	for _, m := range all {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.File)))
		if n := strings.Count(string(source), m.Old); err != nil || n != 1 {
			t.Errorf("%s: %s holds the old text %d times (%v)", m.Promise, m.File, n, err)
		}
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(m.Package), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		test, _, _ := strings.Cut(m.Test, "/")
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "\nfunc "+test+"(")
		}) {
			t.Errorf("%s: no %s in %s", m.Promise, test, m.Package)
		}
	}
}

// A list is read strictly, and one that chooses nothing is no success.
func TestAListThatCannotBeUsedIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.yaml")
	const good = "- {promise: p, file: f, old: a, new: b, package: ./p, test: TestP}\n"
	for _, c := range []struct{ text, only, want string }{
		{good, "", ""}, {good, "q", "no edit"}, {"- {promise: p, file: f, old: a, new: a, package: ./p, test: TestP}\n", "", "lacks"},
		{"- {promise: p, file: f, old: a, new: b, package: ./p}\n", "", "lacks"}, {good + "  more: 1\n", "", "list.yaml"}, {"[", "", "list.yaml"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		all, err := read(path, c.only)
		if c.want == "" && (err != nil || len(all) != 1) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: got %v, %v, want %q", c.text, all, err, c.want)
		}
	}
}
