package ops_test

import (
	"strings"
	"testing"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/ops"
)

// E-188 E-255: pausing stops claims, not runs, and is undone by resuming.
func TestPauseAndResume(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	for _, paused := range []bool{true, true, false} {
		op := map[bool]string{true: "run.pause", false: "run.resume"}[paused]
		data, err := w.operate(op, nil)
		must(t, err)
		if field[bool](t, data, "paused") != paused || w.env.Store.View().Paused() != paused {
			t.Fatalf("%s: got %s, stored %v", op, data, w.env.Store.View().Paused())
		}
	}
	if w.woken != 3 {
		t.Fatalf("the daemon was woken %d times, want 3", w.woken)
	}
	if state := w.env.Store.View().Run(r.id).State; state != runstore.Running {
		t.Fatalf("the active run is %s", state)
	}
}

// E-256: a live run is told to stop; one that waits without a process ends at once, with its
// open question.
func TestCancel(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	data, err := w.operate("run.cancel", ops.RunArgs{Run: r.id})
	must(t, err)
	if field[string](t, data, "kind") != "cancel" || field[string](t, data, "status") != "pending" {
		t.Fatalf("got %s", data)
	}
	if len(w.stopped) != 1 || w.stopped[0] != r.id {
		t.Fatalf("stopped %v, want the run", w.stopped)
	}
	again, err := w.operate("run.cancel", ops.RunArgs{Run: r.id})
	must(t, err)
	if field[string](t, again, "id") != field[string](t, data, "id") {
		t.Fatalf("a second cancel made another control: %s, %s", data, again)
	}

	w = newWorld(t)
	r = w.running()
	question := w.question(r)
	w.move(r, runstore.WaitingInput)
	delete(w.live, r.id)
	_, err = w.operate("run.cancel", ops.RunArgs{Run: r.id})
	must(t, err)
	if run := w.env.Store.View().Run(r.id); run.State != runstore.WaitingInput || run.Control.Status != "pending" {
		t.Fatalf("a run whose process may live became %s, control %+v", run.State, run.Control)
	}
	w.update(func(tx *runstore.Tx) error {
		return tx.EditRun(r.id, func(run *runstore.Run) { run.Process = nil })
	})
	_, err = w.operate("run.cancel", ops.RunArgs{Run: r.id})
	must(t, err)
	v := w.env.Store.View()
	if run := v.Run(r.id); run.State != runstore.Cancelled || run.Reason != "operator_cancelled" || run.Control.Status != "completed" {
		t.Fatalf("got %s %s, control %+v", run.State, run.Reason, run.Control)
	}
	if p := v.Permission(question); p.Status != "cancelled" || p.Reason != "run_closed" {
		t.Fatalf("the question is %s (%s)", p.Status, p.Reason)
	}
	if len(w.stopped) != 0 {
		t.Fatal("the daemon was told to stop a run that it does not drive")
	}
}

// E-257: exactly one further attempt, for a run that has ended or waits without a process.
func TestRetryAuthorizesOneAttempt(t *testing.T) {
	for _, end := range []runstore.State{runstore.Failed, runstore.WaitingInput, runstore.WaitingAuth, runstore.Interrupted} {
		t.Run(string(end), func(t *testing.T) {
			w := newWorld(t)
			r := w.claim(runstore.Starting, end)
			data, err := w.operate("run.retry", ops.RunArgs{Run: r.id})
			must(t, err)
			run := w.env.Store.View().Run(r.id)
			if !run.State.Terminal() || !run.RetryAuthorized || run.Control.Status != "completed" || run.Control.Kind != "retry" {
				t.Fatalf("got %s, authorized %v, control %+v", run.State, run.RetryAuthorized, run.Control)
			}
			again, err := w.operate("run.retry", ops.RunArgs{Run: r.id})
			must(t, err)
			if field[string](t, again, "id") != field[string](t, data, "id") {
				t.Fatalf("a second retry made another control: %s, %s", data, again)
			}
		})
	}
}

