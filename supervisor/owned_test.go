package supervisor_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/internal/execgate"
)

// agentFamily is what an agent under test starts: a plain child, one in another process group, one in
// a session of its own that holds the agent's output and ignores what is polite, and one that was
// forked twice. stubborn is a configured command that does the like.
const (
	agentFamily = `{"spawn":{"name":"plain"}},{"spawn":{"name":"group","setpgid":true}},` +
		`{"spawn":{"name":"session","setsid":true,"keep_stdout":true,"keep_stderr":true,"ignore_signals":["TERM","HUP"]}},` +
		`{"spawn":{"name":"twice","argv":["sh","-c","(setsid sleep 600 &); exit 0"]}},`
	stubborn = "trap '' TERM HUP; setsid sleep 600 & (setsid sleep 600 &); sleep 600 & > \"$GO\"; wait"
)

// minOwned is how many processes there are at least: the agent and its four children, the command and
// its three, and keeper and warden of both.
const minOwned = 5 + 4 + 4

// newOwned makes a project whose agent and whose command leave no trick out, and then wait.
func newOwned(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, `{"handshake":{}},{"prompt":"p"},{"ignore_signals":["TERM"]},`+agentFamily+
		`{"cli":["run","command","slow","--request-id","one"]},{"wait_file":"started","within_ms":90000},{"mark":"ready"},{"hang":true}`, "", "")
	file := filepath.Join(l.project, "coordination", "execution.yaml")
	text, err := os.ReadFile(file)
	must(t, err)
	script := strings.ReplaceAll(stubborn, "$GO", filepath.Join(filepath.Dir(l.script("dev")), "go-started"))
	must(t, os.WriteFile(file, append(text, "commands:\n  slow: {argv: [sh, -c, "+quote(script)+"], roles: [DEVELOPER], timeout_seconds: 900}\n"...), 0o600))
	return l
}

// owned pins everything below the daemon, at least so many processes: agents, commands, what they
// started, and who watches over them.
func (l *lab) owned(t testing.TB, least int) (fds []int) {
	t.Helper()
	theirs, watchers := l.split(t)
	if fds = append(theirs, watchers...); len(fds) < least {
		t.Fatalf("%d processes, want at least %d", len(fds), least)
	}
	return fds
}

// split is owned, with those that watch over the others apart.
func (l *lab) split(t testing.TB) (theirs, watchers []int) {
	t.Helper()
	for _, pid := range below(l.daemon.Process.Pid) {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil {
			continue // it has ended since
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // as above
		}
		if bytes.Contains(env, []byte("GREATMINDS_EXECGATE=")) {
			watchers = append(watchers, fd)
		} else {
			theirs = append(theirs, fd)
		}
	}
	return theirs, watchers
}

// runID is the project's one run.
func (l *lab) runID(t testing.TB) string {
	t.Helper()
	for id := range l.status(t).Runs {
		return id
	}
	t.Fatal("no run")
	return ""
}

// allGone waits until every pinned process has ended, and gives the pins up. It returns how long that
// took.
func allGone(t testing.TB, fds []int, since time.Time) time.Duration {
	t.Helper()
	for _, fd := range fds {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20000)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if n != 1 || err != nil {
				t.Errorf("a process is left (%v)", err)
			}
			break
		}
	}
	took := time.Since(since)
	for _, fd := range fds {
		unix.Close(fd)
	}
	return took
}

func alive(t *testing.T, fd int) bool {
	t.Helper()
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return n == 0 && err == nil
}

