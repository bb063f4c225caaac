package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"greatminds/contract"
	"greatminds/runstore"
	"greatminds/supervisor/activity"
	"greatminds/supervisor/ops"
	"greatminds/supervisor/status"
)

func (a *app) runWatch() *cobra.Command {
	cmd := &cobra.Command{
		Use: "watch RUN_ID", Short: "Follow what a run's agent does until the run ends or waits for a person.", Args: exactly("RUN_ID"),
		Long: "Shows what the agent says (\"~\" what it says to itself), its tool calls, plan and questions with the\n" +
			"commands that answer them. An interrupt ends the watching, never the run, and no run waits for\n" +
			"who watches it. Without a daemon it shows what is stored. With --json it prints one JSON object\n" +
			"a line: kind is activity, missed, state, question or end.",
		Example: "  greatminds run watch 3f2a9c...\n  greatminds run watch 3f2a9c... --json | jq -r 'select(.kind == \"activity\").item.text'",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.project()
			if err != nil {
				return err
			}
			err = a.watch(cmd.Context(), p, runstore.RunID(args[0]))
			if errors.Is(err, syscall.EPIPE) {
				return nil // nobody reads it any more, which is its ordinary end
			}
			return err
		},
	}
	return exits(a.takesProject(cmd), exitRuns)
}

// watchPause is the shortest time between two looks: what is said meanwhile is told in one.
const watchPause = 100 * time.Millisecond

// watch tells what is new of a run until it ends, the user's signal, or until nobody reads it.
func (a *app) watch(ctx context.Context, p contract.Project, id runstore.RunID) error {
	ctx, release := a.whileRead(ctx)
	defer release()
	tell := a.watcher()
	args := ops.WatchArgs{Run: id}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil
		}
		data, from, err := a.readFrom(ctx, p, "run.watch", args, time.Duration(args.Wait)*time.Second)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		var news ops.Watched
		if err := json.Unmarshal(data, &news); err != nil {
			return err
		}
		if err := tell.news(&news); err != nil {
			return err
		}
		switch {
		case news.Ended:
			return tell.end(&news)
		case from != status.FromDaemon:
			a.note(fmt.Sprintf("note: no daemon serves %s; this is what is stored", p.Root))
			return tell.rest()
		}
		args.After, args.Seen, args.Wait = news.News.Next, news.Seen, waitSlice.Seconds()
		pause.Reset(watchPause)
	}
}

// teller prints what is new of a run.
type teller interface {
	news(*ops.Watched) error
	// end prints what is left, and how the run ended.
	end(*ops.Watched) error
	rest() error
}

func (a *app) watcher() teller {
	if a.asJSON() {
		return &jsonTeller{app: a, asked: map[runstore.PermissionID]bool{}}
	}
	return &lineTeller{app: a, asked: map[runstore.PermissionID]bool{}}
}

// lineTeller prints lines for a person.
type lineTeller struct {
	*app
	said  status.Teller
	state string
	asked map[runstore.PermissionID]bool
}

func (t *lineTeller) news(w *ops.Watched) error {
	var out []string
	if w.News.Missed > 0 {
		out = append(t.said.Rest(), fmt.Sprintf("# %d older items are not kept", w.News.Missed))
	}
	out = append(out, t.said.Lines(w.News.Items, w.News.Resumed)...)
	if state := status.StateLine(w.Run); state != t.state && !w.Ended {
		t.state = state
		out = append(out, "= "+state)
	}
	for _, q := range w.Questions {
		if !t.asked[q.ID] {
			t.asked[q.ID] = true
			out = append(out, "")
			for _, l := range status.AskLines(q, string(w.Run.TaskID), t.Now(), status.FromDaemon) {
				out = append(out, "? "+l)
			}
			out = append(out, "")
		}
	}
	return t.lines(out)
}

func (t *lineTeller) end(w *ops.Watched) error {
	return t.lines(append(t.said.Rest(), status.EndLines(w.Run)...))
}

func (t *lineTeller) rest() error { return t.lines(t.said.Rest()) }

func (t *lineTeller) lines(lines []string) error {
	for _, l := range lines {
		if err := t.saySafe(l); err != nil {
			return err
		}
	}
	return nil
}

// jsonTeller prints JSON lines.
type jsonTeller struct {
	*app
	state string
	asked map[runstore.PermissionID]bool
}

// watchedLine is one line of `run watch --json`.
type watchedLine struct {
	Version int    `json:"version"`
	Kind    string `json:"kind"`
	// Item is what the agent did; Resumed says that its text goes on where the last one's ended.
	Item    *activity.Item `json:"item,omitempty"`
	Resumed bool           `json:"resumed,omitempty"`
	Missed  uint64         `json:"missed,omitempty"`
	State   runstore.State `json:"state,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	// Question is one that can be answered now.
	Question *runstore.Permission `json:"question,omitempty"`
	Run      *runstore.Run        `json:"run,omitempty"`
}

func (t *jsonTeller) news(w *ops.Watched) error {
	var lines []watchedLine
	if w.News.Missed > 0 {
		lines = append(lines, watchedLine{Kind: "missed", Missed: w.News.Missed})
	}
	for i := range w.News.Items {
		lines = append(lines, watchedLine{Kind: "activity", Item: &w.News.Items[i], Resumed: i == 0 && w.News.Resumed})
	}
	if state := status.StateLine(w.Run); state != t.state {
		t.state = state
		lines = append(lines, watchedLine{Kind: "state", State: w.Run.State, Reason: w.Run.Reason})
	}
	for _, q := range w.Questions {
		if !t.asked[q.ID] {
			t.asked[q.ID] = true
			lines = append(lines, watchedLine{Kind: "question", Question: q})
		}
	}
	for _, l := range lines {
		l.Version = 1
		if err := t.printLine(l); err != nil {
			return err
		}
	}
	return nil
}

func (t *jsonTeller) end(w *ops.Watched) error {
	return t.printLine(watchedLine{Version: 1, Kind: "end", State: w.Run.State, Reason: w.Run.Reason, Run: w.Run})
}

func (t *jsonTeller) rest() error { return nil }
