package execgate

import (
	"encoding/binary"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Descriptors of a gate beside the three that its program will keep.
const (
	gateRequestFD = 3 // read end: the launch request, or end of file
	gateStatusFD  = 4 // write end: what became of the exec
)

// Bytes on the status pipe.
const (
	statusReady  = 'R'
	statusFailed = 'E'
)

// gateMain waits for the launch request and becomes the program. It returns, with an exit
// status, only when nothing was executed.
// Spec: E-237, E-238.
func gateMain() int {
	unix.CloseOnExec(gateRequestFD)
	unix.CloseOnExec(gateStatusFD)
	req, err := readRequest(fdReader(gateRequestFD))
	if err != nil {
		return exitUnauthorized
	}
	if _, err := unix.Write(gateStatusFD, []byte{statusReady}); err != nil {
		return exitUnauthorized // nobody is left who could learn of the exec
	}
	errno, path := req.exec()
	_, _ = unix.Write(gateStatusFD, encodeFailure(errno, path)) // a daemon that is gone needs no answer
	return exitExecFailed
}

// exec replaces this process and returns only on failure, with the file or folder at fault.
func (r request) exec() (syscall.Errno, string) {
	if r.dir != "" {
		if err := os.Chdir(r.dir); err != nil {
			return errnoOf(err), r.dir
		}
	}
	path, errno := r.program("")
	if errno != 0 {
		return errno, path
	}
	// A daemon under nohup ignores SIGHUP, which exec would pass on; what has a handler
	// starts with its default instead.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT)
	closeOnExecAbove(2)
	return errnoOf(syscall.Exec(path, r.argv, r.env)), path
}

// program returns the file to execute, seen from dir.
func (r request) program(dir string) (string, syscall.Errno) {
	if r.path != "" {
		return seenFrom(dir, r.path), 0
	}
	return lookPath(r.argv[0], dir, r.env)
}

// errnoOf takes the errno out of an error of the system; EIO stands for one that has none.
func errnoOf(err error) syscall.Errno {
	for err != nil {
		if errno, ok := err.(syscall.Errno); ok {
			return errno
		}
		wrapper, ok := err.(interface{ Unwrap() error })
		if !ok {
			return syscall.EIO
		}
		err = wrapper.Unwrap()
	}
	return 0
}

func encodeFailure(errno syscall.Errno, path string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{statusFailed}, uint32(errno)), path...)
}

// decodeStatus reads all that came over the status pipe until its end.
func decodeStatus(data []byte) error {
	if len(data) == 0 || data[0] != statusReady {
		return ErrGateLost
	}
	data = data[1:]
	if len(data) == 0 {
		return nil
	}
	if len(data) < 5 || data[0] != statusFailed {
		return ErrGateLost
	}
	return &ExecError{Errno: syscall.Errno(binary.BigEndian.Uint32(data[1:5])), Path: string(data[5:])}
}
