package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"greatminds/fixtures/original"
	"greatminds/internal/execgate"
)

// binaries is the folder of the programs that the scripts run: the ones that are shipped, built
// from this tree.
var binaries string

func TestMain(m *testing.M) {
	execgate.Main()
	dir, err := os.MkdirTemp("", "greatminds-bin-")
	if err == nil {
		binaries, err = dir, build(dir, "greatminds/cmd/greatminds", "greatminds/cmd/coordd")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build the programs:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(dir); err != nil && code == 0 {
			code = 1
		}
		os.Exit(code)
	}))
}

func build(dir string, packages ...string) error {
	cmd := exec.Command("go", append([]string{"build", "-o", dir + "/"}, packages...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// TestScripts runs each flow of testdata/script on the built programs.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("PATH", binaries+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("HOME", home)
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			d := &background{}
			env.Values[backgroundKey{}] = d
			env.Defer(d.end)
			return os.MkdirAll(home, 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "repository": repository, "daemon": controlDaemon, "awaits": awaits,
			"original": layOriginal},
	})
}

// exits runs a program and checks its exit status: "exits 2 greatminds run". Output is left for
// stdout and stderr as exec leaves it.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		got = ended.ExitCode()
	case err != nil:
		ts.Fatalf("%s: %v", strings.Join(args[1:], " "), err)
	}
	if got != want {
		ts.Fatalf("%s: exit status %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// layOriginal puts a project that the original has left into the folder that repository made:
// "original NAME".
func layOriginal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: original NAME")
	}
	ts.Check(original.Write(ts.MkAbs("."), args[0]))
}

// repository makes a git repository with one commit on branch main and steps into it:
// "repository DIR".
func repository(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: repository DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(ts.Chdir(dir))
	ts.Check(ts.Exec("git", "init", "--quiet", "--initial-branch=main"))
	ts.Check(ts.Exec("git", "-c", "user.name=Somebody", "-c", "user.email=somebody@localhost", "commit", "--quiet", "--allow-empty", "--message=start"))
}
