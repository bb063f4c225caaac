package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

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
