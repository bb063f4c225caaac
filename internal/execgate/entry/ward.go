package entry

import "syscall"

// A keeper whose daemon is gone is told to go on this often, and in the end killed: it needs a few
// milliseconds, and one that does not end by then was stopped, again and again, by its own agent.
const (
	wardSliceMS = 10
	wardSlices  = 15
)

// ward starts a keeper below this process and waits for its end. A keeper that ends by itself has
// done its work, and then so has this process. It returns when there is work left: the keeper could
// not be started, or was killed, or does not end though the daemon is gone. Its descendants are
// this process's own by then, which is a subreaper.
func ward(group string) *Keeper {
	k := &Keeper{Warden: true, Group: group, Path: RoleWarden}
	for _, fd := range []int{ControlFD, RequestFD, StatusFD} {
		syscall.CloseOnExec(fd)
	}
	setName("gm-warden")
	ignoreGroupSignals()
	if k.Errno = becomeSubreaper(); k.Errno != 0 {
		return k
	}
	role := RoleKeeper
	if group != "" {
		role += " " + group
	}
	pidfd := -1
	pid, _, err := syscall.StartProcess(SelfExe, []string{"greatminds-keeper"}, &syscall.ProcAttr{
		Env: envAs(role), Files: []uintptr{0, 1, 2, ControlFD, RequestFD, StatusFD},
		// A keeper that was stopped goes on when this process ends.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT, PidFD: &pidfd},
	})
	k.release()
	if k.PID, k.Errno = pid, errnoOf(err); k.Errno != 0 {
		return k
	}
	awaitKeeper(pidfd)
	if status, done := finished(pid); done {
		syscall.Exit(status)
	}
	closeFD(pidfd)
	return k
}

// awaitKeeper returns when the keeper has ended. It watches the daemon beside, by the end of the
// control channel, which it does not read.
func awaitKeeper(pidfd int) {
	fds := [2]pollFD{{fd: int32(pidfd), events: pollIn}, {fd: ControlFD}}
	for fds[0].revents == 0 && fds[1].revents == 0 {
		poll(&fds, -1)
	}
	fds[1].fd = -1 // the daemon is gone, or does not matter any more
	for i := 0; fds[0].revents == 0 && i < wardSlices; i++ {
		signalPidfd(pidfd, syscall.SIGCONT)
		poll(&fds, wardSliceMS)
	}
	for fds[0].revents == 0 {
		signalPidfd(pidfd, syscall.SIGKILL)
		poll(&fds, -1)
	}
}

// finished reaps the keeper and says whether it ended by itself with its work done.
func finished(pid int) (status int, done bool) {
	var w syscall.WaitStatus
	for {
		got, err := syscall.Wait4(pid, &w, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || got != pid || !w.Exited() {
			return 0, false
		}
		status = w.ExitStatus()
		return status, status == 0 || status == ExitExecFailed
	}
}
