package execgate

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"greatminds/internal/execgate/entry"
	"greatminds/internal/execgate/proc"
)

// Outer keeps strangers from becoming children of the daemon. Where this process is PID 1 of a
// container, or has children that it did not start (a script that did `exec coordd`), Outer
// starts the same program again as a child, and only reaps, forwards signals and passes on the
// exit status: it never returns. In any other process it returns at once, as it does in that
// child. A daemon calls it right after [Main], before it starts anything.
//
// The child stands in a process group of its own, so that a terminal's interrupt reaches it once,
// through this process. It gets SIGTERM if this process dies.
func Outer() {
	if os.Getpid() != 1 && !hasChildren() {
		return
	}
	runtime.LockOSThread() // the child's parent-death signal follows this thread
	os.Exit(outer())
}

func hasChildren() bool {
	kids, err := proc.Children(os.Getpid())
	return err == nil && len(kids) > 0
}

// StopSignals are those that end a daemon or a call in order: SIGINT, SIGTERM, and SIGHUP, which comes
// when a terminal is closed, unless it was ignored at the start (nohup).
func StopSignals() []os.Signal {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

func outer() int {
	signals, ended := make(chan os.Signal, 16), make(chan os.Signal, 1)
	signal.Notify(signals, append(StopSignals(), syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)...)
	signal.Notify(ended, syscall.SIGCHLD)
	pidfd := -1
	pid, _, err := syscall.StartProcess(entry.SelfExe, os.Args, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM, PidFD: &pidfd},
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "Error: cannot start %s as a child: %v\n", os.Args[0], err)
		return 1
	}
	for {
		if code, done := reapUntil(pid); done {
			return code
		}
		select {
		case <-ended:
		case s := <-signals:
			_ = proc.Signal(pidfd, s.(syscall.Signal)) // it may have ended; the next look says so
		}
	}
}

// reapUntil takes every zombie and says whether pid was among them, with the status that a shell
// would give.
func reapUntil(pid int) (code int, done bool) {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil, got == 0:
			return code, done
		case got == pid:
			done, code = true, status.ExitStatus()
			if status.Signaled() {
				code = 128 + int(status.Signal())
			}
		}
	}
}
