package supervisor

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
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/refusal"
)

// holdVariable makes this test binary hold locks as another program does, and say so.
const holdVariable = "LEASE_TEST_HOLD"

func init() {
	if os.Getenv(holdVariable) == "" {
		return
	}
	for _, path := range strings.Split(os.Getenv(holdVariable), ":") {
		// As the original does it: flock, then its pid as text.
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		}
		if err == nil && os.Getenv("LEASE_TEST_TEXT") != "" {
			err = os.WriteFile(path, []byte(strings.ReplaceAll(os.Getenv("LEASE_TEST_TEXT"), "PID", fmt.Sprint(os.Getpid()))), 0o600)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println("held")
	_, _ = io.ReadAll(os.Stdin) // its end is the test's word to let go
	os.Exit(0)
}

// stand is a process that holds locks of a project.
type stand struct {
	*exec.Cmd
	letGo func()
}

// holds starts a process with this command line that holds the named locks with this text in them.
func holds(t *testing.T, p contract.Project, argv []string, text string, locks ...string) stand {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	var paths []string
	for _, name := range locks {
		paths = append(paths, filepath.Join(p.StoreDir(), name))
	}
	c := &exec.Cmd{Path: exe, Args: argv, Env: append(os.Environ(), holdVariable+"="+strings.Join(paths, ":"), "LEASE_TEST_TEXT="+text)}
	stdin, err := c.StdinPipe()
	must(t, err)
	stdout, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	s := stand{Cmd: c, letGo: func() {
		if stdin.Close() == nil {
			_ = c.Wait() // it ends with 0, or was killed by the test
		}
	}}
	t.Cleanup(s.letGo)
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("the lock is not held: %q, %v", line, err)
	}
	return s
}

func leaseProject(t *testing.T) contract.Project {
	t.Helper()
	root := t.TempDir()
	p := contract.Project{Root: root, Runtime: filepath.Join(root, ".greatminds")}
	must(t, os.MkdirAll(p.StoreDir(), 0o700))
	return p
}

var originalDaemon = []string{"/venv/bin/python3.11", "/venv/bin/greatminds", "coordd", "--foreground"}

// E-169, E-170: whoever holds the lease is named by what the kernel says, whatever the text says.
func TestTheHolderOfTheLeaseIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		argv  []string
		text  string
		locks string
		code  refusal.Code
		what  string
	}{
		"the original":               {originalDaemon, "PID\n", "supervisor.lock", refusal.CodeOriginalRunning, "the original greatminds (pid PID"},
		"the original, as a module":  {[]string{"python3", "-m", "greatminds.runtime.background", "/p"}, "PID", "supervisor.lock", refusal.CodeOriginalRunning, "pid PID"},
		"the original, without text": {originalDaemon, "", "supervisor.lock", refusal.CodeOriginalRunning, "pid PID"},
		"the original, stale text":   {originalDaemon, "1\n", "supervisor.lock", refusal.CodeOriginalRunning, "pid PID"},
		"a daemon of ours":           {[]string{"/opt/coordd"}, "PID\n", "supervisor.lock", refusal.CodeDaemonRunning, "a daemon already supervises"},
		"a stranger, no text":        {[]string{"flock", "x"}, "", "supervisor.lock", refusal.CodeLeaseBusy, "another process (pid PID, `flock x`)"},
		"a stranger, stale text":     {[]string{"flock", "x"}, "1\n", "supervisor.lock", refusal.CodeLeaseBusy, "another process (pid PID"},
		"a stranger, stale cli text": {[]string{"flock", "x"}, "1 cli\n", "supervisor.lock", refusal.CodeLeaseBusy, "another process (pid PID"},
	} {
		t.Run(name, func(t *testing.T) {
			p := leaseProject(t)
			s := holds(t, p, c.argv, c.text, c.locks)
			before := inodes(t, p)
			_, err := takeLease(context.Background(), p, "")
			r, ok := refusal.Find(err)
			want := strings.ReplaceAll(c.what, "PID", fmt.Sprint(s.Process.Pid))
			if !ok || r.Code != c.code || r.Status() != refusal.Storage || !strings.Contains(r.What, want) || r.Remedy == "" {
				t.Errorf("got %v, want %s with %q", err, c.code, want)
			}
			var held *durable.Held
			if isHeld := errors.As(err, &held); isHeld == (c.code == refusal.CodeOriginalRunning) || isHeld && held.PID != s.Process.Pid {
				t.Errorf("held is %+v", held)
			}
			s.letGo()
			l, err := takeLease(context.Background(), p, "")
			must(t, err)
			must(t, l.release())
			for file, inode := range before {
				if inodes(t, p)[file] != inode {
					t.Errorf("%s was replaced", file)
				}
			}
		})
	}
}

