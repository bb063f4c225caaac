// Package commands runs the configured commands that assigned agents request, and keeps their
// receipts.
//
// # What it keeps
//
// A request is durable before anything happens, and each request is carried out at most once: a
// command whose outcome is not known is never repeated, it waits for a person. Nothing is
// executed before intent and process identity are on record; nothing of a command's tree is left
// when its receipt says how it ended. A receipt is evidence only as long as source, environment,
// executable and captured output are what they were.
//
// # The way of a request
//
//	queued ── starting ── running ── succeeded | failed | stale | cancelled | needs_recovery
//
// queued is the request; starting the intent, with folder, argv and identities; running comes with
// the identity of the process that still waits at the gate (package execgate). What fails before
// the gate (a missing variable, program or folder) goes from queued to failed, reason
// preflight_failed. Reasons are: exit, signal, timeout, run_cancelled, run_ended,
// run_not_running, supervisor_restart, source_changed_during_command, preflight_failed,
// identity_check_failed:CODE, execution_error:CODE, output_error, processes_left, outcome_unknown.
// Beside what the store defines, a receipt holds "signal", the name of the signal that ended the
// command, and "detail", what went wrong in words.
//
// # Files
//
// In the .runtime folder: command-output/REQUEST/stdout and stderr, mode 0600 in folders of mode
// 0700: the first max_output_bytes of each stream, as they came. sha256 in the receipt is of
// these stored bytes; of a longer stream, stream_sha256 is of all of it. evidence.key, mode 0600:
// 32 random bytes, the key of the environment HMACs; environment values stand nowhere.
package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/execgate"
	"greatminds/runstore"
)

// Options is what a Service works on. Disk, Store, Dir, Now and Contract are needed.
type Options struct {
	Store *runstore.Store
	Disk  *durable.Disk
	// Dir is the runtime folder's .runtime.
	Dir string
	Now func() time.Time
	// Log is optional.
	Log *slog.Logger
	// Environ is the daemon's environment.
	Environ []string
	// Owner is the supervisor's identity.
	Owner string
	// Contract returns the document that a run pinned, by hash.
	Contract func(sha string) (*contract.Contract, error)
	// Current returns the contract in force now, whose environment revisions outdate earlier
	// evidence; nil where there is none to ask.
	Current func() *contract.Contract
	// RunTool runs git for source identities, as execgate.RunTool does, which nil means.
	RunTool func(context.Context, execgate.Tool) (execgate.ToolOutput, error)
}

// Service carries requests out. Its methods may be called at the same time.
type Service struct {
	o Options

	mu sync.Mutex
	// running are the executions of this process.
	running map[runstore.CommandID]*execution
	late    map[runstore.CommandID]late
	key     []byte
}

// New returns a service. The caller holds the project's lease.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.Disk == nil || o.Dir == "" || o.Now == nil || o.Contract == nil {
		return nil, errors.New("commands: incomplete options")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.RunTool == nil {
		o.RunTool = execgate.RunTool
	}
	return &Service{o: o, running: map[runstore.CommandID]*execution{}, late: map[runstore.CommandID]late{}}, nil
}

// execution is one request being carried out.
type execution struct {
	id   runstore.CommandID
	run  runstore.RunID
	stop context.CancelCauseFunc
	done chan struct{}
}

// ending is why an execution is stopped: the reason on its receipt.
type ending string

// Error makes an ending the cause of a context's end.
func (e ending) Error() string { return string(e) }

// enter registers an execution, unless the request is being carried out already.
func (s *Service) enter(ctx context.Context, c *runstore.Command) (context.Context, *execution, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[c.ID] != nil {
		return ctx, nil, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	x := &execution{id: c.ID, run: c.RunID, stop: cancel, done: make(chan struct{})}
	s.running[c.ID] = x
	return ctx, x, true
}

func (s *Service) leave(x *execution) {
	s.mu.Lock()
	delete(s.running, x.id)
	s.mu.Unlock()
	x.stop(nil)
	close(x.done)
}

func (s *Service) executions(run runstore.RunID) []*execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*execution
	for _, x := range s.running {
		if x.run == run {
			found = append(found, x)
		}
	}
	return found
}

// CancelRun ends the run's command, if there is one, and returns when nothing is left of it and
// its receipt says so. A request that was not carried out yet is cancelled. An error says that
// something may still run, or that the end is not on record. ctx bounds the wait, not the ending.
// Spec: E-114.
func (s *Service) CancelRun(ctx context.Context, run runstore.RunID) error {
	reason := s.endingOf(run)
	if err := s.cancelWaiting(ctx, run, reason); err != nil {
		return err
	}
	for _, x := range s.executions(run) {
		x.stop(reason)
		select {
		case <-x.done:
		case <-ctx.Done():
			return fmt.Errorf("command %s: %w", x.id, ctx.Err())
		}
	}
	for _, c := range s.o.Store.View().CommandsOfRun(run) {
		if settled, err := s.settleLate(ctx, c.ID); err != nil {
			return err
		} else if settled {
			c = s.o.Store.View().Command(c.ID)
		}
		switch {
		case !c.Open():
		case c.Status != statusNeedsRecovery:
			return fmt.Errorf("command %s of run %s is %s, and nobody carries it out", c.ID, run, c.Status)
		case c.Reason == reasonProcessesLeft:
			return fmt.Errorf("command %s of run %s: %s", c.ID, run, detailOf(c))
		}
	}
	return nil
}

// endingOf is run_cancelled where somebody asked for the run's end, otherwise run_ended.
func (s *Service) endingOf(id runstore.RunID) ending {
	run := s.o.Store.View().Run(id)
	if run != nil && (run.State == runstore.Cancelling || run.State == runstore.Cancelled ||
		run.Control != nil && run.Control.Kind == "cancel" && run.Control.Status != "completed") {
		return reasonRunCancelled
	}
	return reasonRunEnded
}

// cancelWaiting cancels requests that no execution has taken up. One that has is left to it.
func (s *Service) cancelWaiting(ctx context.Context, run runstore.RunID, reason ending) error {
	return s.update(ctx, func(tx *runstore.Tx) error {
		for _, c := range tx.CommandsOfRun(run) {
			if c.Status != statusQueued {
				continue
			}
			at := runstore.Epoch(tx.Now())
			if err := tx.SetCommand(c.ID, statusCancelled, func(c *runstore.Command) {
				c.Reason, c.FinishedAt = string(reason), &at
			}); err != nil {
				return err
			}
		}
		return nil
	})
}
