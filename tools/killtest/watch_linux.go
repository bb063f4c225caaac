package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// watch counts the events of a project as the file system tells them.
type watch struct {
	file  *os.File
	read  chan struct{} // closed when the reader has ended
	kinds map[int32]folderKind

	mu      sync.Mutex
	counts  map[string]int
	changed chan struct{} // closed at the next event
}

// folderKind says what a change in a folder means: the kind of event by the file's name, "" for none.
type folderKind func(name string) string

// watchFolders begins to watch.
func watchFolders(folders map[string]folderKind) (*watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	w := &watch{file: os.NewFile(uintptr(fd), "inotify"), read: make(chan struct{}), kinds: map[int32]folderKind{},
		counts: map[string]int{}, changed: make(chan struct{})}
	for folder, kind := range folders {
		wd, err := unix.InotifyAddWatch(fd, folder, unix.IN_CREATE|unix.IN_MODIFY|unix.IN_MOVED_TO)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("watch %s: %w", folder, err), w.file.Close())
		}
		w.kinds[int32(wd)] = kind
	}
	go w.loop()
	return w, nil
}

func (w *watch) loop() {
	defer close(w.read)
	buffer := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buffer)
		if err != nil {
			return // closed
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; {
			wd := int32(binary.NativeEndian.Uint32(buffer[at:]))
			length := int(binary.NativeEndian.Uint32(buffer[at+12:]))
			at += unix.SizeofInotifyEvent
			name := strings.TrimRight(string(buffer[at:at+length]), "\x00")
			at += length
			if kind := w.kinds[wd]; kind != nil {
				w.note(kind(name))
			}
		}
	}
}

func (w *watch) note(kind string) {
	if kind == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[kind]++
	close(w.changed)
	w.changed = make(chan struct{})
}

// count is how many events of a kind came, and a channel that is closed at the next one of any kind.
func (w *watch) count(kind string) (int, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts[kind], w.changed
}

// await waits for a moment, at most momentLimit and its delay.
func (w *watch) await(ctx context.Context, m moment) {
	limit := time.NewTimer(momentLimit)
	defer limit.Stop()
	begin, _ := w.count(m.event)
	for came := m.event == atOnce; !came; {
		now, changed := w.count(m.event)
		if now-begin >= m.nth {
			break
		}
		select {
		case <-changed:
		case <-limit.C:
			came = true
		case <-ctx.Done():
			return
		}
	}
	pause(ctx, m.delay)
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// close ends the watch.
func (w *watch) close() error {
	err := w.file.Close()
	<-w.read
	return err
}
