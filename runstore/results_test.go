package runstore

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"greatminds/internal/refusal"
)

// resultMoves is the life of a receipt, in the words of the reference and DESIGN.
const resultMoves = `
received: applying rejected needs_recovery
applying: applied rejected needs_recovery
needs_recovery: applying applied rejected abandoned
applied:
rejected:
abandoned:`

func statuses(table string) map[string][]string {
	all := map[string][]string{}
	for _, row := range strings.Split(strings.TrimSpace(table), "\n") {
		from, to, _ := strings.Cut(row, ":")
		all[from] = strings.Fields(to)
	}
	return all
}

// decisions is the store beside a model of its results: one run, its result and status.
type decisions struct {
	s       *Store
	dir     string
	runs    []*Run
	result  map[RunID]string // run to the contents of its decision
	status  map[RunID]string
	byID    map[string]RunID
	blocked map[RunID]bool // a command has no outcome
	ended   map[RunID]bool
	events  uint64
}

func (d *decisions) reopen(rt *rapid.T) {
	if d.s != nil {
		closeStore(rt, d.s)
	}
	d.s = openStore(rt, options(d.dir, nil))
}

func (d *decisions) submit(rt *rapid.T) {
	run := rapid.SampledFrom(d.runs).Draw(rt, "run")
	id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "result id")
	question := rapid.SampledFrom([]string{"why", "how"}).Draw(rt, "question")
	env := envelope(run, id)
	env.Decision, env.Payload = "needs_input", json.RawMessage(fmt.Sprintf(`{ "question" : %q }`, question))
	foreign := rapid.IntRange(0, 9).Draw(rt, "foreign") == 0
	if foreign {
		env.TaskRevision = "another"
	}
	var res *Result
	var isNew bool
	err := d.s.Update(context.Background(), func(tx *Tx) (err error) {
		res, isNew, err = tx.Receive(run.ID, env)
		return err
	})
	contents := id + "/" + question
	owner, taken := d.byID[id]
	old, decided := d.result[run.ID]
	switch {
	case foreign:
		refused(rt, err, refusal.CodeIdentityMismatch)
	case decided && old == contents:
		if err != nil || isNew || res.Status != d.status[run.ID] {
			rt.Fatalf("the same again: %v, new %v, %v", err, isNew, res)
		}
	case decided, taken && owner != run.ID:
		refused(rt, err, refusal.CodeDecisionConflict)
	case d.ended[run.ID]:
		refused(rt, err, refusal.CodeRunNotAccepting)
	case d.blocked[run.ID]:
		refused(rt, err, refusal.CodeCommandPending)
	default:
		if err != nil || !isNew || res.Role != "DEVELOPER" || res.Status != "received" {
			rt.Fatalf("got %v, new %v, %v", err, isNew, res)
		}
		d.result[run.ID], d.status[run.ID], d.byID[id] = contents, "received", run.ID
		d.events++
	}
}

func (d *decisions) set(rt *rapid.T) {
	table := statuses(resultMoves)
	run := rapid.SampledFrom(d.runs).Draw(rt, "run")
	to := rapid.SampledFrom(sortedKeys(table)).Draw(rt, "to")
	res := d.s.View().ResultOfRun(run.ID)
	if res == nil {
		rt.Skip("no result")
	}
	err := d.s.Update(context.Background(), func(tx *Tx) error {
		return tx.SetResult(res.ID(), to, func(r *Result) { r.Details = &ResultDetails{Error: "e"}; r.SHA256, r.Role = "x", "x" })
	})
	from := d.status[run.ID]
	switch {
	case from == to:
		if err != nil {
			rt.Fatal(err)
		}
	case !slices.Contains(table[from], to):
		refused(rt, err, refusal.CodeTransition)
	default:
		if err != nil {
			rt.Fatal(err)
		}
		d.status[run.ID] = to
		d.events++
	}
}

func (d *decisions) command(rt *rapid.T) {
	run := rapid.SampledFrom(d.runs).Draw(rt, "run")
	if d.blocked[run.ID] {
		update(rt, d.s, func(tx *Tx) error { return tx.SetCommand(tx.unresolved(run.ID).ID, "cancelled", nil) })
		d.blocked[run.ID] = false
		d.events++
		return
	}
	if d.ended[run.ID] {
		rt.Skip("the run has ended")
	}
	update(rt, d.s, func(tx *Tx) error {
		_, _, err := tx.RequestCommand(Command{ID: CommandID(NewID()), RunID: run.ID, CommandID: "unit"})
		return err
	})
	d.blocked[run.ID] = true
	d.events++
}

func (d *decisions) end(rt *rapid.T) {
	run := rapid.SampledFrom(d.runs).Draw(rt, "run")
	if d.ended[run.ID] || rapid.IntRange(0, 3).Draw(rt, "seldom") > 0 {
		rt.Skip("not now")
	}
	move(rt, d.s, run.ID, Completed)
	d.ended[run.ID] = true
	d.events++
}

