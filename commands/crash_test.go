package commands_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"greatminds/commands"
	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
)

// playDaemon opens the store of a lab and carries the request r1 out, until it is killed. It prints
// "reached" at the step that its role names.
func playDaemon(role string) int {
	ctx := context.Background()
	if err := execgate.BecomeSubreaper(); err != nil {
		return failed(err)
	}
	dir := os.Getenv("LAB_DIR")
	parsed, err := contract.Parse("execution.yaml", []byte(os.Getenv("LAB_CONTRACT")), contract.EmbeddedSchema())
	if err != nil {
		return failed(err)
	}
	disk := durable.NewDisk(seam(role))
	store, err := runstore.Open(ctx, runstore.Options{Dir: dir, Disk: durable.NewDisk(nil), Now: time.Now})
	if err != nil {
		return failed(err)
	}
	service, err := commands.New(commands.Options{
		Store: store, Disk: disk, Dir: dir, Now: time.Now, Environ: os.Environ(), Owner: "killed",
		Contract: func(string) (*contract.Contract, error) { return parsed, nil },
	})
	if err != nil {
		return failed(err)
	}
	if err := service.Execute(ctx, "r1"); err != nil {
		return failed(err)
	}
	return failed(fmt.Errorf("the command ended, r1 is %s", store.View().Command("r1").Status))
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, "daemon:", err)
	return 1
}

// seam stops the daemon before a named step, for ever; the command itself reports otherwise.
type seam string

func (s seam) Before(step durable.Step) error {
	if string(s) == "before "+step.Name {
		fmt.Println("reached")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
	}
	return nil
}

func (s seam) After(_ durable.Step, err error) error { return err }

