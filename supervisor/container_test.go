package supervisor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate/proc"
)

// container starts a shell line as PID 1 of a PID namespace of its own, with its own /proc, and
// returns the pid of that PID 1 as it is seen here. It is killed with the test.
func (l *lab) container(t *testing.T, line string) (first int) {
	t.Helper()
	isolate := []string{"unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"}
	if out, err := exec.Command(isolate[0], append(isolate[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no PID namespaces for this user: %v %s", err, out)
	}
	cmd := exec.Command(isolate[0], append(isolate[1:], "sh", "-c", line)...)
	cmd.Dir, cmd.Env = l.project, append(l.env(), "CLI="+l.cli, "PROJECT="+l.project, "ROOT="+l.root)
	log, err := os.Create(filepath.Join(l.root, "container.log"))
	must(t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the namespace ends with it
		_ = cmd.Wait()         // killed
		if t.Failed() {
			text, _ := os.ReadFile(log.Name()) // only for the message
			t.Logf("in the container:\n%s", text)
		}
	})
	l.daemon = cmd
	kids := l.await(t, "PID 1 of the container", func() []int { return children(cmd.Process.Pid) })
	return kids[0]
}

// await looks until there is something to see.
func (l *lab) await(t testing.TB, what string, look func() []int) []int {
	t.Helper()
	for limit := time.Now().Add(60 * time.Second); time.Now().Before(limit); {
		if seen := look(); len(seen) > 0 {
			return seen
		}
		_, _ = unix.Poll(nil, 10) // gives the processor away
	}
	t.Fatalf("waited too long for %s", what)
	return nil
}

// children lists the children of a process; none of one that has ended.
func children(pid int) []int {
	kids, _ := proc.Children(pid)
	return kids
}

// below lists all descendants of a process that a look finds.
func below(pid int) (all []int) {
	for _, kid := range children(pid) {
		all = append(append(all, kid), below(kid)...)
	}
	return all
}

func zombies(pids []int) (dead []string) {
	for _, pid := range pids {
		if text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
			if st, err := proc.ParseStat(text); err == nil && st.State == 'Z' {
				dead = append(dead, string(text))
			}
		}
	}
	return dead
}

// In a container whose PID 1 is coordd, an operator's own background processes have it as their
// parent in the end. They may give it orders, and they stay; what agents leave behind leaves no
// zombies.
//
// E-051, E-223
func TestCoorddIsPID1OfAContainer(t *testing.T) {
	for _, c := range []struct{ name, line string }{
		// The last word of the operator's line is told by a file, since nobody waits for it.
		{"an operator's processes beside it", `(setsid sleep 987654 &); (setsid sh -c '
			until $CLI run pause --project-dir $PROJECT; do sleep 0.2; done; $CLI run resume --project-dir $PROJECT; echo $? > $ROOT/operator' &)
			exec $CLI coordd --project-dir $PROJECT`},
		{"alone", `echo 0 > $ROOT/operator; exec $CLI coordd --project-dir $PROJECT`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, `{"handshake":{}},{"prompt":"p"},{"repeat":200,"steps":[{"spawn":{"name":"z${n}","argv":["sh","-c","(sleep 0.2 &); exit 0"]}}]},`+
				agentFamily+`{"mark":"ready"},{"wait_file":"go","within_ms":90000},{"cli":["run","submit","--json","{\"decision\":\"no_change\",\"payload\":{}}"]},{"end_turn":"p"}`, "", "")
			first := l.container(t, c.line)
			l.marked(t, "ready")
			answer := l.await(t, "the operator's word", func() []int {
				text, _ := os.ReadFile(filepath.Join(l.root, "operator"))
				if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
					return []int{n}
				}
				return nil
			})
			if answer[0] != 0 {
				t.Errorf("an operator in the container was refused with %d", answer[0])
			}
			l.release(t, "go")
			l.await(t, "the end of the run", func() []int {
				for _, r := range l.status(t).Runs {
					if r.State == "completed" {
						return []int{1}
					}
				}
				return nil
			})
			// Nothing of the run is left, and nothing dead; the operator's process is.
			var left []string
			l.await(t, "the end of what the run had started", func() []int {
				left = nil
				for _, pid := range below(first) {
					if cmdline, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); err == nil {
						left = append(left, strings.TrimSpace(strings.ReplaceAll(string(cmdline), "\x00", " ")))
					}
				}
				if dead := zombies(append(below(first), first)); len(dead) == 0 && len(left) <= 2 {
					return []int{1}
				}
				return nil
			})
			strangers := 0
			for _, name := range left {
				if name == "sleep 987654" {
					strangers++
				} else if !strings.Contains(name, " coordd ") {
					t.Errorf("left: %q", name)
				}
			}
			if want := strings.Count(c.line, "sleep 987654"); strangers != want {
				t.Errorf("%d processes of the operator are left, want %d: %q", strangers, want, left)
			}
			must(t, syscall.Kill(first, syscall.SIGTERM)) // our own child's child
			if err := l.daemon.Wait(); err != nil {
				t.Errorf("the container ended with %v", err)
			}
		})
	}
}
