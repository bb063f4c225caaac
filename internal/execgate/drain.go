package execgate

import (
	"errors"
	"os"
	"syscall"
)

// maxPipe is the most that a pipe holds, in bytes, as far as an unprivileged process may set it.
const maxPipe = 1 << 20

// Drain gives take what a pipe holds after its deadline, at most what a pipe can hold. A read past a
// deadline fails without a look into the pipe, so that a pump that was kept from running has left
// everything there. A closed pipe holds nothing.
func Drain(pipe *os.File, take func([]byte)) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return // a closed file
	}
	_ = raw.Control(func(fd uintptr) { // fails only on a closed file
		buffer := make([]byte, 64<<10)
		for left := maxPipe; left > 0; {
			n, err := syscall.Read(int(fd), buffer) // the pipe does not block
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil || n <= 0 {
				return
			}
			take(buffer[:n])
			left -= n
		}
	})
}
