package execgate

import (
	"errors"
	"syscall"
)

// maxPins bounds the descriptors held during one pass over a tree; a larger tree takes more
// passes.
const maxPins = 512

// walk pins the living descendants of root, nearest first, at most maxPins. rootFD is root's
// pidfd, or -1 where root is this process itself.
//
// A child counts only when it was pinned while its parent, itself pinned, still lived: so a
// pid that was given to a stranger in between is never taken for a member. What moves to the
// subreaper meanwhile is found by the next pass; a pass is no proof.
func walk(root, rootFD int) []pinned {
	queue := []pinned{{fd: rootFD, stat: procStat{pid: root}}}
	for i := 0; i < len(queue); i++ {
		parent := queue[i]
		kids, err := children(parent.stat.pid)
		if err != nil {
			continue // it ended, or is hidden: then the proof fails, and names it
		}
		for _, kid := range kids {
			if len(queue) > maxPins {
				return queue[1:]
			}
			pin, err := pinProcess(kid)
			if err != nil {
				continue
			}
			if pin.stat.parent != parent.stat.pid || !alive(parent.fd) {
				closeFD(pin.fd)
				continue
			}
			queue = append(queue, pin)
		}
	}
	return queue[1:]
}

// alive says whether a pinned process still runs; -1 is this process itself.
func alive(fd int) bool {
	if fd < 0 {
		return true
	}
	done, err := exited(fd)
	return err == nil && !done
}

func closePins(pins []pinned) {
	for _, pin := range pins {
		closeFD(pin.fd)
	}
}

// member names a process within one boot well enough to count it once.
type member struct {
	pid   int
	start uint64
}

func (p pinned) member() member { return member{p.stat.pid, p.stat.start} }

// roll remembers whom a signal was sent to, over all passes of one ending.
type roll map[member]bool

// send signals every pinned process and notes it. Those that refuse (another uid) are left to
// the proof.
func (r roll) send(pins []pinned, sig syscall.Signal) {
	for _, pin := range pins {
		if err := signalPidfd(pin.fd, sig); err == nil || !errors.Is(err, errGone) {
			r[pin.member()] = true
		}
	}
}

// survivors are the identities of what is still there.
func survivors(pins []pinned) []Process {
	left := make([]Process, 0, len(pins))
	for _, pin := range pins {
		if len(left) == maxSurvivors {
			break
		}
		identity, err := pin.identity()
		if err != nil {
			identity = Process{PID: pin.stat.pid, StartTicks: pin.stat.start, Group: pin.stat.group, Session: pin.stat.session}
		}
		left = append(left, identity)
	}
	return left
}
