package ops

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"greatminds/contract"
)

// Watch tells when the files of a project's store, or its control socket, may have changed, for
// whoever follows them beside no daemon. It watches before it returns, so that nothing is missed
// by reading after it.
type Watch struct {
	file    *os.File
	changed chan struct{}
	pump    sync.WaitGroup
	parent  string
	store   string
}

// storeMask is any change of a store's files: a journal that grows, a snapshot or journal that is
// replaced, a socket that appears.
const storeMask = unix.IN_MODIFY | unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_DELETE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// WatchFiles watches until Close. It fails where the user's inotify instances or watches are used
// up, and where the project has no runtime folder.
func WatchFiles(p contract.Project) (*Watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	w := &Watch{file: os.NewFile(uintptr(fd), "inotify"), changed: make(chan struct{}, 1), parent: filepath.Dir(p.StoreDir()), store: p.StoreDir()}
	// The folder of the store is made by the first change of it.
	if _, err := unix.InotifyAddWatch(fd, w.parent, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ONLYDIR); err != nil {
		_ = w.file.Close() // nothing was read from it
		return nil, &os.PathError{Op: "watch", Path: w.parent, Err: err}
	}
	w.add(fd)
	w.pump.Add(1)
	go w.read(fd)
	return w, nil
}

// add watches the store's folder. One that is not there is watched when it appears.
func (w *Watch) add(fd int) {
	_, _ = unix.InotifyAddWatch(fd, w.store, storeMask) // its creation is told by the parent
}

// Changed receives after something may have changed. It holds one notice, however much there was.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Close ends the watch and returns when its goroutine has ended.
func (w *Watch) Close() {
	_ = w.file.Close() // only read from
	w.pump.Wait()
}

func (w *Watch) read(fd int) {
	defer w.pump.Done()
	buffer := make([]byte, 16<<10)
	for {
		n, err := w.file.Read(buffer)
		if err != nil {
			return
		}
		if appeared(buffer[:n], filepath.Base(w.store)) {
			w.add(fd)
		}
		select {
		case w.changed <- struct{}{}:
		default: // a notice is already waiting
		}
	}
}

// appeared tells whether a report names a folder that was made or moved into place.
func appeared(reports []byte, name string) bool {
	for len(reports) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(reports[unsafe.Offsetof(unix.InotifyEvent{}.Mask):])
		size := int(binary.NativeEndian.Uint32(reports[unsafe.Offsetof(unix.InotifyEvent{}.Len):]))
		named := bytes.TrimRight(reports[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+size], "\x00")
		if mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 && string(named) == name || mask&unix.IN_Q_OVERFLOW != 0 {
			return true
		}
		reports = reports[unix.SizeofInotifyEvent+size:]
	}
	return false
}
