package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of a daemon's start and of its orderly end.
const (
	readyLimit = 20 * time.Second
	termLimit  = 20 * time.Second
)

// daemon is one coordd.
type daemon struct {
	cmd   *exec.Cmd
	log   string
	ready chan struct{} // closed when it said so
	ended chan struct{} // closed when it was waited for
	read  chan struct{} // closed when its log has ended
	// panicked is valid once read is closed: its log tells of a Go panic.
	panicked bool
}

// startDaemon starts coordd and waits until it is ready.
func (p *project) startDaemon(ctx context.Context) error {
	if err := p.beginDaemon(); err != nil {
		return err
	}
	d := p.daemon
	limit := time.NewTimer(readyLimit)
	defer limit.Stop()
	select {
	case <-d.ready:
	case <-d.ended:
		<-d.read
		p.found(stuck, "coordd ended with %v instead of starting:\n%s", d.cmd.ProcessState, d.tail())
	case <-limit.C:
		p.found(stuck, "coordd was not ready within %s:\n%s", readyLimit, d.tail())
	case <-ctx.Done():
	}
	return ctx.Err()
}

// beginDaemon starts coordd.
func (p *project) beginDaemon() error {
	d := &daemon{cmd: exec.Command(p.built.coordd, "--project-dir", p.dir), log: filepath.Join(p.folder, "coordd.log"),
		ready: make(chan struct{}), ended: make(chan struct{}), read: make(chan struct{})}
	d.cmd.Dir, d.cmd.Env = p.dir, p.env()
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	log, err := os.OpenFile(d.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	d.cmd.Stderr = theirs
	err = startOwn(d.cmd)
	_ = theirs.Close() // the child has its own
	if err != nil {
		return err
	}
	go d.follow(ours, log)
	go d.reap()
	p.daemon = d
	return nil
}

func startOwn(cmd *exec.Cmd) error {
	return ours.start(func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
}

// follow keeps the log and sees what it tells.
func (d *daemon) follow(from io.ReadCloser, log io.WriteCloser) {
	defer close(d.read)
	defer log.Close()
	defer from.Close()
	told := false
	for r := bufio.NewReader(from); ; {
		line, err := r.ReadString('\n')
		_, _ = io.WriteString(log, line) // for people
		if !told && strings.Contains(line, "coordd ready") {
			told = true
			close(d.ready)
		}
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.Contains(line, "DATA RACE") {
			d.panicked = true
		}
		if err != nil {
			return
		}
	}
}

func (d *daemon) reap() {
	defer close(d.ended)
	_ = d.cmd.Wait() // how it ended is looked at where it matters
	ours.ended(d.cmd.Process.Pid)
}

func (d *daemon) pid() int { return d.cmd.Process.Pid }

func (d *daemon) alive() bool {
	select {
	case <-d.ended:
		return false
	default:
		return true
	}
}

// tail is the end of the log.
func (d *daemon) tail() string {
	data, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	if len(data) > 3000 {
		data = data[len(data)-3000:]
	}
	return string(data)
}

// signal sends a signal to the daemon, which cannot be another process: nobody else waits for it.
func (d *daemon) signal(number syscall.Signal) { _ = d.cmd.Process.Signal(number) }

// seen pins everything that lives below the daemon now.
func (d *daemon) seen() []pin {
	var out []pin
	for _, child := range allProcesses().below(d.pid()) {
		if p, ok := hold(child); ok {
			out = append(out, p)
		}
	}
	return out
}

// kill ends the daemon by SIGKILL and looks what it leaves. Where something of it is stopped, which
// cannot end by itself, nothing is expected before the next start.
func (p *project) kill(stopped bool) {
	seen := p.daemon.seen()
	p.daemon.signal(unix.SIGKILL)
	<-p.daemon.ended
	<-p.daemon.read
	if !stopped {
		p.expectNothing(seen, "after the daemon was killed")
	}
	for _, pin := range seen {
		pin.release()
	}
}

// endLimit is what processes get to end when their daemon is gone. A git call gets two seconds of it to
// take its locks away.
const endLimit = 5 * time.Second

// expectNothing waits until nothing of the project is left.
func (p *project) expectNothing(seen []pin, when string) {
	alive, took := outlast(seen, p.folder, endLimit)
	p.slowest = max(p.slowest, took)
	for _, proc := range alive {
		p.found(left, "%s, %s later: %s", when, took.Round(time.Millisecond), proc)
	}
}

// stopDaemon ends the daemon as an operator does.
func (p *project) stopDaemon() {
	d := p.daemon
	seen := d.seen()
	d.signal(unix.SIGTERM)
	limit := time.NewTimer(termLimit)
	defer limit.Stop()
	select {
	case <-d.ended:
		<-d.read
		if code := d.cmd.ProcessState.ExitCode(); code != 0 {
			p.found(unsound, "coordd ended with %v at SIGTERM:\n%s", d.cmd.ProcessState, d.tail())
		}
	case <-limit.C:
		p.found(stuck, "coordd did not end within %s of SIGTERM:\n%s", termLimit, d.tail())
		d.signal(unix.SIGKILL)
		<-d.ended
	}
	p.expectNothing(seen, "after coordd was stopped")
	for _, pin := range seen {
		pin.release()
	}
}

// judgeDaemon notes a daemon that ended by itself or panicked.
func (p *project) judgeDaemon(expectAlive bool) {
	d := p.daemon
	if expectAlive && !d.alive() {
		<-d.read
		p.found(unsound, "coordd ended by itself: %v\n%s", d.cmd.ProcessState, d.tail())
	}
	if !d.alive() && d.panicked {
		p.found(unsound, "coordd panicked:\n%s", d.tail())
	}
}

// sweep ends whatever is left of a project, so that a finding of one does not become one of the next.
func (p *project) sweep() {
	if p.daemon != nil && p.daemon.alive() {
		p.daemon.signal(unix.SIGKILL)
		<-p.daemon.ended
	}
	if alive, _ := outlast(nil, p.folder, endLimit); len(alive) > 0 {
		for _, one := range alive {
			if pin, ok := hold(one); ok {
				pin.signal(unix.SIGKILL)
				pin.release()
			}
		}
		outlast(nil, p.folder, endLimit)
	}
}
