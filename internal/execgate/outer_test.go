package execgate_test

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
)

// An entry script that starts something and then exec's the daemon: the daemon gets a parent that
// keeps the stranger, forwards signals and passes the status on.
func TestOuterKeepsStrangersFromTheDaemon(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command("sh", "-c", "sleep 1000 & echo $!; exec "+exe)
	cmd.Env = []string{path, roleVariable + "=outer"}
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	out := bufio.NewReader(stdout)
	stranger := readPids(t, out, 1)[0]
	inner := readPids(t, out, 1)[0]
	parent, err := strconv.Atoi(readLine(t, out))
	must(t, err)
	if inner.pid == cmd.Process.Pid || parent != cmd.Process.Pid {
		t.Errorf("daemon %d below %d, want a child of %d", inner.pid, parent, cmd.Process.Pid)
	}
	if kids := childrenOf(t, inner.pid); len(kids) != 0 {
		t.Errorf("the daemon has children %v", kids)
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 9 {
		t.Errorf("got %v, want the daemon's exit status 9", err)
	}
	inner.mustBeGone(t)
	stranger.mustLive(t)
	stranger.signal(t, syscall.SIGKILL)
	reapOrphans(t, stranger)
	noChildren(t)
}

// Killed, the outer process asks the daemon to end.
func TestTheDaemonEndsWithItsOuterProcess(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command("sh", "-c", "sleep 1000 & echo $!; exec "+exe)
	cmd.Env = []string{path, roleVariable + "=outer"}
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	out := bufio.NewReader(stdout)
	pins := readPids(t, out, 2)
	readLine(t, out)
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	if !pins[1].gone(t, patience) {
		t.Error("the daemon outlives its outer process")
	}
	pins[0].signal(t, syscall.SIGKILL)
	reapOrphans(t, pins...)
	noChildren(t)
}

func TestOuterReturnsWhereNothingIsStrange(t *testing.T) {
	h := startHelper(t, "outer")
	if got := readLine(t, h.out); got != strconv.Itoa(h.cmd.Process.Pid) {
		t.Errorf("got a daemon with pid %s, started %d", got, h.cmd.Process.Pid)
	}
}

func TestTheEndOfATerminalIsAStopUnlessNohupSaysOtherwise(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	for before, want := range map[string]string{"": "[interrupt terminated hangup]\n", "trap '' HUP; ": "[interrupt terminated]\n"} {
		cmd := exec.Command("sh", "-c", before+"exec "+exe)
		cmd.Env = []string{path, roleVariable + "=stop-signals"}
		if out, err := cmd.Output(); string(out) != want || err != nil {
			t.Errorf("after %q got %q, %v, want %q", before, out, err, want)
		}
	}
}
