package keep

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"greatminds/internal/execgate/entry"
	"greatminds/internal/execgate/proc"
)

const (
	// leftoverTerm is what processes that outlive the agent get between SIGTERM and SIGKILL
	// when nobody asked for a stop: enough to remove a lock file or a socket.
	leftoverTerm = 100 * time.Millisecond
	// leftoverKill is how long the keeper tries to kill what is left before it names it.
	leftoverKill = 5 * time.Second
	// toolTerm is what a tool gets between SIGTERM and SIGKILL when the daemon is gone. Git
	// removes its lock files in it: they stand in the user's own repository, and nobody else
	// would take them away.
	toolTerm = 2 * time.Second
	// A pass of SIGKILL looks at our own children up to so often, as long as it finds new ones, and
	// then at the whole tree. Passes that find nobody new begin this close together and get slower.
	quickPasses = 16
	firstPass   = 5 * time.Millisecond
	lastPass    = 250 * time.Millisecond
)

// keeper is the process between daemon and agent, or a warden in its place. Everything here runs on
// one goroutine.
type keeper struct {
	// target is the pid of the gate, which becomes the agent, or of the tool; a warden's is the
	// keeper that it lost.
	target int
	// warden says that this process ends the tree in the place of its keeper.
	warden bool
	// tool says that the target is a helper program, not an agent or a command.
	tool bool
	// mayReap is set once the target's identity is on record: a zombie keeps its pid from
	// being given to another process.
	mayReap bool
	// empty is set by ECHILD, the proof that no descendant is left.
	empty bool

	ending            bool
	orphaned          bool // the daemon is gone: no limit, and no grace but a tool's
	termUntil, killAt time.Time
	killed            bool
	// pass is the wait between passes of SIGKILL; the next one is due at nextPass.
	pass      time.Duration
	nextPass  time.Time
	signalled proc.Roll
	group     string
}

