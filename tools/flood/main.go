// Command flood measures what bad agents cost good ones: it runs a real daemon with two good agents,
// first alone and then beside four that flood it with updates, send it a line of 50 MB, never say a
// word, and ignore everything.
//
//	go run ./tools/flood [--samples 150] [--bad ID,ID] [--json FILE] [--keep]
//
// The good agents take one short task after the other; each asks for a permission, which an operator
// answers. For both phases it prints how long their prompts took, from the moment at which the session
// was ready for it to the moment at which the agent had read it (the daemon's durable reservation in
// between included), how long the part after the reservation's transaction began, and how long an
// operator's answer took to the agent; the peak of the daemon's resident memory; and for each bad run
// its limit and when it ended. Beside them stands what the machine took for a timer and for a synced
// line meanwhile. The clocks are those of the daemon's events and of the agents' traces, which are one
// machine's. --bad takes only some of the bad agents, to find out which one costs what.
//
// Exit status: 0 all bounds held, 1 one was missed or something failed, 2 wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The bounds that hold.
const (
	maxGrowth   = 20 * time.Millisecond // of the good agents' 99th percentile
	maxResident = 150 << 20             // bytes, the daemon's peak
	maxLate     = time.Second           // of a bad run's end past its limit
	maxAnswer   = 5 * time.Millisecond  // median, answer to agent
	maxSend     = 5 * time.Millisecond  // median, admission to agent
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are the command line.
type options struct {
	samples   int
	bad, json string
	keep      bool
	// kinds are the bad agents to take.
	kinds []kind
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("flood", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.samples, "samples", 150, "prompts of good agents in each phase, at least")
	f.StringVar(&o.bad, "bad", "", "which bad agents to take, by `id` with commas (default all): "+ids())
	f.StringVar(&o.json, "json", "", "write the figures into this `file` too")
	f.BoolVar(&o.keep, "keep", false, "keep the projects, and say where")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.samples < 1 {
		return o, fmt.Errorf("arguments %q, --samples %d", f.Args(), o.samples)
	}
	for _, k := range bad {
		if o.bad == "" || slices.Contains(strings.Split(o.bad, ","), k.id) {
			o.kinds = append(o.kinds, k)
		}
	}
	if o.bad != "" && len(o.kinds) != 1+strings.Count(o.bad, ",") {
		return o, fmt.Errorf("--bad %q: known are %s", o.bad, ids())
	}
	return o, nil
}

func ids() string {
	var all []string
	for _, k := range bad {
		all = append(all, k.id)
	}
	return strings.Join(all, ",")
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stderr, "Error:", err)
		}
		return 2
	}
	r, err := measure(ctx, o, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "Error:", err)
		return 1
	}
	fmt.Fprint(stdout, r)
	if o.json != "" {
		if err := os.WriteFile(o.json, r.json(), 0o644); err != nil {
			fmt.Fprintln(stderr, "Error:", err)
			return 1
		}
	}
	if missed := r.missed(); len(missed) > 0 {
		for _, m := range missed {
			fmt.Fprintln(stderr, "missed:", m)
		}
		if why := r.busy(); why != "" {
			fmt.Fprintln(stderr, "the machine was busy with other work, so that times of milliseconds say little:", why)
		}
		return 1
	}
	return 0
}

// measure runs both phases, each in a project of its own.
func measure(ctx context.Context, o options, stderr io.Writer) (r *report, err error) {
	work, err := os.MkdirTemp("", "flood-")
	if err != nil {
		return nil, err
	}
	if o.keep {
		fmt.Fprintln(stderr, "kept in", work)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	}
	built, err := build(ctx, work)
	if err != nil {
		return nil, err
	}
	r = &report{}
	for _, p := range []struct {
		name string
		bad  []kind
		into *phase
	}{{"alone", nil, &r.Alone}, {"beside", o.kinds, &r.Beside}} {
		fmt.Fprintln(stderr, "phase:", p.name)
		if *p.into, err = measurePhase(ctx, built, filepath.Join(work, p.name), o.samples, p.bad); err != nil {
			return nil, fmt.Errorf("phase %s: %w", p.name, err)
		}
	}
	return r, nil
}
