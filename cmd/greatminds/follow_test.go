package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// place is a project whose contract keeps no more than 100 events.
type place struct {
	t    *testing.T
	root string
	env  []string
}

const fewEvents = `version: 1
max_runtime_events: 100
agents: {a: {transport: acp, argv: [nothing], adapter_version: "1", harness_version: "1"}}
bindings: {dev: {role: DEVELOPER, agent: a, scheduling: queue}}
`

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, root: filepath.Join(t.TempDir(), "p")}
	p.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
	contract := filepath.Join(t.TempDir(), "execution.yaml")
	if err := os.WriteFile(contract, []byte(fewEvents), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(p.root, 0o755); err != nil {
		t.Fatal(err)
	}
	p.run("git", "init", "-q", "-b", "main")
	p.run("git", "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "--allow-empty", "-m", "start")
	p.run(binaries+"/greatminds", "setup", "--project-dir", p.root, "--execution-config", contract)
	return p
}

func (p *place) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = p.root, p.env
	return cmd
}

func (p *place) run(name string, args ...string) string {
	p.t.Helper()
	cmd := p.command(name, args...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("%s %v: %v\n%s", name, args, err, complaints.String())
	}
	return string(out)
}

// changes makes events: each turn is two of them.
func (p *place) changes(turns int) {
	p.t.Helper()
	for range turns {
		p.run(binaries+"/greatminds", "run", "pause")
		p.run(binaries+"/greatminds", "run", "resume")
	}
}

// last is the sequence of the newest event.
func (p *place) last() uint64 {
	p.t.Helper()
	lines := strings.Split(strings.TrimSpace(p.run(binaries+"/greatminds", "run", "events", "--limit", "10000")), "\n")
	return told(p.t, lines[len(lines)-1]).Sequence
}

// daemon starts coordd and returns it when it is ready; it is ended with the test at the latest.
func (p *place) daemon() *exec.Cmd {
	p.t.Helper()
	cmd := p.command(binaries + "/coordd")
	out, err := cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "coordd ready") {
			break
		}
	}
	drained := make(chan struct{})
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, out) }() // it ends with the daemon
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-drained
		_ = cmd.Wait() // as above
	})
	return cmd
}

func (p *place) ends(cmd *exec.Cmd, with os.Signal) {
	p.t.Helper()
	if err := cmd.Process.Signal(with); err != nil {
		p.t.Fatal(err)
	}
	_ = cmd.Wait() // how it ended is another test's matter
}

// event is one line of `run events`.
type event struct {
	Sequence uint64
	At       float64
	Kind     string
	Data     struct {
		RequestedAfter   uint64 `json:"requested_after"`
		DiscardedThrough uint64 `json:"discarded_through"`
	}
}

func told(t *testing.T, line string) (e event) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return e
}

// follower is `run events --follow`, read line by line.
type follower struct {
	p          *place
	cmd        *exec.Cmd
	out        *os.File
	lines      *bufio.Scanner
	complaints bytes.Buffer
	at         uint64 // the last sequence that came
	latest     float64
	gaps       int
}

func (p *place) follow(args ...string) *follower {
	p.t.Helper()
	f := &follower{p: p, cmd: p.command(binaries+"/greatminds", append([]string{"run", "events", "--follow"}, args...)...)}
	out, into, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	f.cmd.Stdout, f.cmd.Stderr = into, &f.complaints
	err = f.cmd.Start()
	_ = into.Close() // the follower has its own
	if err != nil {
		p.t.Fatal(err)
	}
	if err := out.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		p.t.Fatal(err)
	}
	f.out, f.lines = out, bufio.NewScanner(out)
	p.t.Cleanup(func() {
		_ = f.cmd.Process.Kill() // it may have ended
		_ = f.cmd.Wait()         // as above
		_ = out.Close()          // only read from
	})
	return f
}

