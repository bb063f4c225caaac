package execgate

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate/entry"
	"greatminds/internal/execgate/proc"
)

// maxSpare bounds the wardens that wait for a launch.
const maxSpare = 8

// spare are wardens that were started ahead of their launch.
var spare struct {
	sync.Mutex
	wardens []*hold
}

// Ahead starts the warden of a launch that is being prepared, so that [Start] does not have to wait for
// it: that is a third of a launch's time. A warden that is not used then serves a later launch, or ends
// with this process. At most 8 wait. A failure is left to Start to meet.
func Ahead() {
	spare.Lock()
	defer spare.Unlock()
	if len(spare.wardens) >= maxSpare {
		return
	}
	if h, err := newWarden(); err == nil {
		spare.wardens = append(spare.wardens, h)
	}
}

func newWarden() (*hold, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("execgate: %w", err)
	}
	defer func() { _ = null.Close() }() // only handed on
	return spawn(entry.RoleWarden, [3]uintptr{null.Fd(), null.Fd(), null.Fd()}, nil)
}

// takeSpare returns a warden that waits and lives, or nil.
func takeSpare() *hold {
	spare.Lock()
	defer spare.Unlock()
	for len(spare.wardens) > 0 {
		h := spare.wardens[0]
		spare.wardens = spare.wardens[1:]
		if h.lives() {
			return h
		}
		h.drop()
	}
	return nil
}

// lives says whether our child still runs.
func (h *hold) lives() (lives bool) {
	raw, err := h.pidfd.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { lives = proc.Alive(int(fd)) }) // fails only on a closed file
	}
	return lives
}

// drop ends a warden that has no launch.
func (h *hold) drop() {
	_ = h.control.Close() // which ends it
	h.reapKeeper()
	_ = h.pidfd.Close() // only polled
}

// engage has a warden start a keeper and a gate with these files, see [entry.LaunchFiles]. mark may be
// empty.
func engage(mark string, files []*os.File) (*hold, error) {
	text := append([]byte(groupOf(mark)+"\x00"), mark...)
	if len(text) > entry.MaxLaunch {
		return nil, fmt.Errorf("execgate: the mark %.40q is longer than a launch takes", mark)
	}
	h, err := takeSpare(), error(nil)
	if h == nil {
		if h, err = newWarden(); err != nil {
			return nil, err
		}
	}
	fds := make([]int, len(files))
	for i, file := range files {
		fds[i] = int(file.Fd())
	}
	h.mark = mark
	family.name(h.pid, mark)
	if _, _, err := h.control.WriteMsgUnix(text, unix.UnixRights(fds...), nil); err != nil {
		h.drop()
		return nil, fmt.Errorf("execgate: %w: %w", ErrGateLost, err)
	}
	go h.monitor()
	return h, nil
}
