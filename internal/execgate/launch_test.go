package execgate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"greatminds/internal/execgate"
)

func procText(t *testing.T, pid int, name string) string {
	t.Helper()
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "\x00", "\n")
}

// E-222, E-237
func TestTheGateIsTheProcessThatBecomesTheAgent(t *testing.T) {
	touched := filepath.Join(t.TempDir(), "ran")
	a := gated(t, "echo $$; > "+touched+"; exec sleep 1000", "SECRET=do-not-show-me")
	p := a.c.Process()
	if _, err := os.Stat(touched); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("the program ran before the gate was opened")
	}
	for _, pid := range []int{p.PID, p.Keeper.PID, p.Keeper.Keeper.PID} {
		for _, name := range []string{"cmdline", "environ"} {
			if text := procText(t, pid, name); strings.Contains(text, "do-not-show-me") {
				t.Errorf("%s of a waiting process shows the launch's environment:\n%s", name, text)
			}
		}
	}
	a.open()
	if got := a.line(); got != strconv.Itoa(p.PID) {
		t.Errorf("got an agent with pid %s, the record says %d", got, p.PID)
	}
	if life, err := execgate.Look(p); life != execgate.Alive || err != nil {
		t.Errorf("got %v, %v for the record after exec, want alive", life, err)
	}
	stat := strings.Fields(procText(t, p.PID, "stat"))
	if group, session := stat[4], stat[5]; group != strconv.Itoa(p.Group) || session != strconv.Itoa(p.Session) || p.Group != p.PID || p.Session != p.PID {
		t.Errorf("group %s, session %s in stat; record %+v; want both its own pid", group, session, p)
	}
	if p.BootID == "" || p.StartTicks == 0 || p.Keeper.PID == p.PID || p.Keeper.Session != p.Keeper.PID || p.Keeper.Keeper.Session != p.Keeper.Keeper.PID {
		t.Errorf("incomplete record: %+v, keeper %+v, warden %+v", p, p.Keeper, p.Keeper.Keeper)
	}
}

// E-238
func TestAClosedGateExecutesNothing(t *testing.T) {
	touched := filepath.Join(t.TempDir(), "ran")
	a := gated(t, "> "+touched)
	gate := pinPID(t, a.c.Process().PID)
	if err := a.c.Abandon(bounded(t)); err != nil {
		t.Fatal(err)
	}
	gate.mustBeGone(t)
	a.ends()
	if err := a.c.Open(bounded(t)); !errors.Is(err, execgate.ErrGateUsed) {
		t.Errorf("open after abandon: got %v, want ErrGateUsed", err)
	}
	e := a.stop(execgate.Grace{})
	if e.Known || e.How != execgate.HowAbandoned {
		t.Errorf("got %+v, want abandoned without a status", e)
	}
	if _, err := os.Stat(touched); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the program ran")
	}
}

// E-238
func TestADaemonKilledAtTheGateExecutesNothing(t *testing.T) {
	touched := filepath.Join(t.TempDir(), "ran")
	h := startHelper(t, "daemon-at-gate > "+touched)
	p := readRecord(t, h)
	gate := pinPID(t, p.PID)
	keeper, warden := watchers(t, p)
	h.kill()
	reapOrphans(t, gate, keeper, warden)
	if _, err := os.Stat(touched); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the program ran though nobody opened the gate")
	}
	noChildren(t)
}

func TestExitStatusComesThrough(t *testing.T) {
	for _, c := range []struct {
		name, script string
		want         execgate.Ending
	}{
		{"zero", "exit 0", execgate.Ending{Known: true, How: execgate.HowExited}},
		{"nonzero", "exit 3", execgate.Ending{Known: true, Code: 3, How: execgate.HowExited}},
		{"signal", "kill -SEGV $$", execgate.Ending{Known: true, Signal: syscall.SIGSEGV, How: execgate.HowExited}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := running(t, c.script)
			a.ends()
			got := a.stop(execgate.Grace{})
			got.Took = 0
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if again := a.stop(execgate.Grace{}); again.Code != got.Code || again.How != got.How {
				t.Errorf("the second stop says %+v, the first %+v", again, got)
			}
		})
	}
}