// reaches reads until an event of that sequence came, and wants every one before it once, but for those that a gap record tells of.
func (f *follower) reaches(sequence uint64) {
	f.p.t.Helper()
	for f.at < sequence {
		if !f.lines.Scan() {
			f.p.t.Fatalf("the follower ended or hangs after %d, before %d: %v\n%s", f.at, sequence, f.lines.Err(), f.complaints.String())
		}
		e := told(f.p.t, f.lines.Text())
		switch {
		case e.Kind == "events_gap":
			f.gaps++
			if e.Data.RequestedAfter != f.at || e.Sequence != e.Data.DiscardedThrough || e.Sequence <= f.at {
				f.p.t.Errorf("after %d came the gap %s", f.at, f.lines.Text())
			}
		case e.Sequence != f.at+1:
			f.p.t.Errorf("after %d came %s", f.at, f.lines.Text())
		}
		f.at, f.latest = e.Sequence, e.At
	}
}

// ended waits for the follower's own end and returns its exit status.
func (f *follower) ended() int {
	f.p.t.Helper()
	err := f.cmd.Wait()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		f.p.t.Fatal(err)
	}
	if f.complaints.Len() > 0 {
		f.p.t.Errorf("it complained: %s", f.complaints.String())
	}
	return f.cmd.ProcessState.ExitCode()
}

// A follower sees every event once, whoever writes it and however the store's files change under it: before there is a store, without
// a daemon, through one, across its end by signal and by kill, and across its next start.
func TestAFollowerMissesAndRepeatsNothing(t *testing.T) {
	p := newPlace(t)
	f := p.follow("--limit", "3")
	p.changes(2)
	f.reaches(p.last())
	for _, end := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		d := p.daemon()
		p.changes(2)
		f.reaches(p.last())
		p.ends(d, end)
		p.changes(1)
		f.reaches(p.last())
	}
	if f.gaps != 0 {
		t.Errorf("%d gaps although it kept up", f.gaps)
	}
}

// One that was held up while events were discarded is told so once, and goes on.
func TestAFollowerThatFellBehindIsToldOfTheGap(t *testing.T) {
	for _, daemon := range []bool{true, false} {
		t.Run(fmt.Sprint("daemon ", daemon), func(t *testing.T) {
			p := newPlace(t)
			if daemon {
				p.daemon()
			}
			f := p.follow()
			p.changes(1)
			f.reaches(p.last())
			if err := f.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			p.changes(60)
			if err := f.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			f.reaches(p.last())
			if f.gaps != 1 {
				t.Errorf("%d gap records, want 1", f.gaps)
			}
			p.changes(1)
			f.reaches(p.last())
		})
	}
}

// A contract that somebody is editing is none of a follower's business.
func TestAFollowerNeedsNoContract(t *testing.T) {
	p := newPlace(t)
	p.changes(1)
	f := p.follow()
	f.reaches(p.last())
	path := filepath.Join(p.root, "coordination", "execution.yaml")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("version: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(p.root, ".greatminds", ".runtime", "state.json"), time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	p.changes(1)
	f.reaches(p.last())
}

// The user's signal, and a reader that has gone, are a follower's ordinary ends; the latter also where nothing more is written.
func TestAFollowerEndsCleanly(t *testing.T) {
	for _, daemon := range []bool{true, false} {
		for _, end := range []string{"SIGINT", "SIGTERM", "reader gone", "reader gone before an event"} {
			t.Run(fmt.Sprintf("daemon %v, %s", daemon, end), func(t *testing.T) {
				p := newPlace(t)
				if daemon {
					p.daemon()
				}
				p.changes(1)
				f := p.follow()
				f.reaches(p.last())
				var err error
				switch end {
				case "SIGINT":
					err = f.cmd.Process.Signal(syscall.SIGINT)
				case "SIGTERM":
					err = f.cmd.Process.Signal(syscall.SIGTERM)
				case "reader gone":
					err = f.out.Close()
				default:
					if err = f.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
						break
					}
					err = f.out.Close()
					p.changes(1)
					if err == nil {
						err = f.cmd.Process.Signal(syscall.SIGCONT)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				if code := f.ended(); code != 0 {
					t.Errorf("exit status %d, want 0", code)
				}
			})
		}
	}
}