// killedDaemon requests a command, lets a daemon carry it out until "reached" can be read from
// where, or from its own output, kills it there and restarts the lab.
func killedDaemon(l *lab, definition, role, where string) {
	l.t.Helper()
	_, err := l.admit("c", "r1")
	l.must(err)
	l.close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(l.environ, roleVariable+"="+role, "LAB_DIR="+l.runtime(), "LAB_CONTRACT="+contractText(definition))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	l.must(err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	l.must(err)
	from := io.Reader(out)
	l.must(cmd.Start())
	if where != "" {
		fifo, err := os.Open(filepath.Join(l.dir, where)) // waits for the command
		l.must(err)
		defer fifo.Close()
		from = fifo
	}
	if line, err := bufio.NewReader(from).ReadString('\n'); line != "reached\n" {
		l.t.Errorf("read %q, %v", line, err)
	}
	l.must(cmd.Process.Kill())
	_ = cmd.Wait() // killed
	l.open()
}

func contractText(definition string) string {
	return "version: 1\nagents:\n  a: {transport: acp, argv: [agent], adapter_version: \"1\", harness_version: \"1\"}\n" +
		"bindings:\n  b: {role: DEVELOPER, agent: a, workspace: \".\"}\ncommands:\n" + definition
}

// E-090, E-115, E-116, E-118
func TestACrashAtTheGateExecutesNothing(t *testing.T) {
	definition := shell("c", "touch ran.log")
	l := newLab(t, definition)
	l.repository()
	killedDaemon(l, definition, "before command.open", "")
	c := l.receipt("r1")
	if c.Status != "running" || c.Process == nil {
		t.Fatalf("got %s with process %v, want the process on record before the gate opens", c.Status, c.Process)
	}
	l.must(l.service.Recover(t.Context()))
	wantOutcome(t, l.receipt("r1"), "needs_recovery", "supervisor_restart")
	l.must(l.service.Execute(t.Context(), "r1"))
	if l.exists("ran.log") {
		t.Error("the command was executed")
	}
}

// E-116, E-118, E-120
func TestACommandWhoseDaemonDiedWaitsForAPerson(t *testing.T) {
	definition := shell("c", "echo x >> count.log; setsid sleep 1000 & echo $! > pid.log; echo reached > started.log; read x < started.log")
	l := newLab(t, definition)
	l.repository()
	l.must(syscall.Mkfifo(filepath.Join(l.dir, "started.log"), 0o600))
	killedDaemon(l, definition, "until killed", "started.log")
	process := *l.receipt("r1").Process
	l.must(l.service.Recover(t.Context()))
	c := l.receipt("r1")
	wantOutcome(t, c, "needs_recovery", "supervisor_restart")
	for _, p := range []*runstore.Process{&process, process.Keeper} {
		if life, err := execgate.Look(execgate.Process{PID: p.PID, StartTicks: p.StartTicks, BootID: p.BootID}); life != execgate.Gone {
			t.Errorf("pid %d is %v, %v", p.PID, life, err)
		}
	}
	if cmdline, err := os.ReadFile("/proc/" + strings.TrimSpace(l.read("pid.log")) + "/cmdline"); err == nil && strings.Contains(string(cmdline), "sleep") {
		t.Errorf("a child is left: %q", cmdline)
	}
	// Nothing repeats it: not a request, not another restart, not the resolution.
	for range 2 {
		l.reopen()
		l.must(l.service.Recover(t.Context()))
		l.must(l.service.Execute(t.Context(), "r1"))
	}
	if _, err := l.admit("c", "r2"); err == nil {
		t.Error("another command of the run was accepted")
	}
	l.must(l.store.Update(t.Context(), func(tx *runstore.Tx) error {
		return tx.SetCommand("r1", "resolved", func(c *runstore.Command) { c.Resolution = "looked at it" })
	}))
	l.must(l.service.Execute(t.Context(), "r1"))
	if why := l.stale(l.receipt("r1")); why == "" {
		t.Error("a resolved command counts as evidence")
	}
	if got := l.read("count.log"); got != "x\n" {
		t.Errorf("carried out %q, want once", got)
	}
}

// E-115
func TestARequestWithoutProcessIsCancelledAtARestart(t *testing.T) {
	for _, status := range []string{"queued", "starting"} {
		t.Run(status, func(t *testing.T) {
			l := newLab(t, shell("c", "touch ran"))
			_, err := l.admit("c", "r1")
			l.must(err)
			l.must(l.store.Update(t.Context(), func(tx *runstore.Tx) error { return tx.SetCommand("r1", status, nil) }))
			l.reopen()
			l.must(l.service.Recover(t.Context()))
			wantOutcome(t, l.receipt("r1"), "cancelled", "supervisor_restart")
			l.must(l.service.Execute(t.Context(), "r1"))
			if l.exists("ran") {
				t.Error("it was carried out")
			}
		})
	}
}

// E-239, E-241
func TestRecoveryTouchesNoStrangerAndGuessesNothing(t *testing.T) {
	l := newLab(t, shell("c", "true"))
	stranger := exec.Command("sleep", "1000")
	l.must(stranger.Start())
	defer func() {
		_ = stranger.Process.Kill() // ends it for the wait
		_ = stranger.Wait()         // killed
	}()
	lives := pin(t, stranger.Process.Pid)
	done := l.carryOut("c", "r1").Process // a real record, of this boot
	for _, c := range []struct {
		id      string
		process runstore.Process
		unknown bool
	}{
		{"reused", runstore.Process{PID: stranger.Process.Pid, StartTicks: done.StartTicks + 1<<40, BootID: done.BootID}, false},
		{"nameless", runstore.Process{PID: stranger.Process.Pid, StartTicks: done.StartTicks}, true},
	} {
		_, err := l.admit("c", c.id)
		l.must(err)
		l.must(l.store.Update(t.Context(), func(tx *runstore.Tx) error {
			id := runstore.CommandID(c.id)
			return errors.Join(tx.SetCommand(id, "starting", nil),
				tx.SetCommand(id, "running", func(r *runstore.Command) { r.Process = &c.process }))
		}))
		err = l.service.Recover(t.Context())
		if c.unknown {
			wantCode(t, err, refusal.CodeCommandProcess)
			if got := l.receipt(c.id).Status; got != "running" {
				t.Errorf("%s: got %s, want it untouched", c.id, got)
			}
		} else {
			l.must(err)
			wantOutcome(t, l.receipt(c.id), "needs_recovery", "supervisor_restart")
			l.must(l.store.Update(t.Context(), func(tx *runstore.Tx) error { return tx.SetCommand(runstore.CommandID(c.id), "resolved", nil) }))
		}
		if lives() {
			t.Errorf("%s: the stranger was ended", c.id)
		}
	}
}

// E-076, E-114
func TestCancelRunEndsTheCommandFirst(t *testing.T) {
	for _, c := range []struct {
		name   string
		cancel bool
		reason string
	}{{"operator", true, "run_cancelled"}, {"end of the run", false, "run_ended"}} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, shell("c", `trap "" TERM; setsid sleep 1000 & echo $!; sleep 1000`))
			end := l.begin("c", "r1")
			l.until("a running command", func(v *runstore.View) bool { return v.Command("r1").Status == "running" })
			process := l.receipt("r1").Process
			gone := pin(t, process.PID)
			if below, err := execgate.Descends(process.PID, os.Getpid()); err != nil || !below {
				t.Errorf("the command descends from this process: %v, %v", below, err)
			}
			if c.cancel {
				l.must(l.store.Update(t.Context(), func(tx *runstore.Tx) error {
					_, err := tx.RequestControl(l.run, "cancel")
					return err
				}))
			}
			l.must(l.service.CancelRun(t.Context(), l.run))
			r := l.receipt("r1")
			wantOutcome(t, r, "cancelled", c.reason)
			if r.ExitCode != nil || !gone() {
				t.Errorf("exit %v, process gone: %v", r.ExitCode, gone())
			}
			l.must(<-end)
			if pid := strings.TrimSpace(l.stdout(r)); pid != "" {
				if cmdline, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && strings.Contains(string(cmdline), "sleep") {
					t.Errorf("a child is left: %q", cmdline)
				}
			}
			l.must(l.service.CancelRun(t.Context(), l.run)) // nothing is left to cancel
		})
	}
}