// E-258: what is open must be settled first, and the refusal names it and what helps.
func TestControlsThatAreRefused(t *testing.T) {
	ended := []runstore.State{runstore.Starting, runstore.Running, runstore.Completed}
	for name, c := range map[string]struct {
		op    string
		setup func(w *world) run
		code  refusal.Code
		names string
	}{
		"cancel unknown": {"run.cancel", func(w *world) run { return run{id: "nope"} }, refusal.CodeRunUnknown, "nope"},
		"retry unknown":  {"run.retry", func(w *world) run { return run{id: "nope"} }, refusal.CodeRunUnknown, "nope"},
		"cancel ended":   {"run.cancel", func(w *world) run { return w.claim(ended...) }, refusal.CodeRunEnded, "completed"},
		"retry at work":  {"run.retry", func(w *world) run { return w.running() }, refusal.CodeRunActive, "running"},
		"retry asks now": {"run.retry", func(w *world) run { r := w.running(); w.move(r, runstore.WaitingInput); return r }, refusal.CodeRunActive, "waiting_input"},
		"retry of what may still live": {"run.retry", func(w *world) run {
			r := w.running()
			w.move(r, runstore.WaitingInput)
			delete(w.live, r.id)
			return r
		}, refusal.CodeRunActive, "waiting_input"},
		"retry superseded": {"run.retry", func(w *world) run { r := w.claim(ended...); w.claim(ended...); return r }, refusal.CodeRunSuperseded, "came after"},
		"retry with result": {"run.retry", func(w *world) run {
			r := w.running()
			w.receive(r)
			w.move(r, runstore.Completed)
			delete(w.live, r.id)
			return r
		}, refusal.CodeResultPending, "-result"},
		"retry with command": {"run.retry", func(w *world) run {
			r := w.running()
			w.command(r, "left", "starting", "running", "needs_recovery")
			w.move(r, runstore.Interrupted)
			delete(w.live, r.id)
			return r
		}, refusal.CodeCommandPending, "left"},
		"cancel during retry": {"run.cancel", func(w *world) run {
			r := w.running()
			w.update(func(tx *runstore.Tx) error { _, err := tx.RequestControl(r.id, "retry"); return err })
			return r
		}, refusal.CodeControlPending, "retry"},
		"retry during cancel": {"run.retry", func(w *world) run {
			r := w.claim(runstore.Starting, runstore.WaitingAuth)
			w.update(func(tx *runstore.Tx) error { _, err := tx.RequestControl(r.id, "cancel"); return err })
			return r
		}, refusal.CodeControlPending, "cancel"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := c.setup(w)
			before := w.state()
			_, err := w.operate(c.op, ops.RunArgs{Run: r.id})
			wants(t, err, c.code, 2)
			if found, _ := refusal.Find(err); !strings.Contains(found.What, c.names) || found.Remedy == "" {
				t.Errorf("got %q, %q; want it to name %q and a remedy", found.What, found.Remedy, c.names)
			}
			if w.state() != before {
				t.Error("the refused control changed the store")
			}
		})
	}
}

// E-218: a command in needs_recovery is led out by an assessment that runs nothing.
func TestCommandResolve(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	w.command(r, "left", "starting", "running")
	_, err := w.operate("run.command-resolve", ops.ResolveArgs{Request: "left", Reason: "looked"})
	wants(t, err, refusal.CodeNotRecoverable, 1)
	_, err = w.operate("run.command-resolve", ops.ResolveArgs{Request: "none", Reason: "looked"})
	wants(t, err, refusal.CodeCommandReceipt, 1)
	w.command(r, "left", "needs_recovery")
	for _, nothing := range []string{"", " \n", strings.Repeat("x", 1001)} {
		_, err = w.operate("run.command-resolve", ops.ResolveArgs{Request: "left", Reason: nothing})
		wants(t, err, refusal.CodeUsage, 2)
	}
	data, err := w.operate("run.command-resolve", ops.ResolveArgs{Request: "left", Reason: "looked"})
	must(t, err)
	if field[string](t, data, "status") != "resolved" || field[string](t, data, "resolution") != "looked" || field[float64](t, data, "resolved_at") == 0 {
		t.Fatalf("got %s", data)
	}
}

// E-218: an operation is finished or given up, and giving it up needs a reason.
func TestRepair(t *testing.T) {
	w := newWorld(t)
	before := w.state()
	_, err := w.operate("run.repair", ops.RepairArgs{Operation: "none"})
	wants(t, err, refusal.CodeNotRecoverable, 1)
	if w.state() != before {
		t.Fatal("an unknown operation left a trace")
	}
	for _, status := range []string{"prepared", "needs_recovery"} {
		w.update(func(tx *runstore.Tx) error {
			return tx.PutOperation(runstore.Operation{ID: "op", Kind: runstore.ResumeOperation, Status: status, TaskID: "0001-one",
				Source: "feature_blocked", Destination: "feature_dev", SchemaSHA256: w.env.Schema.SHA256})
		})
	}
	_, err = w.operate("run.repair", ops.RepairArgs{Operation: "op", Abandon: true})
	wants(t, err, refusal.CodeUsage, 2)
	_, err = w.operate("run.repair", ops.RepairArgs{Operation: "op"})
	must(t, err)
	_, err = w.operate("run.repair", ops.RepairArgs{Operation: "op", Abandon: true, Reason: "by hand"})
	must(t, err)
	if got := strings.Join(w.repairs, "; "); got != "repair op; abandon op by hand" {
		t.Fatalf("got %s", got)
	}
}

// receive stores a decision of a run.
func (w *world) receive(r run) {
	w.t.Helper()
	run := w.env.Store.View().Run(r.id)
	w.update(func(tx *runstore.Tx) error {
		_, _, err := tx.Receive(r.id, runstore.Envelope{ResultID: runstore.ResultID(r.id) + "-result", RunID: r.id, TaskID: run.TaskID,
			TaskRevision: run.TaskRevision, SchemaSHA256: run.SchemaSHA256, Decision: "no_change", Payload: []byte(`{}`)})
		return err
	})
}

// command takes a command request of a run along some statuses, and makes it where it is new.
func (w *world) command(r run, id runstore.CommandID, path ...string) {
	w.t.Helper()
	definition, _ := w.env.Contract.Command("unit")
	if w.env.Store.View().Command(id) == nil {
		_, err := w.Admit(w.t.Context(), w.env.Store.View().Run(r.id), definition, id)
		must(w.t, err)
	}
	for _, status := range path {
		w.update(func(tx *runstore.Tx) error { return tx.SetCommand(id, status, nil) })
	}
}
