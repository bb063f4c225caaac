package entry

import "syscall"

// keep makes this process a subreaper, starts gate or tool, and reports it.
func keep(tool bool, group string) *Keeper {
	k := &Keeper{Tool: tool}
	for _, fd := range []int{ControlFD, RequestFD, StatusFD} {
		syscall.CloseOnExec(fd)
	}
	setName("gm-keeper")
	if k.Errno = becomeSubreaper(); k.Errno != 0 {
		k.Path = RoleKeeper
		return k
	}
	pidfd := -1
	// The parent-death signal follows the thread that starts the program. Package initialization
	// runs on the process's first thread, which the Go runtime never ends.
	attr := &syscall.ProcAttr{
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, PidFD: &pidfd},
	}
	path, argv := SelfExe, []string{"greatminds-gate"}
	if tool {
		path, argv = k.tool(attr)
	} else {
		ignoreGroupSignals() // the gate takes this back before exec
		attr.Files = append(attr.Files, RequestFD, StatusFD)
		attr.Env = envAs(roleGate)
	}
	if k.Errno == 0 {
		k.start(path, argv, attr, group)
	}
	ignoreGroupSignals() // not before: a tool would inherit it
	k.release()
	if k.Errno == 0 {
		k.report(pidfd)
		k.standBack(pidfd)
		closeFD(pidfd)
	}
	return k
}

// tool reads the request of a tool.
func (k *Keeper) tool(attr *syscall.ProcAttr) (path string, argv []string) {
	req, err := ReadRequest(FD(RequestFD))
	if err != nil {
		k.Errno, k.Path = syscall.ECANCELED, RoleToolKeeper // the daemon is gone
		return "", nil
	}
	attr.Env, attr.Dir = req.Env, req.Dir
	path, k.Errno = req.program(req.Dir)
	k.Path = path
	return path, req.Argv
}

// envAs is our own environment with another role.
func envAs(role string) []string {
	var env []string
	for _, entry := range syscall.Environ() {
		if _, ours := cutPrefix(entry, RoleName+"="); !ours {
			env = append(env, entry)
		}
	}
	return append(env, RoleName+"="+role)
}

// start starts the program, as a member of a cgroup of its own where one can be made.
func (k *Keeper) start(path string, argv []string, attr *syscall.ProcAttr, group string) {
	k.Path = path
	if fd := makeGroup(group); fd >= 0 {
		k.Group = group
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, fd
		defer closeFD(fd)
	}
	pid, _, err := syscall.StartProcess(path, argv, attr)
	if err != nil && attr.Sys.UseCgroupFD {
		// A system call filter without clone3, or a group that takes no members.
		attr.Sys.UseCgroupFD = false
		pid, _, err = syscall.StartProcess(path, argv, attr)
	}
	k.PID, k.Errno = pid, errnoOf(err)
}

// makeGroup returns a descriptor of a new, empty cgroup, or -1 where none can be made.
func makeGroup(dir string) int {
	if dir == "" {
		return -1
	}
	// An empty one may be left of a keeper that was killed; one in use is not ours.
	_ = syscall.Rmdir(dir)
	if syscall.Mkdir(dir, 0o755) != nil {
		return -1
	}
	// cgroup.kill is from Linux 5.14; without it the group serves nothing.
	if syscall.Access(dir+"/cgroup.kill", 2) == nil {
		if fd, err := syscall.Open(dir, syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0); err == nil {
			return fd
		}
	}
	_ = syscall.Rmdir(dir) // made here and still empty
	return -1
}

// toolHeadStart is how long a tool runs alone, in milliseconds.
const toolHeadStart = 3

// standBack leaves the processor to the gate until the daemon has something to say, which it does
// after the exec, or until the gate ends; to a tool, for a moment. Setting up the rest of this
// process at the same time would delay the launch by milliseconds where processors are short.
func (k *Keeper) standBack(pidfd int) {
	limit := -1
	if k.Tool {
		limit = toolHeadStart
	}
	// Interrupted, it is only less polite.
	poll(&[2]pollFD{{fd: ControlFD, events: pollIn}, {fd: int32(pidfd), events: pollIn}}, limit)
}

// release gives up every pipe end that belongs to the program: held here, it would keep the
// other side from ever seeing its end.
func (k *Keeper) release() {
	closeFD(RequestFD)
	if !k.Tool {
		closeFD(StatusFD)
	}
	null, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	for fd := range 3 {
		if err != nil || syscall.Dup3(null, fd, 0) != nil {
			closeFD(fd)
		}
	}
	if err == nil {
		closeFD(null)
	}
}

// report sends the "up" message of the control channel, see package keep, with the pidfd of the
// program and our own.
func (k *Keeper) report(pidfd int) {
	self := syscall.Getpid()
	text := `{"kind":"up","pid":` + decimal(k.PID) + `,"keeper":` + decimal(self) + `,"grouped":`
	if k.Group != "" {
		text += "true}"
	} else {
		text += "false}"
	}
	fds := []int{pidfd}
	if own := pidfdOpen(self); own >= 0 {
		defer closeFD(own)
		fds = append(fds, own)
	}
	for {
		// A daemon that is gone is seen by whoever reads the channel.
		err := syscall.Sendmsg(ControlFD, []byte(text), syscall.UnixRights(fds...), nil, syscall.MSG_NOSIGNAL)
		if err != syscall.EINTR {
			return
		}
	}
}
