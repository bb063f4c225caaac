package execgate

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
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
	search := func() ([]pinned, error) {
		pins := family.adopted(mark)
		own, life, err := find(p)
		if life == Alive {
			pins = append(pins, own)
		}
		if p.PID == 0 {
			err = nil // a tool has no record
		}
		return withDescendants(pins, mark), err
	}
	defer removeGroup(group)
	return endPins(search, p.PID, deadline, func() {
		killGroup(group)
		family.reap()
	})
}

// endPins kills what search finds until two searches in a row find nothing, or the deadline has
// passed. between runs after each pass.
func endPins(search func() ([]pinned, error), own int, deadline time.Time, between func()) (Ending, error) {
	signalled := roll{}
	for quiet := 0; ; {
		pins, err := search()
		signalled.send(pins, syscall.SIGKILL)
		between()
		waitAny(fdsOf(pins), killRound)
		left := living(pins)
		expired := time.Now().After(deadline)
		quiet++
		if len(pins) > 0 {
			quiet = 0
		}
		if quiet == 2 || expired {
			e := Ending{Ended: signalled.without(own), Survivors: survivors(left)}
			closePins(pins)
			between()
			return e, err
		}
		closePins(pins)
	}
}

// living are those of the pins that have not ended yet.
func living(pins []pinned) []pinned {
	var left []pinned
	for _, pin := range pins {
		if alive(pin.fd) {
			left = append(left, pin)
		}
	}
	return left
}

func fdsOf(pins []pinned) []int {
	fds := make([]int, len(pins))
	for i, pin := range pins {
		fds[i] = pin.fd
	}
	return fds
}

// without counts the members that were signalled, one pid left out.
func (r roll) without(own int) int {
	n := 0
	for m := range r {
		if m.pid != own {
			n++
		}
	}
	return n
}

// withDescendants adds whoever carries the mark, and the descendants of all; each once.
func withDescendants(roots []pinned, mark string) []pinned {
	seen := map[int]bool{os.Getpid(): true}
	var all []pinned
	add := func(pin pinned) bool {
		if seen[pin.stat.pid] {
			closeFD(pin.fd)
			return false
		}
		seen[pin.stat.pid] = true
		all = append(all, pin)
		return true
	}
	for _, root := range append(roots, marked(mark)...) {
		if !add(root) {
			continue
		}
		for _, pin := range walk(root.stat.pid, root.fd) {
			add(pin)
		}
	}
	return all
}

// marked pins every living process whose environment carries the mark. Processes of another uid
// cannot be read, and are not ours to end.
func marked(mark string) []pinned {
	if mark == "" {
		return nil
	}
	pids, err := processes()
	if err != nil {
		return nil // Supported has seen /proc; the other ways of searching remain
	}
	var pins []pinned
	for _, pid := range pids {
		if m, err := markOf(pid); err != nil || m != mark || pid == os.Getpid() {
			continue
		}
		pin, err := pinProcess(pid)
		if err != nil {
			continue
		}
		// Read again under the pin: the first look may have been at another process.
		if m, err := markOf(pid); err != nil || m != mark || !alive(pin.fd) {
			closeFD(pin.fd)
			continue
		}
		pins = append(pins, pin)
	}
	return pins
}
