package commands

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/internal/sourceid"
)

func TestJudge(t *testing.T) {
	own := execgate.Ending{Known: true, How: execgate.HowExited}
	with := func(f func(*execgate.Ending)) execgate.Ending {
		e := own
		f(&e)
		return e
	}
	terminated := execgate.Ending{Known: true, Signal: syscall.SIGTERM, How: execgate.HowStopped}
	for _, c := range []struct {
		name           string
		f              facts
		status, reason string
	}{
		{"success", facts{ending: own}, "succeeded", "exit"},
		{"failure", facts{ending: with(func(e *execgate.Ending) { e.Code = 2 })}, "failed", "exit"},
		{"source changed", facts{ending: own, after: sourceid.Source{SHA256: "x"}}, "stale", "source_changed_during_command"},
		{"commit changed", facts{ending: own, after: sourceid.Source{Commit: "x"}}, "stale", "source_changed_during_command"},
		{"signal", facts{ending: with(func(e *execgate.Ending) { e.Signal = syscall.SIGABRT })}, "failed", "signal"},
		{"timeout", facts{ending: terminated, stopped: reasonTimeout}, "failed", "timeout"},
		{"ended by itself as time was over", facts{ending: own, stopped: reasonTimeout}, "succeeded", "exit"},
		{"cancelled", facts{ending: terminated, stopped: reasonRunCancelled}, "cancelled", "run_cancelled"},
		{"daemon stops", facts{ending: terminated, stopped: context.Canceled}, "cancelled", "run_ended"},
		{"exec failed", facts{launch: &execgate.ExecError{Errno: syscall.ENOEXEC, Path: "p"}, ending: own}, "failed", "execution_error:ENOEXEC"},
		{"exec interrupted", facts{launch: context.Canceled, stopped: reasonRunEnded, ending: own}, "cancelled", "run_ended"},
		{"start refused", facts{launch: refusal.New(refusal.CodeKernelTooOld, "", "old")}, "failed", "execution_error:kernel_too_old"},
		{"start failed", facts{launch: errors.New("x")}, "failed", "execution_error:internal"},
		{"identity failed", facts{ending: own, identity: refusal.New(refusal.CodeSourceTree, "", "link")}, "failed", "identity_check_failed:source_identity"},
		{"output lost", facts{ending: own, output: syscall.ENOSPC}, "failed", "output_error"},
		{"keeper lost", facts{ending: execgate.Ending{How: execgate.HowKeeperLost}}, "needs_recovery", "outcome_unknown"},
		{"something is left", facts{ending: own, tree: execgate.ErrSurvivors}, "needs_recovery", "processes_left"},
		{"cancelled, but something is left", facts{ending: terminated, stopped: reasonRunCancelled, tree: execgate.ErrSurvivors}, "needs_recovery", "processes_left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := judge(c.f)
			if o.status != c.status || o.reason != c.reason {
				t.Errorf("got %s (%s), want %s (%s)", o.status, o.reason, c.status, c.reason)
			}
		})
	}
}

// Whatever the facts are, success needs a known plain exit 0, an unchanged source, stored output and
// an empty tree; and an exit status is only given for a process that had one.
func TestSuccessIsNeverGuessed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fault := rapid.SampledFrom([]error{nil, nil, errors.New("x")})
		f := facts{
			launch: fault.Draw(t, "launch"), tree: fault.Draw(t, "tree"), output: fault.Draw(t, "output"), identity: fault.Draw(t, "identity"),
			stopped: rapid.SampledFrom([]error{nil, reasonTimeout, reasonRunCancelled, context.Canceled}).Draw(t, "stopped"),
			ending: execgate.Ending{
				Known: rapid.Bool().Draw(t, "known"), Code: rapid.IntRange(0, 2).Draw(t, "code"),
				Signal: rapid.SampledFrom([]syscall.Signal{0, syscall.SIGKILL}).Draw(t, "signal"),
				How:    rapid.SampledFrom([]string{execgate.HowExited, execgate.HowStopped, execgate.HowKilled, execgate.HowKeeperLost}).Draw(t, "how"),
			},
			after: sourceid.Source{SHA256: rapid.SampledFrom([]string{"", "x"}).Draw(t, "after")},
		}
		o := judge(f)
		clean := f.launch == nil && f.tree == nil && f.output == nil && f.identity == nil && f.ending.Known && f.ending.Signal == 0
		if o.status == statusSucceeded && (!clean || f.ending.Code != 0 || f.before != f.after) {
			t.Fatalf("%+v succeeded", f)
		}
		if o.exit != nil && (!f.ending.Known || f.ending.Signal != 0 || *o.exit != f.ending.Code) {
			t.Fatalf("%+v has exit %d", f, *o.exit)
		}
		if o.status == statusNeedsRecovery && f.tree == nil && f.ending.Known {
			t.Fatalf("%+v needs recovery", f)
		}
	})
}

func FuzzReadable(f *testing.F) {
	f.Add([]byte("abc\xe2\x82"))
	f.Add([]byte("\xff\xfe"))
	f.Add([]byte("\xf0\x9f\x98\x80"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := readable(text)
		if !utf8.ValidString(got) {
			t.Errorf("%q became %q", text, got)
		}
		if utf8.Valid(text) && got != string(text) {
			t.Errorf("%q was changed to %q", text, got)
		}
		if !strings.HasPrefix(got, string(text[:asciiPrefix(text)])) {
			t.Errorf("%q lost its beginning: %q", text, got)
		}
	})
}

func asciiPrefix(text []byte) int {
	for i, b := range text {
		if b >= utf8.RuneSelf {
			return i
		}
	}
	return len(text)
}
