package execgate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate"
)

// delegated makes a cgroup v2 that says of itself that it was delegated, as those of systemd do, and
// is removed at the end of the test, when nothing may be left in it.
func delegated(t *testing.T) (dir string) {
	t.Helper()
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var fs unix.Statfs_t
		dir := filepath.Join(mount, fmt.Sprintf("execgate-delegated-%d", os.Getpid()))
		if unix.Statfs(mount, &fs) != nil || int64(fs.Type) != unix.CGROUP2_SUPER_MAGIC || os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Errorf("the group or one below it is not empty: %v", err)
			}
		})
		if err := unix.Setxattr(dir, "user.delegate", []byte("1"), 0); err != nil {
			t.Skipf("a cgroup that cannot be marked as delegated: %v", err)
		}
		return dir
	}
	t.Skip("no cgroup v2 that this user may write to")
	return ""
}

// In a delegated cgroup each launch has a group of its own. By it even a tree is ended that has killed
// keeper and warden beside a stopped daemon, and dropped its environment: no line of descent and no mark
// lead to it.
//
// E-223, E-239, E-240
func TestADelegatedCgroupLeavesNothingToHideIn(t *testing.T) {
	dir := delegated(t)
	folder, err := os.Open(dir)
	must(t, err)
	defer folder.Close()
	inside := func() *syscall.SysProcAttr {
		return &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(folder.Fd())}
	}
	for _, f := range faults {
		for name, end := range map[string]func(*helper){"daemon told to stop": (*helper).leave, "daemon killed": (*helper).kill} {
			t.Run(f.name+"/"+name, func(t *testing.T) {
				h := startHelperAs(t, inside(), "daemon "+victims(f, true), "TEST_MARK="+t.Name())
				p := readRecord(t, h)
				agent := pinPID(t, p.PID)
				keeper, warden := watchers(t, p)
				left := append(readPids(t, h.out, 3), agent, keeper, warden)
				readLine(t, h.out)
				groups, err := filepath.Glob(filepath.Join(dir, "greatminds-*"))
				if err != nil || len(groups) != 1 || !holds(t, groups[0], left[:4]) {
					t.Fatalf("got groups %v, %v, want one that holds the agent and its family", groups, err)
				}
				if name == "daemon killed" {
					stopDaemon(t, h)
				}
				agent.signal(t, syscall.SIGUSR1)
				if f.kills && !keeper.gone(t, patience) {
					t.Fatal("the keeper was not killed")
				} else if !f.kills {
					readLine(t, h.out)
				}
				begun := time.Now()
				end(h)
				if f.helpless && name == "daemon killed" {
					left[0].mustLive(t)
					next := startHelperAs(t, inside(), "recover", "TEST_MARK="+t.Name())
					must(t, json.NewEncoder(next.in).Encode(p))
					if how := readLine(t, next.out); how != execgate.HowRecovered {
						t.Errorf("the restart says %s", how)
					}
				}
				for _, member := range left {
					if !member.gone(t, patience) {
						t.Errorf("pid %d is left", member.pid)
						member.signal(t, syscall.SIGKILL)
					}
				}
				t.Logf("nothing left after %v", time.Since(begun).Round(time.Millisecond))
				reapAdopted(t)
				if groups, err := filepath.Glob(filepath.Join(dir, "*-*")); err != nil || len(groups) > 0 {
					t.Errorf("groups are left: %v, %v", groups, err)
				}
			})
		}
	}
}

// holds tells whether all processes are members of a group.
func holds(t *testing.T, group string, all []*pinnedProcess) bool {
	t.Helper()
	procs, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	must(t, err)
	for _, p := range all {
		if !strings.Contains("\n"+string(procs), fmt.Sprintf("\n%d\n", p.pid)) {
			return false
		}
	}
	return true
}
