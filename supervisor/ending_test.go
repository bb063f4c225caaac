package supervisor

import (
	"syscall"
	"testing"

	"greatminds/internal/execgate"
	"greatminds/runstore"
)

// E-489. What time may mend is tried again; what only a person can mend waits for one.
func TestALaunchThatFailed(t *testing.T) {
	for errno, want := range map[syscall.Errno][2]string{
		syscall.ENOENT:  {configurationError, "FileNotFoundError"},
		syscall.EACCES:  {configurationError, "PermissionError"},
		syscall.ENOEXEC: {configurationError, "OSError"},
		syscall.EAGAIN:  {transportFailure, "OSError"},
		syscall.ENOMEM:  {transportFailure, "OSError"},
		syscall.EMFILE:  {transportFailure, "OSError"},
		syscall.ENFILE:  {transportFailure, "OSError"},
		syscall.ETXTBSY: {transportFailure, "OSError"},
	} {
		e := execution{run: &runstore.Run{ID: "r"}}
		end := e.launchFailed(&execgate.ExecError{Errno: errno, Path: "/agent"})
		if end.reason != want[0] || e.outcome.errorType != want[1] {
			t.Errorf("%v: got %s (%s), want %s", errno, end.reason, e.outcome.errorType, want)
		}
	}
}
