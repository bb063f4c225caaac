package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// readyLimit bounds the wait for a daemon; the original needs half a minute at some ten thousand runs.
const readyLimit = 3 * time.Minute

// bench measures programs in one working folder.
type bench struct {
	options
	work   string
	stderr io.Writer
	made   int
}

// row is what one program costs at one number of runs.
type row struct {
	program        string
	runs           int
	bare           time.Duration // `--version`: the process alone
	ready, stop    time.Duration
	rssKB, bytes   int
	status         time.Duration // with a daemon
	change         time.Duration // with a daemon
	alone, change0 time.Duration // status and change without one
}

func (b *bench) measure(ctx context.Context, prog program, n int, fill func(context.Context, project, int) error) (row, error) {
	b.made++
	p, err := newProject(ctx, prog, filepath.Join(b.work, strconv.Itoa(b.made), "project"), 0)
	if err != nil {
		return row{}, err
	}
	fmt.Fprintf(b.stderr, "%s: %d runs\n", prog.name, n)
	if err := fill(ctx, p, n); err != nil {
		return row{}, err
	}
	r := row{program: prog.name, runs: n}
	if r.bare, _, err = b.timed(ctx, p, "--version"); err != nil {
		return r, err
	}
	if r.change0, err = b.timeChange(ctx, p); err != nil {
		return r, err
	}
	if r.alone, _, err = b.timed(ctx, p, p.status...); err != nil {
		return r, err
	}
	d, err := startDaemon(ctx, p)
	if err != nil {
		return r, err
	}
	r.ready = d.ready
	measured := b.beside(ctx, p, d, &r)
	r.stop, err = d.end()
	return r, errors.Join(measured, err)
}

// beside measures what needs the daemon.
func (b *bench) beside(ctx context.Context, p project, d *daemon, r *row) (err error) {
	if r.rssKB, err = d.resident(); err != nil {
		return err
	}
	if r.status, r.bytes, err = b.timed(ctx, p, p.status...); err != nil {
		return err
	}
	r.change, err = b.timeChange(ctx, p)
	return err
}

// timed returns the median time of a command line, and how much it printed.
func (b *bench) timed(ctx context.Context, p project, args ...string) (time.Duration, int, error) {
	var all []time.Duration
	size := 0
	for len(all) < b.rounds(all) {
		begun := time.Now()
		out, err := p.call(ctx, append([]string{p.cli}, args...)...)
		if err != nil {
			return 0, 0, err
		}
		all, size = append(all, time.Since(begun)), len(out)
	}
	return median(all), size, nil
}

func (b *bench) timeChange(ctx context.Context, p project) (time.Duration, error) {
	var all []time.Duration
	for len(all) < b.rounds(all) {
		begun := time.Now()
		verb := []string{"pause", "resume"}[len(all)%2]
		if _, err := p.call(ctx, p.cli, "run", verb); err != nil {
			return 0, err
		}
		all = append(all, time.Since(begun))
	}
	if len(all)%2 == 1 {
		if _, err := p.call(ctx, p.cli, "run", "resume"); err != nil {
			return 0, err
		}
	}
	return median(all), nil
}

