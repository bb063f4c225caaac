package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
)

const (
	// maxPins bounds the descriptors held during one pass over a tree; a larger tree takes more
	// passes.
	maxPins = 512
	// maxNamed bounds a list of identities.
	maxNamed = 256
)

// Self stands for this process where a root is asked for. It needs no pidfd, and is never signalled.
func Self() Pin { return Pin{FD: -1, Stat: Stat{PID: os.Getpid()}} }

// Walk pins the living descendants of root, nearest first, at most 512; the caller closes them.
//
// A child counts only when it was pinned while its parent, itself pinned, still lived: so a
// pid that was given to a stranger in between is never taken for a member. What moves to the
// subreaper meanwhile is found by the next pass; a pass is no proof.
func Walk(root Pin) []Pin {
	return walk(root, func(Pin) {})
}

// walk calls visit for each member, and for a root other than [Self], as soon as its own children are
// pinned.
func walk(root Pin, visit func(Pin)) []Pin {
	queue := []Pin{root}
	for i := 0; i < len(queue); i++ {
		parent := queue[i]
		queue = append(queue, childrenOf(parent, maxPins+1-len(queue))...)
		if parent.FD >= 0 {
			visit(parent)
		}
	}
	return queue[1:]
}

// childrenOf pins the living children of a process that is pinned itself, at most so many. A parent
// that ended, or is hidden, has none: then the proof fails, and names them.
func childrenOf(parent Pin, most int) []Pin {
	kids, err := Children(parent.Stat.PID)
	if err != nil {
		return nil
	}
	var pins []Pin
	for _, kid := range kids {
		if len(pins) >= most {
			break
		}
		pin, err := PinPID(kid)
		if err != nil {
			continue
		}
		if pin.Stat.Parent != parent.Stat.PID || !Alive(parent.FD) {
			CloseFD(pin.FD)
			continue
		}
		pins = append(pins, pin)
	}
	return pins
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

// Roll remembers which signal was sent to whom last, over all passes of one ending.
type Roll map[member]syscall.Signal

// Send signals every pinned process and notes it. Those that refuse (another uid) are left to
// the proof.
func (r Roll) Send(pins []Pin, sig syscall.Signal) {
	for _, pin := range pins {
		r.send(pin, sig)
	}
}

// send says whether the process gets this signal for the first time.
func (r Roll) send(pin Pin, sig syscall.Signal) (first bool) {
	m := member{pin.Stat.PID, pin.Stat.Start}
	first = r[m] != sig
	if sig == syscall.SIGKILL && pin.Stat.PID == pin.Stat.Group {
		KillGroup(pin.FD)
	}
	if err := Signal(pin.FD, sig); errors.Is(err, ErrGone) {
		return false
	}
	r[m] = sig
	return first
}

// Ask sends SIGTERM to the living descendants of root, see [Walk], but for those that were
// signalled before: a second one makes many programs give up the orderly end that the first began.
func (r Roll) Ask(root Pin) {
	pins := Walk(root)
	defer ClosePins(pins)
	for _, pin := range pins {
		if r[member{pin.Stat.PID, pin.Stat.Start}] == 0 {
			r.send(pin, syscall.SIGTERM)
		}
	}
}

// Kill sends SIGKILL to the living descendants of root, see [Walk], and to a root other than
// [Self], to each as soon as its own children are pinned. It returns how many had not got it in an
// earlier pass.
func (r Roll) Kill(root Pin) (fresh int) {
	ClosePins(walk(root, func(pin Pin) {
		if r.send(pin, syscall.SIGKILL) {
			fresh++
		}
	}))
	return fresh
}

// KillChildren sends SIGKILL to the children of this process's first thread, which is where the kernel
// puts what a subreaper adopts, and to the groups that they lead, zombies' too. It looks at nothing
// first, so that it can catch what forks and ends all the time. It is only for a process that alone
// reaps its children and does so on the calling goroutine: a listed pid then is the child's own. It
// returns how many had not got the signal in an earlier pass.
func (r Roll) KillChildren() (fresh int) {
	own := strconv.Itoa(os.Getpid())
	data, err := os.ReadFile("/proc/self/task/" + own + "/children")
	if err != nil {
		return 0 // a kernel without the file; Kill finds them
	}
	for field := range bytes.FieldsSeq(data) {
		pid, err := strconv.Atoi(string(field))
		if err != nil {
			continue
		}
		fd, err := OpenPidfd(pid)
		if err != nil {
			continue
		}
		lives := Alive(fd)
		KillGroup(fd)
		if lives && Signal(fd, syscall.SIGKILL) == nil {
			// It is counted by what its zombie says, which nobody has reaped.
			if st, err := ReadStat(pid); err == nil && r[member{pid, st.Start}] != syscall.SIGKILL {
				r[member{pid, st.Start}] = syscall.SIGKILL
				fresh++
			}
		}
		CloseFD(fd)
	}
	return fresh
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
