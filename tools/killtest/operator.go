package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookEvery is how often the operator looks although nothing has happened.
	lookEvery = 150 * time.Millisecond
	// refileAfter is how long the operator waits before a task whose filing was cut short is filed
	// again: the daemon may still be at it.
	refileAfter = time.Second
)

// operator keeps a project going: files and plans tasks, answers questions, applies remedies. It does
// nothing but what the project's own output tells it to.
type operator struct {
	p *project
	// open is how many unfinished tasks it keeps up.
	open atomic.Int32
	// halt asks for an end of what it is at; held is taken while it looks.
	halt atomic.Bool
	held sync.Mutex

	number int                  // of tasks
	asked  map[string]time.Time // titles whose filing was not acknowledged, and since when
	tried  map[string]int       // how often a remedy was applied
	fault  error                // valid once ended is closed
	done   chan struct{}        // closed when it is told to stop
	ended  chan struct{}
}

func (p *project) startOperator(ctx context.Context) *operator {
	o := &operator{p: p, asked: map[string]time.Time{}, tried: map[string]int{},
		done: make(chan struct{}), ended: make(chan struct{})}
	o.open.Store(int32(p.drawn.open))
	go o.loop(ctx)
	return o
}

func (o *operator) loop(ctx context.Context) {
	defer close(o.ended)
	for ctx.Err() == nil {
		if err := o.turn(ctx); err != nil && ctx.Err() == nil {
			o.fault = err
			return
		}
		_, changed := o.p.watch.count(storeGrew)
		pause(ctx, lookEvery/3)
		timer := time.NewTimer(lookEvery)
		select {
		case <-changed:
		case <-timer.C:
		case <-o.done:
		case <-ctx.Done():
		}
		timer.Stop()
		if o.stopped() {
			return
		}
	}
}

func (o *operator) stopped() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// stop ends the operator's work after the call that it is at. It may be called again.
func (o *operator) stop() {
	if !o.stopped() {
		o.halt.Store(true)
		close(o.done)
	}
	<-o.ended
}

func (o *operator) turn(ctx context.Context) error {
	o.held.Lock()
	defer o.held.Unlock()
	if o.halt.Load() {
		return nil
	}
	return o.look(ctx)
}

// quiet stops the operator between two calls, until the returned function is called.
func (o *operator) quiet() (resume func()) {
	o.halt.Store(true)
	o.held.Lock()
	return func() {
		o.halt.Store(false)
		o.held.Unlock()
	}
}

// status asks for the status; nil where the call was refused.
func (p *project) status(ctx context.Context) (*statusDoc, error) {
	c, err := p.call(ctx, "", "run", "status", "--json", "--project-dir", p.dir)
	if err != nil {
		return nil, err
	}
	if !c.done() {
		return nil, nil
	}
	var doc statusDoc
	if err := json.Unmarshal([]byte(c.out), &doc); err != nil {
		p.found(unsound, "run status is no JSON: %v\n%.300s", err, c.out)
		return nil, nil
	}
	return &doc, nil
}

// look does once everything that there is to do.
func (o *operator) look(ctx context.Context) error {
	doc, err := o.p.status(ctx)
	if err != nil || doc == nil {
		return err
	}
	var pic picture
	if err := pic.readQueues(filepath.Join(o.p.dir, ".greatminds")); err != nil {
		return err
	}
	for _, a := range o.due(doc, &pic) {
		if o.halt.Load() || ctx.Err() != nil {
			return nil
		}
		c, err := o.p.do(ctx, a)
		if err != nil {
			return err
		}
		o.note(a, c)
	}
	return nil
}

// note remembers a filing whose outcome is not known, and does what a refusal asks for.
func (o *operator) note(a act, c *call) {
	if !c.done() {
		o.p.removeLock(c.err)
	}
	if a.title == "" {
		return
	}
	delete(o.asked, a.title)
	if !c.done() {
		o.asked[a.title] = time.Now()
	}
}

// due lists what there is to do.
func (o *operator) due(doc *statusDoc, pic *picture) []act {
	var acts []act
	for _, id := range sorted(doc.Permissions) {
		if p := doc.Permissions[id]; p.Status == "pending" {
			acts = append(acts, answer(p, "ok"))
		}
	}
	if doc.Paused {
		acts = append(acts, setPaused(false))
	}
	assigned := map[string]bool{}
	for _, a := range doc.Assignments {
		assigned[a.TaskID] = true
		acts = append(acts, o.applied(a)...)
	}
	for _, r := range doc.Recovery {
		if !assigned[r.TaskID] {
			o.p.removeLock(r.Reason)
			acts = append(acts, o.applied(assignment{TaskID: r.TaskID, What: r.Reason, Remedy: r.remedy()})...)
		}
	}
	unfinished := 0
	for _, id := range sorted(pic.queues) {
		switch pic.queue(id) {
		case "feature_inbox", "feature_plan":
			acts = append(acts, o.p.planTask(id))
			unfinished++
		case "verified":
		default:
			unfinished++
		}
	}
	for ; unfinished < int(o.open.Load()); unfinished++ {
		if a, ok := o.filing(pic); ok {
			acts = append(acts, a)
		}
	}
	return acts
}

// remedy is the first of the commands that does something.
func (r recovery) remedy() string {
	for _, command := range r.Commands {
		if !strings.HasPrefix(command, "greatminds run command-status") {
			return command
		}
	}
	return ""
}

// filing files the next task: first one whose filing was cut short and left nothing.
func (o *operator) filing(pic *picture) (act, bool) {
	for title, since := range o.asked {
		switch {
		case len(pic.titles[title]) > 0:
			delete(o.asked, title)
		case time.Since(since) > refileAfter:
			o.asked[title] = time.Now() // not twice in one look
			return fileTask(title), true
		default:
			return act{}, false
		}
	}
	return fileTask(o.title()), true
}

// title is a new one.
func (o *operator) title() string {
	o.number++
	title := fmt.Sprintf("Write file number %d", o.number)
	o.p.ledger.with(func(l *ledger) { l.titles = append(l.titles, title) })
	return title
}

// applied are the acts that an assignment's remedy names. A file that it says to remove is removed.
func (o *operator) applied(a assignment) []act {
	if a.Remedy == "" {
		return nil
	}
	key := a.TaskID + " " + a.Remedy
	acts, unknown := remedies(a.Remedy, o.tried[key])
	if len(acts) > 0 {
		o.tried[key]++
	}
	o.p.removeLock(a.Remedy)
	for _, command := range unknown {
		o.p.found(stuck, "task %s (%s: %s) names a remedy that this operator does not know: %q", a.TaskID, a.Reason, a.What, command)
	}
	return acts
}

// removeLock removes the lock of git's that a remedy tells to remove. No git of the user's runs here.
func (p *project) removeLock(remedy string) {
	m := namedLock.FindStringSubmatch(remedy)
	if m == nil || !strings.HasPrefix(m[1], p.folder+"/") {
		return
	}
	if err := os.Remove(m[1]); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.found(stuck, "the remedy %q cannot be applied: %v", remedy, err)
	}
}
