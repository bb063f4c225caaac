package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// background is the daemon of one script.
type background struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	log bytes.Buffer
	// ready is closed when the daemon has said so, ended when it is gone.
	ready, ended chan struct{}
}

type backgroundKey struct{}

// controlDaemon controls a coordd in the script's folder: "daemon start", "daemon stop" (SIGTERM, exit 0
// wanted), "daemon kill", "daemon freeze", "daemon thaw", "daemon logged TEXT".
func controlDaemon(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: daemon start|stop|kill|freeze|thaw|logged TEXT")
	}
	d := ts.Value(backgroundKey{}).(*background)
	if args[0] == "start" {
		ts.Check(d.start(ts, args[1:]))
		return
	}
	if d.cmd == nil {
		ts.Fatalf("no daemon was started")
	}
	switch args[0] {
	case "stop":
		ts.Check(d.cmd.Process.Signal(syscall.SIGTERM))
		<-d.ended
		if code := d.cmd.ProcessState.ExitCode(); code != 0 {
			ts.Fatalf("the daemon ended with status %d:\n%s", code, d.logged())
		}
	case "kill":
		ts.Check(d.cmd.Process.Kill())
		<-d.ended
	case "freeze":
		ts.Check(d.cmd.Process.Signal(syscall.SIGSTOP))
	case "thaw":
		ts.Check(d.cmd.Process.Signal(syscall.SIGCONT))
	case "logged":
		if !strings.Contains(d.logged(), args[1]) {
			ts.Fatalf("%q is not in the daemon's log:\n%s", args[1], d.logged())
		}
	default:
		ts.Fatalf("unknown verb %s", args[0])
	}
}

func (d *background) start(ts *testscript.TestScript, args []string) error {
	d.cmd = exec.Command(binaries+"/coordd", args...)
	d.cmd.Dir, d.cmd.Env = ts.MkAbs("."), environment(ts)
	out, err := d.cmd.StderrPipe()
	if err != nil {
		return err
	}
	d.ready, d.ended = make(chan struct{}), make(chan struct{})
	if err := d.cmd.Start(); err != nil {
		d.cmd = nil
		return err
	}
	ts.Setenv("DAEMON", fmt.Sprint(d.cmd.Process.Pid))
	go func(cmd *exec.Cmd, ready, ended chan struct{}) {
		defer close(ended)
		d.read(out, ready)
		_ = cmd.Wait() // its status is looked at where it counts
	}(d.cmd, d.ready, d.ended)
	select {
	case <-d.ready:
		return nil
	case <-d.ended:
		return fmt.Errorf("the daemon ended before it was ready:\n%s", d.logged())
	}
}

func (d *background) read(out io.Reader, ready chan struct{}) {
	lines, said := bufio.NewScanner(out), false
	for lines.Scan() {
		d.mu.Lock()
		d.log.WriteString(lines.Text() + "\n")
		d.mu.Unlock()
		if !said && strings.Contains(lines.Text(), "coordd ready") {
			said = true
			close(ready)
		}
	}
}

func (d *background) logged() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.String()
}

// end leaves no daemon behind, whatever state the script left it in.
func (d *background) end() {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Kill() // it may have ended
	<-d.ended
}

// awaits follows the event stream until an event of each of the given kinds was seen, in this
// order: "awaits KIND...".
func awaits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: awaits KIND...")
	}
	cmd := exec.Command(binaries+"/greatminds", "run", "events", "--follow", "--limit", "10000", "--interval", "0.2")
	cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	ts.Check(cmd.Start())
	var seen strings.Builder
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for len(args) > 0 && lines.Scan() {
		seen.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), `"kind":"`+args[0]+`"`) {
			args = args[1:]
		}
	}
	_ = cmd.Process.Kill() // it follows for ever
	_ = cmd.Wait()
	if len(args) > 0 {
		ts.Fatalf("no event of kind %s: %s\n%s", args[0], complaints.String(), seen.String())
	}
}

// environment is that of the script.
func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "GIT_CONFIG_NOSYSTEM", "TMPDIR"} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}
