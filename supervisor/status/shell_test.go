package status_test

import (
	"os/exec"
	"testing"

	"greatminds/supervisor/status"
)

// What stands in the command is one word for a shell, whatever an agent calls its options; what cannot
// be shown as it is is answered by number.
func TestAnswerCommandIsSafeToPaste(t *testing.T) {
	const show = "greatminds run permission p1"
	for _, option := range []string{"allow-once", "proceed_once", "ok; touch pwned", "$(touch pwned)", "`touch pwned`", "it's", `a"b\c`, "a b", "*", "é", "-n", "--help", "#", "a&b|c>d"} {
		script := `greatminds() { shift 3; case $1 in --option=*) printf %s "${1#--option=}";; *) printf %s "$2";; esac; }; ` + status.AnswerCommand("p1", option)
		out, err := exec.Command("/bin/sh", "-c", script).CombinedOutput()
		if err != nil || string(out) != option {
			t.Errorf("%q is pasted as %q (%v)", option, out, err)
		}
	}
	for _, option := range []string{"", "a\nb", "\x1b[2J", "a\u202eb", "\xff", "a\u00a0b"} {
		if got := status.AnswerCommand("p1", option); got != show {
			t.Errorf("%q: got %q", option, got)
		}
	}
}
