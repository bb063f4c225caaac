// Command killtest kills what a project is made of, at random moments, and looks whether its promises hold.
//
//	go run ./tools/killtest --rounds 500 --seed 1
//	go run ./tools/killtest --seconds 600 --seed 7 -v --keep
//
// Everything is real: coordd and greatminds as they are built for users, git repositories, processes,
// time. Only the agents are scripted (fixtures/agent): they take several tasks at once through
// developer, tester, reviewer and merge, ask for permissions, have a configured command run, ask
// the operator questions, and leave children in sessions of their own.
//
// A round waits for its moment, sends SIGKILL or SIGSTOP to the daemon, a keeper, an agent, a
// command or a call of the command line, restarts what died, and checks the invariants of judge.go.
// After some rounds a project is brought to its end by the remedies that it names itself: every
// task must come to be verified. Nothing of the checks is shared with the supervisor.
//
// What a round does, to whom and at which event or delay, follows from the seed and the round's number
// alone. What it then hits is the machine's business, so that a seed is a way to look again and no
// recording.
//
// Exit status: 0 nothing was found, 1 something was, 2 it could not be run.
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
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// options are the command line.
type options struct {
	rounds  int
	seconds float64
	seed    uint64
	first   int
	keep    bool
	verbose bool
	work    string
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("killtest", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.rounds, "rounds", 0, "how many rounds to play; 0 with --seconds: as many as fit")
	f.Float64Var(&o.seconds, "seconds", 0, "begin no round after this many `seconds`; 0 for no such limit")
	f.Uint64Var(&o.seed, "seed", 1, "what the rounds are drawn from")
	f.IntVar(&o.first, "first", 1, "`number` of the first round, to look again at one that found something")
	f.BoolVar(&o.keep, "keep", false, "keep the folder of every project, not only of those where something was found")
	f.BoolVar(&o.verbose, "v", false, "print a line for each round")
	f.StringVar(&o.work, "work", "", "`folder` to work in (default: the temporary folder)")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.rounds < 0 || o.seconds < 0 || o.first < 1:
		return o, errors.New("--rounds and --seconds cannot be negative, and the first round is 1")
	case o.rounds == 0 && o.seconds == 0:
		return o, errors.New("say how long: --rounds N or --seconds T")
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	var sound bool
	if err == nil {
		sound, err = play(ctx, o, stdout)
	}
	switch {
	case err == nil && sound:
		return 0
	case err == nil:
		return 1
	case !errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stderr, "killtest:", err)
	}
	return 2
}

// maxFound is how many projects may go wrong before the rest of the rounds is not worth its time.
const maxFound = 5

// play plays all rounds, project by project, and says whether nothing was found.
func play(ctx context.Context, o options, out io.Writer) (sound bool, err error) {
	folder, err := os.MkdirTemp(o.work, "killtest-")
	if err != nil {
		return false, err
	}
	if folder, err = realFolder(folder); err != nil {
		return false, err
	}
	if err := adoptOrphans(); err != nil {
		return false, err
	}
	built, err := build(ctx, folder)
	if err != nil {
		return false, errors.Join(err, os.RemoveAll(folder))
	}
	t := newTally(o, time.Now())
	s := &series{options: o, built: built, folder: folder, tally: t, out: out}
	for next := o.first; t.more(next) && ctx.Err() == nil; {
		drawn := drawProject(o.seed, next)
		drawn.rounds = min(drawn.rounds, t.left(next))
		found, err := s.playProject(ctx, drawn)
		if err != nil {
			return false, fmt.Errorf("seed %d, round %d (kept: %s): %w", o.seed, next, folder, err)
		}
		if found {
			t.wrong++
		}
		next += drawn.rounds
		if t.wrong == maxFound {
			fmt.Fprintf(out, "%d projects went wrong; the rest is left out\n", t.wrong)
			break
		}
	}
	t.print(out)
	if t.wrong == 0 && !o.keep {
		return ctx.Err() == nil, errors.Join(ctx.Err(), os.RemoveAll(folder))
	}
	fmt.Fprintln(out, "kept:", folder)
	return t.wrong == 0, ctx.Err()
}

// realFolder is the one name of a folder that everybody sees: absolute, and without links.
func realFolder(folder string) (string, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(absolute)
}
