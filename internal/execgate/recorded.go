package execgate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate/keep"
	"greatminds/internal/execgate/proc"
)

// orphanKeeperLimit is what a keeper whose daemon died gets to end its tree by itself. It needs
// some 50 ms; one that is stopped or hung never ends.
const orphanKeeperLimit = time.Second

// originalMark is the variable by which the children of an agent of the original are known. Ours
// carry it too, but are not looked for by it: people set it in shells of their own.
const originalMark = "GREATMINDS_RUN_ID"

// EndRecorded ends what a daemon that died had recorded: the process, its keeper, their
// descendants, and whoever carries the mark. Everything is compared with the record first and
// signalled by pidfd, so that a stranger with a reused pid is never touched. It returns nil only
// when nothing is left; an error that wraps [ErrUnknown] or [ErrSurvivors] holds the task, since
// a second process must not start beside the first. So does a tree that this process itself was
// started from. The exit status is never known.
//
// The end of ctx takes the grace away, as in [Child.Stop]. A record of another boot is gone
// without a look at any process. mark may be "".
// Spec: "Persistence and ownership"; E-239, E-240, E-241.
func EndRecorded(ctx context.Context, p Process, mark string, g Grace) (Ending, error) {
	begun := time.Now()
	if g.Kill <= 0 {
		g.Kill = defaultKill
	}
	boot, err := proc.BootID()
	if err != nil {
		return Ending{}, fmt.Errorf("%w: boot id: %w", ErrUnknown, err)
	}
	if p.BootID != "" && p.BootID != boot {
		return Ending{How: HowGone}, nil
	}
	if err := Supported(); err != nil {
		return Ending{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	group := groupOf(mark)
	if err := checkOutside(p, mark, group); err != nil {
		return Ending{}, err
	}
	if err := awaitKeepers(ctx, p); err != nil {
		return Ending{}, err
	}
	defer keep.RemoveGroup(group)
	find := func(found func(proc.Pin)) ([]proc.Pin, error) { return recordedTree(p, mark, group, found) }
	signalled, err := politely(ctx, find, g.Term)
	if err != nil {
		return Ending{}, err
	}
	e, err := endPins(find, p.PID, time.Now().Add(g.Kill), func() {
		keep.KillGroup(group)
		family.reap()
	})
	e.How, e.Took = HowGone, time.Since(begun)
	if signalled || e.Ended > 0 {
		e.How = HowRecovered
	}
	if len(e.Survivors) > 0 {
		err = errors.Join(err, survivorsError(e.Survivors))
	}
	return e, err
}

// awaitKeepers gives a keeper and a warden that still live the time to do their work. Both know that
// their daemon is gone; one that was stopped is told to go on.
func awaitKeepers(ctx context.Context, p Process) error {
	ctx, cancel := context.WithTimeout(ctx, orphanKeeperLimit)
	defer cancel()
	for _, keeper := range recordsOf(p)[1:] {
		pin, life, err := proc.Find(keeper)
		if life != Alive {
			if err != nil {
				return err
			}
			continue
		}
		_ = proc.Signal(pin.FD, syscall.SIGCONT) // it may have ended
		file, err := proc.Pollable(pin.FD)
		if err != nil {
			return err
		}
		_ = proc.Await(ctx, file) // whether it ended is looked at again
		_ = file.Close()          // only polled
	}
	return nil
}

// recordedTree pins what lives of a record. Keeper and warden come last, in this order: while one
// lives, even stopped, it is the parent of every orphan of the tree, so that killing it first would
// lose the descent.
func recordedTree(p Process, mark, group string, found func(proc.Pin)) ([]proc.Pin, error) {
	var roots []proc.Pin
	var faults []error
	for _, record := range recordsOf(p) {
		pin, life, err := proc.Find(record)
		if life == Alive {
			roots = append(roots, pin)
		}
		faults = append(faults, err)
	}
	keepers := recordsOf(p)[1:]
	if p.Keeper == nil {
		// The original started it: nobody ended the tree when it died, and its agents carry their
		// run's id instead of a mark.
		roots = append(roots, carriers(originalMark, mark, ofOurShell(mark), found)...)
	}
	all := withDescendants(append(roots, grouped(group, found)...), mark, func(pin proc.Pin) {
		if !slices.ContainsFunc(keepers, func(k Process) bool { return k.PID == pin.Stat.PID }) {
			found(pin)
		}
	})
	return innermost(all, keepers), errors.Join(faults...)
}

// ofOurShell says what not to end where the shell that this process was started from carries the run's
// id: its jobs do too, but none of the run, which has sessions of its own.
func ofOurShell(id string) func(proc.Stat) bool {
	own, err := unix.Getsid(0)
	ours := err == nil && os.Getenv(originalMark) == id
	return func(st proc.Stat) bool { return ours && st.Session == own }
}

// innermost leaves out the outermost keeper for as long as there is anything else, and so on inwards.
func innermost(all []proc.Pin, keepers []Process) []proc.Pin {
	for _, keeper := range slices.Backward(keepers) {
		at := slices.IndexFunc(all, func(pin proc.Pin) bool { return pin.Stat.PID == keeper.PID })
		if at >= 0 && len(all) > 1 {
			proc.CloseFD(all[at].FD)
			all = slices.Delete(all, at, at+1)
		}
	}
	return all
}

// maxRecords bounds the line of a forged record; ours has three members.
const maxRecords = 8

// recordsOf lists a process, its keeper and its warden.
func recordsOf(p Process) []Process {
	line := []Process{p}
	for k := p.Keeper; k != nil && len(line) < maxRecords; k = k.Keeper {
		line = append(line, *k)
	}
	return line
}

// politely sends one SIGTERM to what find finds and waits for all of it, within term and ctx.
func politely(ctx context.Context, find search, term time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, max(term, 0))
	defer cancel()
	pins, err := find(func(proc.Pin) {})
	if err != nil {
		proc.ClosePins(pins)
		return false, err
	}
	some := len(pins) > 0
	if ctx.Err() == nil {
		proc.Roll{}.Send(pins, syscall.SIGTERM)
	}
	for i, pin := range pins {
		file, err := proc.Pollable(pin.FD)
		if err != nil {
			proc.ClosePins(pins[i+1:])
			return some, err
		}
		_ = proc.Await(ctx, file) // what does not end is killed next
		_ = file.Close()          // only polled
	}
	return some, nil
}
