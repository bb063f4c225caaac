package durable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
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

// FileLock is a held kernel lock.
type FileLock struct{ l *flock.Flock }

// TryLock takes the lock path at once, or fails with *Held.
func TryLock(path, holder string) (*FileLock, error) {
	l := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW), flock.SetPermissions(0o600))
	ok, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		l.Close()
		return nil, held(path)
	}
	if err := writeHolder(path, holder); err != nil {
		l.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &FileLock{l: l}, nil
}

// Lock takes the lock path, waiting until ctx ends; then it fails with *Held and ctx's error.
func Lock(ctx context.Context, path, holder string) (*FileLock, error) {
	t := time.NewTicker(lockRetry)
	defer t.Stop()
	for {
		l, err := TryLock(path, holder)
		var h *Held
		if !errors.As(err, &h) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(h, ctx.Err())
		case <-t.C:
		}
	}
}

// Unlock releases the lock. The file and its inode stay.
func (f *FileLock) Unlock() error { return f.l.Unlock() }

func writeHolder(path, holder string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(holder)
	return errors.Join(err, f.Close())
}

func held(path string) *Held {
	h := &Held{Path: path}
	if b, err := os.ReadFile(path); err == nil && len(b) < 256 {
		h.Holder = strings.TrimSpace(string(b))
		first, _, _ := strings.Cut(h.Holder, " ")
		h.PID, _ = strconv.Atoi(first) // 0 is "unknown", as documented
	}
	return h
}
