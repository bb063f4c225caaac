package execgate

import (
	"errors"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// What a re-exec of our binary is told on its command line: the name of its job, and roleMark so
// that no file name alone makes a program a keeper. Nothing secret stands here.
const (
	keeperName = "greatminds-keeper"
	gateName   = "greatminds-gate"
	roleMark   = "--execgate=1"
	// toolMode tells a keeper to start the request itself, without gate.
	toolMode = "tool"
	gateMode = "gate"
)

// Exit statuses of keeper and gate. They are outside what the daemon relies on: it reads the
// control channel and the status pipe.
const (
	exitUnauthorized = 70
	exitExecFailed   = 71
	exitMisused      = 72
)

// Main must be the first call of every main function, and of TestMain in packages that start
// processes. In a process that was re-exec'd as keeper or gate it does that job and never
// returns; in any other it returns at once.
func Main() {
	if len(os.Args) < 2 || os.Args[1] != roleMark {
		return
	}
	switch os.Args[0] {
	case keeperName:
		// The parent-death signal of the gate follows the thread that started it, so this
		// goroutine keeps its thread for the life of the process.
		runtime.LockOSThread()
		os.Exit(keeperMain(os.Args[2:]))
	case gateName:
		os.Exit(gateMain())
	}
}

// selfExe is our own binary even after it was replaced or removed on disk.
const selfExe = "/proc/self/exe"

// closeInherited closes descriptors above last that a parent left open across exec. Those of
// our own runtime are close-on-exec and stay.
func closeInherited(last int) {
	forEachFD(last, func(fd int) {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			closeFD(fd)
		}
	})
}

// closeOnExecAbove marks every descriptor above last, so that exec leaves only the first ones.
func closeOnExecAbove(last int) {
	err := unix.CloseRange(uint(last+1), ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return
	}
	// close_range is from Linux 5.9, its flag from 5.11; a filter may refuse it with any errno.
	if !errors.Is(err, unix.EBADF) {
		forEachFD(last, unix.CloseOnExec)
	}
}

func forEachFD(last int, f func(fd int)) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // without /proc nothing was started at all, see Supported
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > last {
			f(fd)
		}
	}
}
