package entry

import "syscall"

// A keeper whose daemon is gone is told to go on this often, and in the end killed: it needs a few
// milliseconds, and one that does not end by then was stopped, again and again, by its own agent.
const (
	wardSliceMS = 10
	wardSlices  = 15
)

// ward waits until it is told what to launch, starts a keeper for that and waits for its end. A
// keeper that ends by itself has done its work, and then so has this process, as it has when the
// daemon ends first. It returns when there is work left: the keeper could not be started, or was
// killed, or does not end though the daemon is gone. Its descendants are this process's own by then,
// which is a subreaper.
func ward() *Keeper {
	k := &Keeper{Warden: true, Path: RoleWarden}
	syscall.CloseOnExec(ControlFD)
	setName("gm-warden")
	ignoreGroupSignals()
	if k.Errno = becomeSubreaper(); k.Errno != 0 {
		return k
	}
	group, mark, files := receiveLaunch()
	if len(files) != LaunchFiles {
		syscall.Exit(0) // the daemon is gone
	}
	k.Group = group
	role := RoleKeeper
	if group != "" {
		role += " " + group
	}
	env := envAs(role)
	if mark != "" {
		env = append(env, MarkName+"="+mark)
	}
	pidfd := -1
	pid, _, err := syscall.StartProcess(SelfExe, []string{"greatminds-keeper"}, &syscall.ProcAttr{
		Env: env, Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(files[2]), ControlFD, uintptr(files[3]), uintptr(files[4])},
		// A keeper that was stopped goes on when this process ends.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT, PidFD: &pidfd},
	})
	for _, fd := range files {
		closeFD(fd)
	}
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

// LaunchFiles is how many descriptors come with the message that starts a launch: those of the program,
// and what a keeper has as RequestFD and StatusFD. The message itself is the folder of the cgroup, a
// NUL and the mark; MaxLaunch bounds it, in bytes.
const (
	LaunchFiles = 5
	MaxLaunch   = 8 << 10
)

// receiveLaunch reads that message. Without a daemon there are no files.
func receiveLaunch() (group, mark string, files []int) {
	text, oob := make([]byte, MaxLaunch), make([]byte, syscall.CmsgSpace(4*LaunchFiles))
	for {
		n, oobn, _, _, err := syscall.Recvmsg(ControlFD, text, oob, syscall.MSG_CMSG_CLOEXEC)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return "", "", nil
		}
		if messages, err := syscall.ParseSocketControlMessage(oob[:oobn]); err == nil && len(messages) == 1 {
			files, _ = syscall.ParseUnixRights(&messages[0]) // none is told by the number
		}
		if at := indexByte(string(text[:n]), 0); at >= 0 {
			return string(text[:at]), string(text[at+1 : n]), files
		}
		return "", "", nil
	}
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
