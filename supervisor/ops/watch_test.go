package ops_test

import (
	"encoding/json"
	"testing"
	"time"

	"greatminds/internal/durable"
	"greatminds/internal/redact"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/activity"
	"greatminds/supervisor/control"
	"greatminds/supervisor/ops"
	"greatminds/transport"
)

func say(text string) transport.Update {
	return transport.Update{Known: true, Kind: "agent_message_chunk", ContentType: "text", Text: text}
}

// feed gives a run something that is seen.
func (w *world) feed(r run) *activity.Feed {
	f := activity.New(string(r.id), redact.New(), time.Now)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.feeds[r.id] = f
	return f
}

func (w *world) watch(args ops.WatchArgs) ops.Watched {
	w.t.Helper()
	data, err := w.ask(stranger, control.Call{Op: "run.watch"}, args)
	must(w.t, err)
	var got ops.Watched
	must(w.t, json.Unmarshal(data, &got))
	return got
}

// A watcher waits in the daemon for what is new, and is told each kind of it: what the agent does, what it
// asks, and how the run ends.
func TestWatchTellsWhatIsNew(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	f := w.feed(r)
	f.Update(say("hello "))
	args := ops.WatchArgs{Run: r.id}
	first := w.watch(args)
	if len(first.News.Items) != 1 || first.News.Items[0].Text != "hello " || !first.Live || first.Ended || !first.Activity {
		t.Fatalf("got %+v", first)
	}
	args.After, args.Seen, args.Wait = first.News.Next, first.Seen, 600
	// next waits for news that something makes once the call waits.
	next := func(what func()) ops.Watched {
		t.Helper()
		got := make(chan ops.Watched, 1)
		go func() { got <- w.watch(args) }()
		what()
		n := <-got
		args.After, args.Seen = n.News.Next, n.Seen
		return n
	}
	if n := next(func() { f.Update(say("world ")) }); len(n.News.Items) != 1 || !n.News.Resumed || n.News.Items[0].Text != "world " {
		t.Errorf("more of a message: %+v", n)
	}
	var question runstore.PermissionID
	if n := next(func() { question = w.question(r) }); len(n.Questions) != 1 || n.Questions[0].ID != question || len(n.News.Items) != 0 {
		t.Errorf("a question: %+v", n)
	}
	if n := next(func() { w.move(r, runstore.Failed) }); !n.Ended || n.Run.State != runstore.Failed || n.Run.TokenSHA256 != "" {
		t.Errorf("the end: %+v", n)
	}
	args.Wait = 0
	if n := w.watch(args); !n.Ended || len(n.News.Items) != 0 {
		t.Errorf("after the end: %+v", n)
	}
}

// A watcher that is told nothing leaves with nothing, and one that is gone leaves nothing behind.
func TestWatchWaitsNoLongerThanItMay(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	w.feed(r)
	first := w.watch(ops.WatchArgs{Run: r.id})
	began := time.Now()
	n := w.watch(ops.WatchArgs{Run: r.id, Seen: first.Seen, Wait: 0.05})
	if took := time.Since(began); took < 50*time.Millisecond || len(n.News.Items) != 0 || n.Seen != first.Seen {
		t.Errorf("after %v got %+v", took, n)
	}
	_, err := w.ask(operator, control.Call{Op: "run.watch"}, ops.WatchArgs{Run: "none"})
	wants(t, err, refusal.CodeRunUnknown, 2)
	_, err = w.ask(operator, control.Call{Op: "run.watch"}, ops.WatchArgs{Run: r.id, Wait: 601})
	wants(t, err, refusal.CodeUsage, 2)
}

// A run that waits for a person without a process has ended for whoever watches it.
func TestWatchEndsAtAHold(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	w.move(r, runstore.WaitingInput)
	if w.watch(ops.WatchArgs{Run: r.id}).Ended {
		t.Error("a run whose agent waits has ended")
	}
	w.update(func(tx *runstore.Tx) error { return tx.EditRun(r.id, func(run *runstore.Run) { run.Process = nil }) })
	if !w.watch(ops.WatchArgs{Run: r.id, Wait: 600}).Ended {
		t.Error("a run that is held goes on")
	}
}

// What is stored of a run that is over is shown beside its record.
func TestShowHasTheActivity(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	shown := func() ops.Shown {
		data, err := w.ask(stranger, control.Call{Op: "run.show"}, ops.RunArgs{Run: r.id})
		must(t, err)
		var got ops.Shown
		must(t, json.Unmarshal(data, &got))
		return got
	}
	if shown().Activity != nil {
		t.Error("there is activity of a run that did nothing")
	}
	f := w.feed(r)
	f.Update(say("hello "))
	if a := shown().Activity; a == nil || len(a.Items) != 1 || a.Items[0].Text != "hello " {
		t.Errorf("of a live run: %+v", a)
	}
	f.Stop("end_turn")
	disk := durable.NewDisk(nil)
	must(t, activity.Prepare(disk, w.env.Project.StoreDir()))
	must(t, f.Write(disk, w.env.Project.StoreDir()))
	w.mu.Lock()
	delete(w.feeds, r.id)
	w.mu.Unlock()
	if a := shown().Activity; a == nil || len(a.Items) != 2 || a.Items[1].StopReason != "end_turn" {
		t.Errorf("of one that is over: %+v", a)
	}
}

// E-037 E-039: the open questions are listed with what a person needs beside them; looking answers nothing.
func TestOpenQuestionsAreListed(t *testing.T) {
	w := newWorld(t)
	list := func() ops.Questions {
		data, err := w.ask(stranger, control.Call{Op: "run.permissions"}, nil)
		must(t, err)
		var got ops.Questions
		must(t, json.Unmarshal(data, &got))
		return got
	}
	if got := list(); got.Version != 1 || got.Questions == nil || len(got.Questions) != 0 {
		t.Fatalf("got %+v", got)
	}
	r := w.running()
	first, second := w.question(r), w.question(r)
	got := list().Questions
	if len(got) != 2 || got[0].TaskID != "0001-one" || got[0].AgentID != "a" || got[0].SecondsLeft != 300 || got[0].Waits == nil || !*got[0].Waits {
		t.Fatalf("got %+v", got)
	}
	_, err := w.operate("run.permission-answer", ops.AnswerArgs{Request: first, Option: "yes"})
	must(t, err)
	if got := list().Questions; len(got) != 1 || got[0].Request.ID != second || got[0].Request.Status != "pending" {
		t.Fatalf("after an answer: %+v", got)
	}
}