func (d *decisions) check(rt *rapid.T) {
	v := d.s.View()
	var open []ResultID
	for _, run := range d.runs {
		res := v.ResultOfRun(run.ID)
		want, decided := d.status[run.ID]
		if (res != nil) != decided {
			rt.Fatalf("run %s: result %v, want %q", run.ID, res, want)
		}
		if res == nil {
			continue
		}
		if res.Status != want || res.Role != "DEVELOPER" || v.Result(res.ID()) != res || res.SHA256 != hashText(string(encode(&res.Envelope))) {
			rt.Fatalf("got %+v, want %s", res, want)
		}
		if want == "received" || want == "applying" || want == "needs_recovery" {
			open = append(open, res.ID())
		}
	}
	got := v.OpenResults()
	if len(got) != len(open) || v.Sequence() != d.events {
		rt.Fatalf("open %v, %d events; want %v, %d", got, v.Sequence(), open, d.events)
	}
}

// E-168: whatever becomes of a run, its decision is stored once and its receipt stays.
func TestResultsAgainstAModel(t *testing.T) {
	root := filepath.Dir(storeDir(t))
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			rt.Fatal(err)
		}
		d := &decisions{dir: filepath.Join(dir, "store"), result: map[RunID]string{}, status: map[RunID]string{},
			byID: map[string]RunID{}, blocked: map[RunID]bool{}, ended: map[RunID]bool{}}
		d.reopen(rt)
		defer func() { closeStore(rt, d.s) }()
		for _, task := range []string{"0001-a", "0002-b"} {
			d.runs = append(d.runs, running(rt, d.s, task).Run)
		}
		d.events = d.s.View().Sequence()
		rt.Repeat(map[string]func(*rapid.T){"submit": d.submit, "submit again": d.submit, "set": d.set, "set again": d.set,
			"command": d.command, "end": d.end, "reopen": d.reopen, "": d.check})
	})
}

func TestOnlyARunAtWorkDecides(t *testing.T) {
	s := fresh(t)
	for i, state := range sortedKeys(runEdges) {
		run := toState(t, s, fmt.Sprintf("%04d-x", i), state)
		_, _, err := (*Result)(nil), false, error(nil)
		err = s.Update(t.Context(), func(tx *Tx) error {
			_, _, err := tx.Receive(run, envelope(tx.Run(run), fmt.Sprint("r", i)))
			return err
		})
		if state == Running || state == WaitingInput {
			if err != nil {
				t.Errorf("%s: %v", state, err)
			}
			continue
		}
		refused(t, err, refusal.CodeRunNotAccepting)
	}
	run := toState(t, s, "0100-x", Running)
	for name, spoil := range map[string]func(e *Envelope){
		"run":      func(e *Envelope) { e.RunID = "other" },
		"task":     func(e *Envelope) { e.TaskID = "other" },
		"revision": func(e *Envelope) { e.TaskRevision = "other" },
		"schema":   func(e *Envelope) { e.SchemaSHA256 = "other" },
	} {
		env := envelope(s.View().Run(run), "rx")
		spoil(&env)
		err := s.Update(t.Context(), func(tx *Tx) error { _, _, err := tx.Receive(run, env); return err })
		if r, ok := refusal.Find(err); !ok || r.Code != refusal.CodeIdentityMismatch || r.Status() != refusal.Forbidden {
			t.Errorf("another %s: got %v", name, err)
		}
	}
	bad := envelope(s.View().Run(run), "rx")
	bad.Payload = json.RawMessage(`{"a":1,"a":2}`)
	refused(t, s.Update(t.Context(), func(tx *Tx) error { _, _, err := tx.Receive(run, bad); return err }), refusal.CodeRecordInvalid)
}

// applied takes a result to applied with the given destination.
func applied(t *testing.T, s *Store, id ResultID, destination string) {
	t.Helper()
	update(t, s, func(tx *Tx) error {
		if err := tx.SetResult(id, "applying", nil); err != nil {
			return err
		}
		return tx.SetResult(id, "applied", func(r *Result) {
			r.Details = &ResultDetails{Decision: r.Envelope.Decision, Destination: destination, DestinationRevision: "rev-next", Artifacts: []Artifact{}, CommandEvidence: []string{}}
		})
	})
}

