package execgate

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate/proc"
)

// BecomeSubreaper makes this process the parent of every descendant whose own parent ends, so
// that a keeper that was killed leaves its tree to the daemon. The daemon calls it once, before
// its first launch. It holds for the process, not for its children.
func BecomeSubreaper() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// family knows which children of this process are wardens and keepers of its own. What else the kernel lists as a
// child, in a session other than ours, is an orphan of a keeper that died: nobody can join our
// session, and everything behind a keeper starts in one of its own.
var family = &registry{keepers: map[int]string{}}

type registry struct {
	// The lock is held from fork to entry, so that nobody takes a new keeper for an orphan, and
	// from wait to removal, so that no orphan gets the pid of a listed keeper.
	mu      sync.Mutex
	keepers map[int]string // pid to mark
	// strays is set once a tree ended with survivors: they may become our zombies later.
	strays bool
}

func (f *registry) fork(start func() (int, error)) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.strays {
		f.reapLocked()
	}
	pid, err := start()
	if err == nil {
		f.keepers[pid] = ""
	}
	return pid, err
}

// name says which launch a warden is for.
func (f *registry) name(pid int, mark string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keepers[pid] = mark
}

// reapKeeper takes a child that has ended, and says whether it was killed. Its status says nothing
// else that the control channel did not.
func (f *registry) reapKeeper(pid int) (killed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil); err != syscall.EINTR {
			break
		}
	}
	delete(f.keepers, pid)
	return status.Signaled()
}

func (f *registry) expectStrays() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.strays = true
}

// adopted pins the living orphans of dead keepers, except those that carry the mark of a launch
// whose own keeper is still being waited for. The dead ones it reaps.
func (f *registry) adopted(mark string) []proc.Pin {
	var pins []proc.Pin
	f.each(mark, func(pin proc.Pin) { pins = append(pins, pin) })
	return pins
}

// visit hands the orphans that adopted pins to found, each at once, and says whether there were any.
func (f *registry) visit(mark string, found func(proc.Pin)) (some bool) {
	f.each(mark, func(pin proc.Pin) {
		some = true
		found(pin)
		proc.CloseFD(pin.FD)
	})
	return some
}

func (f *registry) each(mark string, take func(proc.Pin)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	others := map[string]bool{}
	for _, m := range f.keepers {
		others[m] = m != mark && m != ""
	}
	f.orphansLocked(func(pid int) {
		pin, err := proc.PinPID(pid)
		if err != nil {
			return
		}
		// An environment that cannot be read is no reason to spare an orphan.
		if m, _ := proc.MarkOf(pid); pin.Stat.Parent != os.Getpid() || others[m] {
			proc.CloseFD(pin.FD)
			return
		}
		take(pin)
	})
}

// reap takes the zombies among the orphans.
func (f *registry) reap() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reapLocked()
}

func (f *registry) reapLocked() { f.orphansLocked(func(int) {}) }

// orphansLocked reaps the zombies among the orphans and hands the others on.
func (f *registry) orphansLocked(living func(pid int)) {
	own, err := unix.Getsid(0)
	if err != nil {
		return
	}
	kids, err := proc.Children(os.Getpid())
	if err != nil {
		return
	}
	for _, pid := range kids {
		if _, keeper := f.keepers[pid]; keeper {
			continue
		}
		switch st, err := proc.ReadStat(pid); {
		case err != nil || st.Session == own:
		case st.State == 'Z':
			// It is our child, so the pid is its own until this call. Its group is what is left of a tree.
			if fd, err := proc.OpenPidfd(pid); err == nil {
				proc.KillGroup(fd)
				proc.CloseFD(fd)
			}
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		default:
			living(pid)
		}
	}
}
