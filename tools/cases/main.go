// Command cases plays the case folders of fixtures/cases against a greatminds executable and prints one line a case.
//
//	go run ./tools/cases --cli PATH [--only C001,C002] [FOLDER...]
//
// Exit status: 0 without a fail and without an error, 1 with one, 2 for a wrong call.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"greatminds/fixtures/caserun"
	"greatminds/fixtures/gobuild"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// call is a parsed command line.
type call struct {
	cli, clock, coordd, agent, work, only, json string
	jobs                                        int
	slack                                       float64
	timeout                                     time.Duration
	keep, handled, flip                         bool
	folders                                     []string
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stderr)
	var failed bool
	if err == nil {
		failed, err = c.play(ctx, environ, stdout)
	}
	switch {
	case err == nil && !failed:
		return 0
	case err == nil:
		return 1
	case !errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stderr, "Error:", err)
	}
	return 2
}

func parse(args []string, stderr io.Writer) (*call, error) {
	var c call
	f := flag.NewFlagSet("cases", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&c.cli, "cli", "", "the greatminds executable; built from the module when empty")
	f.StringVar(&c.clock, "clock-cli", "", "the same program built with -tags testclock, for the cases that move the clock; built from the module with --cli empty")
	f.StringVar(&c.coordd, "coordd", "", "how to run the daemon in the foreground, words split at blanks (default: CLI coordd --foreground)")
	f.StringVar(&c.agent, "agent", "", "the fake agent program; built from the module when empty")
	f.StringVar(&c.work, "work", "", "where the case folders are made (default: the temporary folder)")
	f.StringVar(&c.only, "only", "", "case ids, separated by commas")
	f.StringVar(&c.json, "json", "", "write all records to this file")
	f.IntVar(&c.jobs, "jobs", 2, "cases at a time")
	f.Float64Var(&c.slack, "slack", 1, "factor on every limit and pause")
	f.DurationVar(&c.timeout, "timeout", 300*time.Second, "time of one case; a case with a loop gets twice that")
	f.BoolVar(&c.keep, "keep", false, "keep the folder of every case")
	f.BoolVar(&c.flip, "flip", false, "turn over every expectation of a case that passes, and judge again what was seen")
	f.BoolVar(&c.handled, "handled", false, "only the cases that the project promises to pass by now")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	c.folders = f.Args()
	if len(c.folders) == 0 {
		c.folders = []string{filepath.Join("fixtures", "cases")}
	}
	return &c, nil
}

// cases loads the cases that were asked for. An unknown id is an error, and so is a case that is not understood.
func (c *call) cases() ([]*caserun.Case, error) {
	var only []string
	if c.only != "" {
		only = strings.Split(c.only, ",")
	}
	var out []*caserun.Case
	var seen []string
	for _, root := range c.folders {
		dirs, err := caserun.Find(root)
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			id, _, _ := strings.Cut(filepath.Base(dir), "-")
			if len(only) > 0 && !slices.Contains(only, id) {
				continue
			}
			one, err := caserun.Load(dir)
			if err != nil {
				return nil, err
			}
			if handled, _ := one.Handled(); handled || !c.handled {
				out, seen = append(out, one), append(seen, id)
			}
		}
	}
	for _, id := range only {
		if !slices.Contains(seen, id) {
			return nil, fmt.Errorf("no such case: %s", id)
		}
	}
	return out, nil
}

func (c *call) options(ctx context.Context, environ []string, folder string) (o caserun.Options, err error) {
	o = caserun.Options{Work: folder, Environ: environ, Slack: c.slack, Timeout: c.timeout, Keep: c.keep, Coordd: strings.Fields(c.coordd), CLI: c.cli, Agent: c.agent}
	if o.Agent == "" {
		if o.Agent, err = gobuild.Program(ctx, folder, gobuild.FakeAgent); err != nil {
			return o, err
		}
	}
	if o.CLI == "" && c.clock == "" {
		if c.clock, err = gobuild.Program(ctx, filepath.Join(folder, "clock"), gobuild.Greatminds, "-tags", "testclock"); err != nil {
			return o, err
		}
	}
	if c.clock != "" {
		if o.ClockCLI, err = program(c.clock); err != nil {
			return o, err
		}
	}
	if o.CLI == "" {
		o.CLI, err = gobuild.Program(ctx, folder, gobuild.Greatminds)
		return o, err
	}
	o.CLI, err = program(o.CLI)
	return o, err
}

// program is the absolute path of an executable.
func program(name string) (string, error) {
	found, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(found)
}

func (c *call) play(ctx context.Context, environ []string, stdout io.Writer) (failed bool, err error) {
	cases, err := c.cases()
	if err != nil {
		return false, err
	}
	folder, err := os.MkdirTemp(c.work, "gmcases-")
	if err != nil {
		return false, err
	}
	if !c.keep {
		defer os.RemoveAll(folder)
	}
	o, err := c.options(ctx, environ, folder)
	if err != nil {
		return false, err
	}
	totals := map[caserun.Verdict]int{}
	records := caserun.RunAll(ctx, cases, c.jobs, o, func(r caserun.Record) {
		totals[r.Verdict]++
		fmt.Fprintln(stdout, r)
	})
	fmt.Fprintf(stdout, "%d passed, %d failed, %d skipped, %d errors\n", totals[caserun.Pass], totals[caserun.Fail], totals[caserun.Skipped], totals[caserun.Errored])
	if c.flip {
		tried, caught := 0, 0
		for i, r := range records {
			n, missed := flips(cases[i], r)
			tried, caught = tried+n, caught+n-len(missed)
			for _, name := range missed {
				fmt.Fprintf(stdout, "%s still passes with %s\n", r.ID, name)
			}
		}
		fmt.Fprintf(stdout, "%d of %d flipped expectations were caught\n", caught, tried)
		failed = caught != tried
	}
	if c.json != "" {
		data, err := json.MarshalIndent(map[string]any{"version": 1, "totals": totals, "cases": records}, "", " ")
		if err != nil {
			return false, err
		}
		if err := os.WriteFile(c.json, append(data, '\n'), 0o644); err != nil {
			return false, err
		}
	}
	return failed || totals[caserun.Fail]+totals[caserun.Errored] > 0, nil
}

// flips turns over the expectations of a case that passed, one at a time; missed names those that made no difference.
func flips(c *caserun.Case, r caserun.Record) (tried int, missed []string) {
	if r.Verdict != caserun.Pass {
		return 0, nil
	}
	for _, flip := range caserun.Flips(c) {
		tried++
		if len(caserun.Judge(flip.Case, r.Recording)) == 0 {
			missed = append(missed, flip.Name)
		}
	}
	return tried, missed
}
