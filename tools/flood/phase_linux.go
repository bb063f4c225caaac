package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/contract"
	"greatminds/supervisor/control"
)

const (
	// ahead is how many tasks of good agents wait at any time.
	ahead = 4
	// phaseLimit bounds one phase.
	phaseLimit = 15 * time.Minute
	// stopLimit bounds the daemon's end.
	stopLimit = time.Minute
)

// event is what is read of one runtime event.
type event struct {
	Sequence uint64  `json:"sequence"`
	At       float64 `json:"at"`
	Kind     string  `json:"kind"`
	RunID    string  `json:"run_id"`
	Data     struct {
		Binding   string  `json:"binding_id"`
		Reason    string  `json:"reason"`
		RequestID string  `json:"request_id"`
		Stage     string  `json:"stage"`
		Offset    float64 `json:"offset_seconds"`
	} `json:"data"`
}

// runner is one phase under way.
type runner struct {
	*project
	route    control.Route
	daemon   *exec.Cmd
	log      string
	gone     chan struct{} // closed when the daemon has ended
	wait     error         // how, once it is
	events   []event
	runs     map[string]string   // binding by run
	ended    map[string]int      // ended runs by kind
	answered map[string]answered // by request
	samples  int
	bad      []kind
}

// answered is when an operator's call was made, and when it had its answer.
type answered struct{ called, acknowledged time.Time }

// measurePhase runs one phase in a fresh project.
func measurePhase(ctx context.Context, built binaries, folder string, samples int, besides []kind) (phase, error) {
	ctx, cancel := context.WithTimeout(ctx, phaseLimit)
	defer cancel()
	p, err := newProject(ctx, built, folder)
	if err != nil {
		return phase{}, err
	}
	r := &runner{project: p, log: filepath.Join(folder, "coordd.log"), runs: map[string]string{}, ended: map[string]int{},
		answered: map[string]answered{}, samples: samples, bad: besides}
	if err := r.fileFirst(); err != nil {
		return phase{}, err
	}
	at, err := contract.OpenProject(p.dir)
	if err != nil {
		return phase{}, err
	}
	r.route = control.Route{Project: at}
	before := clockOffset()
	if err := r.start(); err != nil {
		return phase{}, err
	}
	beside := startMachine(ctx, folder)
	err = r.follow(ctx)
	timer, disk, machineErr := beside.stop()
	resident, residentErr := peakResident(r.daemon.Process.Pid)
	if err = errors.Join(err, machineErr, residentErr, r.stop()); err != nil {
		return phase{}, fmt.Errorf("%w\n%s", err, r.tail())
	}
	after := clockOffset()
	if moved := (after - before).Abs(); moved > time.Millisecond {
		return phase{}, fmt.Errorf("the wall clock was moved by %s during the phase", moved)
	}
	figures, err := r.figures(resident, (before+after)/2)
	figures.Timer, figures.Disk = timer, disk
	return figures, err
}

// fileFirst files what the phase begins with.
func (r *runner) fileFirst() error {
	for _, k := range r.bad {
		for range k.tasks {
			if err := r.file(k); err != nil {
				return err
			}
		}
	}
	for range ahead {
		if err := r.file(good); err != nil {
			return err
		}
	}
	return nil
}

// start starts the daemon in a session of its own.
func (r *runner) start() error {
	log, err := os.Create(r.log)
	if err != nil {
		return err
	}
	defer log.Close()
	r.daemon = exec.Command(r.greatminds, "coordd", "--foreground", "--project-dir", r.dir)
	r.daemon.Dir, r.daemon.Env, r.daemon.Stdout, r.daemon.Stderr = r.dir, r.env(), log, log
	r.daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	if err := r.daemon.Start(); err != nil {
		return err
	}
	r.gone = make(chan struct{})
	go func() {
		r.wait = r.daemon.Wait()
		close(r.gone)
	}()
	return nil
}

// stop asks the daemon to end, and it ends its agents.
func (r *runner) stop() error {
	// An error means that it has ended already.
	_ = r.daemon.Process.Signal(syscall.SIGTERM)
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case <-r.gone:
		return r.wait
	case <-limit.C:
		_ = r.daemon.Process.Kill() // its keepers end what is left
		<-r.gone
		return fmt.Errorf("the daemon did not end within %s", stopLimit)
	}
}

func (r *runner) tail() string {
	data, err := os.ReadFile(r.log)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-4000):])
}

// follow takes the daemon's events, answers its agents, and keeps the good ones in work, until
// there are samples enough and every bad run is over.
func (r *runner) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for after := uint64(0); !r.enough(); {
		page, err := r.do(ctx, control.Call{Op: "run.events", Args: asJSON(step{"after": after, "limit": 1000, "wait_seconds": 60})})
		if err != nil {
			return err
		}
		var events []event
		if err := json.Unmarshal(page, &events); err != nil {
			return fmt.Errorf("read the events: %w", err)
		}
		for _, e := range events {
			after = e.Sequence
			if err := r.see(ctx, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// do calls the daemon, and gives up when it has ended.
func (r *runner) do(ctx context.Context, c control.Call) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-r.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	page, err := r.route.Do(ctx, c)
	cancel()
	<-watched
	select {
	case <-r.gone:
		return nil, fmt.Errorf("the daemon ended early: %v", r.wait)
	default:
		return page, err
	}
}

// enough says that the phase has what it is for.
func (r *runner) enough() bool {
	if r.ended[good.id] < r.samples {
		return false
	}
	for _, k := range r.bad {
		if r.ended[k.id] < k.tasks {
			return false
		}
	}
	return true
}

func (r *runner) see(ctx context.Context, e event) error {
	r.events = append(r.events, e)
	switch e.Kind {
	case "claimed":
		r.runs[e.RunID] = e.Data.Binding
	case "permission_requested":
		called := time.Now()
		_, err := r.do(ctx, control.Call{Op: "run.permission-answer", Args: asJSON(step{"request_id": e.Data.RequestID, "option_id": "ok"})})
		r.answered[e.Data.RequestID] = answered{called, time.Now()}
		return err
	case "completed", "failed", "cancelled", "interrupted", "waiting_auth":
		k := kindOf(r.runs[e.RunID])
		r.ended[k.id]++
		if k.id != good.id {
			return nil
		}
		if e.Kind != "completed" {
			return fmt.Errorf("run %s of a good agent ended %s: %s", e.RunID, e.Kind, e.Data.Reason)
		}
		return r.file(good)
	}
	return nil
}

// kindOf is the kind of a binding.
func kindOf(binding string) kind {
	for _, k := range kinds() {
		for _, b := range k.bindings {
			if b == binding {
				return k
			}
		}
	}
	return kind{id: "unknown"}
}

// clockOffset is how far the wall clock is ahead of the monotonic one of the agents' traces.
func clockOffset() time.Duration {
	best, gap := time.Duration(0), time.Duration(1<<62)
	for range 100 {
		var mono unix.Timespec
		before := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono); err != nil {
			panic("flood: no monotonic clock: " + err.Error())
		}
		if took := time.Since(before); took < gap {
			best, gap = time.Duration(before.UnixNano()+int64(took/2)-mono.Nano()), took
		}
	}
	return best
}

// peakResident is a process's peak of resident memory in bytes.
func peakResident(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("no VmHWM in /proc/PID/status")
}