// rounds is how many measurements to make: fewer of what takes seconds.
func (b *bench) rounds(all []time.Duration) int {
	if len(all) > 0 && all[0] > 500*time.Millisecond {
		return min(b.times, 4)
	}
	return b.times
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// daemon is one running daemon.
type daemon struct {
	cmd   *exec.Cmd
	ready time.Duration
	said  chan struct{}
	log   *bytes.Buffer
}

// startDaemon starts the daemon of a project and returns when it is ready.
func startDaemon(ctx context.Context, p project) (*daemon, error) {
	cmd := exec.Command(p.coordd[0], append(p.coordd[1:], "--project-dir", p.dir)...)
	cmd.Dir = p.dir
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	d := &daemon{cmd: cmd, said: make(chan struct{}), log: &bytes.Buffer{}}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	told := make(chan struct{}, 1)
	watched, err := readyWatch(p)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(d.said)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			d.log.WriteString(lines.Text() + "\n")
			if p.readyFile == "" && strings.Contains(lines.Text(), p.readyWords) {
				told <- struct{}{}
			}
		}
	}()
	if p.readyFile != "" {
		err = watched.wait(ctx)
	} else {
		select {
		case <-told:
		case <-d.said:
			err = errors.New("the daemon ended")
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	d.ready = time.Since(begun)
	if err != nil {
		_ = cmd.Process.Kill() // it may have ended
		<-d.said
		return nil, fmt.Errorf("daemon not ready: %w\n%s", errors.Join(err, cmd.Wait()), d.log)
	}
	return d, nil
}

// watch waits for words in a file that a program replaces.
type watch struct {
	path, words string
}

func readyWatch(p project) (watch, error) {
	if p.readyFile == "" {
		return watch{}, nil
	}
	w := watch{path: filepath.Join(p.store(), p.readyFile), words: p.readyWords}
	if err := os.Remove(w.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return w, err
	}
	return w, nil
}

// wait looks every two milliseconds: exact enough for a program that takes seconds.
func (w watch) wait(ctx context.Context) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if data, err := os.ReadFile(w.path); err == nil && bytes.Contains(data, []byte(w.words)) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// end stops the daemon as an operator does.
func (d *daemon) end() (time.Duration, error) {
	begun := time.Now()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	<-d.said
	err := d.cmd.Wait()
	if err != nil {
		err = fmt.Errorf("the daemon ended badly: %w\n%s", err, d.log)
	}
	return time.Since(begun), err
}

// resident returns the daemon's resident memory in kB.
func (d *daemon) resident() (int, error) {
	return statusNumber(filepath.Join("/proc", strconv.Itoa(d.cmd.Process.Pid), "status"), "VmRSS:")
}

func statusNumber(file, name string) (int, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strconv.Atoi(strings.Fields(rest)[0])
		}
	}
	return 0, fmt.Errorf("%s: no line %s", file, name)
}

// usage is what a process has used so far.
type usage struct {
	switches int // voluntary context switches of all threads
	writes   int // write system calls, so that none means no fsync of anything new
	cpu      time.Duration
}

func (d *daemon) usage() (u usage, err error) {
	proc := filepath.Join("/proc", strconv.Itoa(d.cmd.Process.Pid))
	threads, err := filepath.Glob(proc + "/task/*/status")
	if err != nil {
		return u, err
	}
	for _, file := range threads {
		n, err := statusNumber(file, "voluntary_ctxt_switches:")
		if err != nil {
			return u, err
		}
		u.switches += n
	}
	if u.writes, err = statusNumber(proc+"/io", "syscw:"); err != nil {
		return u, err
	}
	u.cpu, err = cpuOf(d.cmd.Process.Pid)
	return u, err
}

// cpuOf reads the process's own clock, which counts nanoseconds.
func cpuOf(pid int) (time.Duration, error) {
	const perProcess = 2 // CPUCLOCK_SCHED of a whole process, as clock_getcpuclockid(3) makes it
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|perProcess), &ts); err != nil {
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}

// idleDaemon watches a daemon that has nothing to do.
func (b *bench) idleDaemon(ctx context.Context, prog program, n int) (string, error) {
	b.made++
	p, err := newProject(ctx, prog, filepath.Join(b.work, strconv.Itoa(b.made), "project"), blockedTasks)
	if err != nil {
		return "", err
	}
	if err := fillOurs(ctx, p, n); err != nil {
		return "", err
	}
	d, err := startDaemon(ctx, p)
	if err != nil {
		return "", err
	}
	text, watched := b.watchIdle(ctx, d, n)
	_, err = d.end()
	return text, errors.Join(watched, err)
}

// settle is the time after its start in which a daemon may still tidy up.
const settle = 3 * time.Second

func (b *bench) watchIdle(ctx context.Context, d *daemon, n int) (string, error) {
	if err := pause(ctx, settle); err != nil {
		return "", err
	}
	before, err := d.usage()
	if err != nil {
		return "", err
	}
	if err := pause(ctx, b.idle); err != nil {
		return "", err
	}
	after, err := d.usage()
	if err != nil {
		return "", err
	}
	rss, err := d.resident()
	return fmt.Sprintf("idle for %v beside %d blocked tasks and %d finished runs: %d voluntary context switches, %d writes, %v of processor, %.1f MB resident\n",
		b.idle, blockedTasks, n, after.switches-before.switches, after.writes-before.writes, (after.cpu - before.cpu).Round(100*time.Microsecond), float64(rss)/1000), err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
