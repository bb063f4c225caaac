package durable_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"greatminds/internal/durable"
)

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Sys().(*syscall.Stat_t).Ino
}

func tryLock(t *testing.T, path, holder string) *durable.FileLock {
	t.Helper()
	l, err := durable.TryLock(path, holder)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// E-169
func TestALockKeepsItsInode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.lock")
	l := tryLock(t, path, "12\n")
	before := inode(t, path)
	for range 3 {
		if err := l.Unlock(); err != nil {
			t.Fatal(err)
		}
		l = tryLock(t, path, "345 cli\n")
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if got := inode(t, path); got != before {
		t.Errorf("inode changed from %d to %d", before, got)
	}
	if got := read(t, path); got != "345 cli\n" {
		t.Errorf("got text %q", got)
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("got %v %v, want mode 0600", st.Mode(), err)
	}
}

// E-170
func TestOnlyTheKernelSaysWhoHoldsALock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "supervisor.lock")
	write(t, path, "4194304 of somebody long gone\n")
	l := tryLock(t, path, "77\n")
	if got := read(t, path); got != "77\n" {
		t.Errorf("got text %q, want the new holder alone", got)
	}
	write(t, path, "") // a held lock without a text is held all the same
	_, err := durable.TryLock(path, "78\n")
	var h *durable.Held
	if !errors.As(err, &h) || h.PID != 0 {
		t.Fatalf("got %v, want held by an unknown holder", err)
	}
	write(t, path, "99 cli\n")
	if _, err = durable.TryLock(path, "78\n"); !errors.As(err, &h) || h.PID != 99 || h.Holder != "99 cli" {
		t.Fatalf("got %#v, want the text's holder", h)
	}
	if got := read(t, path); got != "99 cli\n" {
		t.Errorf("a failed try changed the text to %q", got)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := tryLock(t, path, "78\n").Unlock(); err != nil {
		t.Fatal(err)
	}
}

func TestLockWaitsForTheHolderOrItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "task.lock")
	first := tryLock(t, path, "1\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var h *durable.Held
	if _, err := durable.Lock(ctx, path, "2\n"); !errors.As(err, &h) || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want held and cancelled", err)
	}
	got := make(chan error)
	go func() {
		l, err := durable.Lock(t.Context(), path, "3\n")
		if err == nil {
			err = l.Unlock()
		}
		got <- err
	}()
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

func TestALockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "task.lock")
	inside, n := 0, 0
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				l, err := durable.Lock(t.Context(), path, "1\n")
				if err != nil {
					t.Error(err)
					return
				}
				if inside++; inside != 1 { // the race detector watches these too
					t.Error("two holders at once")
				}
				n++
				inside--
				if err := l.Unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n != 20 {
		t.Errorf("got %d turns, want 20", n)
	}
}

func TestALockIsNotTakenThroughALink(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/precious", "text")
	if err := os.Symlink("precious", dir+"/l.lock"); err != nil {
		t.Fatal(err)
	}
	if _, err := durable.TryLock(dir+"/l.lock", "1\n"); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("got %v, want ELOOP", err)
	}
	if got := read(t, dir+"/precious"); got != "text" {
		t.Errorf("the link's target holds %q", got)
	}
}
