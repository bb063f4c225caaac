package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrGone is the answer for a process that has ended, zombies included.
var ErrGone = errors.New("the process has ended")

// CloseFD closes a descriptor that nothing was written to.
func CloseFD(fd int) { _ = unix.Close(fd) } // a failed close of a pidfd, pipe or folder loses nothing

// OpenPidfd returns ErrGone where no process has this pid. A pid that is now a thread of some
// other process belongs to no process either.
func OpenPidfd(pid int) (int, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		return -1, ErrGone
	}
	return -1, fmt.Errorf("pidfd_open %d: %w", pid, err)
}

// Exited says whether the process behind a pidfd has ended, reaped or not. A leader thread that
// ended while others run is no end.
func Exited(fd int) (bool, error) {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && fds[0].Revents&unix.POLLNVAL != 0 {
			err = unix.EBADF
		}
		return fds[0].Revents != 0, err
	}
}

// Alive says whether a pinned process still runs; -1 is this process itself.
func Alive(fd int) bool {
	if fd < 0 {
		return true
	}
	done, err := Exited(fd)
	return err == nil && !done
}

// Signal sends sig through a pidfd; a process that has ended is ErrGone.
func Signal(fd int, sig syscall.Signal) error {
	err := unix.PidfdSendSignal(fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return err
}

// KillGroup sends SIGKILL to the process group that the process behind a pidfd leads, or led before it
// became a zombie: to all members in one moment, so that none can fork in between. One that leads no
// group, and a kernel before Linux 6.9, are left alone.
func KillGroup(fd int) {
	const processGroup = 1 << 2                                   // PIDFD_SIGNAL_PROCESS_GROUP
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, processGroup) // members are killed one by one as well
}

// WaitAny returns when one of the processes has ended, or after the limit.
func WaitAny(pins []Pin, limit time.Duration) {
	if limit <= 0 || len(pins) == 0 {
		return
	}
	poll := make([]unix.PollFd, len(pins))
	for i, pin := range pins {
		poll[i] = unix.PollFd{Fd: int32(pin.FD), Events: unix.POLLIN}
	}
	// Interrupted or refused, the caller looks again; at least one millisecond keeps it from spinning.
	_, _ = unix.Poll(poll, max(1, int(limit.Milliseconds())))
}

// inode returns the inode that identifies the process for this boot, nil where the kernel's
// pidfds have none of their own (before Linux 6.9 all share one).
func inode(fd int) (*uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return nil, fmt.Errorf("fstatfs of a pidfd: %w", err)
	}
	if int64(fs.Type) != unix.PID_FS_MAGIC {
		return nil, nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("fstat of a pidfd: %w", err)
	}
	return &st.Ino, nil
}

// Pollable hands a pidfd to the runtime's poller, so that waiting costs no thread. It takes over fd.
func Pollable(fd int) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		CloseFD(fd)
		return nil, fmt.Errorf("pidfd: %w", err)
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// Await returns nil when the process behind a pollable pidfd has ended, and the context's or the
// file's error before that. One caller at a time may wait on a file.
func Await(ctx context.Context, f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if err := f.SetReadDeadline(time.Time{}); err != nil { // of an earlier wait
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) }) // fails only on a closed file, which wakes us too
	defer stop()
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		var done bool
		done, failed = Exited(int(fd))
		return done || failed != nil
	})
	if err == nil {
		return failed
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