func TestAFailedExecNamesErrnoAndPath(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	broken := filepath.Join(dir, "broken")
	must(t, os.WriteFile(plain, []byte("x"), 0o644))
	must(t, os.WriteFile(broken, []byte("no program\n"), 0o755))
	must(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "bin", "hidden"), []byte("x"), 0o644))
	for _, c := range []struct {
		name string
		l    execgate.Launch
		want syscall.Errno
		path string
	}{
		{"missing file", execgate.Launch{Argv: []string{"/nowhere/agent"}}, syscall.ENOENT, "/nowhere/agent"},
		{"missing in PATH", execgate.Launch{Argv: []string{"no-such-agent"}, Env: []string{path}}, syscall.ENOENT, "no-such-agent"},
		{"not executable", execgate.Launch{Argv: []string{plain}}, syscall.EACCES, plain},
		{"not executable in PATH", execgate.Launch{Argv: []string{"hidden"}, Env: []string{"PATH=" + dir + "/bin"}}, syscall.EACCES, "hidden"},
		{"a folder", execgate.Launch{Argv: []string{dir}}, syscall.EACCES, dir},
		{"no program and no implicit shell", execgate.Launch{Argv: []string{broken}}, syscall.ENOEXEC, broken},
		{"missing folder", execgate.Launch{Argv: []string{"/bin/true"}, Dir: dir + "/gone"}, syscall.ENOENT, dir + "/gone"},
		{"folder is a file", execgate.Launch{Argv: []string{"/bin/true"}, Dir: plain}, syscall.ENOTDIR, plain},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.l.Mark = t.Name()
			a := gatedLaunch(t, c.l)
			err := a.c.Open(bounded(t))
			var fault *execgate.ExecError
			if !errors.As(err, &fault) || fault.Errno != c.want || fault.Path != c.path {
				t.Fatalf("got %#v, want errno %d and path %s", err, c.want, c.path)
			}
			if errors.Is(err, fs.ErrNotExist) != (c.want == syscall.ENOENT) {
				t.Errorf("errors.Is(%v, fs.ErrNotExist) is wrong", err)
			}
			a.ends()
		})
	}
}

func TestALaunchThatCannotBeOneStartsNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		l    execgate.Launch
	}{
		{"no argv", execgate.Launch{}},
		{"empty name", execgate.Launch{Argv: []string{""}}},
		{"NUL in an argument", execgate.Launch{Argv: []string{"true", "a\x00b"}}},
		{"NUL in the environment", execgate.Launch{Argv: []string{"true"}, Env: []string{"A=\x00"}}},
		{"too large", execgate.Launch{Argv: []string{"true", strings.Repeat("x", 9<<20)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, w, err := os.Pipe()
			must(t, err)
			c.l.Stdout = w
			if child, err := execgate.Start(bounded(t), c.l); err == nil {
				_ = child.Abandon(t.Context())
				t.Fatal("got a child")
			}
			if _, err := w.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
				t.Errorf("the child's end is still open: %v", err)
			}
			noChildren(t)
		})
	}
}

func TestArgumentsAndEnvironmentAreLiteral(t *testing.T) {
	l := execgate.Launch{
		Argv: []string{"sh", "-c", `printf '%s|' "$@"; echo; env`, "name", "$HOME", ";", "a b", "", "\xff\xfe", "*"},
		Env:  []string{path, "ODD=\xff=;$x", "GREATMINDS_MARK=inherited"}, Dir: "/", Mark: "own",
	}
	a := gatedLaunch(t, l)
	a.open()
	if got, want := a.line(), "$HOME|;|a b||\xff\xfe|*|"; got != want {
		t.Errorf("got arguments %q, want %q", got, want)
	}
	rest, err := io.ReadAll(a.out)
	must(t, err)
	env := string(rest)
	for _, want := range []string{"ODD=\xff=;$x\n", "GREATMINDS_MARK=own\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("environment lacks %q:\n%s", want, env)
		}
	}
	for _, unwanted := range []string{"inherited", "EXECGATE", "GOMAXPROCS", "GODEBUG", "HOME="} {
		if strings.Contains(env, unwanted) {
			t.Errorf("environment holds %s:\n%s", unwanted, env)
		}
	}
}

