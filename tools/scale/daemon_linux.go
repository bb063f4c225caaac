package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// readyLimit bounds the wait for a daemon; the original needs half a minute at some ten thousand runs.
const readyLimit = 3 * time.Minute

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
