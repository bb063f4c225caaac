package transport

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxQueued is how many messages may wait for the agent to read, half of them answers
	// that the guard itself gives.
	maxQueued = 256
	// maxQueuedBytes bounds their bytes; one message of any size always has room.
	maxQueuedBytes = 16 << 20
	// writeChunk is written under one deadline, so that a slow reader is told from none.
	writeChunk = 64 << 10
	// pipeBytes is the wanted size of the agent's stdin pipe: a prompt of 256 KiB and a
	// cancel behind it fit without the agent reading.
	pipeBytes = 1 << 20
)

var (
	errQueueFull   = errors.New("too many messages are waiting for the agent to read")
	errWriteClosed = errors.New("the agent's standard input is closed")
)

// stallError says that the agent left a message unread for the whole limit.
type stallError struct{ limit time.Duration }

func (e *stallError) Error() string {
	return fmt.Sprintf("the agent did not read its standard input for %s", e.limit)
}

// outbound is the one writer of the agent's standard input. Callers never wait for the
// agent: they queue, one goroutine writes.
type outbound struct {
	f     *os.File
	limit time.Duration

	mu      sync.Mutex
	queue   [][]byte
	bytes   int
	writing bool
	// closing: nothing more is taken, what is queued is written, then the file is closed.
	closing bool
	err     error
	changed chan struct{}
}

func newOutbound(f *os.File, limit time.Duration) *outbound {
	raw, err := f.SyscallConn()
	if err == nil {
		// A refusal leaves the pipe at its size, which only costs speed.
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes) })
	}
	return &outbound{f: f, limit: limit, changed: make(chan struct{})}
}

// announce wakes everyone who waits for a change; the lock is held.
func (o *outbound) announce() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// put queues one whole line without waiting.
func (o *outbound) put(b []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.add(b, maxQueued)
}

func (o *outbound) add(b []byte, most int) error {
	switch {
	case o.err != nil:
		return o.err
	case o.closing:
		return errWriteClosed
	case len(o.queue) >= most, o.bytes > 0 && o.bytes+len(b) > maxQueuedBytes:
		return errQueueFull
	}
	o.queue = append(o.queue, b)
	o.bytes += len(b)
	o.announce()
	return nil
}

// putWhenRoom queues one line, waiting for room until the connection is dead: an agent that
// sends what must be refused, and reads no answers, is slowed down by its own pipe.
func (o *outbound) putWhenRoom(b []byte, dead <-chan struct{}) {
	for {
		o.mu.Lock()
		err, changed := o.add(b, maxQueued/2), o.changed
		o.mu.Unlock()
		if err != errQueueFull {
			return
		}
		select {
		case <-changed:
		case <-dead:
			return
		}
	}
}

// run writes until the queue is closed and empty or a write fails; it closes the file. The
// error is nil after an orderly end.
func (o *outbound) run() error {
	defer o.f.Close()
	for {
		b, err := o.take()
		if b == nil {
			return err
		}
		if err := o.write(b); err != nil {
			o.mu.Lock()
			closing := o.closing
			o.err, o.queue, o.writing = err, nil, false
			o.announce()
			o.mu.Unlock()
			if closing && errors.Is(err, os.ErrClosed) {
				return nil
			}
			return err
		}
	}
}

// take returns the next message; nil when there will be none.
func (o *outbound) take() ([]byte, error) {
	for {
		o.mu.Lock()
		o.writing = false
		if len(o.queue) > 0 {
			b := o.queue[0]
			o.queue = o.queue[1:]
			o.bytes -= len(b)
			o.writing = true
			o.announce()
			o.mu.Unlock()
			return b, nil
		}
		o.announce()
		closing, err, changed := o.closing, o.err, o.changed
		o.mu.Unlock()
		if closing || err != nil {
			return nil, nil
		}
		<-changed
	}
}

func (o *outbound) write(b []byte) error {
	for len(b) > 0 {
		chunk := b[:min(len(b), writeChunk)]
		if err := o.f.SetWriteDeadline(time.Now().Add(o.limit)); err != nil {
			return err
		}
		if _, err := o.f.Write(chunk); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				// Part of a line may be out: nothing can follow it.
				return &stallError{o.limit}
			}
			return err
		}
		b = b[len(chunk):]
	}
	return nil
}

// flush waits until everything queued is written.
func (o *outbound) flush(ctx context.Context) error {
	for {
		o.mu.Lock()
		done, err, changed := len(o.queue) == 0 && !o.writing, o.err, o.changed
		o.mu.Unlock()
		if err != nil || done {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// shut takes nothing more; the file is closed once the queue is written.
func (o *outbound) shut() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closing {
		o.closing = true
		o.announce()
	}
}

// abort closes the file at once, also under a blocked write.
func (o *outbound) abort() {
	o.shut()
	// Closed twice at worst, which only returns an error.
	_ = o.f.Close()
}

// failure returns why nothing is written any more.
func (o *outbound) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err != nil:
		return o.err
	case o.closing:
		return errWriteClosed
	}
	return errQueueFull
}

// stalled says that the agent has stopped reading.
func (o *outbound) stalled() bool {
	var stall *stallError
	err := o.failure()
	return errors.As(err, &stall) || errors.Is(err, errQueueFull)
}
