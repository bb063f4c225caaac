package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// Process is the identity of one process, as it is recorded before exec. A pid alone names
// nothing after a restart; all of this together names one process of one boot.
// Spec: "Persistence and ownership"; E-237, E-239.
type Process struct {
	// PID in our own pid namespace.
	PID int `json:"pid"`
	// StartTicks is field 22 of /proc/PID/stat, in clock ticks after boot.
	StartTicks uint64 `json:"start_ticks"`
	// BootID is /proc/sys/kernel/random/boot_id.
	BootID string `json:"boot_id"`
	// Group and Session are the process group and session at the launch.
	Group   int `json:"group"`
	Session int `json:"session"`
	// PidfdInode is unique for a boot. Null where pidfds have no inode of their own (before Linux 6.9).
	PidfdInode *uint64 `json:"pidfd_inode"`
	// Keeper is the process that ends this one's tree. A keeper's own Keeper is its warden, which has
	// none.
	Keeper *Process `json:"keeper,omitempty"`
	// Extra holds members of a durable record that this version does not know. The record's writer
	// keeps them; they identify nothing.
	Extra map[string]json.RawMessage `json:"-"`
}

// Life is what a look at a recorded process found.
type Life int

// The answers of Look. Unknown is the zero value, and is never to be taken for Gone.
const (
	Unknown Life = iota
	Living
	Gone
)

// String returns "unknown", "alive" or "gone".
func (l Life) String() string {
	switch l {
	case Living:
		return "alive"
	case Gone:
		return "gone"
	}
	return "unknown"
}

// ErrUnknown is wrapped by every answer that could not be found out. It permits nothing.
var ErrUnknown = errors.New("the state of the process is unknown")

// Look tells whether the recorded process still lives. A zombie is Gone, as is a pid that now
// belongs to another process and everything recorded in another boot. Where the kernel or the
// file system does not let us see, the answer is Unknown with an error that wraps [ErrUnknown].
// Spec: E-239, E-241.
func Look(p Process) (Life, error) {
	pin, life, err := Find(p)
	if life == Living {
		CloseFD(pin.FD)
	}
	return life, err
}

// Find pins the recorded process. The pin is valid, and must be closed, only with Living.
func Find(p Process) (Pin, Life, error) {
	unknown := func(err error) (Pin, Life, error) {
		return Pin{}, Unknown, fmt.Errorf("%w: pid %d: %w", ErrUnknown, p.PID, err)
	}
	if p.PID <= 0 || p.BootID == "" {
		return unknown(fmt.Errorf("the record names no process (boot %q)", p.BootID))
	}
	boot, err := BootID()
	if err != nil {
		return unknown(err)
	}
	if boot != p.BootID {
		return Pin{}, Gone, nil
	}
	pin, err := PinPID(p.PID)
	if errors.Is(err, ErrGone) {
		return Pin{}, Gone, nil
	}
	if err != nil {
		return unknown(err)
	}
	same, err := pin.is(p)
	if same {
		return pin, Living, nil
	}
	CloseFD(pin.FD)
	if err != nil {
		return unknown(err)
	}
	return Pin{}, Gone, nil
}

// Pin is a living process held by a pidfd; Stat was read while the pin held.
type Pin struct {
	FD   int
	Stat Stat
}

// PinPID opens a pidfd and reads the stat line of the very process behind it: as long as the
// pidfd shows no end afterwards, the pid cannot have been given to another one in between. The
// caller closes the pin's FD.
func PinPID(pid int) (Pin, error) {
	fd, err := OpenPidfd(pid)
	if err != nil {
		return Pin{}, err
	}
	stat, statErr := ReadStat(pid)
	done, err := Exited(fd)
	switch {
	case err != nil:
	case done:
		err = ErrGone
	case errors.Is(statErr, fs.ErrNotExist):
		err = fmt.Errorf("it lives, but /proc hides it: %w", statErr)
	default:
		err = statErr
	}
	if err != nil {
		CloseFD(fd)
		return Pin{}, err
	}
	return Pin{FD: fd, Stat: stat}, nil
}

// PinFD reads the stat line of the process behind a pidfd that the caller has, and keeps. pid is
// believed only if that process still lives afterwards; otherwise the answer is ErrGone.
func PinFD(fd, pid int) (Pin, error) {
	stat, statErr := ReadStat(pid)
	if done, err := Exited(fd); done || err != nil {
		return Pin{}, errors.Join(ErrGone, err)
	}
	return Pin{FD: fd, Stat: stat}, statErr
}

// is compares with a record of this boot.
func (p Pin) is(record Process) (bool, error) {
	if p.Stat.Start != record.StartTicks {
		return false, nil
	}
	if record.PidfdInode == nil {
		return true, nil
	}
	now, err := inode(p.FD)
	if err != nil {
		return false, err
	}
	// No inode now, though there was one in this boot, contradicts itself: the ticks decide.
	return now == nil || *now == *record.PidfdInode, nil
}

// Identity returns the record of the pinned process.
func (p Pin) Identity() (Process, error) {
	number, err := inode(p.FD)
	if err != nil {
		return Process{}, err
	}
	boot, err := BootID()
	if err != nil {
		return Process{}, err
	}
	return Process{
		PID: p.Stat.PID, StartTicks: p.Stat.Start, BootID: boot,
		Group: p.Stat.Group, Session: p.Stat.Session, PidfdInode: number,
	}, nil
}