// Whatever ends the daemon ends everything that it had started, agents and configured commands
// alike, and the next start says of each how that went.
//
// E-223 E-239 E-240
func TestNothingOutlivesItsDaemon(t *testing.T) {
	signal := func(sigs ...syscall.Signal) func(*testing.T, *lab) {
		return func(t *testing.T, l *lab) {
			for _, sig := range sigs {
				must(t, l.daemon.Process.Signal(sig))
			}
		}
	}
	for _, c := range []struct {
		name, reason, command string
		terminal              bool
		end                   func(*testing.T, *lab)
	}{
		{"killed", "supervisor_restart", "needs_recovery", false, signal(syscall.SIGKILL)},
		{"killed while it is stopped", "supervisor_restart", "needs_recovery", false, signal(syscall.SIGSTOP, syscall.SIGKILL)},
		{"told to stop", "supervisor_stopped", "cancelled", false, signal(syscall.SIGTERM)},
		{"told to stop while it is stopped", "supervisor_stopped", "cancelled", false, signal(syscall.SIGSTOP, syscall.SIGTERM, syscall.SIGCONT)},
		{"its terminal closed", "supervisor_stopped", "cancelled", true, func(t *testing.T, l *lab) { must(t, l.terminal.Close()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newOwned(t)
			if c.terminal {
				l.startOnTerminal(t)
			} else {
				l.start(t)
			}
			l.marked(t, "ready")
			fds := l.owned(t, minOwned)
			begun := time.Now()
			c.end(t, l)
			t.Logf("%d processes are gone after %v", len(fds), allGone(t, fds, begun).Round(time.Millisecond))
			<-l.said
			_ = l.daemon.Wait() // its status is another test's matter
			l.nothingLeft(t)
			l.once(t)
			run, command := l.endings(t)
			if run.State != "interrupted" || run.Reason != c.reason || command.Status != c.command {
				t.Errorf("the run is %s (%s), the command %s", run.State, run.Reason, command.Status)
			}
			for _, cleanup := range []*execgate.Cleanup{run.Cleanup, command.Cleanup} {
				if cleanup == nil || cleanup.How == "" || cleanup.TermSeconds != 2 || cleanup.KillSeconds != 5 || cleanup.Seconds > 20 {
					t.Errorf("the end of its processes is recorded as %+v", cleanup)
				}
				if cleanup != nil && c.command == "cancelled" && (cleanup.How != execgate.HowKilled || cleanup.Ended < 2) {
					t.Errorf("the end of stubborn processes is recorded as %+v", cleanup)
				}
			}
			if n := l.launches(t); n != 1 {
				t.Errorf("%d launches, want none after the restart", n)
			}
		})
	}
}

// A daemon that was stopped goes on where it was, and so does everything that it started.
func TestADaemonThatWasStoppedGoesOn(t *testing.T) {
	t.Parallel()
	l := newOwned(t)
	l.start(t)
	l.marked(t, "ready")
	fds := l.owned(t, minOwned)
	must(t, l.daemon.Process.Signal(syscall.SIGSTOP))
	must(t, l.daemon.Process.Signal(syscall.SIGCONT))
	l.run(t, "", "run", "pause", "--project-dir", l.project) // is answered by it
	for _, fd := range fds {
		if !alive(t, fd) {
			t.Error("a process is gone")
		}
	}
	begun := time.Now()
	l.run(t, "", "run", "cancel", l.runID(t), "--project-dir", l.project)
	t.Logf("%d processes are gone %v after the cancel", len(fds), allGone(t, fds, begun).Round(time.Millisecond))
}

// ended is what `run show` tells of a run or command that is over.
type ended struct {
	State, Status, Reason string
	Cleanup               *execgate.Cleanup
}

// endings shows the project's one run and its one command.
func (l *lab) endings(t *testing.T) (run, command ended) {
	t.Helper()
	var doc struct {
		Run      ended
		Commands []ended
	}
	must(t, json.Unmarshal([]byte(l.run(t, "", "run", "show", l.runID(t), "--json", "--project-dir", l.project)), &doc))
	if len(doc.Commands) != 1 {
		t.Fatalf("%d commands, want 1", len(doc.Commands))
	}
	return doc.Run, doc.Commands[0]
}

// startOnTerminal starts the daemon as the leader of a terminal's session, whose other end the lab holds.
func (l *lab) startOnTerminal(t *testing.T) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	l.terminal = master
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	must(t, err)
	must(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	defer slave.Close()
	l.daemon = exec.Command(l.cli, "coordd", "--project-dir", l.project)
	l.daemon.Env, l.daemon.Dir = l.env(), l.project
	l.daemon.Stdin, l.daemon.Stdout, l.daemon.Stderr = slave, slave, slave
	l.daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, l.daemon.Start())
	l.said = make(chan struct{})
	close(l.said)                                     // nobody reads its log to the end
	t.Cleanup(func() { _ = l.daemon.Process.Kill() }) // it has ended where the test passed
	lines := bufio.NewScanner(master)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "coordd ready") {
			return
		}
	}
	t.Fatalf("the daemon did not come up: %v", lines.Err())
}

// BenchmarkKilledDaemon measures from the SIGKILL of a daemon with eight running agents, each with a
// child in a session of its own, to the moment when no process of theirs is left, and none of those
// that watched over them either. Run it with -benchtime=20x; the median is to be at most 50 ms, the
// largest at most 200 ms.
func BenchmarkKilledDaemon(b *testing.B) {
	const many = 8
	l := newLab(b, `{"handshake":{}},{"prompt":"p"},{"spawn":{"name":"s","setsid":true}},{"mark":"ready"},{"hang":true}`, "", ", max_running: 8")
	file := filepath.Join(l.project, "coordination", "execution.yaml")
	text, err := os.ReadFile(file)
	must(b, err)
	must(b, os.WriteFile(file, append([]byte("max_running: 8\n"), text...), 0o600))
	queue := filepath.Join(l.project, ".greatminds", "feature_dev")
	trace := filepath.Join(filepath.Dir(l.script("dev")), "trace.jsonl")
	var agents, all []time.Duration
	n := 0
	for b.Loop() {
		must(b, os.RemoveAll(queue))
		must(b, os.Mkdir(queue, 0o755))
		for range many {
			n++
			id := fmt.Sprintf("%04d-sample", n)
			task := strings.NewReplacer("0001-sample", id, "kind: bugfix", "kind: research").Replace(sampleTask)
			must(b, os.WriteFile(filepath.Join(queue, id+".yaml"), []byte(task), 0o644))
		}
		l.start(b)
		l.await(b, "the agents", func() []int {
			data, _ := os.ReadFile(trace) // it may not be there yet
			if bytes.Count(data, []byte(`"kind":"mark"`)) < n {
				return nil
			}
			return []int{n}
		})
		theirs, watchers := l.split(b)
		if len(theirs) != 2*many || len(watchers) != 2*many {
			b.Fatalf("%d processes of agents and %d watchers, want %d of each", len(theirs), len(watchers), 2*many)
		}
		begun := time.Now()
		must(b, l.daemon.Process.Kill())
		took := allGone(b, theirs, begun)
		agents, all = append(agents, took), append(all, allGone(b, watchers, begun))
		<-l.said
		_ = l.daemon.Wait() // killed
	}
	for name, took := range map[string][]time.Duration{"": agents, "watchers-": all} {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, name+"median-ms")
		b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, name+"max-ms")
	}
	b.ReportMetric(0, "ns/op")
}
