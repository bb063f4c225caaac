package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// machine measures the machine beside a phase: what it takes for a timer and a synced line.
type machine struct {
	cancel      context.CancelFunc
	done        chan struct{}
	timer, disk []time.Duration
	err         error
}

func startMachine(ctx context.Context, folder string) *machine {
	ctx, cancel := context.WithCancel(ctx)
	m := &machine{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		m.err = m.measure(ctx, filepath.Join(folder, "control"))
	}()
	return m
}

// measure waits for a timer and syncs a line, again and again until ctx ends.
func (m *machine) measure(ctx context.Context, path string) (err error) {
	const span = 20 * time.Millisecond
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	line := append(bytes.Repeat([]byte("x"), 1000), '\n')
	timer := time.NewTimer(span)
	defer timer.Stop()
	for {
		due := time.Now().Add(span)
		timer.Reset(span)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
		begun := time.Now()
		m.timer = append(m.timer, begun.Sub(due))
		if _, err := file.Write(line); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
		m.disk = append(m.disk, time.Since(begun))
	}
}

// stop ends the measurement.
func (m *machine) stop() (timer, disk spread, err error) {
	m.cancel()
	<-m.done
	return spreadOf(m.timer), spreadOf(m.disk), m.err
}
