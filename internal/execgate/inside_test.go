package execgate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate/entry"
	"greatminds/internal/execgate/keep"
	"greatminds/internal/refusal"
)

// What a tool wrote is kept however late its readers come to run: git's silence would be an
// answer, and a wrong one.
func TestToolOutputIsKeptByReadersThatComeTooLate(t *testing.T) {
	var ours, theirs []*os.File
	for range 4 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs = append(ours, r), append(theirs, w)
	}
	run := &toolRun{ours: ours, stdout: &capture{limit: 100}, stderr: &capture{limit: 4}, pumps: make(chan struct{})}
	close(run.pumps) // their deadline came before they read anything
	for i, text := range map[int]string{1: "out", 2: "error"} {
		if _, err := theirs[i].WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	run.close()
	if string(run.stdout.data) != "out" || string(run.stderr.data) != "erro" || run.stdout.over || !run.stderr.over {
		t.Errorf("got %q and %q, cut %v and %v", run.stdout.data, run.stderr.data, run.stdout.over, run.stderr.over)
	}
	closeFiles(theirs)
}

func TestReleaseBelowTheFloorIsRefusedByName(t *testing.T) {
	for _, c := range []struct {
		release string
		refused bool
	}{
		{"5.3.18-default", true}, {"4.19.0", true}, {"5.4.0-42-generic", false}, {"5.10", false},
		{"6.18.44-fc", false}, {"10.0.1", false}, {"weird", false}, {"", false}, {"5", false}, {"5.", false},
	} {
		t.Run(c.release, func(t *testing.T) {
			err := checkRelease(c.release)
			r, ok := refusal.Find(err)
			if ok != c.refused || ok && (r.Code != refusal.CodeKernelTooOld || !strings.Contains(r.What, c.release)) {
				t.Errorf("got %v, want refused %v", err, c.refused)
			}
		})
	}
	if err := Supported(); err != nil {
		t.Errorf("this kernel: %v", err)
	}
}

func FuzzDecodeStatus(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("R"))
	f.Add([]byte("RE\x00\x00\x00\x02/bin/x"))
	f.Add([]byte("RE\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := decodeStatus(data)
		if (err == nil) != (string(data) == "R") {
			t.Errorf("%q means %v; only a lone R is a launch", data, err)
		}
		var fault *ExecError
		if errors.As(err, &fault) && string(data[6:]) != fault.Path {
			t.Errorf("%q names %q", data, fault.Path)
		}
	})
}

// Before Linux 6.5 the peer is pinned here.
func TestAPeerWithoutItsOwnPidfd(t *testing.T) {
	c, err := Start(t.Context(), Launch{Argv: []string{"/bin/true"}, Dir: "/", Mark: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	pid := c.Process().PID
	if descends, err := peerDescends(pid, -1); err != nil || !descends {
		t.Errorf("a descendant: %v, %v", descends, err)
	}
	if descends, err := peerDescends(os.Getppid(), -1); err != nil || descends {
		t.Errorf("our parent: %v, %v", descends, err)
	}
	if err := c.Abandon(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := peerDescends(pid, -1); !errors.Is(err, ErrUnknown) {
		t.Errorf("one that has ended: %v, want unknown", err)
	}
}

func TestSurvivorsAreNamed(t *testing.T) {
	err := survivorsError([]Process{{PID: 41}, {PID: 42}})
	if !errors.Is(err, ErrSurvivors) || !strings.Contains(err.Error(), "pid 41, pid 42") {
		t.Errorf("got %v", err)
	}
}

// A launch enters a cgroup of its own where one can be made, and takes it away again.
func TestADelegatedCgroupHoldsTheLaunch(t *testing.T) {
	base := ""
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		dir := filepath.Join(mount, "execgate-test-"+strconv.Itoa(os.Getpid()))
		var fs unix.Statfs_t
		if unix.Statfs(mount, &fs) == nil && int64(fs.Type) == unix.CGROUP2_SUPER_MAGIC && os.Mkdir(dir, 0o755) == nil {
			base = dir
			break
		}
	}
	if base == "" {
		t.Skip("no cgroup v2 that this user may write to")
	}
	defer func() {
		if err := os.Remove(base); err != nil {
			t.Errorf("the group was not removed: %v", err)
		}
	}()
	before := delegatedCgroup
	delegatedCgroup = func() string { return base }
	defer func() { delegatedCgroup = before }()

	c, err := Start(t.Context(), Launch{
		Argv: []string{"sh", "-c", "setsid sleep 1000 & exec sleep 1000"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: "/", Mark: t.Name(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	procs, err := os.ReadFile(filepath.Join(groupOf(t.Name()), "cgroup.procs"))
	if err != nil || !strings.Contains("\n"+string(procs), "\n"+strconv.Itoa(c.Process().PID)+"\n") {
		t.Errorf("the group holds %q, %v, want pid %d", procs, err, c.Process().PID)
	}
	e, err := c.Stop(context.Background(), Grace{})
	if err != nil || e.Signal != syscall.SIGKILL {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestAGroupWithoutDelegationIsNotTouched(t *testing.T) {
	if isDelegated(t.TempDir()) {
		t.Error("an ordinary folder counts as a delegated cgroup")
	}
	if got := groupOf(""); got != "" {
		t.Errorf("a launch without mark has group %q", got)
	}
	keep.KillGroup("")
	keep.RemoveGroup("")
}

func TestRoleVariablesAreNotInherited(t *testing.T) {
	for _, variable := range keeperEnv(entry.RoleKeeper) {
		name, _, _ := strings.Cut(variable, "=")
		switch name {
		case "GODEBUG", "GOMAXPROCS", entry.RoleName:
		default:
			t.Errorf("a keeper sees %s", variable)
		}
	}
}

// A warden that was started ahead serves the next launch; one that was killed meanwhile is replaced.
func TestAWardenStartedAheadServesTheNextLaunch(t *testing.T) {
	for _, killed := range []bool{false, true} {
		Ahead()
		spare.Lock()
		if len(spare.wardens) != 1 {
			t.Fatalf("%d wardens wait, want 1", len(spare.wardens))
		}
		waiting := spare.wardens[0]
		spare.Unlock()
		if killed {
			waiting.signalChild(syscall.SIGKILL)
			if !waiting.childEnds(defaultKill) {
				t.Fatal("the warden was not killed")
			}
		}
		c, err := Start(t.Context(), Launch{Argv: []string{"true"}, Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH")}, Mark: t.Name()})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Process().Keeper.Keeper.PID; (got == waiting.pid) == killed {
			t.Errorf("the launch has warden %d, %d waited, killed %v", got, waiting.pid, killed)
		}
		if err := c.Open(t.Context()); err != nil {
			t.Error(err)
		}
		<-c.Ended()
		if e, err := c.Stop(context.Background(), Grace{}); err != nil || !e.Known || e.Code != 0 {
			t.Errorf("got %+v, %v", e, err)
		}
		if takeSpare() != nil {
			t.Error("a warden is left")
		}
	}
}

// However many are started ahead, few wait, and they end with what they wait for.
func TestFewWardensWait(t *testing.T) {
	for range 3 * maxSpare {
		Ahead()
	}
	for n := 0; ; n++ {
		h := takeSpare()
		if h == nil {
			if n != maxSpare {
				t.Errorf("%d wardens waited, want %d", n, maxSpare)
			}
			return
		}
		h.drop()
	}
}