func inodes(t *testing.T, p contract.Project) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	entries, err := os.ReadDir(p.StoreDir())
	must(t, err)
	for _, e := range entries {
		info, err := e.Info()
		must(t, err)
		all[e.Name()] = info.Sys().(*syscall.Stat_t).Ino
	}
	return all
}

// A command of the original holds a lock for one commit: it is waited for, also where it is looked at
// in the moment of its end, when it has no command line any more and still has its locks.
func TestACommandOfTheOriginalIsWaitedFor(t *testing.T) {
	for i := range 40 {
		lock := []string{"store.lock", "supervisor.lock"}[i%2]
		p := leaseProject(t)
		s := holds(t, p, []string{"python3", "/venv/bin/greatminds", "run", "pause"}, "PID", lock)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		got := make(chan error, 1)
		go func() {
			l, err := takeLease(ctx, p, "")
			if err == nil {
				err = l.release()
			}
			got <- err
		}()
		if lock == "store.lock" {
			// It waits with the first lock in its hand.
			waitHeld(t, filepath.Join(p.StoreDir(), "supervisor.lock"))
		}
		select {
		case err := <-got:
			t.Fatalf("%s: not waited for: %v", lock, err)
		default:
		}
		s.letGo()
		must(t, <-got)
	}
}

// waitHeld waits until this process holds a lock.
func waitHeld(t *testing.T, path string) {
	t.Helper()
	for range 1 << 20 {
		if kernelHolder(path, os.Getpid()) == os.Getpid() {
			return
		}
	}
	t.Fatal("the lock is not taken")
}

// While we hold the lease, both of the original's locks are taken as it takes them.
func TestTheOriginalCannotTakeWhatWeHold(t *testing.T) {
	p := leaseProject(t)
	l, err := takeLease(context.Background(), p, "")
	must(t, err)
	for _, name := range []string{"supervisor.lock", "store.lock"} {
		f, err := os.OpenFile(filepath.Join(p.StoreDir(), name), os.O_RDWR, 0)
		must(t, err)
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			t.Errorf("%s: got %v, want it taken", name, err)
		}
		if text, err := os.ReadFile(f.Name()); err != nil || string(text) != fmt.Sprintf("%d\n", os.Getpid()) {
			t.Errorf("%s says %q, %v", name, text, err)
		}
		must(t, l.release())
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Errorf("%s: %v after the lease was given back", name, err)
		}
		must(t, f.Close())
		if l, err = takeLease(context.Background(), p, ""); err != nil {
			t.Fatal(err)
		}
	}
	must(t, l.release())
}

// A lease that cannot be written is a fault of storage, with a way out, and leaves no lock held.
func TestALeaseThatCannotBeWrittenIsRefused(t *testing.T) {
	for _, name := range []string{"supervisor.lock", "store.lock"} {
		t.Run(name, func(t *testing.T) {
			p := contract.Project{Root: t.TempDir()}
			p.Runtime = filepath.Join(p.Root, ".greatminds")
			must(t, os.MkdirAll(filepath.Join(p.StoreDir(), name), 0o700))
			_, err := takeLease(t.Context(), p, "")
			r, ok := refusal.Find(err)
			if !ok || r.Code != refusal.CodeStoreWrite || r.Status() != refusal.Storage || r.Remedy == "" || !strings.Contains(r.What, name) {
				t.Fatalf("got %v, want a refusal of storage that names %s", err, name)
			}
			must(t, os.Remove(filepath.Join(p.StoreDir(), name)))
			l, err := takeLease(t.Context(), p, "")
			must(t, err)
			must(t, l.release())
		})
	}
}
