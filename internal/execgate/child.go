package execgate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"greatminds/internal/execgate/entry"
	"greatminds/internal/execgate/keep"
	"greatminds/internal/execgate/proc"
)

// Launch says what to start. Nothing of the daemon's own environment is added.
type Launch struct {
	// Argv is taken literally; Argv[0] is looked up in the PATH of Env unless it holds a slash
	// or Path is set.
	Argv []string
	// Path is the file to execute where it is not the one that Argv[0] names.
	Path string
	// Env is the whole environment. nil means an empty one.
	Env []string
	// Dir is the folder to start in, absolute.
	Dir string
	// Stdin, Stdout and Stderr are the child's ends. Start closes them in this process, also
	// when it fails; nil stands for /dev/null.
	Stdin, Stdout, Stderr *os.File
	// Mark is the run's or command's id, unique among launches. It becomes GREATMINDS_MARK in
	// the environment of keeper, gate and agent, by which a restart finds what no record or
	// line of descent leads to. "" means no such search.
	Mark string
}

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

// ErrGateLost is wrapped when keeper or gate ended before the exec, without a word why. Nothing
// was executed.
var ErrGateLost = errors.New("execgate: keeper or gate ended before the launch")

// ErrGateUsed is the answer to a second Open, and to one after Stop or Abandon.
var ErrGateUsed = errors.New("execgate: the gate was opened or closed before")

// ExecError is a launch that failed at exec, or at its folder: a fault of the configuration, not
// of the transport.
type ExecError struct {
	Errno syscall.Errno
	// Path is the file or folder at fault.
	Path string
}

// Error names the path and says what the system said.
func (e *ExecError) Error() string { return fmt.Sprintf("cannot execute %s: %v", e.Path, e.Errno) }

// Unwrap returns the errno, so that errors.Is(err, fs.ErrNotExist) works.
func (e *ExecError) Unwrap() error { return e.Errno }

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

// Start brings up warden, keeper and gate and reads their identity. Nothing is executed until
// [Child.Open]. ctx and 30 s bound the start. It fails with a *refusal.Refusal where the system
// cannot do this safely, see [Supported].
// Spec: "Persistence and ownership"; E-222, E-237.
func Start(ctx context.Context, l Launch) (*Child, error) {
	stdio, err := l.stdio()
	defer closeFiles(stdio[:])
	if err != nil {
		return nil, err
	}
	req := entry.Request{Path: l.Path, Dir: l.Dir, Argv: l.Argv, Env: withMark(l.Env, l.Mark)}
	if err := checkRequest(req); err != nil {
		return nil, err
	}
	return startGate(ctx, l.Mark, req.Encode(), stdio)
}

// checkRequest says what is wrong with a launch that cannot be one.
func checkRequest(req entry.Request) error {
	switch err := req.Check(); err {
	case nil:
		return nil
	case entry.ErrEmpty:
		return errors.New("execgate: argv is empty")
	case entry.ErrNul:
		return fmt.Errorf("execgate: launch of %q: an argument, variable or folder holds a NUL byte", req.Argv[0])
	case entry.ErrLarge:
		return fmt.Errorf("execgate: launch of %q: arguments and environment are larger than %d bytes", req.Argv[0], entry.MaxRequest)
	default:
		return fmt.Errorf("execgate: launch of %q: %w", req.Argv[0], err)
	}
}

// stdio returns three files, of which nil ones are /dev/null. All of them are the callee's to close.
func (l Launch) stdio() ([3]*os.File, error) {
	files := [3]*os.File{l.Stdin, l.Stdout, l.Stderr}
	for i, file := range files {
		if file != nil {
			continue
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return files, fmt.Errorf("execgate: %w", err)
		}
		files[i] = null
	}
	return files, nil
}

func closeFiles(files []*os.File) {
	for _, file := range files {
		if file != nil {
			_ = file.Close() // only handed on; the same file may stand in two places
		}
	}
}

