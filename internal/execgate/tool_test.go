package execgate_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"greatminds/internal/execgate"
)

func shell(script string) execgate.Tool {
	return execgate.Tool{Argv: []string{"sh", "-c", script}, Env: []string{path}, Dir: "/"}
}

func TestToolOutputAndStatus(t *testing.T) {
	long := strings.Repeat("x", 300_000)
	for _, c := range []struct {
		name string
		tool execgate.Tool
		want execgate.ToolOutput
	}{
		{"both streams and a status", shell("echo out; echo err >&2; exit 4"), execgate.ToolOutput{Stdout: []byte("out\n"), Stderr: []byte("err\n"), Code: 4}},
		{"input", execgate.Tool{Argv: []string{"cat"}, Env: []string{path}, Dir: "/", Stdin: []byte(long)}, execgate.ToolOutput{Stdout: []byte(long)}},
		{"input that nobody reads", execgate.Tool{Argv: []string{"true"}, Env: []string{path}, Dir: "/", Stdin: []byte(long)}, execgate.ToolOutput{}},
		{"a signal", shell("kill -TERM $$"), execgate.ToolOutput{Code: 128 + int(syscall.SIGTERM)}},
		{"too much output", execgate.Tool{Argv: []string{"sh", "-c", "cat; echo done >&2"}, Env: []string{path}, Dir: "/", Stdin: []byte(long), MaxOutput: 5},
			execgate.ToolOutput{Stdout: []byte("xxxxx"), Stderr: []byte("done\n"), Truncated: true}},
		{"folder and empty environment", execgate.Tool{Argv: []string{"/bin/sh", "-c", "pwd; echo ${GREATMINDS_EXECGATE-none}"}, Dir: "/usr"}, execgate.ToolOutput{Stdout: []byte("/usr\nnone\n")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.tool.MaxOutput == 5 {
				c.want.Stderr = c.want.Stderr[:5]
			}
			got, err := execgate.RunTool(bounded(t), c.tool)
			if err != nil || string(got.Stdout) != string(c.want.Stdout) || string(got.Stderr) != string(c.want.Stderr) || got.Code != c.want.Code || got.Truncated != c.want.Truncated {
				t.Errorf("got %.80q %.80q code %d truncated %v, %v", got.Stdout, got.Stderr, got.Code, got.Truncated, err)
			}
			noChildren(t)
		})
	}
}

func TestAToolThatCannotBeStarted(t *testing.T) {
	for name, tool := range map[string]execgate.Tool{
		"missing":        {Argv: []string{"no-such-tool"}, Env: []string{path}, Dir: "/"},
		"missing folder": {Argv: []string{"true"}, Env: []string{path}, Dir: "/nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execgate.RunTool(bounded(t), tool)
			var fault *execgate.ExecError
			if !errors.As(err, &fault) || fault.Errno != syscall.ENOENT {
				t.Errorf("got %v, want an ExecError with ENOENT", err)
			}
			noChildren(t)
		})
	}
}

func TestAToolOutOfTimeRemovesItsLockFile(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, tool execgate.Tool) error
		want error
	}{
		{"time limit", func(t *testing.T, tool execgate.Tool) error {
			tool.Timeout = 300 * time.Millisecond
			_, err := execgate.RunTool(bounded(t), tool)
			return err
		}, execgate.ErrToolTimeout},
		{"cancelled", func(t *testing.T, tool execgate.Tool) error {
			ctx, cancel := context.WithTimeout(bounded(t), 300*time.Millisecond)
			defer cancel()
			_, err := execgate.RunTool(ctx, tool)
			return err
		}, context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			lock := filepath.Join(t.TempDir(), "index.lock")
			err := c.run(t, shell("trap 'rm "+lock+"; exit 1' TERM; > "+lock+"; sleep 1000 & wait"))
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if _, err := os.Stat(lock); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the lock file is left: %v", err)
			}
			noChildren(t)
		})
	}
}

// A killed daemon leaves no lock of git's in the user's checkout, and nothing that ignores the
// polite request either.
func TestAKilledDaemonLetsItsToolRemoveItsLockFile(t *testing.T) {
	dir := t.TempDir()
	lock, ready := filepath.Join(dir, "index.lock"), filepath.Join(dir, "ready")
	must(t, syscall.Mkfifo(ready, 0o600))
	h := startHelper(t, "daemon-of-tool trap 'rm "+lock+"; exit 1' TERM; > "+lock+
		"; (trap '' TERM; exec sleep 1005) & { echo $PPID; echo $$; echo $!; } > "+ready+"; wait")
	said, err := os.ReadFile(ready) // returns once the script has said so
	must(t, err)
	pins := readPids(t, bufio.NewReader(strings.NewReader(string(said))), 3)
	h.kill()
	for _, p := range pins[1:] {
		if !p.gone(t, patience) {
			t.Fatalf("pid %d outlives the daemon", p.pid)
		}
	}
	reapOrphans(t, pins[0])
	if _, err := os.Stat(lock); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock file is left: %v", err)
	}
	noChildren(t)
}

func TestWhatAToolLeavesBehindIsEnded(t *testing.T) {
	out, err := execgate.RunTool(bounded(t), shell("setsid sleep 1000 & echo $!"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(out.Stdout))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("pid %s is left: %v", out.Stdout, err)
	}
	noChildren(t)
}

func TestGitEnv(t *testing.T) {
	got := execgate.GitEnv([]string{"PATH=/bin", "GIT_DIR=/elsewhere", "GIT_CONFIG_PARAMETERS='a.b=c'", "LC_ALL=de_DE", "GREATMINDS_MARK=x", "HOME=/h"})
	for _, want := range []string{"PATH=/bin", "HOME=/h", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"} {
		if !slices.Contains(got, want) {
			t.Errorf("lacks %s: %v", want, got)
		}
	}
	for _, entry := range got {
		for _, unwanted := range []string{"GIT_DIR", "GIT_CONFIG_PARAMETERS", "LC_ALL=de", "GREATMINDS"} {
			if strings.HasPrefix(entry, unwanted) {
				t.Errorf("holds %s", entry)
			}
		}
	}
	out, err := execgate.RunTool(bounded(t), execgate.Tool{Argv: []string{"git", "config", "gc.auto"}, Env: execgate.GitEnv(os.Environ()), Dir: "/"})
	if err != nil || string(out.Stdout) != "0\n" {
		t.Errorf("git sees gc.auto %q, %v", out.Stdout, err)
	}
}
