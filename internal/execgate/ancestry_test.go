package execgate_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"greatminds/internal/execgate"
	"greatminds/internal/execgate/proc"
)

// identityOf reads the identity of a child that the test has not reaped.
func identityOf(t *testing.T, pid int) execgate.Process {
	t.Helper()
	pin := pinPID(t, pid)
	stat, err := proc.ReadStat(pid)
	if err != nil {
		t.Fatal(err)
	}
	record, err := proc.Pin{FD: pin.fd, Stat: stat}.Identity()
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// deadProcess is the record of a process that has ended.
func deadProcess(t *testing.T) execgate.Process {
	t.Helper()
	cmd := exec.Command("sleep", "1008")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	record := identityOf(t, cmd.Process.Pid)
	_ = cmd.Process.Kill() // ends it for the wait
	_ = cmd.Wait()         // killed
	return record
}

// A daemon that is started from a shell with a run's id, or by a process of the run, would end itself
// with what it descends from. The shell of a person is spared, with its jobs; a process of the run is
// named, and holds the run. E-240, E-241
func TestARecoveryNeverEndsWhatItDescendsFrom(t *testing.T) {
	for _, c := range []struct {
		name, variable string
		recorded       bool // the shell is the recorded process itself
		status         string
	}{
		{"a shell with the id of a run", "GREATMINDS_RUN_ID", false, "0"},
		{"a process with the run's mark", "GREATMINDS_MARK", false, "1"},
		{"the recorded process", "NONE", true, "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The daemon is a child of the shell, beside a job. The shell tells how all of them fared.
			cmd := exec.Command("sh", "-c", "exec 5<&0; sleep 1008 >/dev/null & "+
				"( /proc/$PPID/exe <&5 ); echo status $?; kill $! && echo both lived")
			cmd.Env = []string{path, roleVariable + "=recover", "TEST_MARK=" + t.Name(), c.variable + "=" + t.Name()}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var out, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			record := deadProcess(t)
			if c.recorded {
				record = identityOf(t, cmd.Process.Pid)
			}
			if err := json.NewEncoder(in).Encode(record); err != nil {
				t.Fatal(err)
			}
			_ = in.Close() // a pipe has nothing to flush
			err = cmd.Wait()
			if want := "status " + c.status + "\nboth lived\n"; err != nil || !strings.HasSuffix(out.String(), want) {
				t.Errorf("the shell ended with %v and said %q, want %q at the end; %s", err, out.String(), want, stderr.String())
			}
			if named := strings.Contains(stderr.String(), "descends"); named != (c.status == "1") {
				t.Errorf("the recovery said %q", stderr.String())
			}
		})
	}
}
