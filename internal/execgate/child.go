package execgate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"greatminds/internal/execgate/entry"
	"greatminds/internal/execgate/keep"
	"greatminds/internal/execgate/proc"
)

// Grace bounds a stop.
type Grace struct {
	// Term is the time between SIGTERM and SIGKILL for the whole tree; 0 kills at once.
	Term time.Duration
	// Kill is how long to go on killing before what is left is named; 0 means 5 s.
	Kill time.Duration
}

// How a tree ended.
const (
	// HowExited: the process ended by itself.
	HowExited = "exited"
	// HowStopped: it was told to stop, and everything went within the grace.
	HowStopped = "stopped"
	// HowKilled: some member had to be killed.
	HowKilled = "killed"
	// HowAbandoned: the gate was closed, nothing was executed.
	HowAbandoned = "abandoned"
	// HowKeeperLost: the keeper ended or hung without a last word, and its warden, or this process,
	// ended the tree in its place.
	HowKeeperLost = "keeper_lost"
	// HowGone: nothing was left of a recorded process.
	HowGone = "gone"
	// HowRecovered: a recorded process, or what it had started, was found and ended.
	HowRecovered = "recovered"
)

// Ending is how a process and its tree ended.
type Ending struct {
	// Known is false where nobody saw the exit status. Code and Signal then mean nothing.
	Known bool
	// Code is the exit status; Signal, when not 0, the signal that ended the process instead.
	Code   int
	Signal syscall.Signal
	// Survivors could not be ended.
	Survivors []Process
	// Ended counts the members of the tree, the process itself left out, that were signalled.
	Ended int
	// Took is the time from the stop, or the process's own end, to the proof.
	Took time.Duration
	// How is one of the How constants.
	How string
}

// Child is one launch: a warden, its keeper, and the gate that becomes the program. Whoever has one must
// call Stop or Abandon, which return when every goroutine and process of it has ended.
type Child struct {
	hold    *hold
	process Process
	payload []byte
	ended   chan struct{}
	watched chan struct{}

	mu     sync.Mutex
	gate   *os.File // write end of the request pipe; nil once used
	status *os.File // read end of the status pipe; nil once used
	opened bool
}

// watch closes ended when the process itself has ended, whatever its pipes do.
func (c *Child) watch(pidfd *os.File) {
	defer close(c.watched)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		select {
		case <-c.hold.finished: // the tree is proven empty, or this process is named a survivor
			cancel()
		case <-ctx.Done():
		}
	}()
	err := proc.Await(ctx, pidfd)
	cancel()
	<-stop
	if err != nil {
		err = c.lastLook(pidfd)
	}
	if err == nil {
		close(c.ended)
	}
	_ = pidfd.Close() // only polled
}

// lastLook returns nil when the process has ended.
func (c *Child) lastLook(pidfd *os.File) error {
	raw, err := pidfd.SyscallConn()
	if err != nil {
		return err
	}
	err = ErrUnknown
	_ = raw.Control(func(fd uintptr) { // fails only on a closed file
		if !proc.Alive(int(fd)) {
			err = nil
		}
	})
	return err
}

// Process is the identity to record before Open: of the very process that becomes the program,
// with its keeper's and warden's beside it.
func (c *Child) Process() Process { return c.process }

// Open lets the gate become the program. Call it only when Process is durably recorded. It
// returns when the exec has happened. An [*ExecError] says that it failed, [ErrGateLost] that the
// gate ended before it; after either, and after the end of ctx, call Stop. 30 s bound it.
// Spec: E-090, E-237.
func (c *Child) Open(ctx context.Context) error {
	c.mu.Lock()
	gate, status := c.gate, c.status
	c.gate, c.status = nil, nil
	c.opened = c.opened || gate != nil
	c.mu.Unlock()
	if gate == nil {
		return ErrGateUsed
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	expire := context.AfterFunc(ctx, func() {
		// These fail only on a file that is closed, and then nothing waits on it.
		_ = gate.SetWriteDeadline(time.Unix(1, 0))
		_ = status.SetReadDeadline(time.Unix(1, 0))
	})
	defer expire()
	// Told after the exec, so that the keeper does not compete with the gate for a processor.
	defer c.hold.tell(keep.Message{Kind: keep.Recorded})
	_, err := gate.Write(c.payload)
	_ = gate.Close() // a pipe has nothing to flush
	var answer []byte
	if err == nil {
		answer, err = io.ReadAll(io.LimitReader(status, 64<<10))
	}
	_ = status.Close() // only read from
	switch {
	case err == nil:
		return decodeStatus(answer)
	case ctx.Err() != nil:
		return fmt.Errorf("execgate: the launch was not confirmed: %w", ctx.Err())
	case errors.Is(err, syscall.EPIPE):
		return ErrGateLost
	}
	return fmt.Errorf("execgate: launch request: %w", err)
}

// Abandon closes the gate without exec and reaps everything. After Open it does what Stop does
// without grace.
// Spec: E-238.
func (c *Child) Abandon(ctx context.Context) error {
	_, err := c.Stop(ctx, Grace{})
	return err
}

// Ended is closed when the process itself has ended, seen by its pidfd: whatever its pipes and
// its descendants do. It stays open for a process that could not be ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Stop ends the whole tree, SIGTERM first, SIGKILL after g.Term, and returns when nothing is left
// of it, or with an error that wraps [ErrSurvivors]. After the process has ended by itself it
// waits for the end of what it left behind and returns the exit status. It may be called again,
// also at the same time: each call can only shorten the grace. The end of ctx takes the rest of
// the grace away, never the proof, so Stop returns at the latest g.Kill + 2 s after it, plus as much
// again where the keeper does not answer, and once more where its warden does not either.
// Spec: "Persistence and ownership"; E-114, E-223.
func (c *Child) Stop(ctx context.Context, g Grace) (Ending, error) {
	c.mu.Lock()
	gate, status := c.gate, c.status
	c.gate, c.status = nil, nil
	opened := c.opened
	c.mu.Unlock()
	closeFiles([]*os.File{gate, status})
	e, err := c.hold.stop(ctx, g)
	<-c.watched
	if !opened && e.How != HowKeeperLost {
		e.Known, e.Code, e.Signal, e.How = false, 0, 0, HowAbandoned
	}
	return e, err
}

// decodeStatus reads all that came over the status pipe until its end.
func decodeStatus(data []byte) error {
	if len(data) == 0 || data[0] != entry.StatusReady {
		return ErrGateLost
	}
	data = data[1:]
	if len(data) == 0 {
		return nil
	}
	if len(data) < 5 || data[0] != entry.StatusFailed {
		return ErrGateLost
	}
	return &ExecError{Errno: syscall.Errno(binary.BigEndian.Uint32(data[1:5])), Path: string(data[5:])}
}
