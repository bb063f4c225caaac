package supervisor

import (
	"context"
	"sync"

	"greatminds/runstore"
	"greatminds/supervisor/activity"
	"greatminds/supervisor/permission"
	"greatminds/transport"
)

// feed is what the agent of a run is seen doing, for people. It is no evidence: a run goes on without
// it, and its outcome says so.
type feed struct {
	mu    sync.Mutex
	items *activity.Feed // nil until the conversation begins
	stop  func()         // ends the goroutine that keeps the file, and waits for it
	// lacking says that the file is not what was seen.
	lacking bool
}

// Activity is what the agent of a run that this process drives is seen doing; nil for every other run,
// and before the conversation begins.
func (d *Daemon) Activity(run runstore.RunID) *activity.Feed {
	d.mu.Lock()
	e := d.live[run]
	d.mu.Unlock()
	if e == nil {
		return nil
	}
	return e.feed.get()
}

func (f *feed) get() *activity.Feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.items
}

// prepareFeeds makes the folder of the feeds and removes what is too old.
func (d *Daemon) prepareFeeds() {
	err := activity.Prepare(d.disk, d.o.Project.StoreDir())
	if err == nil {
		err = activity.Prune(d.disk, d.o.Project.StoreDir(), func(string) bool { return false })
	}
	if err != nil {
		d.log.Warn("activity of runs is not kept", "err", err)
	}
}

// openFeed begins to gather what the agent does, and to keep it in its file.
func (d *Daemon) openFeed(e *execution) {
	items := activity.New(string(e.run.ID), e.secrets, d.o.Now)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); items.Keep(ctx, d.disk, d.o.Project.StoreDir()) }()
	e.feed.mu.Lock()
	defer e.feed.mu.Unlock()
	e.feed.items = items
	e.feed.stop = func() { cancel(); <-ended }
}

// end ends the goroutine that keeps the file; false where that was done before.
func (f *feed) end() bool {
	f.mu.Lock()
	stop := f.stop
	f.stop = nil
	f.mu.Unlock()
	if stop == nil {
		return false
	}
	stop()
	return true
}

// closeFeed ends what openFeed began, before the outcome says whether all of it is kept. A second call
// only tries again what the first could not write.
func (d *Daemon) closeFeed(e *execution) {
	items := e.feed.get()
	if items == nil {
		return
	}
	if e.feed.end() {
		items.Stop(e.outcome.stopReason)
	}
	err := items.Write(d.disk, d.o.Project.StoreDir())
	if err != nil {
		d.log.Warn("activity not kept", "run_id", e.run.ID, "err", err)
	} else if err := activity.Prune(d.disk, d.o.Project.StoreDir(), func(id string) bool { return d.Live(runstore.RunID(id)) }); err != nil {
		d.log.Warn("old activity not removed", "err", err)
	}
	e.feed.mu.Lock()
	defer e.feed.mu.Unlock()
	e.feed.lacking = err != nil
}

// unavailable is the outcome's member: true where the feed could not be kept, else nothing.
func (f *feed) unavailable() *bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.lacking {
		return nil
	}
	lacking := true
	return &lacking
}

func (f *feed) update(u transport.Update) {
	if items := f.get(); items != nil {
		items.Update(u)
	}
}

// question notes what became of a question.
func (f *feed) question(r transport.PermissionRequest) func(permission.Progress) {
	return func(p permission.Progress) {
		if items := f.get(); items != nil {
			items.Question(activity.Item{Request: string(p.ID), Title: r.Title, ToolKind: r.ToolKind, Status: p.Status, Option: p.OptionID, Reason: p.Reason})
		}
	}
}