// withMark puts the mark first, where a reader of /proc finds it, and drops one that was inherited.
func withMark(env []string, mark string) []string {
	out := make([]string, 0, len(env)+1)
	if mark != "" {
		out = append(out, entry.MarkName+"="+mark)
	}
	for _, variable := range env {
		if !strings.HasPrefix(variable, entry.MarkName+"=") {
			out = append(out, variable)
		}
	}
	return out
}

func startGate(ctx context.Context, mark string, payload []byte, stdio [3]*os.File) (*Child, error) {
	gateRead, gateWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("execgate: %w", err)
	}
	statusRead, statusWrite, err := os.Pipe()
	if err != nil {
		closeFiles([]*os.File{gateRead, gateWrite})
		return nil, fmt.Errorf("execgate: %w", err)
	}
	h, err := engage(mark, []*os.File{stdio[0], stdio[1], stdio[2], gateRead, statusWrite})
	closeFiles([]*os.File{gateRead, statusWrite})
	closeFiles(stdio[:])
	if err != nil {
		closeFiles([]*os.File{gateWrite, statusRead})
		return nil, err
	}
	c := &Child{
		hold: h, payload: payload, gate: gateWrite, status: statusRead,
		ended: make(chan struct{}), watched: make(chan struct{}),
	}
	if err := c.come(ctx); err != nil {
		closeFiles([]*os.File{gateWrite, statusRead})
		return nil, errors.Join(err, h.discard(ctx))
	}
	return c, nil
}

// come waits until the gate is there, reads who it and its keeper are, and begins to watch it.
func (c *Child) come(ctx context.Context) error {
	up, err := c.hold.awaitUp(ctx)
	if err != nil {
		return err
	}
	c.process, err = c.hold.identify(up)
	if err != nil {
		proc.CloseFD(up.pidfd)
		return err
	}
	c.hold.expect(c.process)
	file, err := proc.Pollable(up.pidfd)
	if err != nil {
		return err
	}
	go c.watch(file)
	return nil
}

// awaitUp waits for the keeper's first answer, within ctx and startLimit.
func (h *hold) awaitUp(ctx context.Context) (started, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	select {
	case up := <-h.up:
		return up, up.err
	case <-ctx.Done():
		return started{}, fmt.Errorf("execgate: keeper and gate did not come up: %w", ctx.Err())
	}
}

// discard ends a keeper whose start failed, or came too late to be used.
func (h *hold) discard(ctx context.Context) error {
	_, err := h.stop(ctx, Grace{})
	select {
	case late := <-h.up:
		proc.CloseFD(late.pidfd)
	default:
	}
	return err
}

// identify reads the identities of gate, keeper and warden; if one of them was killed meanwhile, the
// gate is lost.
func (h *hold) identify(up started) (Process, error) {
	h.mu.Lock() // the monitor must not close the keeper's pidfd meanwhile
	defer h.mu.Unlock()
	var line [3]Process
	for i, who := range []struct {
		name       string
		pid, pidfd int
	}{{"gate", up.pid, up.pidfd}, {"keeper", up.keeper, h.keeper}, {"warden", h.pid, -1}} {
		var err error
		if line[i], err = identityOf(who.pid, who.pidfd); err != nil {
			return Process{}, fmt.Errorf("execgate: identity of the %s: %w", who.name, err)
		}
	}
	line[1].Keeper, line[0].Keeper = &line[2], &line[1]
	return line[0], nil
}

// identityOf reads one identity; where the caller has no pidfd the pid is that of an own child.
func identityOf(pid, pidfd int) (Process, error) {
	var pin proc.Pin
	var err error
	if pidfd < 0 {
		pin, err = proc.PinPID(pid)
		if err == nil {
			defer proc.CloseFD(pin.FD)
		}
	} else {
		pin, err = proc.PinFD(pidfd, pid)
	}
	if err != nil {
		return Process{}, errors.Join(ErrGateLost, err)
	}
	return pin.Identity()
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