// E-599, E-600, E-607: progress and arrival stand in the same commit as the application.
func TestAnAppliedHandoffRecordsProgressAndArrival(t *testing.T) {
	dir := storeDir(t)
	k := newClock()
	o := options(dir, nil)
	o.Now = k.now
	s := openStore(t, o)
	c := running(t, s, "0001-a")
	receive(t, s, c.Run, "r1")
	move(t, s, c.ID, Completed)
	k.add(10 * time.Second)
	lines := strings.Count(readText(t, dir+"/journal.jsonl"), "\n")
	applied(t, s, "r1", "feature_test/0001-a.yaml")
	v := s.View()
	progress, arrival := v.Run(c.ID).DomainProgress, v.Observation("feature_test/0001-a.yaml")
	if progress == nil || progress.ResultID != "r1" || *progress.ClaimToTransitionSeconds < 10 {
		t.Fatalf("got progress %+v", progress)
	}
	if arrival == nil || arrival.TaskRevision != "rev-next" || arrival.Source != "accepted_transition" || arrival.FirstObservedAt != progress.AcceptedTransitionAt {
		t.Fatalf("got arrival %+v", arrival)
	}
	if got := strings.Count(readText(t, dir+"/journal.jsonl"), "\n"); got != lines+1 {
		t.Errorf("%d lines for one application", got-lines)
	}
	update(t, s, func(tx *Tx) error {
		tx.Observe(map[string]Revision{"feature_test/0001-a.yaml": "rev-next"}) // the scan that follows changes nothing
		return nil
	})
	k.add(5 * time.Second)
	next := claimOf("0001-a")
	next.TaskPath, next.TaskRevision = "feature_test/0001-a.yaml", "rev-next"
	var again *ClaimedRun
	update(t, s, func(tx *Tx) (err error) { again, _, err = tx.Claim(next, nil); return err })
	w := again.QueueObservation
	if w == nil || w.Scope != "accepted_transition_wait" || w.FirstObservedAt != arrival.FirstObservedAt || *w.WaitSeconds < 5 || *w.WaitSeconds > 6 {
		t.Errorf("got wait %+v", w)
	}
	doc := string(s.View().Document())
	if !strings.Contains(doc, `"details":{"artifacts":[],"command_evidence":[],"decision":"handoff","destination":"feature_test/0001-a.yaml","destination_revision":"rev-next","question":null}`) {
		t.Errorf("details are not as documented: %s", doc)
	}
	closeStore(t, s)
}

// E-608
func TestOnlyAMoveIsProgress(t *testing.T) {
	s := fresh(t)
	for i, c := range []struct {
		decision, destination, end string
		progress                   bool
	}{
		{"handoff", "feature_test", "applied", true}, {"blocked", "feature_blocked", "applied", true},
		{"needs_input", "feature_dev", "applied", false}, {"no_change", "feature_dev", "applied", false},
		{"handoff", "", "rejected", false}, {"handoff", "feature_dev/0005-x.yaml", "applied", false},
		{"handoff", "feature_test/0006-x.yaml", "applied", true}, // as receipts have it; above, those of an earlier version
	} {
		run := running(t, s, fmt.Sprintf("%04d-x", i))
		env := envelope(run.Run, fmt.Sprint("r", i))
		env.Decision = c.decision
		update(t, s, func(tx *Tx) error { _, _, err := tx.Receive(run.ID, env); return err })
		if c.end == "applied" {
			applied(t, s, env.ResultID, c.destination)
		} else {
			update(t, s, func(tx *Tx) error {
				return tx.SetResult(env.ResultID, c.end, func(r *Result) { r.Details = &ResultDetails{Error: "no"} })
			})
		}
		if got := s.View().Run(run.ID).DomainProgress; (got != nil) != c.progress {
			t.Errorf("%s %s: got progress %+v", c.decision, c.end, got)
		}
	}
	if c := running(t, s, "0100-x"); s.View().Run(c.ID).DomainProgress != nil {
		t.Error("a run without a decision has progress")
	}
}

// E-605, E-606, E-609, E-610
func TestReceiptTimings(t *testing.T) {
	k := newClock()
	o := options(storeDir(t), nil)
	o.Now = k.now
	s := openStore(t, o)
	set := func(id ResultID, status string) {
		update(t, s, func(tx *Tx) error { return tx.SetResult(id, status, nil) })
	}
	receive(t, s, running(t, s, "0001-a").Run, "r1")
	k.add(3 * time.Second)
	set("r1", "applying")
	k.add(4 * time.Second)
	set("r1", "needs_recovery")
	first := *s.View().Result("r1").Timings
	if *first.ReceivedToResolutionSeconds < 7 || *first.ApplicationElapsedSeconds < 4 || *first.ApplicationElapsedSeconds > 4.1 {
		t.Errorf("got %s", encode(&first))
	}
	k.add(time.Hour)
	set("r1", "applying")
	set("r1", "applied")
	done := *s.View().Result("r1").Timings
	if *done.ApplicationStartedAt != *first.ApplicationStartedAt || *done.ApplicationElapsedSeconds < 3600 {
		t.Errorf("the recovery's delay is not in: %s", encode(&done))
	}
	before := everything(s.View())
	set("r1", "applied")
	if got := everything(s.View()); got != before {
		t.Error("a second application changed something")
	}

	receive(t, s, running(t, s, "0002-b").Run, "r2")
	k.add(-time.Hour)
	set("r2", "rejected")
	if got := string(encode(s.View().Result("r2").Timings)); !strings.Contains(got, `"application_elapsed_seconds":null,"received_to_resolution_seconds":null,"resolution_at":`) {
		t.Errorf("a clock that went backward: got %s", got)
	}
	closeStore(t, s)
}

