package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/control"
	"greatminds/supervisor/discovery"
	"greatminds/supervisor/dispatch"
	"greatminds/supervisor/permission"
	"greatminds/supervisor/status"
	"greatminds/tasks"
)

// shutdownLimit bounds a clean shutdown: agents get their ladder, commands theirs.
const shutdownLimit = 30 * time.Second

// Options are what main hands over; nothing here reads clock, environment or streams by itself.
type Options struct {
	Project contract.Project
	// Once works until nothing is ready any more and then ends. E-233.
	Once bool
	Log  *slog.Logger
	Now  func() time.Time
	// Getenv and Environ are the daemon's environment.
	Getenv  func(string) string
	Environ []string
	// Version is the program's version, for peers and agents.
	Version string
	// CLI is the absolute argv prefix by which an agent reaches the command line. E-012, E-013.
	CLI []string
	// Seam makes durable steps fail in tests; nil outside them.
	Seam durable.Seam
	// MinJournal is runstore.Options.MinJournal: 0 but in tests, which fold sooner.
	MinJournal int64
	// RunTool runs git, as execgate.RunTool does, which nil means. Tests that repeat an operation
	// for each of its steps take a cheaper one.
	RunTool func(context.Context, execgate.Tool) (execgate.ToolOutput, error)
	// EagerHistory lets finished work leave for the history at each snapshot; for tests.
	EagerHistory bool
}

// Daemon supervises one project until its Run returns.
type Daemon struct {
	*core
	catalog *discovery.Catalog
	broker  *permission.Broker
	wake    chan struct{}
	halt    chan struct{} // closed when the daemon stops: what waits to try again gives up
	work    sync.WaitGroup
	later   later
	ends    ends
	limits  limits

	sessions sessions // what finished runs have on record of their agents' sessions

	mu       sync.Mutex
	live     map[runstore.RunID]*execution
	inWork   map[string]bool            // results and commands that a goroutine works on
	holds    map[tasks.ID]runstore.Hold // tasks that are put off, each until the time that later has
	stopping bool
	undone   error // what --once could not bring to its end
	places   dispatch.Places
	// trouble is why the last pass failed, nil where it did not.
	trouble      *refusal.Refusal
	troubleUntil time.Time

	branchAt  time.Time         // when the branch was looked at; only the loop touches it
	lastHolds map[string]string // only the loop touches it
}

// Run is the whole life of a daemon: lease, recovery, socket, loop, clean shutdown. It returns
// nil after a clean end, and a refusal with status 4 where another daemon holds the lease or the
// store cannot be trusted.
func Run(ctx context.Context, o Options) error {
	d, err := newDaemon(ctx, o)
	switch {
	case err == nil:
		return d.run(ctx)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil // told to stop before it was up; nothing of it is lost
	}
	return err
}

// newDaemon takes the lease and brings what an earlier daemon left to a known state. Nothing is
// left held when it fails.
func newDaemon(ctx context.Context, o Options) (_ *Daemon, err error) {
	// Before any task is claimed for a run that could not be started.
	if err := execgate.Supported(); err != nil {
		return nil, err
	}
	if err := execgate.BecomeSubreaper(); err != nil {
		return nil, refusal.New(refusal.CodePlatform, "use Linux 5.4 or newer", "orphaned processes cannot be kept track of: %v", err)
	}
	c, err := open(ctx, o, "")
	if err != nil {
		return nil, err
	}
	d := &Daemon{core: c, wake: make(chan struct{}, 1), live: map[runstore.RunID]*execution{}, inWork: map[string]bool{},
		holds: map[tasks.ID]runstore.Hold{}, halt: make(chan struct{}), ends: ends{began: time.Now()}, limits: limits{began: time.Now()}}
	d.broker = &permission.Broker{Store: c.store, Owner: c.owner, Now: o.Now, Log: c.log, Revision: c.revision}
	if err = c.recover(ctx); err != nil {
		return nil, errors.Join(err, c.close(context.WithoutCancel(ctx)))
	}
	d.prepareFeeds()
	d.catalog = discovery.Open(c.tree, o.Project.Runtime, c.queues(), o.Now, c.log)
	return d, nil
}

// run serves until ctx ends, or with Once until nothing is left to do, and gives everything back.
func (d *Daemon) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, d.close(context.WithoutCancel(ctx))) }()
	defer d.catalog.Close()
	return d.serve(ctx)
}

// serve opens the socket after recovery, runs the loop, and closes the socket last.
func (d *Daemon) serve(ctx context.Context) (err error) {
	listener, err := control.Listen(d.o.Project.StoreDir())
	if err != nil {
		return err
	}
	operations := d.operations(d)
	operations.Dispatch = func(v *runstore.View, found []tasks.Found) status.Dispatch { return judgeIn(d.told(), v, found) }
	server := control.Start(listener, control.ServerOptions{Handler: operations, Program: d.o.Version, Log: d.log, Now: d.o.Now})
	d.log.Info("coordd ready", "project", d.o.Project.Root, "pid", os.Getpid(), "watching", d.catalog.Watching())
	loopErr := d.loop(ctx)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	d.shutdown(end)
	return errors.Join(loopErr, server.Close(end))
}

// shutdown stops new work, tells every run to end, and waits for all of it.
func (d *Daemon) shutdown(ctx context.Context) {
	cause := errShutdown
	if d.store.Err() != nil {
		cause = errStore
	}
	close(d.halt)
	d.mu.Lock()
	d.stopping = true
	live := slices.Collect(maps.Values(d.live))
	d.mu.Unlock()
	for _, e := range live {
		d.withdraw(ctx, e)
		e.stop(cause)
	}
	ended := make(chan struct{})
	go func() { d.work.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		d.log.Error("work did not end in time; the processes end with this one", "limit", shutdownLimit)
		<-ended // every part of it is bounded by itself
	}
	d.log.Info("coordd stopped", "project", d.o.Project.Root)
}

// withdraw closes the questions of a run that is about to be stopped: its hold outlives the
// daemon, its callback does not. E-056, E-242.
func (d *Daemon) withdraw(ctx context.Context, e *execution) {
	if run := d.store.View().Run(e.run.ID); run == nil || run.State != runstore.WaitingInput {
		return
	}
	err := d.store.Update(ctx, func(tx *runstore.Tx) error {
		if slices.ContainsFunc(tx.PermissionsOfRun(e.run.ID), (*runstore.Permission).Open) {
			e.unanswered.Store(true) // before the agent can hear of it and end its turn
		}
		return permission.CloseRun(tx, e.run.ID, permission.SupervisorRestart)
	})
	if err != nil {
		d.log.Warn("question not withdrawn; the next start does it", "run_id", e.run.ID, "err", err)
	}
}

// goDo runs f in a goroutine that shutdown waits for.
func (d *Daemon) goDo(f func()) {
	d.work.Add(1)
	go func() { defer d.work.Done(); f() }()
}

// inTurn runs f beside the loop, unless somebody is at the same piece of work already.
func (d *Daemon) inTurn(key string, f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inWork[key] {
		return
	}
	d.inWork[key] = true
	d.goDo(func() {
		defer d.Wake()
		defer func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(d.inWork, key)
		}()
		f()
	})
}
