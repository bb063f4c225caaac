package execgate_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate"
)

// fault is what an agent does to the processes that watch over it, in shell: $PPID is its keeper,
// $w its warden.
type fault struct {
	name, script string
	// kills says that the agent dies of it, with its keeper.
	kills bool
	// helpless says that without a daemon nobody is left who could end the tree.
	helpless bool
}

var faults = []fault{
	{name: "keeper killed", script: "kill -9 $PPID", kills: true},
	{name: "keeper stopped", script: "kill -STOP $PPID; echo done"},
	{name: "warden killed", script: "kill -9 $w; echo done"},
	{name: "warden stopped", script: "kill -STOP $w; echo done"},
	{name: "both stopped", script: "kill -STOP $w $PPID; echo done"},
	{name: "warden stopped and keeper killed", script: "kill -STOP $w; kill -9 $PPID", kills: true},
	{name: "warden killed and keeper stopped", script: "kill -9 $w; kill -STOP $PPID; echo done"},
	{name: "both killed", script: "kill -9 $w $PPID", kills: true, helpless: true},
	{name: "keeper stopped again and again", script: "echo done; while kill -STOP $PPID; do :; done"},
}

// victims is a family whose agent does something when it is told to by SIGUSR1. It prints three pids
// and "up" first.
func victims(f fault, drop bool) string {
	members := family
	if drop {
		members = strings.ReplaceAll(members, "setsid sleep", "env -i setsid sleep")
	}
	return "trap '' TERM; read x x x w x < /proc/$PPID/stat;" + members +
		"trap '" + f.script + "' USR1; echo up; while :; do sleep 1004 & wait $!; done"
}

// Whatever an agent does to its keeper and its warden, and whatever becomes of the daemon then,
// nothing of its tree is left, also where it dropped its environment.
//
// E-223, E-239
func TestAnAgentThatTurnsOnItsWatchersLeavesNothing(t *testing.T) {
	for _, end := range []struct {
		name string
		// before is done to the daemon ahead of the fault, after behind it.
		before, after func(t *testing.T, h *helper)
		dies          bool
	}{
		{"daemon told to stop", nothing, func(t *testing.T, h *helper) { h.leave() }, false},
		{"daemon killed", nothing, func(t *testing.T, h *helper) { h.kill() }, true},
		{"daemon stopped, then killed", stopDaemon, func(t *testing.T, h *helper) { h.kill() }, true},
		{"daemon stopped, then continued", stopDaemon, func(t *testing.T, h *helper) {
			pinPID(t, h.cmd.Process.Pid).signal(t, syscall.SIGCONT)
			h.leave()
		}, false},
	} {
		for _, f := range faults {
			t.Run(end.name+"/"+f.name, func(t *testing.T) {
				h := startHelper(t, "daemon "+victims(f, !f.helpless), "TEST_MARK="+t.Name())
				p := readRecord(t, h)
				agent := pinPID(t, p.PID)
				keeper, warden := watchers(t, p)
				left := append(readPids(t, h.out, 3), agent, keeper, warden)
				readLine(t, h.out)
				end.before(t, h)
				agent.signal(t, syscall.SIGUSR1)
				if f.kills && !keeper.gone(t, patience) {
					t.Fatal("the keeper was not killed")
				} else if !f.kills {
					readLine(t, h.out) // done
				}
				begun := time.Now()
				end.after(t, h)
				if f.helpless && end.dies {
					if e, err := execgate.EndRecorded(bounded(t), p, t.Name(), execgate.Grace{}); err != nil {
						t.Errorf("after the restart: %+v, %v", e, err)
					}
				}
				for _, member := range left {
					if !member.gone(t, patience) {
						t.Errorf("pid %d is left", member.pid)
						member.signal(t, syscall.SIGKILL)
					}
				}
				t.Logf("nothing left after %v", time.Since(begun).Round(time.Millisecond))
				h.kill()
				reapAdopted(t)
			})
		}
	}
}

func nothing(*testing.T, *helper) {}

// stopDaemon stops the helper. Other threads of it run on until the one that the signal was given to has
// taken it, so the stop is waited for.
func stopDaemon(t *testing.T, h *helper) {
	t.Helper()
	must(t, h.cmd.Process.Signal(syscall.SIGSTOP))
	must(t, unix.Waitid(unix.P_PID, h.cmd.Process.Pid, nil, unix.WSTOPPED, nil))
}