func TestCancelRunCancelsWhatWasNotCarriedOutYet(t *testing.T) {
	l := newLab(t, shell("c", "touch ran"))
	_, err := l.admit("c", "r1")
	l.must(err)
	l.must(l.service.CancelRun(t.Context(), l.run))
	wantOutcome(t, l.receipt("r1"), "cancelled", "run_ended")
	l.must(l.service.Execute(t.Context(), "r1"))
	if l.exists("ran") {
		t.Error("it was carried out")
	}
}

func TestTheEndOfTheDaemonEndsTheCommand(t *testing.T) {
	l := newLab(t, shell("c", "sleep 1000"))
	_, err := l.admit("c", "r1")
	l.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.service.Execute(ctx, "r1") }()
	l.until("a running command", func(v *runstore.View) bool { return v.Command("r1").Status == "running" })
	cancel()
	l.must(<-done)
	wantOutcome(t, l.receipt("r1"), "cancelled", "run_ended")
}

func TestOneRequestIsCarriedOutOnceAtTheSameTime(t *testing.T) {
	l := newLab(t, shell("c", "echo x >> count.log"))
	l.repository()
	_, err := l.admit("c", "r1")
	l.must(err)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if err := l.service.Execute(t.Context(), "r1"); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := l.read("count.log"); got != "x\n" {
		t.Errorf("carried out %q", got)
	}
}

// A command that kills the process watching over it has no known outcome.
func TestALostKeeperLeavesTheOutcomeToAPerson(t *testing.T) {
	l := newLab(t, shell("c", "kill -9 $PPID; sleep 1000"))
	r := l.carryOut("c", "r1")
	wantOutcome(t, r, "needs_recovery", "outcome_unknown")
	if why := l.stale(r); why == "" {
		t.Error("it counts as evidence")
	}
	l.must(l.service.CancelRun(t.Context(), l.run))
}

// failing lets one kind of durable step fail.
type failing func(durable.Step) bool

