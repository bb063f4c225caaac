package proc

import (
	"errors"
	"syscall"
)

const (
	// maxPins bounds the descriptors held during one pass over a tree; a larger tree takes more
	// passes.
	maxPins = 512
	// maxNamed bounds a list of identities.
	maxNamed = 256
)

// Walk pins the living descendants of root, nearest first, at most 512; the caller closes them.
// rootFD is root's pidfd, or -1 where root is this process itself.
//
// A child counts only when it was pinned while its parent, itself pinned, still lived: so a
// pid that was given to a stranger in between is never taken for a member. What moves to the
// subreaper meanwhile is found by the next pass; a pass is no proof.
func Walk(root, rootFD int) []Pin {
	queue := []Pin{{FD: rootFD, Stat: Stat{PID: root}}}
	for i := 0; i < len(queue); i++ {
		parent := queue[i]
		kids, err := Children(parent.Stat.PID)
		if err != nil {
			continue // it ended, or is hidden: then the proof fails, and names it
		}
		for _, kid := range kids {
			if len(queue) > maxPins {
				return queue[1:]
			}
			pin, err := PinPID(kid)
			if err != nil {
				continue
			}
			if pin.Stat.Parent != parent.Stat.PID || !Alive(parent.FD) {
				CloseFD(pin.FD)
				continue
			}
			queue = append(queue, pin)
		}
	}
	return queue[1:]
}

// ClosePins gives the pins up.
func ClosePins(pins []Pin) {
	for _, pin := range pins {
		CloseFD(pin.FD)
	}
}

// member names a process within one boot well enough to count it once.
type member struct {
	pid   int
	start uint64
}

// Roll remembers whom a signal was sent to, over all passes of one ending.
type Roll map[member]bool

// Has says whether the pinned process was signalled before.
func (r Roll) Has(pin Pin) bool { return r[member{pin.Stat.PID, pin.Stat.Start}] }

// Send signals every pinned process and notes it. Those that refuse (another uid) are left to
// the proof.
func (r Roll) Send(pins []Pin, sig syscall.Signal) {
	for _, pin := range pins {
		if err := Signal(pin.FD, sig); !errors.Is(err, ErrGone) {
			r[member{pin.Stat.PID, pin.Stat.Start}] = true
		}
	}
}

// Without counts the members that were signalled, one pid left out.
func (r Roll) Without(pid int) int {
	n := 0
	for m := range r {
		if m.pid != pid {
			n++
		}
	}
	return n
}

// Identities are the records of the pinned processes that still live, at most 256.
func Identities(pins []Pin) []Process {
	var left []Process
	for _, pin := range pins {
		if !Alive(pin.FD) || len(left) == maxNamed {
			continue
		}
		record, err := pin.Identity()
		if err != nil {
			record = Process{PID: pin.Stat.PID, StartTicks: pin.Stat.Start, Group: pin.Stat.Group, Session: pin.Stat.Session}
		}
		left = append(left, record)
	}
	return left
}
