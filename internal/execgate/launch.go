package execgate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"greatminds/internal/execgate/entry"
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
