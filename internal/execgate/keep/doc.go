// Package keep is the keeper: the process between the daemon and an agent, a configured command or
// a tool, which ends their whole tree. It is also the warden between daemon and keeper, where that
// has to do the keeper's work: see entry for what a warden does otherwise.
//
// A keeper is a re-exec of our own binary. Package entry has made it a child subreaper and started
// its program by the time this package's init takes over, for good. Being a subreaper it is in the
// end the parent of every descendant, whatever session or group that moved to, so "no children
// left" (ECHILD) proves that the tree is empty. It ends the tree when its program has ended, when
// it is told to, and at the end of the control channel, which is the end of the daemon.
//
// # Control channel
//
// A SOCK_SEQPACKET socket pair, one JSON object (type Message) in each packet. Warden and keeper
// share one end of it; the warden reads and writes only when its keeper is gone.
package keep

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate/entry"
	"greatminds/internal/execgate/proc"
)

func init() {
	if own := entry.Own(); own != nil {
		// Not os.Exit: under the race detector that sleeps for a second.
		syscall.Exit(run(own))
	}
}

// closeInherited closes descriptors above last that a parent left open across exec. Those of
// our own runtime are close-on-exec and stay.
func closeInherited(last int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // without /proc nothing was started at all, see execgate.Supported
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= last {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			proc.CloseFD(fd)
		}
	}
}

// KillGroup sends SIGKILL to every member of a cgroup at once; "" is none. It is best effort:
// whether anything is left is proven elsewhere.
func KillGroup(dir string) {
	if dir != "" {
		_ = os.WriteFile(dir+"/cgroup.kill", []byte("1"), 0)
	}
}

// RemoveGroup takes an empty cgroup away; one that holds a survivor stays.
func RemoveGroup(dir string) {
	if dir != "" {
		_ = unix.Rmdir(dir)
	}
}
