package execgate

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"greatminds/internal/execgate/entry"
	"greatminds/internal/execgate/keep"
	"greatminds/internal/execgate/proc"
)

// ErrSurvivors is wrapped when part of a tree could not be ended, because it belongs to another
// uid or does not come back from the kernel. The message names the processes.
var ErrSurvivors = errors.New("processes could not be ended")

func survivorsError(left []Process) error {
	names := make([]string, 0, len(left))
	for _, p := range left {
		names = append(names, fmt.Sprintf("pid %d", p.PID))
	}
	return fmt.Errorf("%w: %s", ErrSurvivors, strings.Join(names, ", "))
}

// killRound is how long one pass waits for what it has signalled.
const killRound = 20 * time.Millisecond

// endOrphans ends the tree of a keeper that died. Its members are what was handed to this
// process as a subreaper, the process itself, and whoever carries the mark; all of them with
// their descendants.
func endOrphans(p Process, mark, group string, kill time.Duration) (Ending, error) {
	deadline := time.Now().Add(kill)
	search := func(found func(proc.Pin)) ([]proc.Pin, error) {
		for family.visit(mark, found) && time.Now().Before(deadline) {
			// A tree that forks: the wider search, which takes longer, comes when this one is done.
		}
		pins := family.adopted(mark)
		own, life, err := proc.Find(p)
		if life == Alive {
			pins = append(pins, own)
		}
		if p.PID == 0 {
			err = nil // a tool has no record
		}
		return withDescendants(append(pins, grouped(group, found)...), mark, found), err
	}
	defer keep.RemoveGroup(group)
	return endPins(search, p.PID, deadline, func() {
		keep.KillGroup(group)
		family.reap()
	})
}

// search pins what is to be ended, and hands each root of it to found as soon as it is pinned.
type search func(found func(proc.Pin)) ([]proc.Pin, error)

// endPins kills what find finds until two searches in a row find nothing, or the deadline has
// passed. between runs after each pass.
func endPins(find search, own int, deadline time.Time, between func()) (Ending, error) {
	signalled := proc.Roll{}
	for quiet := 0; ; {
		pins, err := find(func(root proc.Pin) { signalled.Kill(root) })
		signalled.Send(pins, syscall.SIGKILL)
		between()
		proc.WaitAny(pins, killRound)
		expired := time.Now().After(deadline)
		quiet++
		if len(pins) > 0 {
			quiet = 0
		}
		if quiet == 2 || expired {
			e := Ending{Ended: signalled.Without(own), Survivors: proc.Identities(pins)}
			proc.ClosePins(pins)
			between()
			return e, err
		}
		proc.ClosePins(pins)
	}
}

// withDescendants adds whoever carries the mark, which found gets at once, and the descendants of all;
// each once.
func withDescendants(roots []proc.Pin, mark string, found func(proc.Pin)) []proc.Pin {
	seen := map[int]bool{os.Getpid(): true}
	var all []proc.Pin
	add := func(pin proc.Pin) bool {
		if seen[pin.Stat.PID] {
			proc.CloseFD(pin.FD)
			return false
		}
		seen[pin.Stat.PID] = true
		all = append(all, pin)
		return true
	}
	for _, root := range append(roots, carriers(entry.MarkName, mark, func(proc.Stat) bool { return false }, found)...) {
		if !add(root) {
			continue
		}
		for _, pin := range proc.Walk(root) {
			add(pin)
		}
	}
	return all
}

// carriers pins every living process whose environment holds the variable with the value, but for those
// to spare, and for what this process descends from: to end that would end this process. Processes of
// another uid cannot be read, and are not ours to end.
func carriers(variable, value string, spare func(proc.Stat) bool, found func(proc.Pin)) []proc.Pin {
	if value == "" {
		return nil
	}
	pids, err := proc.All()
	if err != nil {
		return nil // Supported has seen /proc; the other ways of searching remain
	}
	carries := func(pid int) bool {
		v, err := proc.VariableOf(pid, variable)
		return err == nil && v == value
	}
	above := ancestry()
	var pins []proc.Pin
	for _, pid := range pids {
		if pid == os.Getpid() || !carries(pid) {
			continue
		}
		pin, err := proc.PinPID(pid)
		if err != nil {
			continue
		}
		// Read again under the pin: the first look may have been at another process.
		if !carries(pid) || !proc.Alive(pin.FD) || isAncestor(above, pin) || spare(pin.Stat) {
			proc.CloseFD(pin.FD)
			continue
		}
		found(pin)
		pins = append(pins, pin)
	}
	return pins
}
