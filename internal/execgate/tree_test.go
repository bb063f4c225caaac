package execgate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate"
)

// family is a script that leaves, besides itself: a child in a session of its own, a grandchild
// whose parent has ended (twice forked), and one below both; each ignores SIGTERM when asked to.
// It prints three pids.
const family = `
setsid sleep 1001 & echo $!
(setsid sleep 1002 & echo $!)
setsid sh -c '(setsid sleep 1003 & echo $!)' 
`

func readRecord(t testing.TB, h *helper) execgate.Process {
	t.Helper()
	var p execgate.Process
	must(t, json.Unmarshal([]byte(readLine(t, h.out)), &p))
	return p
}

// E-223
func TestWhatTheAgentLeavesBehindIsEnded(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	a := running(t, family+`while [ ! -e "$GATE" ]; do sleep 0.01; done; exit 5`, "GATE="+gate)
	left := a.pids(3)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a.ends()
	e := a.stop(execgate.Grace{})
	if !e.Known || e.Code != 5 || e.Ended != 3 || e.How != execgate.HowExited {
		t.Errorf("got %+v, want exit 5 and three ended members", e)
	}
	for _, p := range left {
		p.mustBeGone(t)
	}
}

// E-223
func TestStopEndsTheWholeTree(t *testing.T) {
	for _, c := range []struct {
		name, script string
		grace        execgate.Grace
		want         execgate.Ending
	}{
		{"obedient", family + "echo up; exec sleep 1004", execgate.Grace{Term: patience},
			execgate.Ending{Known: true, Signal: syscall.SIGTERM, How: execgate.HowStopped, Ended: 3}},
		{"trap", family + "trap 'exit 7' TERM; sh -c 'echo up; exec sleep 1004' & wait", execgate.Grace{Term: patience},
			execgate.Ending{Known: true, Code: 7, How: execgate.HowStopped, Ended: 4}},
		{"stubborn", "trap '' TERM;" + family + "echo up; exec sleep 1004", execgate.Grace{Term: 20 * time.Millisecond},
			execgate.Ending{Known: true, Signal: syscall.SIGKILL, How: execgate.HowKilled, Ended: 3}},
		{"at once", family + "echo up; exec sleep 1004", execgate.Grace{},
			execgate.Ending{Known: true, Signal: syscall.SIGKILL, How: execgate.HowKilled, Ended: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := running(t, c.script)
			left := a.pids(3)
			a.line()
			e := a.stop(c.grace)
			if e.Known != c.want.Known || e.Code != c.want.Code || e.Signal != c.want.Signal || e.How != c.want.How || e.Ended != c.want.Ended || len(e.Survivors) > 0 {
				t.Errorf("got %+v, want %+v", e, c.want)
			}
			if c.name == "stubborn" && e.Took < c.grace.Term {
				t.Errorf("killed after %v, the grace was %v", e.Took, c.grace.Term)
			}
			a.ends()
			for _, p := range left {
				p.mustBeGone(t)
			}
		})
	}
}

func TestASecondStopShortensTheGrace(t *testing.T) {
	a := running(t, "trap '' TERM; echo up; exec sleep 1000")
	a.line()
	first := make(chan execgate.Ending)
	go func() {
		e, _ := a.c.Stop(context.Background(), execgate.Grace{Term: time.Hour}) // the other one reports the error
		first <- e
	}()
	e := a.stop(execgate.Grace{})
	if other := <-first; e.Signal != syscall.SIGKILL || other.Signal != e.Signal {
		t.Errorf("got %+v and %+v, want both killed", e, other)
	}
}

func TestTheEndOfTheContextTakesTheGraceNotTheProof(t *testing.T) {
	a := running(t, "trap '' TERM; echo up; exec sleep 1000")
	a.line()
	agent := pinPID(t, a.c.Process().PID)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e, err := a.c.Stop(ctx, execgate.Grace{Term: time.Hour})
	if err != nil || e.Signal != syscall.SIGKILL {
		t.Errorf("got %+v, %v, want a proven kill", e, err)
	}
	agent.mustBeGone(t)
}