func (f failing) Before(s durable.Step) error {
	if f(s) {
		return syscall.ENOSPC
	}
	return nil
}

func (f failing) After(_ durable.Step, err error) error { return err }

// E-090
func TestWithoutARecordNothingIsExecuted(t *testing.T) {
	l := newLab(t, shell("c", "touch ran"))
	l.close()
	l.disk = durable.NewDisk(failing(func(s durable.Step) bool { return strings.Contains(string(s.Data), `"status":"running"`) }))
	l.open()
	_, err := l.admit("c", "r1")
	l.must(err)
	if err := l.service.Execute(t.Context(), "r1"); err == nil {
		t.Error("the failure of the store was not reported")
	}
	if l.exists("ran") {
		t.Error("it was executed without a record")
	}
	l.disk = nil
	l.reopen()
	if c := l.receipt("r1"); c.Process != nil {
		t.Errorf("got process %v", c.Process)
	}
	wantOutcome(t, l.receipt("r1"), "failed", "execution_error:store_write_failed")
}

// An outcome that finds no room is kept, and recorded at the next try; nothing runs twice.
func TestAnOutcomeThatTheStoreDidNotTakeIsRecordedLater(t *testing.T) {
	for _, how := range []string{"execute", "cancel the run"} {
		t.Run(how, func(t *testing.T) {
			l := newLab(t, shell("c", "echo x >> count.log"))
			l.repository()
			l.close()
			var full atomic.Bool
			full.Store(true)
			l.disk = durable.NewDisk(failing(func(s durable.Step) bool {
				return full.Load() && strings.Contains(string(s.Data), `"status":"succeeded"`)
			}))
			l.open()
			_, err := l.admit("c", "r1")
			l.must(err)
			for range 2 {
				if err := l.service.Execute(t.Context(), "r1"); err == nil || !l.service.Unsettled("r1") {
					t.Errorf("got %v, unsettled %v", err, l.service.Unsettled("r1"))
				}
			}
			if err := l.service.CancelRun(t.Context(), l.run); err == nil {
				t.Error("the run's command has no outcome, but nobody is told")
			}
			full.Store(false)
			if how == "execute" {
				l.must(l.service.Execute(t.Context(), "r1"))
			} else {
				l.must(l.service.CancelRun(t.Context(), l.run))
			}
			r := l.receipt("r1")
			wantOutcome(t, r, "succeeded", "exit")
			if r.Output == nil || r.SourceAfter == nil || l.service.Unsettled("r1") || l.stale(r) != "" {
				t.Errorf("got %+v, stale: %q", r, l.stale(r))
			}
			if n := strings.Count(l.read("count.log"), "x"); n != 1 {
				t.Errorf("it ran %d times", n)
			}
		})
	}
}

func TestOutputThatCannotBeStoredIsNoEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		fault failing
		ran   bool
	}{
		"no folder":        {func(s durable.Step) bool { return strings.HasSuffix(s.Path, "command-output") }, false},
		"contents":         {func(s durable.Step) bool { return s.Name == "command-output.sync" }, true},
		"entry of a file":  {func(s durable.Step) bool { return strings.HasSuffix(s.Path, "command-output/r1") && s.Op == "syncdir" }, true},
		"the gate's own":   {func(s durable.Step) bool { return s.Name == "command.open" }, false},
		"the evidence key": {func(s durable.Step) bool { return strings.Contains(s.Path, "evidence.key") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, shell("c", "echo x > ran.log; echo out"))
			l.repository()
			l.close()
			l.disk = durable.NewDisk(c.fault)
			l.open()
			r := l.carryOut("c", "r1")
			if r.Status != "failed" || r.Reason == "exit" {
				t.Errorf("got %s (%s)", r.Status, r.Reason)
			}
			if why := l.stale(r); why == "" {
				t.Error("it counts as evidence")
			}
			if l.exists("ran.log") != c.ran {
				t.Errorf("executed: %v, want %v (%s)", !c.ran, c.ran, r.Reason)
			}
		})
	}
}
