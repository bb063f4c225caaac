package main

import (
	"context"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// victims are the processes below the daemon that a target can mean.
func (p *project) victims(t target) []process {
	all := allProcesses()
	var out []process
	for _, one := range all.below(p.daemon.pid()) {
		if !one.zombie() && p.is(t, all, one) {
			out = append(out, one)
		}
	}
	return out
}

const keeperName = "gm-keeper"

// is tells what a process is: keepers by their name, agents and commands by what their keeper gave
// them, calls by the agent above them.
func (p *project) is(t target, all table, one process) bool {
	above := all[one.parent]
	switch t {
	case aKeeper:
		return one.name == keeperName
	case anAgent:
		return above.name == keeperName && p.program(one) == p.built.agent
	case theCommand:
		// The shell, or what it has started.
		for q := one; q.pid > 1; q = all[q.parent] {
			if q.name == keeperName {
				return false
			}
			if mark, ok := variable(environ(q.pid), "GREATMINDS_MARK"); ok && strings.Contains(mark, "/") && q.name == "sh" {
				return true
			}
		}
	case aCall:
		return p.program(one) == p.built.greatminds && p.program(above) == p.built.agent
	}
	return false
}

// program is the executable of a process, "" where it cannot be told.
func (p *project) program(one process) string {
	path, err := os.Readlink(procFile(one.pid, "exe"))
	if err != nil {
		return ""
	}
	return path
}

// forTool tells whether a keeper keeps a helper such as git, which stands on no record.
func forTool(keeper process) bool {
	role, _ := variable(environ(keeper.pid), "GREATMINDS_EXECGATE")
	return strings.HasPrefix(role, "tool-keeper")
}

// victimLimit is how long a target that is not there is waited for.
const victimLimit = 500 * time.Millisecond

// await pins a target that fits; false where none comes.
func (p *project) await(ctx context.Context, t target, pick int, fits func(process) bool) (pin, bool) {
	limit := time.Now().Add(victimLimit)
	for ctx.Err() == nil {
		var fit []process
		for _, v := range p.victims(t) {
			if fits == nil || fits(v) {
				fit = append(fit, v)
			}
		}
		if len(fit) > 0 {
			if held, ok := hold(fit[pick%len(fit)]); ok {
				return held, true
			}
		}
		if time.Now().After(limit) {
			return pin{}, false
		}
		pause(ctx, lookAgain)
	}
	return pin{}, false
}

// hit is what a round came to.
type hit struct {
	// target is whom it hit: where the one that was drawn did not come, the daemon.
	target target
	blow   blow
	// daemonDied says that the daemon must be started again; keeperStopped that something below it
	// still stands still.
	daemonDied    bool
	keeperStopped pin
}

// strike waits for a round's moment and sends its signals.
func (p *project) strike(ctx context.Context, o *operator, pl plan) (hit, error) {
	if pl.call != "" {
		return p.strikeCall(ctx, o, pl)
	}
	p.watch.await(ctx, pl.when)
	return p.strikeProcess(ctx, pl)
}

func (p *project) strikeProcess(ctx context.Context, pl plan) (hit, error) {
	if pl.target == theDaemon {
		return p.strikeDaemon(ctx, pl), nil
	}
	var fits func(process) bool
	if pl.blow == stopKill {
		fits = func(v process) bool { return !forTool(v) }
	}
	victim, there := p.await(ctx, pl.target, pl.pick, fits)
	if !there {
		pl.blow = kill
		return p.strikeDaemon(ctx, pl), nil
	}
	h := hit{target: pl.target, blow: pl.blow}
	switch pl.blow {
	case kill:
		victim.signal(unix.SIGKILL)
		victim.release()
	case stop:
		victim.signal(unix.SIGSTOP)
		pause(ctx, pl.hold)
		victim.signal(unix.SIGCONT)
		victim.release()
	case stopKill:
		victim.signal(unix.SIGSTOP)
		pause(ctx, pl.hold/4)
		p.kill(true)
		h.daemonDied, h.keeperStopped = true, victim
	}
	return h, nil
}

func (p *project) strikeDaemon(ctx context.Context, pl plan) hit {
	h := hit{target: theDaemon, blow: pl.blow}
	switch pl.blow {
	case stop, stopKill:
		p.daemon.signal(unix.SIGSTOP)
		pause(ctx, pl.hold)
	case termKill:
		p.daemon.signal(unix.SIGTERM)
		pause(ctx, pl.hold/3)
	}
	if pl.blow == stop {
		p.daemon.signal(unix.SIGCONT)
		return h
	}
	p.kill(false)
	h.daemonDied = true
	return h
}

// strikeCall hits a call of the operator's while it is under way, or the daemon while it serves one. Where
// the round is offline no daemon lives, and the call recovers in process what it left.
func (p *project) strikeCall(ctx context.Context, o *operator, pl plan) (hit, error) {
	defer o.quiet()()
	a, err := o.drawn(ctx, pl.call, pl.pick)
	if err != nil {
		return hit{}, err
	}
	died := pl.target == aCall && pl.offline
	if died {
		p.kill(false)
	}
	c, err := p.beginAct(ctx, a)
	if err != nil {
		return hit{}, err
	}
	pause(ctx, pl.when.delay)
	h := hit{target: pl.target, blow: pl.blow, daemonDied: died}
	if pl.target == theDaemon {
		// What the call starts without a daemon is below the call, which is known.
		h = p.strikeDaemon(ctx, pl)
	} else {
		hitCall(ctx, c, pl)
	}
	<-c.ended
	p.judgeCall(c, pl.target == aCall && pl.blow == kill)
	p.endAct(a, c)
	o.note(a, c)
	return h, ctx.Err()
}

func hitCall(ctx context.Context, c *call, pl plan) {
	if pl.blow == kill {
		_ = c.cmd.Process.Signal(unix.SIGKILL) // one that has ended is as good as hit
		return
	}
	_ = c.cmd.Process.Signal(unix.SIGSTOP)
	pause(ctx, pl.hold)
	_ = c.cmd.Process.Signal(unix.SIGCONT)
}
