package durable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// lockRetry is the pause between two tries of Lock. The kernel's own wait cannot be ended
// by a context without leaving a thread behind.
const lockRetry = 10 * time.Millisecond

// Held is the error of a lock that somebody else holds.
type Held struct {
	Path string
	// Holder is the text in the lock file, without the newline; it may be stale or empty.
	Holder string
	// PID is the number at the head of Holder, 0 where there is none.
	PID int
}

// Error names the lock file and its holder.
func (h *Held) Error() string {
	who := h.Holder
	if who == "" {
		who = "unknown"
	}
	return fmt.Sprintf("%s is held by another process (%s)", h.Path, who)
}

// errReplaced means that the lock file was swapped for another while it was being locked.
var errReplaced = errors.New("the lock file was replaced while it was being locked")

// handover orders what a holder did before what the next one in this process does. The kernel
// orders them too, but Go's memory model does not know of it.
var handover atomic.Uint64

// FileLock is a held kernel lock (flock). It ends with Unlock or with the process; the file
// stays, with its inode, so that nobody who waits on it is stranded on another one.
// Spec: "Persistence and ownership".
type FileLock struct{ l *flock.Flock }

// TryLock takes the exclusive lock of the file path at once, or fails with *Held.
//
// The file is made with mode 0600 where it is missing; a symbolic link is refused. Once the
// lock is held the file's text is holder, such as "PID\n"; what stood there before counts
// for nothing, for ownership is the kernel's lock alone.
func TryLock(path, holder string) (*FileLock, error) {
	l := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW), flock.SetPermissions(0o600))
	ok, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		return nil, held(path)
	}
	if err := writeHolder(l, path, holder); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), l.Unlock())
	}
	handover.Load()
	return &FileLock{l: l}, nil
}

// Lock takes the lock as TryLock does, waiting until ctx ends; then it fails with *Held and
// the error of ctx. Waiters are not served in order.
func Lock(ctx context.Context, path, holder string) (*FileLock, error) {
	var t *time.Ticker
	for {
		l, err := TryLock(path, holder)
		var h *Held
		if !errors.As(err, &h) && !errors.Is(err, errReplaced) {
			return l, err
		}
		if t == nil {
			t = time.NewTicker(lockRetry)
			defer t.Stop()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-t.C:
		}
	}
}

// Unlock releases the lock. The file, its inode and its text stay.
func (f *FileLock) Unlock() error {
	handover.Add(1)
	return f.l.Unlock()
}

// writeHolder puts holder into the locked file, and makes sure that path still names it.
func writeHolder(l *flock.Flock, path, holder string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return errReplaced
	}
	if err != nil {
		return err
	}
	defer f.Close()
	mine, err := l.Stat()
	if err != nil {
		return err
	}
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(mine, now) {
		return errReplaced
	}
	// The text first, then the cut: a reader sees at worst a stale tail, never nothing.
	if _, err := f.WriteAt([]byte(holder), 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(holder)))
}

func held(path string) *Held {
	h := &Held{Path: path}
	b, err := os.ReadFile(path)
	if err != nil || len(b) > 256 {
		return h // an unreadable or strange text is an unknown holder
	}
	h.Holder = strings.TrimSpace(string(b))
	first, _, _ := strings.Cut(h.Holder, " ")
	if pid, err := strconv.Atoi(first); err == nil && pid > 0 {
		h.PID = pid
	}
	return h
}
