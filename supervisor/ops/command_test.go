package ops_test

import (
	"context"
	"encoding/json"
	"testing"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/control"
	"greatminds/supervisor/ops"
)

// E-075 E-079 E-080 E-081: a request is queued for the daemon, once for each id, from the run's
// pinned contract.
func TestCommandIsQueuedOnce(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	data, err := w.ask(agent, r.call("run.command"), ops.CommandArgs{Command: "unit", Request: "one", OutputLimit: 10})
	must(t, err)
	if field[string](t, data, "status") != "queued" || field[string](t, data, "id") != "one" {
		t.Fatalf("got %s", data)
	}
	if w.woken != 1 {
		t.Fatalf("the daemon was woken %d times, want once", w.woken)
	}
	again, err := w.ask(agent, r.call("run.command"), ops.CommandArgs{Command: "unit", Request: "one"})
	must(t, err)
	if field[string](t, again, "id") != "one" || len(w.env.Store.View().CommandsOfRun(r.id)) != 1 {
		t.Fatalf("got %s and %d commands", again, len(w.env.Store.View().CommandsOfRun(r.id)))
	}
	_, err = w.ask(agent, r.call("run.command"), ops.CommandArgs{Command: "other", Request: "one"})
	wants(t, err, refusal.CodeRequestReused, 2)
	_, err = w.ask(agent, r.call("run.command"), ops.CommandArgs{Command: "unit", Request: "two"})
	wants(t, err, refusal.CodeCommandPending, 2)
	_, err = w.ask(agent, r.call("run.command"), ops.CommandArgs{Command: "nothing", Request: "two"})
	wants(t, err, refusal.CodeCommandUnknown, 1)
	w.command(r, "one", "starting", "running", "succeeded")
	_, err = w.ask(agent, r.call("run.command"), ops.CommandArgs{Command: "unit", Request: "two"})
	must(t, err)
	w.command(r, "two", "cancelled")
	w.move(r, runstore.Completed)
	_, err = w.ask(agent, r.call("run.command"), ops.CommandArgs{Command: "unit", Request: "three"})
	wants(t, err, refusal.CodeCredential, 3)
}

// E-077: waiting ends with the outcome, with the wait, or with the daemon, and cancels nothing.
func TestWaitingForACommand(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	ask := func(ctx context.Context) string {
		args, err := json.Marshal(ops.CommandArgs{Command: "unit", Request: "one", Wait: 500})
		must(t, err)
		c := r.call("run.command")
		c.ID, c.Args = control.NewID(), args
		value, err := w.env.Serve(ctx, agent, c)
		must(t, err)
		data, err := json.Marshal(value)
		must(t, err)
		return field[string](t, data, "status")
	}
	w.command(r, "one")
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if got := ask(gone); got != "queued" {
		t.Fatalf("a caller that hung up got %s", got)
	}
	answered := make(chan string, 1)
	changed := w.env.Store.Changed()
	go func() { answered <- ask(context.Background()) }()
	w.command(r, "one", "starting")
	<-changed
	w.command(r, "one", "running", "failed")
	if got := <-answered; got != "failed" {
		t.Fatalf("got %s, want the outcome", got)
	}
}

// E-174 E-177: previews are bounded, an operator sees every receipt, a run its own alone.
func TestCommandStatus(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	w.command(r, "one", "starting", "running")
	w.update(func(tx *runstore.Tx) error {
		return tx.SetCommand("one", "succeeded", func(c *runstore.Command) { c.Output = &runstore.Output{} })
	})
	for _, limit := range []int{-1, 65537} {
		_, err := w.operate("run.command-status", ops.CommandStatusArgs{Request: "one", OutputLimit: limit})
		wants(t, err, refusal.CodeUsage, 2)
	}
	for name, c := range map[string]control.Call{"operator": {Op: "run.command-status"}, "run": r.call("run.command-status")} {
		data, err := w.ask(operator, c, ops.CommandStatusArgs{Request: "one", OutputLimit: 77})
		must(t, err)
		if preview := field[map[string]int](t, data, "output_preview"); preview["limit"] != 77 {
			t.Errorf("%s: got %s", name, data)
		}
	}
	_, err := w.operate("run.command-status", ops.CommandStatusArgs{Request: "none"})
	wants(t, err, refusal.CodeCommandReceipt, 1)
	w.move(r, runstore.Completed)
	delete(w.live, r.id)
	other := w.running()
	_, err = w.ask(agent, other.call("run.command-status"), ops.CommandStatusArgs{Request: "one"})
	wants(t, err, refusal.CodeCredential, 3)
}

func TestEventsArePagedAndAwaited(t *testing.T) {
	w := newWorld(t)
	w.claim()
	data, err := w.operate("run.events", ops.EventsArgs{Limit: 1})
	must(t, err)
	var page []*runstore.Event
	must(t, json.Unmarshal(data, &page))
	if len(page) != 1 {
		t.Fatalf("got %d events, want 1", len(page))
	}
	last := w.env.Store.View().Sequence()
	data, err = w.operate("run.events", ops.EventsArgs{Limit: 10, After: last})
	must(t, err)
	if string(data) != "[]" {
		t.Fatalf("got %s, want no event", data)
	}
	for _, bad := range []ops.EventsArgs{{}, {Limit: 10001}, {Limit: 1, Wait: -1}, {Limit: 1, Wait: 601}} {
		_, err := w.operate("run.events", bad)
		wants(t, err, refusal.CodeUsage, 2)
	}
	answered := make(chan json.RawMessage, 1)
	go func() {
		data, err := w.operate("run.events", ops.EventsArgs{Limit: 10, After: last, Wait: 500})
		if err != nil {
			t.Error(err)
		}
		answered <- data
	}()
	_, err = w.operate("run.pause", nil)
	must(t, err)
	must(t, json.Unmarshal(<-answered, &page))
	if len(page) == 0 || page[0].Kind != "dispatch_paused" {
		t.Fatalf("got %v, want dispatch_paused", page)
	}
}

func TestShowHoldsEverythingButTheCredential(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	w.command(r, "one", "starting", "running", "succeeded")
	question := w.question(r)
	w.receive(r)
	data, err := w.operate("run.show", ops.RunArgs{Run: r.id})
	must(t, err)
	run := field[map[string]any](t, data, "run")
	if _, leaked := run["token_sha256"]; leaked || run["id"] != string(r.id) {
		t.Fatalf("got the run %v", run)
	}
	if got := field[[]runstore.Permission](t, data, "permissions"); len(got) != 1 || got[0].ID != question {
		t.Fatalf("got permissions %v", got)
	}
	if got := field[[]runstore.Command](t, data, "commands"); len(got) != 1 {
		t.Fatalf("got commands %v", got)
	}
	_, err = w.operate("run.show", ops.RunArgs{Run: "none"})
	wants(t, err, refusal.CodeRunUnknown, 2)
}
