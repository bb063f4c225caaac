package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// whileRead ends the context when nobody reads standard output any more: a pipe whose other end was
// closed, a terminal that has gone. A command that may wait for a long time before it writes again
// would not notice. Until release a write to such a pipe fails with EPIPE instead of ending the
// process.
func (a *app) whileRead(ctx context.Context) (_ context.Context, release func()) {
	out, isFile := a.Stdout.(*os.File)
	if !isFile {
		return ctx, func() {}
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return ctx, func() {} // then the next write says it
	}
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, unix.SIGPIPE)
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		if hungUp(int(out.Fd()), wake) {
			cancel()
		}
	})
	return ctx, func() {
		_, _ = unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // an empty counter takes it
		watch.Wait()
		_ = unix.Close(wake) // nobody looks at it any more
		cancel()
		signal.Stop(broken)
	}
}

// hungUp waits until the other end of a descriptor is gone, or until it is woken.
func hungUp(fd, wake int) bool {
	looks := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(wake), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(looks, -1); err != nil && err != unix.EINTR {
			return false
		}
		if looks[1].Revents != 0 {
			return false
		}
		if looks[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
			return true
		}
		if looks[0].Revents != 0 {
			return false // no descriptor that can hang up
		}
	}
}
