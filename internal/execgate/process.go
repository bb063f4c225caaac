package execgate

import (
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
	// Keeper is the process that ends this one's tree; nil for a keeper itself.
	Keeper *Process `json:"keeper,omitempty"`
}

// Life is what a look at a recorded process found.
type Life int

// The answers of [Look]. Unknown is the zero value, and is never to be taken for Gone.
const (
	Unknown Life = iota
	Alive
	Gone
)

// String returns "unknown", "alive" or "gone".
func (l Life) String() string {
	switch l {
	case Alive:
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
	pinned, life, err := find(p)
	if life == Alive {
		closeFD(pinned.fd)
	}
	return life, err
}

// find pins the recorded process. The pin is valid, and must be closed, only with Alive.
func find(p Process) (pinned, Life, error) {
	if p.PID <= 0 || p.BootID == "" {
		return pinned{}, Unknown, fmt.Errorf("%w: the record names no process (pid %d, boot %q)", ErrUnknown, p.PID, p.BootID)
	}
	boot, err := bootID()
	if err != nil {
		return pinned{}, Unknown, fmt.Errorf("%w: boot id: %w", ErrUnknown, err)
	}
	if boot != p.BootID {
		return pinned{}, Gone, nil
	}
	pin, err := pinProcess(p.PID)
	if errors.Is(err, errGone) {
		return pinned{}, Gone, nil
	}
	if err != nil {
		return pinned{}, Unknown, fmt.Errorf("%w: pid %d: %w", ErrUnknown, p.PID, err)
	}
	same, err := pin.is(p)
	if err != nil || !same {
		closeFD(pin.fd)
		if err != nil {
			return pinned{}, Unknown, fmt.Errorf("%w: pid %d: %w", ErrUnknown, p.PID, err)
		}
		return pinned{}, Gone, nil
	}
	return pin, Alive, nil
}

// pinned is a living process held by a pidfd; stat was read while the pin held.
type pinned struct {
	fd   int
	stat procStat
}

// pinProcess opens a pidfd and reads the stat line of the very process behind it: as long as the
// pidfd shows no end afterwards, the pid cannot have been given to another one in between.
func pinProcess(pid int) (pinned, error) {
	fd, err := openPidfd(pid)
	if err != nil {
		return pinned{}, err
	}
	stat, statErr := readStat(pid)
	done, err := exited(fd)
	switch {
	case err != nil:
		closeFD(fd)
		return pinned{}, err
	case done:
		closeFD(fd)
		return pinned{}, errGone
	case errors.Is(statErr, fs.ErrNotExist):
		closeFD(fd)
		return pinned{}, fmt.Errorf("it lives, but /proc hides it: %w", statErr)
	case statErr != nil:
		closeFD(fd)
		return pinned{}, statErr
	}
	return pinned{fd: fd, stat: stat}, nil
}

// is compares with a record of this boot.
func (p pinned) is(record Process) (bool, error) {
	if p.stat.start != record.StartTicks {
		return false, nil
	}
	if record.PidfdInode == nil {
		return true, nil
	}
	inode, err := pidfdInode(p.fd)
	if err != nil {
		return false, err
	}
	// No inode now, though there was one in this boot, contradicts itself: the ticks decide.
	return inode == nil || *inode == *record.PidfdInode, nil
}

// identity returns the record of the pinned process.
func (p pinned) identity() (Process, error) {
	inode, err := pidfdInode(p.fd)
	if err != nil {
		return Process{}, err
	}
	boot, err := bootID()
	if err != nil {
		return Process{}, err
	}
	return Process{
		PID: p.stat.pid, StartTicks: p.stat.start, BootID: boot,
		Group: p.stat.group, Session: p.stat.session, PidfdInode: inode,
	}, nil
}
