package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

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
