package entry

import (
	"syscall"
	"unsafe"
)

// Numbers that package syscall does not have; the same on every architecture of Linux.
const (
	prSetName           = 15
	prSetChildSubreaper = 36
	sysPidfdSendSignal  = 424
	sysPidfdOpen        = 434
	sysCloseRange       = 436
	closeRangeCloexec   = 4
	sigBlockSetMask     = 2 // SIG_SETMASK
	signalSetBytes      = 8
)

// FD is a blocking descriptor read without a file around it.
type FD int

// Read reads once, and again when a signal interrupted it. End of file is (0, nil), as the system
// says it: package io is not there yet.
func (fd FD) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), p)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// closeFD closes a descriptor that nothing was written to, or a pipe, which has nothing to flush.
func closeFD(fd int) { _ = syscall.Close(fd) } // nothing is lost by a failure

// pollFD is struct pollfd. An end of file is told whatever events asks for.
type pollFD struct {
	fd              int32
	events, revents int16
}

const pollIn = 1

// poll waits until one of two descriptors has something to tell, for at most limit milliseconds;
// -1 means no limit. A signal ends it early.
func poll(fds *[2]pollFD, limit int) {
	fds[0].revents, fds[1].revents = 0, 0
	timeout := syscall.NsecToTimespec(int64(limit) * 1e6)
	until := uintptr(unsafe.Pointer(&timeout))
	if limit < 0 {
		until = 0
	}
	syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(fds)), uintptr(len(fds)), until, 0, signalSetBytes, 0)
}

// pidfdOpen returns a pidfd, or -1.
func pidfdOpen(pid int) int {
	fd, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(pid), 0, 0)
	if errno != 0 {
		return -1
	}
	return int(fd) // close-on-exec
}

// signalPidfd sends a signal; a process that has ended needs none.
func signalPidfd(fd int, sig syscall.Signal) {
	syscall.Syscall6(sysPidfdSendSignal, uintptr(fd), uintptr(sig), 0, 0, 0, 0)
}

// setName replaces "exe", which is what lists of processes show for a re-exec.
func setName(name string) {
	text := append([]byte(name), 0)
	syscall.RawSyscall(syscall.SYS_PRCTL, prSetName, uintptr(unsafe.Pointer(&text[0])), 0)
}

func becomeSubreaper() syscall.Errno {
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)
	return errno
}

// cleanSignals gives the program default signals where a daemon under nohup, or one whose parent
// blocked some, would hand its own down: ignored and blocked signals survive exec.
func cleanSignals() {
	setAction(0, groupSignals...) // SIG_DFL
	var none uint64
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, sigBlockSetMask, uintptr(unsafe.Pointer(&none)), 0, signalSetBytes, 0, 0)
}

// groupSignals are those that a whole service group or terminal may get.
var groupSignals = []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}

// ignoreGroupSignals makes this process stay: keeper and warden end by their control channel.
func ignoreGroupSignals() { setAction(1, groupSignals...) } // SIG_IGN

// setAction sets a handler that is no function.
func setAction(handler uint64, sigs ...syscall.Signal) {
	action := [4]uint64{handler} // struct sigaction without flags, on all 64-bit ABIs
	for _, sig := range sigs {
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, signalSetBytes, 0, 0)
	}
}

// CloseOnExecAbove marks every descriptor above last, so that exec leaves only the first ones.
func CloseOnExecAbove(last int) {
	// close_range is from Linux 5.9 and its flag from 5.11; a filter may refuse it.
	if _, _, errno := syscall.Syscall(sysCloseRange, uintptr(last+1), 1<<32-1, closeRangeCloexec); errno == 0 {
		return
	}
	var limit syscall.Rlimit
	most := uint64(1 << 16)
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil && limit.Cur < most {
		most = limit.Cur
	}
	for fd := last + 1; fd < int(most); fd++ {
		syscall.CloseOnExec(fd)
	}
}

// errnoOf is the errno of an error that package syscall returned.
func errnoOf(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if errno, ok := err.(syscall.Errno); ok {
		return errno
	}
	return syscall.EIO
}

func decimal(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return decimal(n/10) + string(rune('0'+n%10))
}

func cutPrefix(s, prefix string) (rest string, found bool) {
	if len(s) < len(prefix) || s[:len(prefix)] != prefix {
		return s, false
	}
	return s[len(prefix):], true
}

func indexByte(s string, c byte) int {
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return -1
}
