package ops_test

import (
	"os"
	"path/filepath"
	"testing"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/ops"
)

// question makes an open permission request of a run, with one option of each kind.
func (w *world) question(r run) runstore.PermissionID {
	w.t.Helper()
	id := runstore.PermissionID(runstore.NewID())
	run := w.env.Store.View().Run(r.id)
	w.update(func(tx *runstore.Tx) error {
		return tx.AskPermission(runstore.Permission{ID: id, RunID: r.id, OwnerID: "owner", SessionID: "session", TaskRevision: run.TaskRevision,
			ExpiresAt: runstore.Epoch(epoch) + 300, Tool: []byte(`{"title":"edit","kind":"edit"}`), Options: []runstore.Option{
				{OptionID: "yes", Name: "Yes", Kind: "allow_once"}, {OptionID: "no", Name: "No", Kind: "reject_once"},
				{OptionID: "always", Name: "Always", Kind: "allow_always"}, {OptionID: "never", Name: "Never", Kind: "reject_always"}}})
	})
	return id
}

// E-039 E-040 E-047: looking answers nothing; an answer is recorded once, also when it is repeated.
func TestPermissionIsShownAndAnswered(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	id := w.question(r)
	data, err := w.ask(agent, r.call("run.permission"), ops.PermissionArgs{Request: id})
	must(t, err)
	if field[string](t, data, "status") != "pending" {
		t.Fatalf("got %s", data)
	}
	for range 2 {
		data, err = w.operate("run.permission-answer", ops.AnswerArgs{Request: id, Option: "yes"})
		must(t, err)
		if field[string](t, data, "status") != "answered" || field[string](t, data, "option_id") != "yes" {
			t.Fatalf("got %s", data)
		}
	}
	answered := 0
	for _, e := range w.env.Store.View().Events(0, 1000) {
		if e.Kind == "permission_answered" {
			answered++
		}
	}
	if answered != 1 {
		t.Fatalf("%d permission_answered events, want 1", answered)
	}
	// The same answer again succeeds while the run lives, also after delivery.
	w.update(func(tx *runstore.Tx) error { return tx.ConsumePermission(id) })
	data, err = w.operate("run.permission-answer", ops.AnswerArgs{Request: id, Option: "yes"})
	must(t, err)
	if field[string](t, data, "status") != "consumed" {
		t.Fatalf("got %s", data)
	}
}

