package execgate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate/entry"
	"greatminds/internal/execgate/keep"
	"greatminds/internal/execgate/proc"
)

const (
	// answerLimit is what a keeper gets beyond the grace it was given, before it counts as
	// hung and is killed.
	answerLimit = 2 * time.Second
	// defaultKill bounds the killing where the caller gives no bound.
	defaultKill = 5 * time.Second
	// startLimit bounds keeper and gate coming up, and the exec.
	startLimit = 30 * time.Second
	// sendLimit bounds one small packet to a keeper; only a stopped one reaches it.
	sendLimit = time.Second
)

// hold is the daemon's end of one warden with its keeper, or of a tool's keeper. Its monitor runs
// from fork until the tree is proven empty, or its survivors are named.
type hold struct {
	// pid and pidfd are our own child: the warden, or a tool's keeper.
	pid     int
	pidfd   *os.File
	control *net.UnixConn
	mark    string
	// up gets exactly one answer: the start, or why there is none.
	up chan started
	// finished is closed when the tree is gone and the keeper reaped.
	finished chan struct{}

	mu sync.Mutex
	// keeper is the pidfd of a warden's keeper; -1 before it is known, and once it is given up.
	keeper int
	// process is what to look for when the keeper is lost; zero for a tool.
	process Process
	status  *syscall.WaitStatus
	natural bool // the process ended before any stop
	// begun is when the ending began, by a stop or by the process itself.
	begun   time.Time
	kill    time.Duration
	grouped bool // the cgroup of this launch exists
	ending  Ending
	err     error
}

// started is a keeper's first answer. The pidfd belongs to the receiver.
type started struct {
	pid, pidfd int
	keeper     int // its own pid
	err        error
}

// spawn forks a warden, or a tool's keeper, with the given files as its first descriptors, fd 3 left
// out: it is the control channel. Nobody follows it yet.
func spawn(role string, stdio [3]uintptr, pipes []*os.File) (*hold, error) {
	if err := Supported(); err != nil {
		return nil, err
	}
	control, theirs, err := controlPair()
	if err != nil {
		return nil, err
	}
	defer proc.CloseFD(theirs)
	files := append(stdio[:], uintptr(theirs))
	for _, pipe := range pipes {
		files = append(files, pipe.Fd())
	}
	pidfd := -1
	pid, err := family.fork(func() (int, error) {
		pid, _, err := syscall.StartProcess(entry.SelfExe, []string{"greatminds-" + role}, &syscall.ProcAttr{
			Dir: "/", Env: keeperEnv(role), Files: files,
			// One that was stopped goes on when this process ends, and then ends its tree.
			Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT, PidFD: &pidfd},
		})
		return pid, err
	})
	if err != nil {
		_ = control.Close() // nobody is at the other end
		return nil, fmt.Errorf("execgate: start of a %s: %w", role, err)
	}
	file, err := proc.Pollable(pidfd)
	if err != nil { // cannot be awaited: end of file on the channel ends it
		_ = control.Close()
		return nil, err
	}
	return &hold{
		pid: pid, pidfd: file, control: control, kill: defaultKill, keeper: -1,
		up: make(chan started, 1), finished: make(chan struct{}),
	}, nil
}

// keeperEnv is all that warden, keeper and gate see of an environment, beside the launch's mark. One
// processor is enough for them; that, and not reading the limits of the cgroup, makes their start
// cheaper.
func keeperEnv(role string) []string {
	return []string{"GODEBUG=containermaxprocs=0", "GOMAXPROCS=1", entry.RoleName + "=" + role}
}

func controlPair() (*net.UnixConn, int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, os.NewSyscallError("socketpair", err)
	}
	file := os.NewFile(uintptr(pair[0]), "keeper")
	conn, err := net.FileConn(file)
	_ = file.Close() // FileConn has its own descriptor
	if err != nil {
		proc.CloseFD(pair[1])
		return nil, -1, fmt.Errorf("execgate: control channel: %w", err)
	}
	return conn.(*net.UnixConn), pair[1], nil
}

// monitor follows the keeper to its end.
func (h *hold) monitor() {
	defer close(h.finished)
	last := h.listen()
	select {
	case h.up <- started{err: ErrGateLost}: // unless it has answered
	default:
	}
	h.reapKeeper()
	h.finish(last)
	h.mu.Lock()
	proc.CloseFD(h.keeper)
	h.keeper = -1
	h.mu.Unlock()
	_, _ = h.control.Close(), h.pidfd.Close() // nothing is written to either any more
}

// listen reads the channel to its end and returns the keeper's last word, or nil.
func (h *hold) listen() *keep.Message {
	data, oob := make([]byte, keep.MaxMessage), make([]byte, unix.CmsgSpace(4*2))
	for {
		n, oobn, _, _, err := h.control.ReadMsgUnix(data, oob)
		if errors.Is(err, unix.ECONNRESET) {
			continue // the keeper left something of ours unread; what it wrote follows
		}
		if err != nil || n == 0 {
			return nil
		}
		m, err := keep.ParseMessage(data[:n])
		if err != nil {
			return nil // then it is no keeper, and lost
		}
		switch m.Kind {
		case keep.Up, keep.Failed:
			h.answer(m, oob[:oobn])
		case keep.Exit:
			status := syscall.WaitStatus(m.Status)
			h.mu.Lock()
			h.status, h.natural = &status, m.Natural
			h.beginLocked()
			h.mu.Unlock()
		case keep.Empty:
			return &m
		}
	}
}