var noneIgnored = regexp.MustCompile(`^SigIgn:\s+0+\s*$`)

// What a daemon under nohup, and keepers, ignore is nothing to a program.
func TestNoSignalIsIgnoredInAProgram(t *testing.T) {
	const ignored = "grep SigIgn /proc/self/status"
	a := running(t, ignored)
	if got := a.line(); !noneIgnored.MatchString(got) {
		t.Errorf("an agent has %s", got)
	}
	out, err := execgate.RunTool(bounded(t), execgate.Tool{Argv: []string{"sh", "-c", ignored}, Env: []string{path}, Dir: "/"})
	if err != nil || !noneIgnored.Match(out.Stdout) {
		t.Errorf("a tool has %q, %v", out.Stdout, err)
	}
}

func TestPathOverridesTheLookUpAndKeepsArgvZero(t *testing.T) {
	a := gatedLaunch(t, execgate.Launch{
		Argv: []string{"other-name", "-c", "echo $0"}, Path: "/bin/sh", Dir: "/", Mark: t.Name(),
	})
	a.open()
	if got := a.line(); got != "other-name" {
		t.Errorf("got argv[0] %q", got)
	}
}

func TestOnlyTheStandardDescriptorsReachTheAgent(t *testing.T) {
	// What a parent of the daemon left open without close-on-exec must stop here.
	leaked, err := syscall.Dup(0)
	must(t, err)
	defer syscall.Close(leaked)
	a := running(t, "echo up; exec sleep 1000")
	a.line()
	p := a.c.Process()
	got := fdsOf(t, p.PID)
	if fmt.Sprint(got) != "[0 1 2]" {
		t.Errorf("the agent has descriptors %v, want 0, 1 and 2", got)
	}
	for _, pid := range []int{p.Keeper.PID, p.Keeper.Keeper.PID} {
		for _, fd := range fdsOf(t, pid) {
			link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd))
			must(t, err)
			if strings.HasPrefix(link, "pipe:") {
				t.Errorf("keeper or warden %d holds %s open as %s", pid, link, fd)
			}
		}
	}
}

func fdsOf(t *testing.T, pid int) []string {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestLaunchesAtTheSameTime(t *testing.T) {
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			r, w, err := os.Pipe()
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			c, err := execgate.Start(bounded(t), execgate.Launch{
				Argv: []string{"sh", "-c", "setsid sleep 1000 & echo $GREATMINDS_MARK; exit " + strconv.Itoa(i)},
				Env:  []string{path}, Dir: "/", Stdout: w, Mark: fmt.Sprint(t.Name(), i),
			})
			if err != nil {
				t.Error(err)
				return
			}
			if err := c.Open(bounded(t)); err != nil {
				t.Error(err)
			}
			text, _ := io.ReadAll(r) // compared below
			e, err := c.Stop(bounded(t), execgate.Grace{})
			if err != nil || !e.Known || e.Code != i || e.Ended != 1 || string(text) != fmt.Sprint(t.Name(), i, "\n") {
				t.Errorf("launch %d: %+v, %v, output %q", i, e, err, text)
			}
		})
	}
	wait.Wait()
	noChildren(t)
}

// A start whose context has ended leaves nothing behind.
func TestACancelledStartLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, err := execgate.Start(ctx, execgate.Launch{Argv: []string{"true"}, Env: []string{path}, Dir: "/", Mark: t.Name()})
	if err == nil { // the keeper answered first: both orders are legal
		must(t, c.Abandon(bounded(t)))
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	noChildren(t)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
