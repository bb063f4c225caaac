// Command realagents runs real ACP agents through the demo's pipeline and through scenarios of one
// turn, against a stand-in for their models on loopback, and prints what was seen.
//
//	realagents [--lightest | AGENT...] [--scenarios NAME,NAME] [--cache DIR] [--log FILE]
//	           [--json FILE [--update]] [--markdown FILE]
//
// Agents are installed by pinned version into the cache folder. Their tool calls ask for
// permissions, which are answered by the operator's own command line. In the pipeline an agent
// counts only when its task got merged with the file that it wrote, when it asked for a permission,
// and when the stand-in saw its requests. In a scenario what was seen is compared with what is
// expected of all agents, or of this one for a reason that is on record (deviations.go). Run it
// inside the repository, since it builds greatminds from it.
//
// The invariant kept: whatever happens, each agent and scenario asked for has its row and cell, no
// process is left, and nothing outside of the cache but the folders of what failed, which are named.
//
// Exit status: 0 when every agent asked for did as expected, 1 otherwise, 2 wrong usage.
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

	"greatminds/internal/execgate"
)

func main() {
	execgate.Main()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	status := run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

const help = `Run real ACP agents through the demo's pipeline and scenarios of one turn, against a stand-in for their models.

Usage: realagents [flags] [AGENT...]

Example: go run ./tools/realagents --lightest

Exit status: 0 every agent asked for did as expected, 1 otherwise, 2 wrong usage.

Progress goes to standard error, the table to standard output.

Flags:
`

// options are the command line.
type options struct {
	agents              []recipe
	pipeline            bool
	scenarios           []scenario
	cache               string
	log, json, markdown string
	update              bool
}

// run is main without the process around it; it returns the exit status.
func run(ctx context.Context, args []string) int {
	o, err := parse(args, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 2
	}
	status, err := o.bench(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return status
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	set := flag.NewFlagSet("realagents", flag.ContinueOnError)
	set.SetOutput(usage)
	set.Usage = func() {
		fmt.Fprint(usage, help)
		set.PrintDefaults()
	}
	lightest := set.Bool("lightest", false, "run only the agent that is quickest to install and to run")
	only := set.String("scenarios", "", "run only these `scenarios`, separated by commas; empty for all, with --lightest for "+pipeline)
	set.StringVar(&o.cache, "cache", "", "`folder` for installed agents; empty for one in the user's cache")
	set.StringVar(&o.log, "log", "", "write every request to the model stand-in, and its answer, to this `file`, one JSON document a line")
	set.StringVar(&o.json, "json", "", "write the table as JSON to this `file`")
	set.BoolVar(&o.update, "update", false, "keep in the --json file what is not run now, and write both tables of all of it")
	set.StringVar(&o.markdown, "markdown", "", "write the table as Markdown to this `file`")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.agents, err = chooseAgents(set.Args(), *lightest); err != nil {
		return o, err
	}
	if o.update && o.json == "" {
		return o, errors.New("--update needs --json FILE: it goes on from what that file holds")
	}
	if *lightest && *only == "" {
		*only = pipeline
	}
	if err := o.chooseScenarios(*only); err != nil {
		return o, err
	}
	if o.cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return o, fmt.Errorf("no folder for installed agents: %w; name one with --cache", err)
		}
		o.cache = filepath.Join(user, "greatminds-realagents")
	}
	o.cache, err = filepath.Abs(o.cache)
	return o, err
}

func chooseAgents(names []string, lightest bool) ([]recipe, error) {
	switch {
	case lightest && len(names) > 0:
		return nil, fmt.Errorf("--lightest chooses the agent itself; leave out %s", strings.Join(names, " "))
	case lightest:
		return recipes[:1], nil
	case len(names) == 0:
		return recipes, nil
	}
	var out []recipe
	for _, name := range names {
		r, err := find(name)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// chooseScenarios takes a list of names, empty for all.
func (o *options) chooseScenarios(list string) error {
	if list == "" {
		o.pipeline, o.scenarios = true, scenarios
		return nil
	}
	known := []string{pipeline}
	for _, sc := range scenarios {
		known = append(known, sc.name)
	}
	for _, name := range strings.Split(list, ",") {
		switch i := slices.Index(known, name); {
		case i < 0:
			return fmt.Errorf("no scenario named %q; known are %s", name, strings.Join(known, ", "))
		case i == 0:
			o.pipeline = true
		default:
			o.scenarios = append(o.scenarios, scenarios[i-1])
		}
	}
	return nil
}

// bench runs the agents asked for and prints the table. The status is 1 when one of them failed.
func (o options) bench(ctx context.Context) (status int, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return 1, err
	}
	b := &bench{cache: o.cache, pipeline: o.pipeline, scenarios: o.scenarios, source: dir, environ: os.Environ(), out: os.Stderr, now: time.Now}
	if o.log != "" {
		// What it holds is for the one who asked for it: an agent's whole prompts.
		log, openErr := os.OpenFile(o.log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if openErr != nil {
			return 1, openErr
		}
		defer func() { err = errors.Join(err, log.Close()) }()
		b.log = log
	}
	var old []row
	if o.update {
		// Read before anything is run: it may be no table of ours.
		if old, err = readTable(o.json); err != nil {
			return 1, err
		}
	}
	rows, err := b.run(ctx, o.agents)
	if err != nil {
		return 1, err
	}
	for _, r := range rows {
		if r.Error != "" {
			status = 1
		}
	}
	rows = updated(old, rows)
	table := markdownTable(rows)
	fmt.Print(table)
	for _, out := range []struct{ file, text string }{{o.json, jsonTable(rows)}, {o.markdown, table}} {
		if out.file == "" {
			continue
		}
		if err := os.WriteFile(out.file, []byte(out.text), 0o644); err != nil {
			return 1, err
		}
	}
	return status, nil
}
