// Package discovery keeps the current list of task files, and says when it may have changed.
//
// The invariant kept: a file is listed only when nobody is still writing it. It counts once it
// is closed after a write or renamed into place, or, when a sweep meets it, once no process has
// it open for writing; where that cannot be told, once it is older than a second. The kernel's
// reports are a hint, never the truth: a slow sweep looks at everything again.
package discovery

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"time"

	"greatminds/contract"
	"greatminds/tasks"
)

const (
	// settleAge is how old an unfinished-looking file must be where leases cannot tell.
	settleAge = time.Second
	// slowSweep is the safety net beside the kernel's reports.
	slowSweep = 60 * time.Second
	// fastSweep replaces the reports where there are none.
	fastSweep = 2 * time.Second
)

// Source is the part of the task tree that discovery reads.
type Source interface {
	// Discover reads every task file of every queue.
	Discover() ([]tasks.Found, error)
	// Look reads one entry of a queue folder; false where there is none.
	Look(queue contract.Queue, name string) (tasks.Found, bool)
}

// Catalog is the list of task files of one project. It is safe for concurrent use.
type Catalog struct {
	source  Source
	runtime string
	now     func() time.Time
	log     *slog.Logger
	watch   *watcher
	changed chan struct{}

	mu      sync.Mutex
	found   map[string]tasks.Found // by "<queue>/<name>"
	dirty   map[string]event       // reported and not yet read
	all     bool                   // look at everything
	writing bool                   // the last sweep met a file that was being written
	sweepAt time.Time
}

// Open starts watching the queue folders below runtime. The first [Catalog.Tasks] reads all.
// What the kernel does not watch is swept every two seconds; Watching tells.
func Open(source Source, runtime string, queues []contract.Queue, now func() time.Time, log *slog.Logger) *Catalog {
	c := &Catalog{source: source, runtime: runtime, now: now, log: log, changed: make(chan struct{}, 1),
		found: map[string]tasks.Found{}, dirty: map[string]event{}, all: true}
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = string(q)
	}
	w, err := watch(runtime, names, c.take)
	if err != nil {
		log.Warn("task folders are swept instead of watched", "err", err)
		return c
	}
	c.watch = w
	return c
}

// Watching tells whether the kernel reports all changes.
func (c *Catalog) Watching() bool { return c.watch != nil && !c.watch.partial.Load() }

// Changed receives after something may have changed. It holds one notice, however many there were.
func (c *Catalog) Changed() <-chan struct{} { return c.changed }

// Close stops watching and returns when the pump has ended.
func (c *Catalog) Close() {
	if c.watch != nil {
		c.watch.close()
	}
}

// Touch says that a file was changed by ourselves, so that it is read again without waiting
// for the kernel.
func (c *Catalog) Touch(file string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	queue, name := filepath.Split(file)
	c.dirty[file] = event{Queue: filepath.Clean(queue), File: name}
}

// SweepAt is when everything must be looked at again.
func (c *Catalog) SweepAt() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sweepAt
}

// Tasks reads what has changed and returns every task file, ordered by file. Files that are
// still being written are left out until they are done. What had changed before the call is in
// the answer, whether its report has arrived or not.
func (c *Catalog) Tasks() ([]tasks.Found, error) {
	if c.watch != nil {
		c.watch.catchUp()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if c.all || !now.Before(c.sweepAt) {
		if err := c.sweep(now); err != nil {
			return nil, err
		}
	}
	for key, e := range c.dirty {
		delete(c.dirty, key)
		c.read(contract.Queue(e.Queue), e.File)
	}
	list := make([]tasks.Found, 0, len(c.found))
	for _, f := range c.found {
		list = append(list, f)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].File < list[j].File })
	return list, nil
}

// Waiting tells whether a file was being written at the last sweep, and will be looked at again.
func (c *Catalog) Waiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writing
}

func (c *Catalog) read(queue contract.Queue, name string) {
	key := filepath.Join(string(queue), name)
	if f, ok := c.source.Look(queue, name); ok {
		c.found[key] = f
	} else {
		delete(c.found, key)
	}
}

// sweep reads everything. A file that is still being written keeps its earlier entry, and the
// next sweep comes soon.
func (c *Catalog) sweep(now time.Time) error {
	all, err := c.source.Discover()
	if err != nil {
		return err
	}
	next := make(map[string]tasks.Found, len(all))
	unsettled := false
	for _, f := range all {
		if c.settled(f.File, now) {
			next[f.File] = f
			continue
		}
		unsettled = true
		if old, ok := c.found[f.File]; ok {
			next[f.File] = old
		}
	}
	c.found, c.dirty, c.all, c.writing = next, map[string]event{}, false, unsettled
	switch {
	case unsettled:
		c.sweepAt = now.Add(settleAge)
	case !c.Watching():
		c.sweepAt = now.Add(fastSweep)
	default:
		c.sweepAt = now.Add(slowSweep)
	}
	return nil
}

func (c *Catalog) settled(file string, now time.Time) bool {
	path := filepath.Join(c.runtime, file)
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeType != 0 {
		return true // gone, or no regular file: nothing is being written into it
	}
	if writing, known := beingWritten(path); known {
		return !writing
	}
	age := now.Sub(info.ModTime())
	return age >= settleAge || age < -settleAge
}

// take notes one report of the kernel's.
func (c *Catalog) take(e event) {
	c.mu.Lock()
	if e.File == "" {
		c.all = true
	} else {
		c.dirty[filepath.Join(e.Queue, e.File)] = e
	}
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}
