package execgate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"greatminds/internal/execgate"
)

// In a pid namespace with the /proc of another one every number is somebody else's, and a recorded
// process that lives cannot be seen: it is unknown, not gone. E-241
func TestNothingIsToldFromTheProcOfAnotherNamespace(t *testing.T) {
	a := running(t, "echo up; exec sleep 1009")
	a.line()
	record, err := json.Marshal(a.c.Process())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{path, roleVariable + "=recover", "TEST_MARK=" + t.Name()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID}
	cmd.Stdin = bytes.NewReader(record)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("no pid namespaces for this user: %v", err)
	}
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "/proc") || !strings.Contains(string(out), "unknown") {
		t.Errorf("the recovery ended with %v and said %q, want that the state is unknown because of /proc", err, out)
	}
	a.stop(execgate.Grace{})
}
