package supervisor

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
	"greatminds/transport"
)

// A run whose agent died by itself says with which exit status or signal.
func TestARunSaysHowItsAgentDied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ steps, want string }{
		"before the handshake": {`{"exit":{"code":7}}`, "its process ended with exit status 7"},
		"in the turn":          {`{"handshake":{}},{"prompt":"p"},{"exit":{"code":3}}`, "its process ended with exit status 3"},
		"by a signal":          {`{"handshake":{}},{"prompt":"p"},{"exit":{"signal":"KILL"}}`, "its process was killed by SIGKILL, which the supervisor did not send"},
		"after its output":     {`{"handshake":{}},{"prompt":"p"},{"close":"stdout"},{"exit":{"code":4}}`, "its process ended with exit status 4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{steps: c.steps})
			h.task("feature_dev", taskID)
			h.start()
			run := h.inState(runstore.Failed)
			if got := dispatch.Cause(run); run.Reason != transportFailure || !strings.HasPrefix(got, "the agent ") || !strings.HasSuffix(got, "; "+c.want) {
				t.Errorf("%s: %q, want %q at the end", run.Reason, got, c.want)
			}
		})
	}
}

// What the supervisor ended itself, and what did not fail, is not told as a death.
func TestOnlyADeathIsTold(t *testing.T) {
	exited := execgate.Ending{Known: true, Code: 1, How: execgate.HowExited}
	for name, c := range map[string]struct {
		end  ending
		died execgate.Ending
		want string
	}{
		"died":         {ending{runstore.Failed, transportFailure, nil}, exited, "lost; its process ended with exit status 1"},
		"was ended":    {ending{runstore.Failed, transportFailure, nil}, execgate.Ending{Known: true, Signal: syscall.SIGTERM, How: execgate.HowStopped}, "lost"},
		"nobody saw":   {ending{runstore.Failed, transportFailure, nil}, execgate.Ending{How: execgate.HowKeeperLost}, "lost"},
		"answered":     {ending{runstore.Failed, protocolError, nil}, exited, "lost"},
		"not started":  {ending{runstore.Failed, transportFailure, nil}, exited, "lost"},
		"did not fail": {ending{runstore.Cancelled, operatorCancelled, nil}, exited, "lost"},
	} {
		e := execution{died: c.died, session: new(transport.Session), outcome: outcome{what: "lost"}}
		if name == "not started" {
			e.session = nil
		}
		if e.explain(c.end); e.outcome.what != c.want {
			t.Errorf("%s: got %q, want %q", name, e.outcome.what, c.want)
		}
	}
}

func TestDeathWords(t *testing.T) {
	for want, got := range map[string]string{
		"its process was killed by SIGSEGV, which the supervisor did not send":                                         deathWords(execgate.Ending{Signal: syscall.SIGSEGV}, 3),
		"killed by SIGKILL, which the supervisor did not send; since it was started the kernel has killed for want of": deathWords(execgate.Ending{Signal: syscall.SIGKILL}, 2),
		"killed by signal 35": deathWords(execgate.Ending{Signal: 35}, 0),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	if n := oomKillsIn([]byte("pgfault 12\noom_kill 42\noom_kill_x 1\n")); n != 42 {
		t.Errorf("got %d", n)
	}
	if n := oomKillsIn([]byte("pgfault 12\n")); n != 0 {
		t.Errorf("got %d", n)
	}
}

// A start that the machine did not carry out names the limit that it mostly comes from.
func TestAStartThatTheMachineRefusedNamesTheLimit(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"of the gate":   {&execgate.ExecError{Errno: syscall.EAGAIN, Path: "/agent"}, "ulimit -u"},
		"of the warden": {fmt.Errorf("execgate: start of a warden: %w", &syscallError{syscall.EAGAIN}), "ulimit -u"},
		"memory":        {&execgate.ExecError{Errno: syscall.ENOMEM, Path: "/agent"}, "memory.max"},
		"files":         {fmt.Errorf("execgate: %w", syscall.EMFILE), "ulimit -n"},
		"lost":          {fmt.Errorf("execgate: %w", execgate.ErrGateLost), "the kernel's log"},
		"other":         {errors.New("execgate: anything"), "execgate: anything"},
	} {
		e := execution{run: &runstore.Run{ID: "r"}}
		end := e.launchFailed(c.err)
		if end.reason != transportFailure || !strings.HasPrefix(e.outcome.what, "the agent was not started: ") || !strings.Contains(e.outcome.what, c.want) {
			t.Errorf("%s: %s, %q; want %q in it", name, end.reason, e.outcome.what, c.want)
		}
	}
}

// So does a workspace for which git could not be started; what only a person can mend is no such thing.
func TestAWorkspaceThatTheMachineRefusedIsTriedAgain(t *testing.T) {
	const start = "git rev-parse in /p: execgate: start of a tool-keeper: %w"
	for name, c := range map[string]struct {
		err          error
		reason, want string
	}{
		"processes": {fmt.Errorf(start, &syscallError{syscall.EAGAIN}), transportFailure, "ulimit -u"},
		"lost":      {fmt.Errorf(start, execgate.ErrGateLost), transportFailure, "the kernel's log"},
		"disk":      {fmt.Errorf("write: %w", syscall.ENOSPC), configurationError, "no space left on device; the disk is full"},
		"refused":   {refusal.New(refusal.CodeGitFailed, "mend it", "git says no"), configurationError, "git says no"},
	} {
		e := execution{run: &runstore.Run{ID: "r"}}
		if end := e.noWorkspace(c.err); end.reason != c.reason || !strings.Contains(e.outcome.what, c.want) {
			t.Errorf("%s: %s, %q; want %s with %q in it", name, end.reason, e.outcome.what, c.reason, c.want)
		}
	}
}

type syscallError struct{ errno syscall.Errno }

func (e *syscallError) Error() string { return "fork/exec: " + e.errno.Error() }
func (e *syscallError) Unwrap() error { return e.errno }

// A failure on a full disk says that it is full.
func TestAFullDiskIsNamed(t *testing.T) {
	dir := t.TempDir()
	if got := fullWords(dir); got != "" {
		t.Skipf("the disk of the tests is full: %s", got)
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no file system of its own can be mounted: %v", err)
	}
	defer func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) }()
	e := execution{workspace: dir, outcome: outcome{what: "the agent answered with an error"}}
	if e.explain(ending{runstore.Failed, protocolError, nil}); !strings.Contains(e.outcome.what, "error; the disk of its workspace is full (65536 bytes left)") {
		t.Errorf("got %q", e.outcome.what)
	}
}
