package supervisor

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"greatminds/internal/durable"
	"greatminds/internal/execgate"
	"greatminds/internal/execgate/proc"
	"greatminds/runstore"
)

// What a dead supervisor's run left, with its keeper gone too, is ended before anybody can read
// that the run was interrupted.
//
// E-239 E-240
func TestNothingOfARunLivesWhenItIsRecordedAsInterrupted(t *testing.T) {
	t.Parallel()
	h := newHouse(t, plan{steps: waiting})
	h.task("feature_dev", taskID)
	const run = runstore.RunID("0123456789abcdef0123456789abcdef")
	left, fds := orphans(t, string(run))
	h.open()
	recordRunning(t, h, run, left)
	h.shut()

	var interrupted, alive atomic.Int64
	h.during(func(s durable.Step) {
		if s.Op != durable.OpWrite || filepath.Base(s.Path) != "journal.jsonl" || !bytes.Contains(s.Data, []byte(`"interrupted"`)) {
			return
		}
		interrupted.Add(1)
		for _, fd := range fds {
			if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0); n == 0 || err != nil {
				alive.Add(1)
			}
		}
	})
	h.open()
	state := h.d.store.View().Run(run)
	h.shut()
	if interrupted.Load() != 1 || alive.Load() != 0 {
		t.Errorf("%d records of the interruption, %d processes alive at it", interrupted.Load(), alive.Load())
	}
	if state.State != runstore.Interrupted || state.Process != nil {
		t.Errorf("the run is %s, process %v", state.State, state.Process)
	}
}

// orphans starts a process that carries a run's mark and has a child in a session of its own,
// as an agent whose keeper is gone, and returns its identity and both pidfds.
func orphans(t *testing.T, mark string) (execgate.Process, []int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "setsid sleep 600 & echo $!; exec sleep 600")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GREATMINDS_MARK=" + mark}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(line))
	must(t, err)
	first, err := proc.PinPID(cmd.Process.Pid)
	must(t, err)
	second, err := proc.PinPID(child)
	must(t, err)
	t.Cleanup(func() {
		for _, p := range []proc.Pin{first, second} {
			_ = proc.Signal(p.FD, syscall.SIGKILL) // they have ended where the test passed
			proc.CloseFD(p.FD)
		}
		_ = cmd.Wait() // recovery may have reaped it
	})
	who, err := first.Identity()
	must(t, err)
	return who, []int{first.FD, second.FD}
}

// recordRunning writes a run into the store as a supervisor leaves it that dies in its turn.
func recordRunning(t *testing.T, h *house, id runstore.RunID, p execgate.Process) {
	t.Helper()
	task, err := h.d.tree.ReadCurrent(taskID)
	must(t, err)
	must(t, h.d.store.Update(t.Context(), func(tx *runstore.Tx) error {
		_, _, err := tx.Claim(runstore.Claim{ID: id, OwnerID: "dead", TaskID: taskID, TaskPath: task.File, TaskRevision: runstore.Revision(task.Revision),
			Role: "DEVELOPER", BindingID: "dev", AgentID: "dev", ConfigSHA256: h.d.contractSHA, SchemaSHA256: h.d.schema.SHA256,
			SchemaVersion: h.d.schema.Version, Workspace: h.root, Account: "default", Permission: "ask"}, nil)
		if err != nil {
			return err
		}
		for _, step := range []func() error{
			func() error { return tx.Transition(id, "1", runstore.Starting, "", nil) },
			func() error { return tx.RecordProcess(id, p) },
			func() error { return tx.Transition(id, "2", runstore.Running, "", nil) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}))
}