// E-041 E-042 E-043 E-044 E-045 E-048: an answer that was not offered, lasts, differs, or comes
// too late in any way is refused and changes nothing.
func TestPermissionAnswersThatAreRefused(t *testing.T) {
	answer := func(w *world, id runstore.PermissionID, option string) {
		_, err := w.operate("run.permission-answer", ops.AnswerArgs{Request: id, Option: option})
		must(w.t, err)
	}
	for name, c := range map[string]struct {
		option string
		before func(w *world, r run, id runstore.PermissionID)
		code   refusal.Code
		exit   int
	}{
		"not offered":    {"maybe", nil, refusal.CodeOptionRefused, 2},
		"lasting allow":  {"always", nil, refusal.CodeOptionRefused, 2},
		"lasting reject": {"never", nil, refusal.CodeOptionRefused, 2},
		"another after":  {"no", func(w *world, r run, id runstore.PermissionID) { answer(w, id, "yes") }, refusal.CodePermissionGone, 3},
		"another after use": {"no", func(w *world, r run, id runstore.PermissionID) {
			answer(w, id, "yes")
			w.update(func(tx *runstore.Tx) error { return tx.ConsumePermission(id) })
		}, refusal.CodePermissionGone, 3},
		"closed": {"yes", func(w *world, r run, id runstore.PermissionID) {
			w.update(func(tx *runstore.Tx) error { return tx.ClosePermission(id, "callback_closed") })
		}, refusal.CodePermissionGone, 3},
		"another supervisor": {"yes", func(w *world, r run, id runstore.PermissionID) { w.env.OwnerID = "later" }, refusal.CodePermissionGone, 3},
		"not live":           {"yes", func(w *world, r run, id runstore.PermissionID) { delete(w.live, r.id) }, refusal.CodePermissionGone, 3},
		"dead process": {"yes", func(w *world, r run, id runstore.PermissionID) {
			dead := ourselves(w.t)
			dead.StartTicks++
			w.update(func(tx *runstore.Tx) error { return tx.EditRun(r.id, func(run *runstore.Run) { run.Process = &dead }) })
		}, refusal.CodePermissionGone, 3},
		"another session": {"yes", func(w *world, r run, id runstore.PermissionID) {
			other := "other"
			w.update(func(tx *runstore.Tx) error {
				return tx.EditRun(r.id, func(run *runstore.Run) { run.SessionID = &other })
			})
		}, refusal.CodePermissionGone, 3},
		"run ended": {"yes", func(w *world, r run, id runstore.PermissionID) { w.move(r, runstore.Failed) }, refusal.CodePermissionGone, 3},
		"cancel asked for": {"yes", func(w *world, r run, id runstore.PermissionID) {
			_, err := w.operate("run.cancel", ops.RunArgs{Run: r.id})
			must(w.t, err)
		}, refusal.CodePermissionGone, 3},
		"cancel asked for after the same answer": {"yes", func(w *world, r run, id runstore.PermissionID) {
			answer(w, id, "yes")
			_, err := w.operate("run.cancel", ops.RunArgs{Run: r.id})
			must(w.t, err)
		}, refusal.CodePermissionGone, 3},
		"being cancelled": {"yes", func(w *world, r run, id runstore.PermissionID) { w.move(r, runstore.Cancelling) }, refusal.CodePermissionGone, 3},
		"task edited": {"yes", func(w *world, r run, id runstore.PermissionID) {
			path := filepath.Join(w.env.Project.QueueDir("feature_dev"), "0001-one.yaml")
			must(w.t, os.WriteFile(path, []byte(taskText+"# edited\n"), 0o600))
		}, refusal.CodePermissionGone, 3},
		"task gone": {"yes", func(w *world, r run, id runstore.PermissionID) {
			must(w.t, os.Remove(filepath.Join(w.env.Project.QueueDir("feature_dev"), "0001-one.yaml")))
		}, refusal.CodePermissionGone, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.running()
			id := w.question(r)
			if c.before != nil {
				c.before(w, r, id)
			}
			before := w.state()
			_, err := w.operate("run.permission-answer", ops.AnswerArgs{Request: id, Option: c.option})
			wants(t, err, c.code, c.exit)
			if w.state() != before {
				t.Error("the refused answer changed the store")
			}
		})
	}
	w := newWorld(t)
	_, err := w.operate("run.permission-answer", ops.AnswerArgs{Request: "none", Option: "yes"})
	wants(t, err, refusal.CodePermissionUnknown, 2)
	_, err = w.operate("run.permission", ops.PermissionArgs{Request: "none"})
	wants(t, err, refusal.CodePermissionUnknown, 2)
}

// E-044: the deadline is part of the request, and is checked when the answer comes: by the clock of
// the process that waits, and never by the wall clock, which somebody may have set.
func TestAnAnswerAfterTheDeadlineIsRefused(t *testing.T) {
	for _, late := range []bool{true, false} {
		w := newWorld(t)
		r := w.running()
		id := runstore.PermissionID(runstore.NewID())
		run := w.env.Store.View().Run(r.id)
		w.update(func(tx *runstore.Tx) error {
			return tx.AskPermission(runstore.Permission{ID: id, RunID: r.id, OwnerID: "owner", SessionID: "session", TaskRevision: run.TaskRevision,
				ExpiresAt: runstore.Epoch(epoch) - 3600, Tool: []byte(`{}`), Options: []runstore.Option{{OptionID: "yes", Kind: "allow_once"}}})
		})
		w.expired = late
		_, err := w.operate("run.permission-answer", ops.AnswerArgs{Request: id, Option: "yes"})
		if !late {
			must(t, err)
			continue
		}
		wants(t, err, refusal.CodePermissionGone, 3)
	}
}

// E-059: a request of an earlier run authorizes nothing in a new one.
func TestAnOldRequestAuthorizesNothing(t *testing.T) {
	w := newWorld(t)
	first := w.running()
	old := w.question(first)
	w.update(func(tx *runstore.Tx) error { return tx.ClosePermission(old, "run_closed") })
	w.move(first, runstore.Failed)
	delete(w.live, first.id)
	second := w.running()
	open := w.question(second)
	_, err := w.operate("run.permission-answer", ops.AnswerArgs{Request: old, Option: "yes"})
	wants(t, err, refusal.CodePermissionGone, 3)
	if p := w.env.Store.View().Permission(open); p.Status != "pending" {
		t.Fatalf("the new request is %s", p.Status)
	}
}
