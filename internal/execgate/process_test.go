package execgate_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"greatminds/internal/execgate"
	"greatminds/internal/execgate/proc"
)

// E-239, E-241
func TestLookComparesWithTheRecord(t *testing.T) {
	a := running(t, "echo up; exec sleep 1000")
	a.line()
	p := a.c.Process()
	changed := func(f func(*execgate.Process)) execgate.Process {
		q := p
		f(&q)
		return q
	}
	other := uint64(1)
	for _, c := range []struct {
		name string
		p    execgate.Process
		want execgate.Life
	}{
		{"itself", p, execgate.Alive},
		{"its keeper", *p.Keeper, execgate.Alive},
		{"no pidfd inode on record", changed(func(q *execgate.Process) { q.PidfdInode = nil }), execgate.Alive},
		{"another start", changed(func(q *execgate.Process) { q.StartTicks++ }), execgate.Gone},
		{"another pidfd inode", changed(func(q *execgate.Process) { q.PidfdInode = &other }), execgate.Gone},
		{"another boot", changed(func(q *execgate.Process) { q.BootID = "00000000-0000-0000-0000-000000000000" }), execgate.Gone},
		{"no such pid", changed(func(q *execgate.Process) { q.PID = 1 << 22 }), execgate.Gone},
		{"no pid on record", changed(func(q *execgate.Process) { q.PID = 0 }), execgate.Unknown},
		{"no boot on record", changed(func(q *execgate.Process) { q.BootID = "" }), execgate.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "another pidfd inode" && p.PidfdInode == nil {
				t.Skip("pidfds have no inode of their own on this kernel")
			}
			life, err := execgate.Look(c.p)
			if life != c.want || (err != nil) != (c.want == execgate.Unknown) || err != nil && !errors.Is(err, execgate.ErrUnknown) {
				t.Errorf("got %v, %v, want %v", life, err, c.want)
			}
		})
	}
	a.stop(execgate.Grace{})
	if life, err := execgate.Look(p); life != execgate.Gone || err != nil {
		t.Errorf("after the stop got %v, %v, want gone", life, err)
	}
}

func TestAZombieIsGone(t *testing.T) {
	h := startHelper(t, "daemon-at-gate true", "TEST_MARK="+t.Name())
	p := readRecord(t, h)
	_, warden := watchers(t, p)
	// Its daemon is stopped, so the warden that ends stays a zombie.
	stopDaemon(t, h)
	warden.signal(t, syscall.SIGKILL)
	if !warden.gone(t, patience) {
		t.Fatal("the warden was not killed")
	}
	if life, err := execgate.Look(*p.Keeper.Keeper); life != execgate.Gone || err != nil {
		t.Errorf("got %v, %v for a zombie, want gone", life, err)
	}
	h.kill()
	reapAdopted(t)
}

// reapAdopted takes the zombies that were left to this process, whose pids a test does not know.
func reapAdopted(t *testing.T) {
	t.Helper()
	for _, pid := range childrenOf(t, os.Getpid()) {
		if p, err := os.ReadFile("/proc/self/stat"); err != nil || len(p) == 0 {
			t.Fatal(err)
		}
		_, _ = syscall.Wait4(pid, nil, 0, nil) // they end, see the callers
	}
	noChildren(t)
}

// E-239, E-240
func TestRestartEndsWhatADeadDaemonRecorded(t *testing.T) {
	script := "trap '' TERM;" + family + "echo up; exec sleep 1004"
	h := startHelper(t, "daemon "+script, "TEST_MARK="+t.Name())
	p := readRecord(t, h)
	keeper, warden := watchers(t, p)
	left := append(readPids(t, h.out, 3), pinPID(t, p.PID), keeper, warden)
	readLine(t, h.out)
	h.kill()
	e, err := execgate.EndRecorded(bounded(t), p, t.Name(), execgate.Grace{})
	if err != nil || e.Known || len(e.Survivors) > 0 {
		t.Errorf("got %+v, %v", e, err)
	}
	for _, member := range left {
		member.mustBeGone(t)
	}
	again, err := execgate.EndRecorded(bounded(t), p, t.Name(), execgate.Grace{})
	if err != nil || again.How != execgate.HowGone {
		t.Errorf("the second time got %+v, %v, want gone", again, err)
	}
	reapAdopted(t)
}

