package discovery

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// queueMask: a task file counts once it is closed after a write or renamed into place; its
// creation alone does not, since it may still be half written.
const queueMask = unix.IN_CLOSE_WRITE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// parentMask tells when a queue folder is replaced or made anew.
const parentMask = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_ONLYDIR

// event is one change below the watched folders. An empty File means: look at everything.
type event struct {
	Queue, File string
}

// watcher reports changes in the queue folders of one project through one inotify instance.
type watcher struct {
	parent string
	queues []string
	file   *os.File
	raw    syscall.RawConn
	fd     int
	take   func(event)
	pump   sync.WaitGroup
	// partial is set once a queue folder cannot be watched.
	partial atomic.Bool

	mu      sync.Mutex // guards the order of reports: who reads them hands them on, too
	buf     [64 << 10]byte
	byWatch map[int32]string // watch descriptor → queue; "" is the parent folder
}

// watch starts watching and gives every report to take. It fails where the user's inotify
// instances or watches are used up, and where the file system has none.
func watch(parent string, queues []string, take func(event)) (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	w := &watcher{parent: parent, queues: queues, fd: fd, file: os.NewFile(uintptr(fd), "inotify"), take: take, byWatch: map[int32]string{}}
	if w.raw, err = w.file.SyscallConn(); err == nil {
		err = w.add("", parent, parentMask)
	}
	if err != nil {
		_ = w.file.Close() // nothing was read from it yet
		return nil, err
	}
	for _, q := range queues {
		w.addQueue(q)
	}
	w.pump.Add(1)
	go w.run()
	return w, nil
}

// addQueue watches a queue folder. One that is missing is watched when it appears; any other that
// cannot be watched is left to the sweep.
func (w *watcher) addQueue(queue string) {
	err := w.add(queue, filepath.Join(w.parent, queue), queueMask)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		w.partial.Store(true)
	}
}

func (w *watcher) add(queue, path string, mask uint32) error {
	wd, err := unix.InotifyAddWatch(w.fd, path, mask)
	if err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	w.byWatch[int32(wd)] = queue
	return nil
}

// close ends the pump and returns when it has ended.
func (w *watcher) close() {
	_ = w.file.Close() // a failed close of an inotify descriptor loses nothing
	w.pump.Wait()
}

// run hands on what comes until the watcher is closed.
func (w *watcher) run() {
	defer w.pump.Done()
	for {
		// The wait itself holds no lock, so that catchUp never waits for a report to come.
		err := w.raw.Read(w.drain)
		if err != nil {
			return
		}
	}
}

// catchUp hands on everything that the kernel has reported by now, and returns when it has been
// taken.
func (w *watcher) catchUp() {
	_ = w.raw.Control(func(fd uintptr) { w.drain(fd) }) // fails only on a watcher that is closed
}

// drain reads until nothing is left, and tells whether there was anything.
func (w *watcher) drain(fd uintptr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for some := false; ; some = true {
		n, err := unix.Read(int(fd), w.buf[:])
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Read(int(fd), w.buf[:])
		}
		if err != nil || n <= 0 {
			return some
		}
		for _, e := range w.decode(w.buf[:n]) {
			w.take(e)
		}
	}
}

// decode turns the kernel's records into events. A record cut short ends the batch.
func (w *watcher) decode(buf []byte) []event {
	var out []event
	for len(buf) >= unix.SizeofInotifyEvent {
		raw := (*unix.InotifyEvent)(unsafe.Pointer(&buf[0]))
		size := unix.SizeofInotifyEvent + int(raw.Len)
		if size > len(buf) {
			break
		}
		name := string(trimZeros(buf[unix.SizeofInotifyEvent:size]))
		out = append(out, w.translate(raw.Wd, raw.Mask, name)...)
		buf = buf[size:]
	}
	return out
}

func (w *watcher) translate(wd int32, mask uint32, name string) []event {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		return []event{{}}
	}
	queue, known := w.byWatch[wd]
	switch {
	case !known:
		return nil
	case mask&(unix.IN_IGNORED|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0:
		if mask&unix.IN_IGNORED != 0 {
			delete(w.byWatch, wd)
		}
		return []event{{}}
	case queue == "":
		return w.replaced(name)
	}
	return []event{{Queue: queue, File: name}}
}

// replaced watches a queue folder that has just appeared; whatever came with it is swept.
func (w *watcher) replaced(name string) []event {
	for _, q := range w.queues {
		if q == name {
			w.addQueue(q)
			return []event{{}}
		}
	}
	return nil
}

func trimZeros(b []byte) []byte {
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}

// beingWritten tells whether some process has the file open for writing. A read lease is
// only granted where nobody has; where leases are not to be had, the answer is unknown.
func beingWritten(path string) (writing, known bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, false
	}
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return true, true
	case err != nil:
		return false, false
	}
	// The lease ends with the descriptor as well; releasing it first keeps no writer waiting.
	_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	return false, true
}