// run runs a keeper, which has started its program, to its end.
func run(own *entry.Keeper) int {
	closeInherited(entry.StatusFD)
	if own.Errno != 0 {
		// A daemon that is gone needs no answer.
		_ = send(entry.ControlFD, Message{Kind: Failed, Errno: own.Errno, Path: own.Path})
		RemoveGroup(own.Group)
		return entry.ExitExecFailed
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	k := &keeper{
		target: own.PID, tool: own.Tool, warden: own.Warden, mayReap: own.Tool || own.Warden, group: own.Group,
		signalled: proc.Roll{}, pass: firstPass,
	}
	if k.warden {
		k.end(0, leftoverKill)
	}
	defer RemoveGroup(own.Group)
	return k.watch(ended, readControl())
}

// readControl yields the daemon's messages and is closed at the channel's end. Its goroutine
// ends with the process.
func readControl() <-chan Message {
	messages := make(chan Message)
	go func() {
		defer close(messages)
		buffer := make([]byte, MaxMessage)
		for {
			n, err := entry.FD(entry.ControlFD).Read(buffer)
			if err != nil || n == 0 {
				return
			}
			if m, err := ParseMessage(buffer[:n]); err == nil {
				messages <- m
			}
		}
	}()
	return messages
}

// watch waits for the target's end, a stop or the daemon's end, and then ends the tree.
func (k *keeper) watch(ended <-chan os.Signal, control <-chan Message) int {
	timer := time.NewTimer(time.Hour)
	for {
		next, over := k.step(time.Now())
		reaped := k.reap()
		switch {
		case k.empty:
			return k.lastWord(nil)
		case over:
			return k.lastWord(k.remaining())
		case reaped:
			// What ended may have been a parent, whose children are ours now, or the target.
			if k.killed && k.quickPass() > 0 {
				k.nextPass = time.Time{}
			}
			next = min(next, time.Until(k.nextPass))
		}
		timer.Reset(next)
		select {
		case <-ended:
		case <-timer.C:
		case m, open := <-control:
			if !open {
				control = nil
				k.abandon()
				continue
			}
			k.obey(m)
		}
	}
}

func (k *keeper) obey(m Message) {
	switch m.Kind {
	case Recorded:
		k.mayReap = true
	case Stop:
		k.reap() // an end that came first is no answer to the stop
		k.end(m.Term, m.Kill)
	}
}

// end begins to end the tree, or shortens the grace of an ending under way.
func (k *keeper) end(term, kill time.Duration) {
	now := time.Now()
	k.mayReap = true
	termUntil := now.Add(term)
	if !k.ending || termUntil.Before(k.termUntil) {
		k.termUntil = termUntil
	}
	if !k.orphaned {
		k.killAt = k.termUntil.Add(kill)
	}
	k.ending = true
}

// abandon is the daemon's end: kill at once, a tool after its grace, and never give up, since
// nobody is left to name a survivor to.
func (k *keeper) abandon() {
	k.orphaned = true
	if k.tool {
		k.end(toolTerm, 0)
		return
	}
	k.end(0, 0)
}

// step does what is due and returns when the next step is. over means that the time for
// killing has run out.
func (k *keeper) step(now time.Time) (next time.Duration, over bool) {
	const idle = time.Hour
	if !k.ending {
		return idle, false
	}
	if now.Before(k.termUntil) {
		k.signalled.Ask(proc.Self())
		return min(k.termUntil.Sub(now), lastPass), false
	}
	if !k.orphaned && k.killed && now.After(k.killAt) {
		return 0, true
	}
	if wait := k.nextPass.Sub(now); wait > 0 {
		return wait, false
	}
	k.killed = true
	KillGroup(k.group)
	if k.quickPass()+k.signalled.Kill(proc.Self()) > 0 {
		// The tree may be forking: whoever was born during this pass must not get the time to do so.
		k.pass, k.nextPass = firstPass, now
		return 0, false
	}
	next = k.pass
	k.nextPass = now.Add(next)
	k.pass = min(2*k.pass, lastPass)
	return next, false
}

// quickPass kills our own children until there is nobody new among them, and returns how many there
// were.
func (k *keeper) quickPass() (fresh int) {
	for range quickPasses {
		n := k.signalled.KillChildren()
		if fresh += n; n == 0 {
			break
		}
	}
	return fresh
}

// reap takes every zombie and says whether there were any. Before the target is on record there is
// nothing else to reap: a gate has no children.
func (k *keeper) reap() (some bool) {
	for k.mayReap {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil { // ECHILD
			k.empty = true
			return some
		}
		if pid == 0 {
			return some
		}
		some = true
		if pid == k.target && !k.warden {
			_ = send(entry.ControlFD, Message{Kind: Exit, Status: uint32(status), Natural: !k.ending}) // the reader sees a lost daemon
			if !k.ending {
				k.end(leftoverTerm, leftoverKill)
			}
		}
	}
	return some
}

// lastWord reports the end and is followed by the keeper's own.
func (k *keeper) lastWord(left []proc.Process) int {
	_ = send(entry.ControlFD, Message{Kind: Empty, Ended: k.signalled.Without(k.target), Forced: k.killed, Lost: k.warden, Survivors: left}) // nobody may be left to read it
	return 0
}

// remaining names what the kernel still lists as ours. It is called when the proof failed, so it
// never answers with nothing.
func (k *keeper) remaining() []proc.Process {
	pins := proc.Walk(proc.Self())
	defer proc.ClosePins(pins)
	left := proc.Identities(pins)
	if len(left) > 0 {
		return left
	}
	kids, _ := proc.Children(os.Getpid()) // unreadable is as good as hidden
	for _, kid := range kids {
		left = append(left, proc.Process{PID: kid})
	}
	if len(left) == 0 {
		left = append(left, proc.Process{PID: k.target})
	}
	return left
}
