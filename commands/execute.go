package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"greatminds/internal/execgate"
	"greatminds/internal/sourceid"
	"greatminds/runstore"
)

// stopLadder is what a command gets between SIGTERM and SIGKILL when it is told to stop, and how long
// the killing may take before what is left is named.
var stopLadder = execgate.Grace{Term: 2 * time.Second, Kill: 5 * time.Second}

// commitLimit bounds one commit. The end of a caller's context does not end it: whether it was
// made would be unknown.
const commitLimit = 30 * time.Second

// errTaken says that somebody else has moved the request on: there is nothing to carry out.
var errTaken = errors.New("the request is no longer queued")

// markOf is the launch's mark: request ids alone are chosen by callers, and another project may
// have the same.
func markOf(c *runstore.Command) string { return string(c.RunID) + "/" + string(c.ID) }

// Execute carries a queued command out and returns when its receipt has its outcome. A request that
// is not queued, or that is being carried out already, is left alone. The end of ctx ends the
// command as the end of its run would. An error means that the receipt has no outcome, because the
// store failed; nothing of the command is left running then either, but for what the error names.
// Another call then records the outcome, see [Service.Unsettled].
// Spec: "Configured commands and evidence"; E-076, E-084..E-086, E-090..E-092.
func (s *Service) Execute(ctx context.Context, id runstore.CommandID) error {
	if settled, err := s.settleLate(ctx, id); settled {
		return err
	}
	receipt := s.o.Store.View().Command(id)
	if receipt == nil || receipt.Status != statusQueued {
		return nil
	}
	ctx, x, free := s.enter(ctx, receipt)
	if !free {
		return nil
	}
	defer s.leave(x)
	if !accepting(s.o.Store.View().Run(receipt.RunID)) {
		return s.settle(ctx, receipt, outcome{status: statusCancelled, reason: reasonRunNotRunning}, nil)
	}
	execgate.Ahead()
	p, err := s.prepare(ctx, receipt)
	if ctx.Err() != nil {
		return s.settle(ctx, receipt, stopped(context.Cause(ctx)), nil)
	}
	if err != nil {
		return s.settle(ctx, receipt, outcome{status: statusFailed, reason: reasonPreflight, detail: err.Error()}, nil)
	}
	err = s.carryOut(ctx, p)
	if errors.Is(err, errTaken) {
		return nil
	}
	return err
}

func accepting(run *runstore.Run) bool {
	return run != nil && (run.State == runstore.Running || run.State == runstore.WaitingInput)
}

// carryOut takes a prepared request from its intent to its outcome.
func (s *Service) carryOut(ctx context.Context, p *plan) error {
	if err := s.intend(ctx, p); err != nil {
		return err
	}
	output, err := openCapture(s.o.Disk, s.outputFolder(p.receipt.ID), int64(p.definition.MaxOutputBytes))
	if err != nil {
		return s.settle(ctx, p.receipt, outcome{status: statusFailed, reason: reasonOutput, detail: err.Error()}, nil)
	}
	child, err := execgate.Start(ctx, execgate.Launch{
		Argv: p.definition.Argv, Path: p.program.Path, Env: p.environment, Dir: p.cwd,
		Stdout: output.streams[0].theirs, Stderr: output.streams[1].theirs, Mark: markOf(p.receipt),
	})
	if err != nil {
		output.discard()
		f := facts{launch: err}
		if ctx.Err() != nil {
			f.stopped = context.Cause(ctx)
		}
		return s.settle(ctx, p.receipt, judge(f), nil)
	}
	output.begin()
	f := facts{before: p.source}
	if err := s.record(ctx, p, child.Process()); err != nil {
		f.launch, f.tree = err, child.Abandon(context.WithoutCancel(ctx))
		_, _ = output.finish() // nothing was executed, so nothing was written
		return errors.Join(err, s.settle(ctx, p.receipt, judge(f), nil))
	}
	f.launch = s.o.Disk.Step("command.open", func() error { return child.Open(ctx) })
	if f.launch == nil {
		f.stopped = await(ctx, child, time.Duration(p.definition.TimeoutSeconds)*time.Second)
	} else if ctx.Err() != nil {
		f.stopped = context.Cause(ctx)
	}
	f.ending, f.tree = child.Stop(context.WithoutCancel(ctx), stopLadder)
	captured, err := output.finish()
	f.output = err
	f.after, f.identity = s.source(context.WithoutCancel(ctx), p.receipt.Workspace)
	o := judge(f)
	if f.tree == nil {
		o.cleanup = string(f.ending.Cleanup(stopLadder))
	}
	return s.settle(ctx, p.receipt, o, func(c *runstore.Command) {
		c.Output = captured
		if f.identity == nil {
			c.SourceAfter = sourceRecord(f.after)
		}
	})
}

// await returns why the command must be stopped, or nil when its process has ended.
func await(ctx context.Context, child *execgate.Child, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-child.Ended():
		return nil
	case <-timer.C:
		return reasonTimeout
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// intend makes the intent durable. E-090.
func (s *Service) intend(ctx context.Context, p *plan) error {
	return s.update(ctx, func(tx *runstore.Tx) error {
		now := tx.Command(p.receipt.ID)
		if now == nil || now.Status != statusQueued || !accepting(tx.Run(p.receipt.RunID)) {
			return errTaken
		}
		at := runstore.Epoch(tx.Now())
		return tx.SetCommand(p.receipt.ID, statusStarting, func(c *runstore.Command) {
			c.OwnerID, c.StartedAt, c.Argv, c.Cwd = s.o.Owner, &at, p.definition.Argv, p.cwd
			c.SourceBefore, c.EnvironmentIdentity = sourceRecord(p.source), &p.identity
		})
	})
}

// record makes the identity of the waiting process durable. E-090.
func (s *Service) record(ctx context.Context, p *plan, process execgate.Process) error {
	return s.update(ctx, func(tx *runstore.Tx) error {
		return tx.SetCommand(p.receipt.ID, statusRunning, func(c *runstore.Command) { c.Process = &process })
	})
}

// settle gives the receipt its outcome, also after the end of ctx.
func (s *Service) settle(ctx context.Context, receipt *runstore.Command, o outcome, more func(*runstore.Command)) error {
	err := s.update(ctx, func(tx *runstore.Tx) error {
		now := tx.Command(receipt.ID)
		if now == nil || !now.Open() || now.Status == statusNeedsRecovery {
			return nil // cancelled meanwhile, while it was still queued
		}
		at := runstore.Epoch(tx.Now())
		return tx.SetCommand(receipt.ID, o.status, func(c *runstore.Command) {
			o.apply(c, at)
			if more != nil {
				more(c)
			}
		})
	})
	if err != nil {
		s.remember(receipt.ID, late{o, more})
		return fmt.Errorf("outcome of command %s, %s (%s): %w", receipt.ID, o.status, o.reason, err)
	}
	s.taken(receipt.ID)
	s.o.Log.Info("command ended", "run_id", receipt.RunID, "task_id", receipt.TaskID, "request_id", receipt.ID,
		"command", receipt.CommandID, "status", o.status, "reason", o.reason, "detail", o.detail)
	return nil
}

func (s *Service) update(ctx context.Context, f func(tx *runstore.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitLimit)
	defer cancel()
	return s.o.Store.Update(ctx, f)
}

func sourceRecord(s sourceid.Source) *runstore.SourceID {
	return &runstore.SourceID{Commit: s.Commit, SourceSHA256: s.SHA256}
}
