package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// target is whom a round hits.
type target string

// The targets.
const (
	theDaemon  target = "daemon"
	aKeeper    target = "keeper"
	anAgent    target = "agent"
	theCommand target = "command"
	aCall      target = "cli"
)

var targets = []target{theDaemon, aKeeper, anAgent, theCommand, aCall}

// blow is what a round does to its target.
type blow string

// The blows.
const (
	kill blow = "KILL"
	// stop is SIGSTOP, and SIGCONT after a while.
	stop blow = "STOP+CONT"
	// stopKill is SIGSTOP and then SIGKILL to the daemon: the target's own, or the daemon above the
	// stopped keeper, which then cannot do its work.
	stopKill blow = "STOP, daemon KILL"
	// termKill is SIGTERM to the daemon, and SIGKILL while it ends in good order.
	termKill blow = "TERM, KILL"
)

var blows = []blow{kill, stop, stopKill, termKill}

// Events that a moment can wait for; each is seen in the file system, from outside.
const (
	atOnce      = "delay"
	storeGrew   = "store"   // the daemon's store took something
	journalGrew = "journal" // a line of the task journal
	taskMoved   = "queue"   // a task file came into a queue
	agentSpoke  = "agent"   // a line of an agent's trace: its start, a message, a call
	commandRan  = "command" // a configured command began or ended
	gitMoved    = "git"     // a lock or a ref of the user's repository
)

// moment is when a round strikes: after the nth event from its beginning, and a delay. A moment that
// does not come within momentLimit is taken as come.
type moment struct {
	event string
	nth   int
	delay time.Duration
}

const momentLimit = 1200 * time.Millisecond

// plan is one round as it is drawn.
type plan struct {
	round  int
	target target
	blow   blow
	when   moment
	// hold is how long a stopped process stays stopped.
	hold time.Duration
	// pick chooses among several targets.
	pick int
	// call is the operator's call that a round with a call makes, whose moment is counted from its
	// start; empty in other rounds. A round whose target is a call and that makes none hits one of an
	// agent's.
	call string
	// offline makes one call of the operator's in the gap between a daemon's death and the next one,
	// which then recovers in process. Where the call is the target it is hit there.
	offline bool
	// again kills the next daemon too, so long after its start: in the middle of its recovery. 0 for not.
	again time.Duration
}

func (p plan) String() string {
	text := fmt.Sprintf("%s %s", p.blow, p.target)
	if p.call != "" {
		text += fmt.Sprintf(" (%s)", p.call)
	}
	if p.offline {
		text += " without daemon"
	}
	if p.again > 0 {
		text += fmt.Sprintf(", again after %dms", p.again.Milliseconds())
	}
	if p.when.event != atOnce {
		text += fmt.Sprintf(" at %s %d", p.when.event, p.when.nth)
	}
	return text + fmt.Sprintf(" +%dms", p.when.delay.Milliseconds())
}

// drawing is the source of everything random of one thing: what is drawn for a round does not depend
// on what happened before it.
func drawing(seed uint64, what string, n int) *rand.Rand {
	mixed := uint64(n)
	for _, c := range what {
		mixed = mixed*131 + uint64(c)<<32
	}
	return rand.New(rand.NewPCG(seed, mixed))
}

func milliseconds(r *rand.Rand, low, high int) time.Duration {
	return time.Duration(low)*time.Millisecond + time.Duration(r.Int64N(int64(high-low)*int64(time.Millisecond)))
}

// draw draws a round.
func draw(seed uint64, round int) plan {
	r := drawing(seed, "round", round)
	p := plan{round: round, pick: r.IntN(1 << 16), hold: milliseconds(r, 20, 350), blow: kill}
	switch n := r.IntN(100); {
	case n < 40:
		p.target = theDaemon
	case n < 57:
		p.target = aKeeper
	case n < 70:
		p.target = anAgent
	case n < 82:
		p.target = theCommand
	default:
		p.target = aCall
	}
	switch n := r.IntN(100); {
	case n < 12 && (p.target == theDaemon || p.target == aKeeper):
		p.blow = stopKill
	case n < 28:
		p.blow = stop
	case n < 36 && p.target == theDaemon:
		p.blow = termKill
	}
	p.when = drawMoment(r, p.target)
	if p.blow != stop && r.IntN(4) == 0 {
		p.again = milliseconds(r, 1, 90)
	}
	switch {
	case p.target == aCall && r.IntN(3) == 0: // an agent's own
		p.when = moment{event: agentSpoke, nth: 1 + r.IntN(20), delay: milliseconds(r, 0, 20)}
	case p.target == aCall:
		p.call = calls[r.IntN(len(calls))]
		p.offline = r.IntN(4) == 0
		p.when = moment{event: atOnce, delay: milliseconds(r, 0, 45)}
		if p.offline {
			p.when.delay *= 2 // recovery takes its time too
		}
	case p.target == theDaemon:
		p.offline = r.IntN(5) == 0
		if r.IntN(5) == 0 {
			p.call = calls[r.IntN(len(calls))]
			p.when = moment{event: atOnce, delay: milliseconds(r, 0, 40)}
		}
	}
	return p
}

// drawMoment draws when a target is hit: soon after an event near which it lives.
func drawMoment(r *rand.Rand, t target) moment {
	kinds := map[target][]string{
		theDaemon:  {atOnce, storeGrew, storeGrew, storeGrew, journalGrew, taskMoved, agentSpoke, commandRan, gitMoved, gitMoved},
		aKeeper:    {agentSpoke, agentSpoke, commandRan, storeGrew, gitMoved},
		anAgent:    {agentSpoke},
		theCommand: {commandRan},
		aCall:      {atOnce},
	}[t]
	m := moment{event: kinds[r.IntN(len(kinds))], nth: 1}
	switch m.event {
	case atOnce:
		m.delay = milliseconds(r, 0, 700)
	case storeGrew:
		m.nth, m.delay = 1+r.IntN(30), milliseconds(r, 0, 8)
	case agentSpoke:
		m.nth, m.delay = 1+r.IntN(25), milliseconds(r, 0, 25)
	case gitMoved:
		m.nth, m.delay = 1+r.IntN(4), milliseconds(r, 0, 10)
	case commandRan:
		m.nth, m.delay = 1, milliseconds(r, 0, 45)
	default:
		m.nth, m.delay = 1+r.IntN(2), milliseconds(r, 0, 15)
	}
	return m
}

// projectPlan is one project as it is drawn.
type projectPlan struct {
	// first is its first round, rounds how many it sees before it is brought to its end.
	first, rounds int
	// open is how many unfinished tasks the operator keeps in it.
	open int
	// asks and spawns say, for the nth start of an agent, whether it asks the operator a question
	// instead of doing its work, and whether it leaves a child; deaf, whether that ignores SIGTERM.
	asks, spawns, deaf []bool
}

// scriptedStarts is for how many starts of an agent something is drawn; later ones just work.
const scriptedStarts = 120

func drawProject(seed uint64, first int) projectPlan {
	r := drawing(seed, "project", first)
	p := projectPlan{first: first, rounds: 10 + r.IntN(7), open: 3 + r.IntN(2)}
	for range scriptedStarts {
		p.asks = append(p.asks, r.IntN(12) == 0)
		p.spawns = append(p.spawns, r.IntN(3) == 0)
		p.deaf = append(p.deaf, r.IntN(3) == 0)
	}
	return p
}