// E-601, E-602, E-603
func TestValidationIsMeasuredByAttempt(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	receive(t, s, running(t, s, "0001-a").Run, "r1")
	begin := func() (attempt string) {
		update(t, s, func(tx *Tx) (err error) { attempt, err = tx.BeginValidation("r1"); return err })
		return attempt
	}
	complete := func(attempt string, took time.Duration, valid bool) {
		update(t, s, func(tx *Tx) error { return tx.CompleteValidation("r1", attempt, took, valid) })
	}
	killedAttempt := begin()
	closeStore(t, s)
	s = openStore(t, options(dir, nil))
	if got := string(encode(s.View().Result("r1").Validation)); !strings.Contains(got, `"attempts":1,"completed_at":null,"seconds":null,"started_at":`) || !strings.Contains(got, `"valid":null`) {
		t.Errorf("after a crash in it: got %s", got)
	}
	second := begin()
	complete(killedAttempt, time.Hour, false) // an old attempt tells nothing any more
	complete(second, 1500*time.Millisecond, true)
	complete(second, time.Hour, false)
	v := s.View().Result("r1").Validation
	if v.Attempts != 2 || v.AttemptID != second || *v.Seconds != 1.5 || !*v.Valid {
		t.Errorf("got %s", encode(v))
	}
	update(t, s, func(tx *Tx) error { return tx.SetResult("r1", "applying", nil) })
	update(t, s, func(tx *Tx) error { return tx.SetResult("r1", "needs_recovery", nil) })
	update(t, s, func(tx *Tx) error { return tx.SetResult("r1", "applied", nil) })
	if got := s.View().Result("r1").Validation; string(encode(got)) != string(encode(v)) {
		t.Errorf("recovering the operation changed its measure: %s", encode(got))
	}
	refused(t, s.Update(t.Context(), func(tx *Tx) error { _, err := tx.BeginValidation("r1"); return err }), refusal.CodeTransition)
	closeStore(t, s)
}

func TestAHeldResultSaysWhyUntilItGoesOn(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	receive(t, s, running(t, s, "0001-a").Run, "r1")
	hold := func(h *ResultHold) error {
		return s.Update(t.Context(), func(tx *Tx) error { return tx.HoldResult("r1", h) })
	}
	overlap := &ResultHold{Code: "checkout_overlap", What: "main.go is in the way", Remedy: "commit or move it"}
	if err := hold(overlap); err != nil {
		t.Fatal(err)
	}
	before := everything(s.View())
	if err := hold(overlap); err != nil || everything(s.View()) != before {
		t.Errorf("the same hold again: %v", err)
	}
	overlap.What = "changed by the caller"
	closeStore(t, s)
	s = openStore(t, options(dir, nil))
	r := s.View().Result("r1")
	if h := r.Hold(); h == nil || h.Code != "checkout_overlap" || h.What != "main.go is in the way" || h.At == 0 || r.Details.Error != h.What || r.Status != "received" {
		t.Errorf("got %s", encode(r))
	}
	for _, h := range []*ResultHold{nil, nil} {
		if err := hold(h); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.View().Result("r1"); r.Hold() != nil || r.Details != nil {
		t.Errorf("got %s", encode(r))
	}
	if got := kinds(s.View().Events(4, 10)); got != "result_held result_released" {
		t.Errorf("got %s", got)
	}
	update(t, s, func(tx *Tx) error {
		return tx.SetResult("r1", "needs_recovery", func(r *Result) {
			r.Details = &ResultDetails{Error: "in the way", Extra: Members{"repair": json.RawMessage(`"do this"`)}}
		})
	})
	if err := hold(overlap); err != nil {
		t.Fatal(err)
	}
	if r := s.View().Result("r1"); r.Hold() == nil || r.Details.Error != overlap.What || string(r.Details.Extra["repair"]) != `"do this"` || r.Status != "needs_recovery" {
		t.Errorf("got %s", encode(r))
	}
	update(t, s, func(tx *Tx) error { return tx.SetResult("r1", "rejected", nil) })
	if r := s.View().Result("r1"); r.Hold() != nil {
		t.Errorf("resolved and held: %s", encode(r))
	}
	refused(t, hold(overlap), refusal.CodeTransition)
	closeStore(t, s)
}
