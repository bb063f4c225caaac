package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// series is what the projects of one call share.
type series struct {
	options
	built  binaries
	folder string // in which each project gets one of its own
	tally  *tally
	out    io.Writer
}

// playProject plays the rounds of one project and brings it to its end. found says that something was
// found, in which case its folder stays.
func (s *series) playProject(ctx context.Context, drawn projectPlan) (found bool, err error) {
	p, err := newProject(ctx, s.built, s.folder, drawn)
	if err != nil {
		return false, err
	}
	defer func() {
		p.sweep()
		err = errors.Join(err, p.watch.close())
		if err == nil && !found && !s.keep {
			err = os.RemoveAll(p.folder)
		}
	}()
	if err := p.startDaemon(ctx); err != nil {
		return false, err
	}
	op := p.startOperator(ctx)
	defer op.stop()
	last, err := s.playRounds(ctx, p, op)
	if err != nil {
		return false, err
	}
	if p.isSound() && ctx.Err() == nil {
		if err := p.finish(ctx, op); err != nil {
			return false, err
		}
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	s.tally.add(p)
	if !p.isSound() {
		s.tell(p, last)
	}
	return !p.isSound(), op.fault
}

// playRounds plays the rounds of a project until something is found, and returns the last of them.
func (s *series) playRounds(ctx context.Context, p *project, op *operator) (last int, err error) {
	last = p.drawn.first
	for n := last; n < p.drawn.first+p.drawn.rounds && p.isSound() && ctx.Err() == nil; n++ {
		pl := draw(s.seed, n)
		began := time.Now()
		h, err := p.round(ctx, op, pl)
		if err != nil {
			return n, err
		}
		s.tally.count(h)
		if s.verbose {
			fmt.Fprintf(s.out, "%4d  %-52s %-7s %4d ms\n", n, pl, h.target, time.Since(began).Milliseconds())
		}
		last = n
	}
	return last, nil
}

// tell prints what was found in a project, up to a round.
func (s *series) tell(p *project, round int) {
	fmt.Fprintf(s.out, "found: seed %d, up to round %d (project of round %d), kept in %s\n", s.seed, round, p.drawn.first, p.folder)
	for _, f := range p.findings {
		fmt.Fprintf(s.out, "    %s\n", strings.ReplaceAll(f.String(), "\n", "\n        "))
	}
}

// round plays one round: strike, restart, check.
func (p *project) round(ctx context.Context, op *operator, pl plan) (hit, error) {
	h, err := p.strike(ctx, op, pl)
	if err != nil {
		return h, err
	}
	defer op.quiet()()
	p.judgeDaemon(!h.daemonDied)
	if h.daemonDied {
		if pl.offline && pl.target == theDaemon && pl.call == "" {
			if err := p.offline(ctx, op, pl); err != nil {
				return h, err
			}
		}
		if err := p.restart(ctx, pl); err != nil {
			return h, err
		}
	}
	if h.keeperStopped.fd > 0 {
		defer h.keeperStopped.release()
		if alive, took := outlast([]pin{h.keeperStopped}, p.folder, endLimit); len(alive) > 0 {
			for _, one := range alive {
				p.found(left, "with a new daemon, %s after its start: %s", took.Round(time.Millisecond), one)
			}
		}
	}
	if !p.isSound() {
		return h, nil
	}
	return h, p.check(ctx, false, pl.round%3 == 0)
}

// restart starts the next daemon. Where the round says so it is killed on its way, and one more is started.
func (p *project) restart(ctx context.Context, pl plan) error {
	if pl.again > 0 {
		if err := p.beginDaemon(); err != nil {
			return err
		}
		pause(ctx, pl.again)
		p.kill(pl.blow == stopKill && pl.target == aKeeper)
	}
	return p.startDaemon(ctx)
}

// offline makes a call while no daemon runs.
func (p *project) offline(ctx context.Context, op *operator, pl plan) error {
	a, err := op.drawn(ctx, calls[pl.pick%len(calls)], pl.pick)
	if err != nil {
		return err
	}
	c, err := p.do(ctx, a)
	if err == nil {
		op.note(a, c)
	}
	return err
}

// settleLimit is how long a picture of work under way may look odd: a task between two queues, a line
// that is not written yet, a checkout that a merge is being brought into.
const settleLimit = 8 * time.Second

// check takes pictures until one is sound. What stays is found. Examined has the product look at itself too.
func (p *project) check(ctx context.Context, final, examined bool) error {
	for limit := time.Now().Add(settleLimit); ; {
		pic, err := p.take(ctx, final)
		if err != nil {
			return err
		}
		if examined {
			if err := p.examine(ctx, pic); err != nil {
				return err
			}
		}
		p.tasks, p.merges = len(pic.queues), len(pic.merges)
		findings := judge(pic, p.ledger, final)
		if len(findings) == 0 {
			return nil
		}
		if final || time.Now().After(limit) {
			p.mu.Lock()
			p.findings = append(p.findings, findings...)
			p.mu.Unlock()
			return nil
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// take takes a picture. Files come first and the status last: what the status acknowledges later than
// the files show is no contradiction, the other way round would be.
func (p *project) take(ctx context.Context, final bool) (*picture, error) {
	pic := &picture{live: livingMarks(p.folder)}
	if err := pic.readFiles(p.folder, p.dir); err != nil {
		return nil, err
	}
	if err := p.takeGit(ctx, pic); err != nil {
		return nil, err
	}
	doc, err := p.status(ctx)
	if err != nil {
		return nil, err
	}
	if doc == nil {
		return pic, nil // the call was judged
	}
	pic.status = *doc
	return pic, p.takeMissing(ctx, pic, final)
}

// takeGit asks git, in three looks at once.
func (p *project) takeGit(ctx context.Context, pic *picture) error {
	var wait sync.WaitGroup
	var log, work string
	var logErr error
	wait.Go(func() {
		if out, err := p.git(ctx, "fsck", "--no-progress", "--no-dangling"); err != nil {
			pic.fsck = err.Error()
		} else {
			pic.fsck = out
		}
	})
	wait.Go(func() {
		out, err := p.git(ctx, "status", "--porcelain", "--untracked-files=all")
		if pic.dirty = out; err != nil {
			pic.dirty = err.Error()
		}
	})
	log, logErr = p.git(ctx, "log", "--first-parent", "--format=%H%x09%P%x09%s", p.base+"..main")
	work, _ = p.git(ctx, "grep", "-h", "-e", "^/", "main", "--", "work-*.txt") // status 1 where there is none yet
	wait.Wait()
	for line := range strings.Lines(log) {
		if f := strings.SplitN(strings.TrimSpace(line), "\t", 3); len(f) == 3 {
			pic.merges = append(pic.merges, commit{f[0], f[1], f[2]})
		}
	}
	pic.work = strings.Fields(work)
	return errors.Join(logErr, ctx.Err())
}

// finish brings a project to its end: no more signals, every task verified, the daemon stopped.
func (p *project) finish(ctx context.Context, op *operator) error {
	op.open.Store(0)
	ok, err := p.drain(ctx, op)
	if err != nil {
		return err
	}
	op.stop()
	if op.fault != nil || !ok {
		return op.fault
	}
	p.stopDaemon()
	p.judgeDaemon(false)
	if !p.isSound() {
		return nil
	}
	return p.check(ctx, true, true)
}

// drainLimit is how long a project may stand still before its end, wholeDrain how long it may take to come
// there: tasks that go round and round move too.
const (
	drainLimit = 40 * time.Second
	wholeDrain = 3 * time.Minute
)

// drain waits until every task is verified.
func (p *project) drain(ctx context.Context, op *operator) (bool, error) {
	seen, _ := p.watch.count(taskMoved)
	limit, end := time.Now().Add(drainLimit), time.Now().Add(wholeDrain)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for p.isSound() && ctx.Err() == nil {
		now, changed := p.watch.count(taskMoved)
		var pic picture
		if err := pic.readQueues(filepath.Join(p.dir, ".greatminds")); err != nil {
			return false, err
		}
		if p.allVerified(&pic) {
			if over, err := p.nothingOpen(ctx); over || err != nil {
				return over, err
			}
		}
		if now != seen {
			seen, limit = now, time.Now().Add(drainLimit)
		}
		if now := time.Now(); now.After(limit) || now.After(end) {
			p.tellStuck(ctx, op)
			return false, nil
		}
		p.judgeDaemon(true)
		select {
		case <-changed:
		case <-op.ended:
			return false, op.fault
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return false, ctx.Err()
}

func (p *project) allVerified(pic *picture) (all bool) {
	p.ledger.with(func(l *ledger) {
		all = !slices.ContainsFunc(sorted(l.filed), func(id string) bool { return pic.queue(id) != "verified" })
	})
	for id := range pic.queues {
		all = all && pic.queue(id) == "verified"
	}
	return all
}

// nothingOpen tells whether no run is active and no result is on its way: a file stands in its last queue
// a moment before that is recorded.
func (p *project) nothingOpen(ctx context.Context) (bool, error) {
	doc, err := p.status(ctx)
	if err != nil || doc == nil {
		return false, err
	}
	for _, r := range doc.Runs {
		if r.active() {
			return false, nil
		}
	}
	for _, r := range doc.Results {
		if r.open() {
			return false, nil
		}
	}
	return true, nil
}

// tellStuck names the tasks that do not come to their end.
func (p *project) tellStuck(ctx context.Context, op *operator) {
	defer op.quiet()()
	doc, err := p.status(ctx)
	if err != nil || doc == nil {
		p.found(stuck, "nothing has moved for %s, and there is no status (%v)", drainLimit, err)
		return
	}
	p.found(stuck, "nothing has moved for %s, or there is no end after %s", drainLimit, wholeDrain)
	for _, a := range doc.Assignments {
		p.found(stuck, "task %s: %s (%s), remedy: %s", a.TaskID, a.Reason, a.What, a.Remedy)
	}
}