// leave ends the helper's input, which tells a daemon to stop, and waits for its end.
func (h *helper) leave() {
	h.t.Helper()
	must(h.t, h.in.Close())
	h.ended = true
	if err := h.cmd.Wait(); err != nil {
		h.t.Errorf("the daemon ended with %v", err)
	}
}

// A stopped keeper is continued by the stop, and then does its work as any other.
func TestAStoppedKeeperGoesOnWhenItIsNeeded(t *testing.T) {
	a := running(t, family+"kill -STOP $PPID; echo up; exec sleep 1004")
	left := append(a.pids(3), pinPID(t, a.c.Process().PID))
	a.line()
	e := a.stop(execgate.Grace{})
	if !e.Known || e.Signal != syscall.SIGKILL || e.How != execgate.HowKilled || e.Took > time.Second {
		t.Errorf("got %+v, want a known outcome at once", e)
	}
	for _, p := range left {
		p.mustBeGone(t)
	}
}

// A whole service group that is told to end leaves the ending of a tree to those who do it in order.
func TestSignalsToAServiceGroupEndNeitherKeeperNorWarden(t *testing.T) {
	a := running(t, "trap '' TERM INT HUP QUIT USR1 USR2; echo up; exec sleep 1000")
	a.line()
	keeper, warden := watchers(t, a.c.Process())
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		keeper.signal(t, sig)
		warden.signal(t, sig)
	}
	if e := a.stop(execgate.Grace{}); !e.Known || e.How != execgate.HowKilled {
		t.Errorf("got %+v, want the keeper's own answer", e)
	}
}

// Comets are chains of processes each of which forks the next one and ends, so that every look at the
// tree shows others. They stay in the agent's process group, or each process is in a session of its own.
const (
	comet        = `perl -MPOSIX -e '$| = 1; while (1) { fork and POSIX::_exit(0); print "up\n" if ++$n == 200; }' & `
	sessionComet = `perl -MPOSIX -e '$| = 1; while (1) { fork and POSIX::_exit(0); POSIX::setsid(); print "up\n" if ++$n == 200; }' & `
)

// A tree that goes on forking while it is being killed is ended too, by the keeper, by the warden
// and by the daemon.
func TestATreeThatForksFasterThanASweepIsEnded(t *testing.T) {
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("no perl, which forks fast enough")
	}
	const watch = `read x x x w x < /proc/$PPID/stat; trap 'kill -9 $PPID' USR1; trap 'kill -9 $w $PPID' USR2; `
	for _, c := range []struct {
		name string
		sig  syscall.Signal // makes the agent kill its watchers
		how  string
	}{
		{"by the keeper", 0, execgate.HowKilled},
		{"by the warden", syscall.SIGUSR1, execgate.HowKeeperLost},
		{"by the daemon", syscall.SIGUSR2, execgate.HowKeeperLost},
	} {
		for kind, script := range map[string]string{"one group": comet, "own sessions": sessionComet} {
			t.Run(c.name+"/"+kind, func(t *testing.T) {
				const chains = 4
				a := running(t, watch+strings.Repeat(script, chains)+"while :; do sleep 1000 & wait $!; done")
				for range chains {
					a.line()
				}
				if c.sig != 0 {
					pinPID(t, a.c.Process().PID).signal(t, c.sig)
					a.ends()
				}
				e := a.stop(execgate.Grace{})
				if len(e.Survivors) > 0 || e.How != c.how {
					t.Errorf("got %+v, want all chains ended as %s", e, c.how)
				}
				t.Logf("%d processes ended, %s, in %v", e.Ended, e.How, e.Took)
				nobodyCarries(t, t.Name())
			})
		}
	}
}

// nobodyCarries fails for each process that has the mark in its environment.
func nobodyCarries(t *testing.T, mark string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	must(t, err)
	for _, entry := range entries {
		if env, err := os.ReadFile("/proc/" + entry.Name() + "/environ"); err == nil && strings.Contains(string(env), "GREATMINDS_MARK="+mark+"\x00") {
			t.Errorf("pid %s is left", entry.Name())
		}
	}
}