// Keeper and warden died with the daemon: only the mark leads to what had left the agent's session.
func TestTheMarkFindsWhatNoRecordLeadsTo(t *testing.T) {
	h := startHelper(t, "daemon "+family+"echo up; exec sleep 1004", "TEST_MARK="+t.Name())
	p := readRecord(t, h)
	left := readPids(t, h.out, 3)
	readLine(t, h.out)
	agent := pinPID(t, p.PID)
	keeper, warden := watchers(t, p)
	stopDaemon(t, h) // or it would clean up first
	warden.signal(t, syscall.SIGKILL)
	keeper.signal(t, syscall.SIGKILL)
	if !agent.gone(t, patience) {
		t.Fatal("the agent outlives its keeper")
	}
	h.kill()
	for _, member := range left {
		member.mustLive(t)
	}
	e, err := execgate.EndRecorded(bounded(t), p, t.Name(), execgate.Grace{Term: patience})
	if err != nil || e.How != execgate.HowRecovered {
		t.Errorf("got %+v, %v, want recovered", e, err)
	}
	for _, member := range left {
		member.mustBeGone(t)
	}
	reapAdopted(t)
}

// E-239
func TestRestartLeavesAStrangerWithAReusedPidAlone(t *testing.T) {
	a := gated(t, "true")
	record := a.c.Process()
	must(t, a.c.Abandon(bounded(t)))
	stranger := exec.Command("sleep", "1000")
	must(t, stranger.Start())
	t.Cleanup(func() {
		_ = stranger.Process.Kill() // ends it for the wait
		_ = stranger.Wait()         // killed
	})
	record.PID, record.Keeper = stranger.Process.Pid, nil
	e, err := execgate.EndRecorded(bounded(t), record, "", execgate.Grace{})
	if err != nil || e.How != execgate.HowGone {
		t.Errorf("got %+v, %v, want gone", e, err)
	}
	pinPID(t, stranger.Process.Pid).mustLive(t)
}

// E-241
func TestAnIncompleteRecordIsUnknown(t *testing.T) {
	_, err := execgate.EndRecorded(bounded(t), execgate.Process{PID: 5}, "", execgate.Grace{})
	if !errors.Is(err, execgate.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	if life := execgate.Life(0).String() + execgate.Alive.String() + execgate.Gone.String(); !strings.HasPrefix(life, "unknown") {
		t.Errorf("the zero Life reads %s", life)
	}
}

// The original ends only the group it recorded. What its dead agent left in sessions of their own is
// known by its run's id, which a shell of a person's may carry too while the record is one of ours.
func TestWhatAnAgentOfTheOriginalLeftIsKnownByItsRun(t *testing.T) {
	start := func(env ...string) *pinnedProcess {
		cmd := exec.Command("sleep", "1007")
		cmd.Env, cmd.SysProcAttr = env, &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill() // it has ended where the test is good
			_ = cmd.Wait()         // its status is that of a killed process
		})
		return pinPID(t, cmd.Process.Pid)
	}
	leader, left := start(), start("GREATMINDS_RUN_ID="+t.Name())
	stat, err := proc.ReadStat(leader.pid)
	if err != nil {
		t.Fatal(err)
	}
	record, err := proc.Pin{FD: leader.fd, Stat: stat}.Identity()
	if err != nil {
		t.Fatal(err)
	}
	leader.signal(t, syscall.SIGKILL)
	if !leader.gone(t, patience) {
		t.Fatal("the leader lives")
	}
	ours, keeper := record, record
	ours.Keeper = &keeper
	if _, err := execgate.EndRecorded(bounded(t), ours, t.Name(), execgate.Grace{}); err != nil {
		t.Error(err)
	}
	left.mustLive(t)
	e, err := execgate.EndRecorded(bounded(t), record, t.Name(), execgate.Grace{Term: patience})
	if err != nil || e.How != execgate.HowRecovered {
		t.Errorf("got %+v, %v, want recovered", e, err)
	}
	left.mustBeGone(t)
}
