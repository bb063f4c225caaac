package execgate

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"greatminds/internal/execgate/keep"
	"greatminds/internal/execgate/proc"
)

// orphanKeeperLimit is what a keeper whose daemon died gets to end its tree by itself. It needs
// some 50 ms; one that is stopped or hung never ends.
const orphanKeeperLimit = time.Second

// EndRecorded ends what a daemon that died had recorded: the process, its keeper, their
// descendants, and whoever carries the mark. Everything is compared with the record first and
// signalled by pidfd, so that a stranger with a reused pid is never touched. It returns nil only
// when nothing is left; an error that wraps [ErrUnknown] or [ErrSurvivors] holds the task, since
// a second process must not start beside the first. The exit status is never known.
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
	if p.Keeper != nil {
		if err := awaitKeeper(ctx, *p.Keeper); err != nil {
			return Ending{}, err
		}
	}
	search := func() ([]proc.Pin, error) { return recordedTree(p, mark) }
	signalled, err := politely(ctx, search, g.Term)
	if err != nil {
		return Ending{}, err
	}
	e, err := endPins(search, p.PID, time.Now().Add(g.Kill), func() {
		keep.KillGroup(groupOf(mark))
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

// awaitKeeper gives a keeper that still lives the time to do its work.
func awaitKeeper(ctx context.Context, keeper Process) error {
	pin, life, err := proc.Find(keeper)
	if life != Alive {
		return err
	}
	file, err := proc.Pollable(pin.FD)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only polled
	ctx, cancel := context.WithTimeout(ctx, orphanKeeperLimit)
	defer cancel()
	_ = proc.Await(ctx, file) // whether it ended is looked at again
	return nil
}

// recordedTree pins what lives of a record. The keeper comes last: while it lives, even stopped,
// it is the parent of every orphan of the tree, so that killing it first would lose the descent.
func recordedTree(p Process, mark string) ([]proc.Pin, error) {
	var roots []proc.Pin
	var faults []error
	for _, record := range recordsOf(p) {
		pin, life, err := proc.Find(record)
		if life == Alive {
			roots = append(roots, pin)
		}
		faults = append(faults, err)
	}
	all := withDescendants(roots, mark)
	if p.Keeper == nil || len(all) < 2 {
		return all, errors.Join(faults...)
	}
	below := all[:0]
	for _, pin := range all {
		if pin.Stat.PID == p.Keeper.PID {
			proc.CloseFD(pin.FD)
			continue
		}
		below = append(below, pin)
	}
	return below, errors.Join(faults...)
}

func recordsOf(p Process) []Process {
	if p.Keeper == nil {
		return []Process{p}
	}
	return []Process{p, *p.Keeper}
}

// politely sends one SIGTERM to what search finds and waits for all of it, within term and ctx.
func politely(ctx context.Context, search func() ([]proc.Pin, error), term time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, max(term, 0))
	defer cancel()
	pins, err := search()
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
