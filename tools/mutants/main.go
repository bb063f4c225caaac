// Command mutants breaks promises on purpose and sees that the tests that name them fail.
//
//	go run ./tools/mutants [--list FILE] [--only WORD] [--rev REV]
//
// The list (default tools/mutants/mutants.yaml) holds edits of the source: the promise that each
// breaks, the file, the text that is replaced and its replacement, and the test that must notice.
// Everything happens in a copy of the committed tree REV (default HEAD) in a temporary folder. Each
// test must pass there first, which is looked at once, and must then fail, as a test and not for want
// of a build.
//
// Invariant: a mutant counts as noticed only where the same test, on the same tree, passed without
// it. The last line says how many of how many were noticed.
//
// Exit status: 0 all were noticed; 1 some were not; 2 the list cannot be used.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gopkg.in/yaml.v3"
)

// mutant is one edit and the test that must notice it.
type mutant struct {
	// Promise is the id and the text of what is broken, for people.
	Promise string `yaml:"promise"`
	// File is edited: Old, which must stand in it exactly once, becomes New.
	File string `yaml:"file"`
	Old  string `yaml:"old"`
	New  string `yaml:"new"`
	// Package and Test are those of go test; Test names one test, with / for a subtest.
	Package string `yaml:"package"`
	Test    string `yaml:"test"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	os.Exit(status)
}

func run(ctx context.Context, args []string, out io.Writer) (int, error) {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	list := flags.String("list", "tools/mutants/mutants.yaml", "`file` of the edits")
	only := flags.String("only", "", "only promises that contain this `word`")
	rev := flags.String("rev", "HEAD", "the committed `tree` to copy")
	if err := flags.Parse(args); err != nil {
		return 2, nil // it has said why
	}
	mutants, err := read(*list, *only)
	if err != nil {
		return 2, err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return 2, err
	}
	defer os.RemoveAll(dir)
	if err := copyTree(ctx, *rev, dir); err != nil {
		return 2, err
	}
	noticed, passed := 0, map[[2]string]bool{}
	for _, m := range mutants {
		began := time.Now()
		verdict := judge(ctx, dir, m, passed)
		if ctx.Err() != nil {
			return 1, ctx.Err()
		}
		if verdict == nil {
			noticed++
		}
		word := "noticed"
		if verdict != nil {
			word = "NOT NOTICED: " + verdict.Error()
		}
		fmt.Fprintf(out, "%s\n    %s %s, %.1f s: %s\n", m.Promise, m.Package, m.Test, time.Since(began).Seconds(), word)
	}
	fmt.Fprintf(out, "%d of %d\n", noticed, len(mutants))
	if noticed < len(mutants) {
		return 1, nil
	}
	return 0, nil
}

// read takes the list, strictly: a member that it does not know, or an empty one, is an error.
func read(path, only string) ([]mutant, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	var all, chosen []mutant
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, m := range all {
		if m.Promise == "" || m.File == "" || m.Old == "" || m.Old == m.New || m.Package == "" || m.Test == "" {
			return nil, fmt.Errorf("%s: edit %d (%s) lacks something", path, i+1, m.Promise)
		}
		if strings.Contains(m.Promise, only) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%s: no edit whose promise contains %q", path, only)
	}
	return chosen, nil
}

// copyTree unpacks a committed tree, so that what somebody is at work on is left alone.
func copyTree(ctx context.Context, rev, dir string) error {
	archive := exec.CommandContext(ctx, "git", "archive", "--format=tar", rev)
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	archive.Stderr, unpack.Stderr = os.Stderr, os.Stderr
	pipe, err := archive.StdoutPipe()
	if err != nil {
		return err
	}
	unpack.Stdin = pipe
	if err := archive.Start(); err != nil {
		return err
	}
	return errors.Join(unpack.Run(), archive.Wait())
}

// judge returns nil where the test passes without the edit and fails with it. passed are the tests
// that are known to pass without one.
func judge(ctx context.Context, dir string, m mutant, passed map[[2]string]bool) error {
	path := filepath.Join(dir, filepath.FromSlash(m.File))
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := strings.Count(string(source), m.Old); n != 1 {
		return fmt.Errorf("%s holds the old text %d times: the list is out of date", m.File, n)
	}
	if key := [2]string{m.Package, m.Test}; !passed[key] {
		good, output, err := test(ctx, dir, m)
		if err != nil || !good {
			return fmt.Errorf("the test does not pass without the edit (%v):\n%s", err, output)
		}
		passed[key] = true
	}
	edited := strings.Replace(string(source), m.Old, m.New, 1)
	if err := os.WriteFile(path, []byte(edited), 0o644); err != nil {
		return err
	}
	good, output, err := test(ctx, dir, m)
	if err := errors.Join(err, os.WriteFile(path, source, 0o644)); err != nil {
		return fmt.Errorf("%w:\n%s", err, output)
	}
	if good {
		return errors.New("the test passes all the same")
	}
	return nil
}

// test runs one test. An error says that it was not run: it does not build, or there is none.
func test(ctx context.Context, dir string, m mutant) (passed bool, output string, err error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout=5m", "-v", "-run", pattern(m.Test), m.Package)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	data, runErr := cmd.CombinedOutput()
	output = tail(string(data), 2000)
	var exit *exec.ExitError
	switch {
	case runErr != nil && !errors.As(runErr, &exit):
		return false, output, runErr
	case strings.Contains(string(data), "[build failed]") || strings.Contains(string(data), "[setup failed]"):
		return false, output, errors.New("it does not build")
	case !strings.Contains(string(data), "=== RUN"):
		return false, output, errors.New("there is no such test")
	}
	return runErr == nil, output, nil
}

// pattern makes a -run expression that means this test alone.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + p + "$"
	}
	return strings.Join(parts, "/")
}

func tail(text string, n int) string {
	if len(text) > n {
		text = text[len(text)-n:]
	}
	return text
}
