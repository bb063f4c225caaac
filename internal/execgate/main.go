package execgate

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate/entry"
)

// A re-exec'd keeper never gets beyond this: package entry, initialized long before, has made it a
// subreaper and started its gate or tool. A gate does not even get this far.
func init() {
	if own := entry.Own(); own != nil {
		// Not os.Exit: under the race detector that sleeps for a second.
		syscall.Exit(keeperMain(own))
	}
}

// Main must be the first call of every main function, and of TestMain in packages that start
// processes. It makes sure that a process re-exec'd as keeper or gate does its job and nothing
// else: the job itself begins during package initialization, before anything larger of the
// binary is set up, and does not return. In any other process Main marks the descriptors that the
// parent left open, the standard three aside, so that nothing started here inherits them.
func Main() {
	if _, role := os.LookupEnv(entry.RoleName); role {
		os.Exit(entry.ExitMisused)
	}
	entry.CloseOnExecAbove(2)
}

// closeInherited closes descriptors above last that a parent left open across exec. Those of
// our own runtime are close-on-exec and stay.
func closeInherited(last int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // without /proc nothing was started at all, see Supported
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= last {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			closeFD(fd)
		}
	}
}