func (h *hold) answer(m keep.Message, oob []byte) {
	a := started{pid: m.PID, pidfd: -1, keeper: m.Keeper}
	var keeper int
	if m.Kind == keep.Failed {
		a.err = &ExecError{Errno: m.Errno, Path: m.Path}
	} else if fds, err := rights(oob); err != nil {
		a.err = err
	} else {
		a.pidfd, keeper = fds[0], fds[1]
		h.mu.Lock()
		h.grouped = m.Grouped
		h.keeper, keeper = keeper, h.keeper
		h.mu.Unlock()
		proc.CloseFD(keeper) // of a second answer
	}
	select {
	case h.up <- a:
	default: // a second answer is none
		proc.CloseFD(a.pidfd)
	}
}

// rights returns the pidfds of the program and of the keeper.
func rights(oob []byte) ([]int, error) {
	var fds []int
	messages, err := unix.ParseSocketControlMessage(oob)
	if err == nil && len(messages) == 1 {
		if fds, err = unix.ParseUnixRights(&messages[0]); err == nil && len(fds) == 2 {
			return fds, nil
		}
	}
	for _, fd := range fds {
		proc.CloseFD(fd)
	}
	return nil, fmt.Errorf("execgate: the keeper sent no pidfds: %w", errors.Join(ErrGateLost, err))
}

// reapKeeper waits for warden and keeper, which have closed their channel, and kills what lingers.
func (h *hold) reapKeeper() {
	if !h.childEnds(sendLimit) {
		h.signalChild(syscall.SIGKILL)
		h.childEnds(defaultKill)
	}
	if !family.reapKeeper(h.pid) {
		return
	}
	// A warden that was killed left its keeper to this process.
	if keeper := h.keeperFD(); keeper >= 0 {
		proc.WaitAny([]proc.Pin{{FD: keeper}}, sendLimit)
	}
	family.reap()
}

func (h *hold) childEnds(limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return proc.Await(ctx, h.pidfd) == nil
}

func (h *hold) signalChild(sig syscall.Signal) {
	raw, err := h.pidfd.SyscallConn()
	if err == nil {
		// Fails when it is gone already, which is what was wanted.
		_ = raw.Control(func(fd uintptr) { _ = proc.Signal(int(fd), sig) })
	}
}

// keeperFD is valid until the monitor ends.
func (h *hold) keeperFD() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keeper
}

// signalKeeper says whether a warden's keeper is there and took the signal.
func (h *hold) signalKeeper(sig syscall.Signal) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keeper >= 0 && proc.Signal(h.keeper, sig) == nil
}

// wake lets warden and keeper go on where their agent has stopped them.
func (h *hold) wake() {
	h.signalChild(syscall.SIGCONT)
	h.signalKeeper(syscall.SIGCONT)
}

// finish sets the outcome: from the keeper's last word, or by ending the tree it left behind.
func (h *hold) finish(last *keep.Message) {
	h.mu.Lock()
	process, kill, group := h.process, h.kill, ""
	if h.grouped {
		group = groupOf(h.mark)
	}
	h.beginLocked()
	h.mu.Unlock()
	var e Ending
	var err error
	if last != nil {
		e = Ending{Ended: last.Ended, Survivors: last.Survivors, How: HowStopped}
		if last.Forced {
			e.How = HowKilled
		}
		if last.Lost {
			e.How = HowKeeperLost
		}
	} else {
		e, err = endOrphans(process, h.mark, group, kill)
		e.How = HowKeeperLost
	}
	if len(e.Survivors) > 0 {
		family.expectStrays()
		err = errors.Join(err, survivorsError(e.Survivors))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if last != nil && h.natural {
		e.How = HowExited
	}
	if h.status != nil {
		e.Known, e.Code = true, h.status.ExitStatus()
		if h.status.Signaled() {
			e.Code, e.Signal = 0, h.status.Signal()
		}
	}
	e.Took = time.Since(h.begun)
	h.ending, h.err = e, err
}

func (h *hold) beginLocked() {
	if h.begun.IsZero() {
		h.begun = time.Now()
	}
}

// expect names the process to look for should the keeper be lost.
func (h *hold) expect(p Process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.process = p
}

// tell sends one message. It fails only when the keeper is gone or was stopped, and either is
// found out by waiting for its end.
func (h *hold) tell(m keep.Message) {
	data, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("execgate: message %+v: %v", m, err)) // plain numbers and strings
	}
	_ = h.control.SetWriteDeadline(time.Now().Add(sendLimit)) // as above
	_, _ = h.control.Write(data)                              // as above
}

// stop has the tree ended and waits for the proof. The end of ctx takes the grace away, not the
// proof.
func (h *hold) stop(ctx context.Context, g Grace) (Ending, error) {
	if g.Kill <= 0 {
		g.Kill = defaultKill
	}
	if ctx.Err() != nil {
		g.Term = 0
	}
	h.noteStop(g.Kill)
	h.wake()
	h.tell(keep.Message{Kind: keep.Stop, Term: max(g.Term, 0), Kill: g.Kill})
	limit := time.NewTimer(max(g.Term, 0) + g.Kill + answerLimit)
	defer limit.Stop()
	cut, killed := ctx.Done(), false
	for {
		select {
		case <-h.finished:
			return h.result()
		case <-cut:
			cut = nil
			h.wake()
			h.tell(keep.Message{Kind: keep.Stop, Kill: g.Kill})
			limit.Reset(g.Kill + answerLimit)
		case <-limit.C:
			// Without its keeper the warden ends the tree, without both this process does.
			if !killed && h.signalKeeper(syscall.SIGKILL) {
				killed = true
				h.signalChild(syscall.SIGCONT)
				limit.Reset(g.Kill + answerLimit)
				continue
			}
			h.signalChild(syscall.SIGKILL)
		}
	}
}

func (h *hold) noteStop(kill time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kill = kill
	h.beginLocked()
}

func (h *hold) result() (Ending, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ending, h.err
}
