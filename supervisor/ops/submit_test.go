package ops_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/control"
	"greatminds/supervisor/ops"
)

const noChange = `{"decision":"no_change","payload":{"reason":"done"}}`

func (w *world) submit(r run, text string) (json.RawMessage, error) {
	w.t.Helper()
	return w.ask(agent, r.call("run.submit"), ops.SubmitArgs{Text: text})
}

// E-180 E-181 E-190 E-194 E-260: compact and full decisions are received, with the identity filled
// in from the run and the durable status in the answer.
func TestSubmitReceivesEveryForm(t *testing.T) {
	for name, form := range map[string]func(run *runstore.Run) string{
		"compact": func(*runstore.Run) string { return noChange },
		"own id": func(*runstore.Run) string {
			return `{"result_id":"mine-1","decision":"no_change","payload":{}}`
		},
		"full": func(run *runstore.Run) string {
			return fmt.Sprintf(`{"result_id":"mine-1","run_id":%q,"task_id":%q,"task_revision":%q,"schema_sha256":%q,"decision":"no_change","payload":{}}`,
				run.ID, run.TaskID, run.TaskRevision, run.SchemaSHA256)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.running()
			run := w.env.Store.View().Run(r.id)
			data, err := w.submit(r, form(run))
			must(t, err)
			envelope := field[runstore.Envelope](t, data, "envelope")
			if field[string](t, data, "status") != "received" || field[string](t, data, "role") != "DEVELOPER" {
				t.Fatalf("got %s", data)
			}
			if envelope.RunID != r.id || envelope.TaskID != run.TaskID || envelope.TaskRevision != run.TaskRevision || envelope.SchemaSHA256 != run.SchemaSHA256 {
				t.Fatalf("got the envelope %+v", envelope)
			}
			want := map[bool]runstore.ResultID{true: runstore.ResultID(r.id) + "-result", false: "mine-1"}[name == "compact"]
			if envelope.ResultID != want {
				t.Fatalf("got result id %s, want %s", envelope.ResultID, want)
			}
		})
	}
}

// E-182 E-193: the same decision again gets its receipt, also spelled differently and after the
// run has ended; it is judged once.
func TestARepeatedDecisionGetsItsReceipt(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	first, err := w.submit(r, noChange)
	must(t, err)
	for i, repeat := range []func(){
		func() {},
		func() { w.move(r, runstore.Completed); delete(w.live, r.id) },
		func() {
			w.update(func(tx *runstore.Tx) error { return tx.SetResult(runstore.ResultID(r.id)+"-result", "rejected", nil) })
		},
	} {
		repeat()
		data, err := w.submit(r, ` {"payload" : {"reason":"d\u006fne"}, "decision":"no_change"}`)
		must(t, err)
		if field[string](t, data, "sha256") != field[string](t, first, "sha256") {
			t.Fatalf("repeat %d: got %s, want %s", i, data, first)
		}
	}
	if w.checked != 1 {
		t.Fatalf("the decision was judged %d times, want once", w.checked)
	}
}

// E-181 E-183 E-191 E-192 E-193: a decision of another identity, a second one, or one from a run
// that is not in its turn is refused without a trace.
func TestDecisionsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		before func(w *world, r run)
		code   refusal.Code
		exit   int
	}{
		"no JSON":        {`{"decision":`, nil, refusal.CodeDecisionForm, 2},
		"key twice":      {`{"decision":"no_change","payload":{"reason":"a","reason":"b"}}`, nil, refusal.CodeDecisionForm, 2},
		"unknown field":  {`{"decision":"no_change","payload":{},"extra":1}`, nil, refusal.CodeDecisionForm, 2},
		"unknown word":   {`{"decision":"merge","payload":{}}`, nil, refusal.CodeDecisionForm, 2},
		"payload role":   {`{"decision":"no_change","payload":{"role":"TESTER"}}`, nil, refusal.CodeDecisionIdentity, 3},
		"other run":      {`{"run_id":"x","decision":"no_change","payload":{}}`, nil, refusal.CodeIdentityMismatch, 3},
		"other task":     {`{"task_id":"0002-two","decision":"no_change","payload":{}}`, nil, refusal.CodeIdentityMismatch, 3},
		"other revision": {`{"task_revision":"00","decision":"no_change","payload":{}}`, nil, refusal.CodeIdentityMismatch, 3},
		"other schema":   {`{"schema_sha256":"00","decision":"no_change","payload":{}}`, nil, refusal.CodeIdentityMismatch, 3},
		"second decision": {`{"decision":"no_change","payload":{"reason":"other"}}`, func(w *world, r run) {
			_, err := w.submit(r, noChange)
			must(w.t, err)
		}, refusal.CodeDecisionConflict, 2},
		"second id": {`{"result_id":"second","decision":"no_change","payload":{"reason":"done"}}`, func(w *world, r run) {
			_, err := w.submit(r, noChange)
			must(w.t, err)
		}, refusal.CodeDecisionConflict, 2},
		"ended run":     {noChange, func(w *world, r run) { w.move(r, runstore.Completed) }, refusal.CodeRunNotAccepting, 3},
		"not in a turn": {noChange, func(w *world, r run) { delete(w.live, r.id) }, refusal.CodeRunNotAccepting, 3},
		"open command":  {noChange, func(w *world, r run) { w.command(r, "c1", "starting", "running") }, refusal.CodeCommandPending, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.running()
			if c.before != nil {
				c.before(w, r)
			}
			before := w.state()
			_, err := w.submit(r, c.text)
			wants(t, err, c.code, c.exit)
			if w.state() != before {
				t.Error("the refused decision left a trace")
			}
		})
	}
}

// E-213: a decision that could not be applied is refused with every reason, leaves no receipt, and
// its mended form is received under the same id.
func TestARefusedDecisionCanBeMended(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	w.reasons = []refusal.Reason{{Code: "a", What: "first fault"}, {Code: "b", What: "second fault"}}
	before := w.state()
	_, err := w.submit(r, noChange)
	wants(t, err, refusal.CodeDecisionRefused, 2)
	for _, fault := range []string{"first fault", "second fault"} {
		if !strings.Contains(err.Error(), fault) {
			t.Errorf("%q is missing in %v", fault, err)
		}
	}
	if w.state() != before {
		t.Fatal("the refused decision left a trace")
	}
	w.reasons = nil
	data, err := w.submit(r, noChange)
	must(t, err)
	if field[string](t, data, "status") != "received" {
		t.Fatalf("got %s", data)
	}
}

// E-171 E-172 E-173: the context and the pinned schema, for an active run alone.
func TestRunContract(t *testing.T) {
	w := newWorld(t)
	r := w.running()
	data, err := w.ask(agent, r.call("run.contract"), nil)
	must(t, err)
	if field[string](t, data, "run_id") != string(r.id) {
		t.Fatalf("got %s", data)
	}
	data, err = w.ask(agent, r.call("run.contract"), ops.ContractArgs{Schema: true})
	must(t, err)
	text, err := runstore.SchemaText(data)
	must(t, err)
	if string(text) != string(w.env.Schema.Text) {
		t.Fatal("the pinned schema is another text")
	}
	w.move(r, runstore.Completed)
	_, err = w.ask(agent, r.call("run.contract"), nil)
	wants(t, err, refusal.CodeCredential, 3)
	_, err = w.ask(agent, control.Call{Op: "run.contract"}, nil)
	wants(t, err, refusal.CodeCredential, 3)
}
