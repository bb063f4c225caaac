package entry

import "syscall"

// Descriptors of a gate beside the three that its program will keep.
const (
	gateRequestFD = 3 // read end: the launch request, or end of file
	gateStatusFD  = 4 // write end: what became of the exec
)

// Bytes on the status pipe. StatusFailed is followed by the errno (32 bit, big endian) and the path.
const (
	StatusReady  = 'R'
	StatusFailed = 'E'
)

// gate waits for the launch request and becomes the program. It returns, with an exit status,
// only when nothing was executed.
// Spec: E-237, E-238.
func gate() int {
	syscall.CloseOnExec(gateRequestFD)
	syscall.CloseOnExec(gateStatusFD)
	req, err := ReadRequest(FD(gateRequestFD))
	if err != nil {
		return ExitUnauthorized
	}
	if !writeStatus([]byte{StatusReady}) {
		return ExitUnauthorized // nobody is left who could learn of the exec
	}
	errno, path := req.exec()
	writeStatus(append(appendNumber([]byte{StatusFailed}, uint32(errno)), path...))
	return ExitExecFailed
}

// writeStatus writes less than a pipe takes at once.
func writeStatus(data []byte) bool {
	for {
		n, err := syscall.Write(gateStatusFD, data)
		if err != syscall.EINTR {
			return err == nil && n == len(data)
		}
	}
}

// exec replaces this process and returns only on failure, with the file or folder at fault.
func (r Request) exec() (syscall.Errno, string) {
	if r.Dir != "" {
		if err := syscall.Chdir(r.Dir); err != nil {
			return errnoOf(err), r.Dir
		}
	}
	path, errno := r.program("")
	if errno != 0 {
		return errno, path
	}
	cleanSignals()
	CloseOnExecAbove(2)
	return errnoOf(syscall.Exec(path, r.Argv, r.Env)), path
}

// program returns the file to execute; relative names are seen from dir.
func (r Request) program(dir string) (string, syscall.Errno) {
	if r.Path != "" {
		return seenFrom(dir, r.Path), 0
	}
	return LookPath(r.Argv[0], dir, r.Env)
}
