package execgate_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"greatminds/internal/execgate"
)

// roleVariable makes the test binary play another program, see roles_test.go.
const roleVariable = "EXECGATE_TEST_ROLE"

func TestMain(m *testing.M) {
	execgate.Main()
	if role := os.Getenv(roleVariable); role != "" {
		syscall.Exit(playRole(role)) // os.Exit sleeps for a second under the race detector
	}
	// Under nohup the tests' children would begin with a signal ignored, which is another test's
	// matter; a signal that is caught is a child's own again.
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	// As the daemon does; what a killed keeper leaves behind comes to this process.
	if err := execgate.BecomeSubreaper(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait of these tests; only a failing one reaches it.
const patience = 20 * time.Second

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// agent is a launch under test with its standard output in our hands.
type agent struct {
	t   testing.TB
	c   *execgate.Child
	out *bufio.Reader
}

var path = "PATH=" + os.Getenv("PATH")

// gated starts keeper and gate for a shell script; nothing runs yet.
func gated(t testing.TB, script string, env ...string) *agent {
	t.Helper()
	return gatedLaunch(t, execgate.Launch{
		Argv: []string{"sh", "-c", script}, Env: append([]string{path}, env...), Dir: "/", Mark: t.Name(),
	})
}

func gatedLaunch(t testing.TB, l execgate.Launch) *agent {
	t.Helper()
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l.Stdout = theirs
	c, err := execgate.Start(bounded(t), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.Stop(context.Background(), execgate.Grace{}); err != nil {
			t.Errorf("stop at the end of the test: %v", err)
		}
		ours.Close()
		noChildren(t)
	})
	return &agent{t, c, bufio.NewReader(ours)}
}

// running starts a script and lets it through the gate.
func running(t testing.TB, script string, env ...string) *agent {
	t.Helper()
	a := gated(t, script, env...)
	a.open()
	return a
}

func (a *agent) open() {
	a.t.Helper()
	if err := a.c.Open(bounded(a.t)); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) line() string {
	a.t.Helper()
	return readLine(a.t, a.out)
}

func readLine(t testing.TB, from *bufio.Reader) string {
	t.Helper()
	line, err := from.ReadString('\n')
	if err != nil {
		t.Fatalf("the program wrote %q, then %v", line, err)
	}
	return strings.TrimSpace(line)
}

// pids reads n lines that are pids, and pins each.
func (a *agent) pids(n int) []*pinnedProcess {
	a.t.Helper()
	return readPids(a.t, a.out, n)
}

func readPids(t testing.TB, from *bufio.Reader, n int) []*pinnedProcess {
	t.Helper()
	pins := make([]*pinnedProcess, n)
	for i := range pins {
		pid, err := strconv.Atoi(readLine(t, from))
		if err != nil {
			t.Fatal(err)
		}
		pins[i] = pinPID(t, pid)
	}
	return pins
}

func (a *agent) ends() {
	a.t.Helper()
	select {
	case <-a.c.Ended():
	case <-bounded(a.t).Done():
		a.t.Fatal("the process did not end")
	}
}

func (a *agent) stop(g execgate.Grace) execgate.Ending {
	a.t.Helper()
	e, err := a.c.Stop(bounded(a.t), g)
	if err != nil {
		a.t.Fatal(err)
	}
	return e
}

// pinnedProcess is a process that a test holds by pidfd, so that "gone" means that very one.
type pinnedProcess struct{ pid, fd int }

func pinPID(t testing.TB, pid int) *pinnedProcess {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("pid %d: %v", pid, err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return &pinnedProcess{pid, fd}
}

func (p *pinnedProcess) gone(t testing.TB, within time.Duration) bool {
	t.Helper()
	for {
		poll := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int(within.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	}
}

func (p *pinnedProcess) mustBeGone(t testing.TB) {
	t.Helper()
	if !p.gone(t, 0) {
		t.Errorf("pid %d still lives", p.pid)
	}
}

func (p *pinnedProcess) mustLive(t testing.TB) {
	t.Helper()
	if p.gone(t, 0) {
		t.Errorf("pid %d is gone", p.pid)
	}
}

func (p *pinnedProcess) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := unix.PidfdSendSignal(p.fd, sig, nil, 0); err != nil {
		t.Fatal(err)
	}
}

// noChildren fails when this process has any child left, zombies included.
func noChildren(t testing.TB) {
	t.Helper()
	if kids := childrenOf(t, os.Getpid()); len(kids) > 0 {
		for _, pid := range kids {
			stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
			t.Errorf("child left: %s", stat)
		}
	}
}

func childrenOf(t testing.TB, pid int) []int {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var kids []int
	for _, thread := range threads {
		data, err := os.ReadFile(dir + "/" + thread.Name() + "/children")
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(data)) {
			kid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			kids = append(kids, kid)
		}
	}
	return kids
}

// helper starts the test binary in a role, with pipes at both ends. Its process is reaped at the
// end of the test.
type helper struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	ended bool
}

func startHelper(t testing.TB, role string, env ...string) *helper {
	t.Helper()
	return startHelperAs(t, nil, role, env...)
}

// startHelperAs starts it with attributes.
func startHelperAs(t testing.TB, attr *syscall.SysProcAttr, role string, env ...string) *helper {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.SysProcAttr = attr
	cmd.Env = append([]string{path, roleVariable + "=" + role}, env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &helper{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(h.kill)
	return h
}

func (h *helper) kill() {
	if !h.ended {
		h.ended = true
		_ = h.cmd.Process.Kill() // it may have ended
		_ = h.cmd.Wait()         // killed
	}
}

// watchers pins the keeper and the warden of a record.
func watchers(t testing.TB, p execgate.Process) (keeper, warden *pinnedProcess) {
	t.Helper()
	return pinPID(t, p.Keeper.PID), pinPID(t, p.Keeper.Keeper.PID)
}

// reapOrphans takes what the kernel gave to this process as the subreaper of a killed helper.
func reapOrphans(t testing.TB, pids ...*pinnedProcess) {
	t.Helper()
	for _, p := range pids {
		if !p.gone(t, patience) {
			t.Fatalf("pid %d did not end", p.pid)
		}
		_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil) // not every one of them became ours
	}
}