func TestAnAgentHasEndedThoughAChildHoldsItsOutput(t *testing.T) {
	a := running(t, `trap 'exit 0' USR1; sh -c "trap '' TERM; echo up; exec sleep 1000" & while :; do wait; done`)
	a.line()
	pinPID(t, a.c.Process().PID).signal(t, syscall.SIGUSR1)
	a.ends() // the pipe is still open
	a.stop(execgate.Grace{})
	if rest, err := io.ReadAll(a.out); err != nil || len(rest) != 0 {
		t.Errorf("after the stop got %q, %v, want the end of the pipe", rest, err)
	}
}

func TestOrphansDoNotBecomeZombies(t *testing.T) {
	a := running(t, `i=0; while [ $i -lt 40 ]; do (sleep 0 &); i=$((i+1)); done; echo up; exec sleep 1000`)
	a.line()
	keeper := a.c.Process().Keeper.PID
	for deadline := time.Now().Add(patience); ; {
		kids := childrenOf(t, keeper)
		if len(kids) == 1 && kids[0] == a.c.Process().PID {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the keeper still has children %v", kids)
		}
		_, _ = unix.Poll(nil, 1) // gives the processor away
	}
}

// A killed daemon leaves nothing. The limit is generous for a loaded machine; the log says what it took,
// and BenchmarkDaemonDeath measures it.
func TestAKilledDaemonLeavesNothing(t *testing.T) {
	t.Logf("gone after %v", daemonDeath(t))
	noChildren(t)
}

func daemonDeath(t testing.TB) time.Duration {
	h := startHelper(t, "daemon trap '' TERM;"+family+"echo up; exec sleep 1004", "TEST_MARK="+t.Name())
	p := readRecord(t, h)
	left := append(readPids(t, h.out, 3), pinPID(t, p.PID))
	readLine(t, h.out)
	_, warden := watchers(t, p)
	begun := time.Now()
	h.kill()
	for _, p := range left {
		if !p.gone(t, patience) {
			t.Fatalf("pid %d outlives the daemon", p.pid)
		}
	}
	took := time.Since(begun)
	reapOrphans(t, warden)
	return took
}

func TestAKeeperKilledByTheAgentAtOnceLeavesItsTreeToTheWarden(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"marked", family + "kill -9 $PPID; exec sleep 1004"},
		{"with its environment dropped", strings.ReplaceAll(family, "setsid sleep", "env -i setsid sleep") + "kill -9 $PPID; exec sleep 1004"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			must(t, err)
			defer r.Close()
			child, err := execgate.Start(bounded(t), execgate.Launch{
				Argv: []string{"sh", "-c", c.script}, Env: []string{path}, Dir: "/", Stdout: w, Mark: t.Name(),
			})
			must(t, err)
			agent := pinPID(t, child.Process().PID)
			must(t, child.Open(bounded(t)))
			// The three may be gone before they can be pinned, so they are looked for by pid below.
			text, err := io.ReadAll(bufio.NewReader(r))
			must(t, err)
			e, err := child.Stop(bounded(t), execgate.Grace{Term: patience})
			if err != nil || e.Known || e.How != execgate.HowKeeperLost {
				t.Errorf("got %+v, %v, want an unknown outcome and a lost keeper", e, err)
			}
			agent.mustBeGone(t)
			for _, line := range strings.Fields(string(text)) {
				if cmdline, err := os.ReadFile("/proc/" + line + "/cmdline"); err == nil && strings.Contains(string(cmdline), "sleep") {
					t.Errorf("pid %s survives: %q", line, cmdline)
				}
			}
			noChildren(t)
		})
	}
}

// E-239
func TestNothingIsSignalledByBarePid(t *testing.T) {
	for _, dir := range []string{".", "entry", "keep", "proc"} {
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			text, err := os.ReadFile(dir + "/" + e.Name())
			must(t, err)
			for _, call := range []string{"syscall.Kill(", "unix.Kill(", "unix.Tgkill(", ".FindProcess(", "SYS_KILL"} {
				if strings.Contains(string(text), call) {
					t.Errorf("%s/%s uses %s", dir, e.Name(), call)
				}
			}
		}
	}
}
