// Command scale measures what a long history costs: it makes projects with some thousand finished
// runs and times real daemons and command lines on them.
//
//	scale [--runs 0,10000,100000] [--idle 60s] [--original DIR --original-runs 0,1000] [--markdown FILE]
//
// For each number of runs it prints how long a daemon takes until it is ready and its resident
// memory then, how long `run status --json` takes and how large it is, and how long a change
// takes (`run pause` and `run resume`), with a daemon and without one; with --idle also what an
// idle daemon beside 200 blocked tasks costs over that time. --original names the bin folder of
// an installed greatminds 3.3.1, which is measured on the same history in its own format.
//
// Times are those of whole processes, as medians. Everything happens in a temporary folder, which
// is removed. Exit status: 0 measured, 1 something failed, 2 wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"greatminds/internal/execgate"
)

func main() {
	execgate.Main()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.As(err, new(usageError)):
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// usageError is a wrong command line.
type usageError struct{ error }

// options are the command line.
type options struct {
	runs, originalRuns []int
	idle               time.Duration
	original, markdown string
	times              int
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var runs, originalRuns string
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&runs, "runs", "0,10000,100000", "numbers of finished runs, with commas")
	f.StringVar(&originalRuns, "original-runs", "0,1000", "the same for the original, which slows down with them")
	f.DurationVar(&o.idle, "idle", 0, "how long to watch an idle daemon at the largest number of runs")
	f.StringVar(&o.original, "original", "", "bin `folder` of an installed greatminds 3.3.1")
	f.StringVar(&o.markdown, "markdown", "", "write the table into this `file` too")
	f.IntVar(&o.times, "times", 20, "how often each command line is timed")
	if err := f.Parse(args); err != nil {
		return o, usageError{err}
	}
	var err error
	if o.runs, err = numbers(runs); err == nil {
		o.originalRuns, err = numbers(originalRuns)
	}
	if err == nil && (f.NArg() > 0 || o.times < 1) {
		err = fmt.Errorf("arguments %q, --times %d", f.Args(), o.times)
	}
	if err != nil {
		return o, usageError{err}
	}
	return o, nil
}

func numbers(list string) ([]int, error) {
	var all []int
	for _, word := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is no list of numbers of runs", list)
		}
		all = append(all, n)
	}
	return all, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "scale-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	ours, err := build(ctx, work)
	if err != nil {
		return err
	}
	b := bench{options: o, work: work, stderr: stderr}
	table := newTable()
	for _, n := range o.runs {
		row, err := b.measure(ctx, ours, n, fillOurs)
		if err != nil {
			return fmt.Errorf("%s at %d runs: %w", ours.name, n, err)
		}
		table.add(row)
	}
	if o.original != "" {
		for _, n := range o.originalRuns {
			theirs := originalIn(o.original)
			row, err := b.measure(ctx, theirs, n, fillOriginal)
			if err != nil {
				return fmt.Errorf("%s at %d runs: %w", theirs.name, n, err)
			}
			table.add(row)
		}
	}
	fmt.Fprint(stdout, table)
	if o.idle > 0 {
		idle, err := b.idleDaemon(ctx, ours, o.runs[len(o.runs)-1])
		if err != nil {
			return err
		}
		fmt.Fprint(stdout, idle)
	}
	if o.markdown != "" {
		return os.WriteFile(o.markdown, []byte(table.String()), 0o644)
	}
	return nil
}
