package ops

import (
	"context"
	"fmt"
	"strings"
	"time"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/activity"
	"greatminds/supervisor/control"
)

// WatchArgs ask what is new of a run.
type WatchArgs struct {
	Run runstore.RunID `json:"run_id"`
	// After is what the caller has seen of the run's activity, Seen the member of its last answer: the
	// call waits while neither says anything new.
	After activity.Cursor `json:"after"`
	Seen  string          `json:"seen,omitempty"`
	// Wait is how long to wait for news, in seconds, at most 600.
	Wait float64 `json:"wait_seconds,omitempty"`
}

// Watched is what is new of a run.
type Watched struct {
	Version int           `json:"version"`
	Run     *runstore.Run `json:"run"`
	// Live says that the daemon drives the run now. Ended says that nothing more comes by itself: the run
	// is over, or it waits for a person without a process.
	Live  bool `json:"live"`
	Ended bool `json:"ended"`
	// Questions are those that an operator can answer now.
	Questions []*runstore.Permission `json:"questions"`
	// Activity is false where nothing of the agent's activity is kept.
	Activity bool          `json:"activity"`
	News     activity.News `json:"news"`
	// Seen stands for run and questions in the next call.
	Seen string `json:"seen"`
}

// runWatch tells what is new of a run, and waits for it where it is asked to. The run is held up by
// nobody who watches: what is new stays where it is, and makes room for newer things.
func runWatch(ctx context.Context, r *request) (any, error) {
	var args WatchArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	if args.Wait < 0 || args.Wait > maxWait || args.After.Bytes < 0 {
		return nil, refusal.New(refusal.CodeUsage, "give a wait of 0 to 600 seconds", "a wait of %g seconds is out of range", args.Wait)
	}
	timer := time.NewTimer(time.Duration(args.Wait * float64(time.Second)))
	defer timer.Stop()
	for {
		var changed, said <-chan struct{}
		if r.files == nil { // what was read once does not change
			changed = r.Store.Changed()
			if feed := r.Daemon.Activity(args.Run); feed != nil {
				said = feed.Changed()
			}
		}
		w, err := r.watched(args)
		if err != nil || changed == nil || w.Seen != args.Seen || len(w.News.Items) > 0 || w.News.Missed > 0 || w.Ended {
			return w, err
		}
		select {
		case <-changed:
		case <-said:
		case <-timer.C:
			return w, nil
		case <-control.Draining(ctx):
			return w, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *request) watched(args WatchArgs) (*Watched, error) {
	live := r.files == nil && r.Daemon.Live(args.Run)
	v := r.view()
	run, runErr := findRun(v, args.Run)
	if runErr != nil {
		return nil, runErr
	}
	if fault := v.HistoryFault(); fault != nil {
		return nil, fault
	}
	public := *run
	public.TokenSHA256 = ""
	// The feed is read last: a run whose end is on record has closed it before.
	doc, err := r.activity(args.Run)
	w := &Watched{Version: 1, Run: &public, Live: live, Ended: over(run), Questions: []*runstore.Permission{}, Activity: doc != nil && err == nil,
		News: activity.News{Items: []activity.Item{}, Next: args.After}}
	if doc != nil {
		w.News = doc.Since(args.After)
	}
	seen := []string{string(run.State), run.Reason, fmt.Sprint(live)}
	for _, p := range v.PermissionsOfRun(args.Run) {
		if p.Status == "pending" && live && r.Daemon.Waits(p.ID) {
			w.Questions = append(w.Questions, p)
			seen = append(seen, string(p.ID))
		}
	}
	w.Seen = strings.Join(seen, " ")
	return w, nil
}

// over tells whether nothing more comes of a run by itself.
func over(run *runstore.Run) bool { return run.State.Terminal() || waits(run) }

// activity is what the agent of a run is or was seen doing; nil where nothing of it is kept.
func (e *Env) activity(run runstore.RunID) (*activity.Document, error) {
	if e.files == nil {
		if feed := e.Daemon.Activity(run); feed != nil {
			return feed.Document(), nil
		}
	}
	return activity.Read(e.Project.StoreDir(), string(run))
}
