package runstore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"greatminds/internal/refusal"
)

const commandMoves = `
queued: starting failed cancelled
starting: running failed stale cancelled needs_recovery
running: succeeded failed stale cancelled needs_recovery
needs_recovery: resolved
succeeded:
failed:
stale:
cancelled:
resolved:`

// pathTo finds the steps from one status to another.
func pathTo(table map[string][]string, from, to string) []string {
	ways := map[string][]string{from: {}}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, next := range table[queue[0]] {
			if _, known := ways[next]; !known {
				ways[next] = append(slices.Clone(ways[queue[0]]), next)
				queue = append(queue, next)
			}
		}
	}
	return ways[to]
}

func TestEveryMoveOfACommand(t *testing.T) {
	s := fresh(t)
	table := statuses(commandMoves)
	for from := range table {
		for to := range table {
			run := running(t, s, from+"-"+to)
			id := CommandID(from + "-" + to)
			update(t, s, func(tx *Tx) error {
				_, _, err := tx.RequestCommand(Command{ID: id, RunID: run.ID, CommandID: "unit"})
				return err
			})
			for _, step := range pathTo(table, "queued", from) {
				update(t, s, func(tx *Tx) error { return tx.SetCommand(id, step, nil) })
			}
			events := s.View().Sequence()
			err := s.Update(t.Context(), func(tx *Tx) error {
				return tx.SetCommand(id, to, func(c *Command) { c.Reason, c.ID, c.RunID, c.Status = "why", "x", "x", "x" })
			})
			c := s.View().Command(id)
			open := slices.Contains([]string{"queued", "starting", "running", "needs_recovery"}, c.Status)
			if c.Open() != open || c.RunID != run.ID {
				t.Errorf("%s: open %v, run %s", c.Status, c.Open(), c.RunID)
			}
			switch {
			case from == to:
				if err != nil || c.Reason != "why" || s.View().Sequence() != events {
					t.Errorf("%s stays: %v, %+v", from, err, c)
				}
			case slices.Contains(table[from], to):
				e := s.View().Events(events, 1)[0]
				if err != nil || c.Status != to || e.Kind != "command_"+to || !strings.Contains(string(e.Data), string(id)) {
					t.Errorf("%s to %s: %v, %+v, %s", from, to, err, c, e.Kind)
				}
			default:
				refused(t, err, refusal.CodeTransition)
			}
		}
	}
	if len(commandEdges) != len(table) {
		t.Errorf("%d statuses, want %d", len(commandEdges), len(table))
	}
}

func TestARunHasOneCommandWithoutOutcome(t *testing.T) {
	s := fresh(t)
	run, other := running(t, s, "0001-a"), running(t, s, "0002-b")
	request := func(id CommandID, run RunID, command string) (*Command, bool, error) {
		var c *Command
		var isNew bool
		err := s.Update(t.Context(), func(tx *Tx) (err error) {
			c, isNew, err = tx.RequestCommand(Command{ID: id, RunID: run, CommandID: command, DefinitionSHA256: "d", Status: "succeeded"})
			return err
		})
		return c, isNew, err
	}
	c, isNew, err := request("q1", run.ID, "unit")
	if err != nil || !isNew || c.Status != "queued" || c.RequestedAt == 0 {
		t.Fatalf("got %+v, new %v, %v", c, isNew, err)
	}
	if _, isNew, err = request("q1", run.ID, "unit"); err != nil || isNew {
		t.Errorf("the same again: new %v, %v", isNew, err)
	}
	_, _, err = request("q1", run.ID, "lint")
	refused(t, err, refusal.CodeRequestReused)
	_, _, err = request("q1", other.ID, "unit")
	refused(t, err, refusal.CodeRequestReused)
	_, _, err = request("q2", run.ID, "unit")
	refused(t, err, refusal.CodeCommandPending)
	_, _, err = request("q 3", run.ID, "unit")
	refused(t, err, refusal.CodeIdentity)
	_, _, err = request("q3", "nobody", "unit")
	refused(t, err, refusal.CodeRunUnknown)
	if _, isNew, err = request("q3", other.ID, "unit"); err != nil || !isNew {
		t.Errorf("another run's: new %v, %v", isNew, err)
	}
	update(t, s, func(tx *Tx) error { return tx.SetCommand("q1", "cancelled", nil) })
	if _, isNew, err = request("q2", run.ID, "unit"); err != nil || !isNew {
		t.Errorf("after the outcome: new %v, %v", isNew, err)
	}
	if got := s.View().CommandsOfRun(run.ID); len(got) != 2 || got[0].ID != "q1" || len(s.View().OpenCommands()) != 2 {
		t.Errorf("got %v, open %v", got, s.View().OpenCommands())
	}
	move(t, s, other.ID, Failed)
	_, _, err = request("q4", other.ID, "unit")
	refused(t, err, refusal.CodeRunNotAccepting)
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.SetCommand("nobody", "running", nil) }), refusal.CodeCommandReceipt)
}

// asked stores a pending request of a new run.
func asked(t *testing.T, s *Store, id string) RunID {
	t.Helper()
	run := running(t, s, "task-"+id)
	update(t, s, func(tx *Tx) error {
		return tx.AskPermission(Permission{ID: PermissionID(id), RunID: run.ID, SessionID: "s", ExpiresAt: tx.at() + 300, Tool: json.RawMessage(`{"kind":"edit"}`),
			Options: []Option{{OptionID: "yes", Kind: "allow_once"}, {OptionID: "no", Kind: "reject_once"}, {OptionID: "ever", Kind: "allow_always"}}})
	})
	return run.ID
}

func answer(t *testing.T, s *Store, id, option string) (bool, error) {
	t.Helper()
	var isNew bool
	err := s.Update(t.Context(), func(tx *Tx) (err error) {
		_, isNew, err = tx.AnswerPermission(PermissionID(id), option)
		return err
	})
	return isNew, err
}

func TestAPermissionIsAnsweredOnce(t *testing.T) {
	k := newClock()
	o := options(storeDir(t), nil)
	o.Now = k.now
	s := openStore(t, o)
	defer closeStore(t, s)
	run := asked(t, s, "p1")
	refusedAnswer := func(id, option string, code refusal.Code) {
		t.Helper()
		before := everything(s.View())
		_, err := answer(t, s, id, option)
		refused(t, err, code)
		if everything(s.View()) != before {
			t.Errorf("%s %s: refused, and yet the state changed", id, option)
		}
	}
	refusedAnswer("p1", "never offered", refusal.CodeOptionRefused)
	refusedAnswer("p1", "ever", refusal.CodeOptionRefused)
	refusedAnswer("nobody", "yes", refusal.CodePermissionUnknown)
	consume := func(id PermissionID) error {
		return s.Update(t.Context(), func(tx *Tx) error { return tx.ConsumePermission(id) })
	}
	refused(t, consume("p1"), refusal.CodeTransition)
	if isNew, err := answer(t, s, "p1", "yes"); err != nil || !isNew {
		t.Fatalf("new %v, %v", isNew, err)
	}
	if isNew, err := answer(t, s, "p1", "yes"); err != nil || isNew {
		t.Errorf("the same before delivery: new %v, %v", isNew, err)
	}
	refusedAnswer("p1", "no", refusal.CodePermissionGone)
	if err := consume("p1"); err != nil {
		t.Fatal(err)
	}
	if isNew, err := answer(t, s, "p1", "yes"); err != nil || isNew {
		t.Errorf("the same after delivery: new %v, %v", isNew, err)
	}
	refused(t, consume("p1"), refusal.CodeTransition)
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.ClosePermission("p1", "run_closed") }), refusal.CodeTransition)
	move(t, s, run, Failed)
	refusedAnswer("p1", "yes", refusal.CodePermissionGone)
	asked(t, s, "p2")
	k.add(301 * time.Second)
	refusedAnswer("p2", "yes", refusal.CodePermissionGone)
	want := "permission_requested permission_answered permission_consumed"
	if got := kinds(slices.DeleteFunc(s.View().Events(0, 100), func(e *Event) bool { return *e.RunID != run || !strings.HasPrefix(e.Kind, "perm") })); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAnEndedRunLeavesNoOpenPermission(t *testing.T) {
	s := fresh(t)
	pending, answered := asked(t, s, "p1"), asked(t, s, "p2")
	if _, err := answer(t, s, "p2", "no"); err != nil {
		t.Fatal(err)
	}
	if got := s.View().OpenPermissions(); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	move(t, s, pending, Failed)
	move(t, s, answered, Completed)
	for _, id := range []PermissionID{"p1", "p2"} {
		if p := s.View().Permission(id); p.Status != "cancelled" || p.Reason != "run_closed" || p.ClosedAt == nil {
			t.Errorf("got %+v", p)
		}
	}
	update(t, s, func(tx *Tx) error { return tx.ClosePermission("p1", "callback_closed") })
	if p := s.View().Permission("p1"); p.Reason != "run_closed" || len(s.View().OpenPermissions()) != 0 {
		t.Errorf("closing twice: %+v", p)
	}
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.AskPermission(Permission{ID: "p3", RunID: pending}) }), refusal.CodeRunTransition)
	other := running(t, s, "0001-a")
	refused(t, s.Update(t.Context(), func(tx *Tx) error { return tx.AskPermission(Permission{ID: "p1", RunID: other.ID}) }), refusal.CodeIdentity)
}

func TestOperationsFollowTheirTable(t *testing.T) {
	s := fresh(t)
	putOp := func(o Operation) error {
		return s.Update(t.Context(), func(tx *Tx) error { return tx.PutOperation(o) })
	}
	application := Operation{ID: "r1", Kind: ResultOperation, Phase: "prepared", ResultID: "r1", TaskID: "0001-a", Pre: []string{"merge"}, Post: []string{}}
	if err := putOp(application); err != nil {
		t.Fatal(err)
	}
	application.ActionsDone = []string{"pre-0-merge"}
	if err := putOp(application); err != nil {
		t.Fatal(err)
	}
	if got := s.View().OpenOperations(); len(got) != 1 || got[0].ActionsDone[0] != "pre-0-merge" {
		t.Errorf("got %v", got)
	}
	application.ActionsDone[0] = "changed by the caller"
	if got := s.View().Operation("r1").ActionsDone[0]; got != "pre-0-merge" {
		t.Errorf("the published operation was changed to %q", got)
	}
	application.Phase = "committed"
	if err := putOp(application); err != nil {
		t.Fatal(err)
	}
	application.Phase = "prepared"
	refused(t, putOp(application), refusal.CodeTransition)
	application.TaskID = "0002-b"
	refused(t, putOp(application), refusal.CodeIdentity)
	if s.View().Sequence() != 0 {
		t.Error("an application emits events of its own")
	}
	at := 5.0
	for _, o := range []Operation{
		{ID: "resume-1", Kind: ResumeOperation, Status: "prepared", TaskID: "0003-c"},
		{ID: "resume-1", Kind: ResumeOperation, Status: "needs_recovery", TaskID: "0003-c"},
		{ID: "resume-1", Kind: ResumeOperation, Status: "needs_recovery", TaskID: "0003-c", RepairRequestedAt: &at},
		{ID: "resume-1", Kind: ResumeOperation, Status: "applied", TaskID: "0003-c", RepairRequestedAt: &at},
	} {
		if err := putOp(o); err != nil {
			t.Fatal(err)
		}
	}
	want := "system_operation_prepared system_operation_needs_recovery system_repair_requested system_operation_applied"
	if got := kinds(s.View().Events(0, 10)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	refused(t, putOp(Operation{ID: "resume-1", Kind: ResumeOperation, Status: "abandoned", TaskID: "0003-c"}), refusal.CodeTransition)
	refused(t, putOp(Operation{ID: "resume-2", Kind: ResumeOperation, Status: "applied", TaskID: "0003-c"}), refusal.CodeTransition)
	refused(t, putOp(Operation{ID: "a b", Kind: ResumeOperation, Status: "prepared"}), refusal.CodeIdentity)
	refused(t, putOp(Operation{ID: "x", Status: "prepared"}), refusal.CodeRecordInvalid)
	if got := s.View().OperationsOfTask("0003-c"); len(got) != 1 || got[0].Open() || len(s.View().OpenOperations()) != 0 {
		t.Errorf("got %v", got)
	}
}

// E-594, E-595, E-596, E-597
func TestQueueObservationsAreFirstSights(t *testing.T) {
	k := newClock()
	o := options(storeDir(t), nil)
	o.Now = k.now
	s := openStore(t, o)
	defer closeStore(t, s)
	observe := func(queued map[string]Revision) {
		update(t, s, func(tx *Tx) error { tx.Observe(queued); return nil })
	}
	observe(map[string]Revision{"feature_dev/0001-a.yaml": "rev-0001-a", "feature_dev/0002-b.yaml": "rev-0002-b"})
	first := s.View().Observation("feature_dev/0001-a.yaml").FirstObservedAt
	k.add(7 * time.Second)
	before := everything(s.View())
	observe(map[string]Revision{"feature_dev/0002-b.yaml": "rev-0002-b", "feature_dev/0001-a.yaml": "rev-0001-a"})
	if got := everything(s.View()); got != before {
		t.Error("the same sight was written again")
	}
	c := claim(t, s, "0001-a")
	w := c.QueueObservation
	if w == nil || w.Scope != "observed_revision_wait" || w.FirstObservedAt != first || *w.WaitSeconds < 7 || *w.WaitSeconds > 7.1 || w.Source != "" {
		t.Errorf("got %+v", w)
	}
	edited := claimOf("0002-b")
	edited.TaskRevision = "edited meanwhile"
	update(t, s, func(tx *Tx) error {
		c, _, err := tx.Claim(edited, nil)
		if err == nil && c.QueueObservation != nil {
			t.Errorf("another revision's wait was copied: %+v", c.QueueObservation)
		}
		return err
	})
	observe(map[string]Revision{"feature_dev/0002-b.yaml": "rev-2"})
	if got := s.View().Observations(); len(got) != 1 || got["feature_dev/0002-b.yaml"].TaskRevision != "rev-2" || got["feature_dev/0002-b.yaml"].FirstObservedAt <= first {
		t.Errorf("got %v", got)
	}
	k.add(-time.Hour)
	back := claimOf("0003-c")
	update(t, s, func(tx *Tx) error {
		tx.View.h.putObservation(back.TaskPath, &Observation{TaskRevision: back.TaskRevision, FirstObservedAt: tx.at() + 60})
		c, _, err := tx.Claim(back, nil)
		if err == nil && c.QueueObservation.WaitSeconds != nil {
			t.Errorf("a backward interval is %v, want null", *c.QueueObservation.WaitSeconds)
		}
		return err
	})
	observe(nil)
	if doc := string(s.View().Document()); !strings.Contains(doc, `"queue_observations":{}`) {
		t.Error("an emptied index is gone from the document")
	}
}

func TestRequestsFindingsAndHolds(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	update(t, s, func(tx *Tx) error {
		if err := tx.PutRequest("q1", json.RawMessage(` {"b":1, "a":[]} `)); err != nil {
			return err
		}
		if err := tx.SetAccountHold("acc", json.RawMessage(`{"kind":"quota"}`)); err != nil {
			return err
		}
		return tx.SetFindings(json.RawMessage(`{"tasks":{},"version":1}`), map[string]any{"tasks": 0})
	})
	before := everything(s.View())
	update(t, s, func(tx *Tx) error {
		if err := tx.PutRequest("q1", json.RawMessage(`{"a":[],"b":1}`)); err != nil {
			return err
		}
		return tx.SetFindings(json.RawMessage(`{"version":1,"tasks":{}}`), nil)
	})
	if got := everything(s.View()); got != before {
		t.Error("the same again changed something")
	}
	for name, f := range map[string]func(tx *Tx) error{
		"receipt":  func(tx *Tx) error { return tx.PutRequest("q2", json.RawMessage(`{`)) },
		"hold":     func(tx *Tx) error { return tx.SetAccountHold("x", json.RawMessage(`null`)) },
		"findings": func(tx *Tx) error { return tx.SetFindings(json.RawMessage(``), nil) },
	} {
		if r, ok := refusal.Find(s.Update(t.Context(), f)); !ok || r.Code != refusal.CodeRecordInvalid {
			t.Errorf("%s: got %v", name, r)
		}
	}
	refused(t, s.Update(t.Context(), put("a b")), refusal.CodeIdentity)
	closeStore(t, s)
	killed(t, dir, func(s *Store) {
		v := s.View()
		if string(v.Request("q1").Receipt) != `{"a":[],"b":1}` || string(v.AccountHold("acc")) != `{"kind":"quota"}` || string(v.Findings()) != `{"tasks":{},"version":1}` {
			t.Errorf("got %s", everything(v))
		}
		update(t, s, func(tx *Tx) error { return tx.SetAccountHold("acc", nil) })
	})
	v, err := Read(dir)
	if err != nil || len(v.AccountHolds()) != 0 || !strings.Contains(string(v.Document()), `"account_holds":{}`) || strings.Contains(string(v.Document()), "requests") {
		t.Errorf("got %v, %s", err, v.Document())
	}
}

func eventTail(v *View) []uint64 {
	var all []uint64
	for _, e := range v.Events(v.h.discardedThrough(), 1<<20) {
		all = append(all, e.Sequence)
	}
	return all
}

// E-642, E-643, E-644, E-645
func TestTheEventTailIsPrunedSeldomAndByAFifth(t *testing.T) {
	dir := storeDir(t)
	o := options(dir, nil)
	o.MaxEvents = 100
	s := openStore(t, o)
	last := s.View().Sequence()
	prunings := 0
	for i := range 300 {
		update(t, s, func(tx *Tx) error { tx.Emit("tick", "", map[string]any{"i": i}); return nil })
		tail := eventTail(s.View())
		if len(tail) > 100 {
			t.Fatalf("%d events", len(tail))
		}
		if got := tail[len(tail)-1]; got <= last {
			t.Fatalf("sequence %d after %d", got, last)
		} else if got > last+1 { // the change and the pruning
			if prunings++; len(tail) != 80 || s.View().Events(got-1, 1)[0].Kind != "events_pruned" {
				t.Errorf("pruned to %d events, want 80", len(tail))
			}
		}
		last = tail[len(tail)-1]
		if i%70 == 69 { // retention holds across restarts of both kinds
			closeStore(t, s)
			s = openStore(t, options(dir, nil))
		}
	}
	if prunings < 9 || prunings > 15 {
		t.Errorf("%d prunings of 300 events, want about one in twenty", prunings)
	}
	r := s.View().EventRetention()
	first := eventTail(s.View())[0]
	if r.MaxEvents != 100 || r.DiscardedThrough != first-1 || r.DiscardedCount != first-1 || r.UpdatedAt == nil {
		t.Errorf("got %+v before event %d", r, first)
	}
	if doc := string(s.View().Document()); !strings.Contains(doc, fmt.Sprintf(`"event_retention":{"discarded_count":%d,"discarded_through":%d,"max_events":100,"updated_at":`, first-1, first-1)) {
		t.Errorf("got %s", doc[:200])
	}
	closeStore(t, s)
}

// E-637, E-638
func TestTheEventLimitIsInstalledOnce(t *testing.T) {
	dir := storeDir(t)
	for _, n := range []int{-1, 1, 99, 1_000_001} {
		o := options(dir, nil)
		o.MaxEvents = n
		_, err := Open(t.Context(), o)
		refused(t, err, refusal.CodeEventLimit)
		if r, _ := refusal.Find(err); r.Status() != refusal.Invalid {
			t.Errorf("got status %d, want 2", r.Status())
		}
	}
	for i, n := range []int{500, 500, 0, 600} {
		o := options(dir, nil)
		o.MaxEvents = n
		s := openStore(t, o)
		want := []int{500, 500, 500, 600}[i]
		if got := s.View().EventRetention().MaxEvents; got != want {
			t.Errorf("got limit %d, want %d", got, want)
		}
		closeStore(t, s)
	}
	v, err := Read(dir)
	if err != nil || kinds(v.Events(0, 10)) != "event_retention_configured event_retention_configured" {
		t.Errorf("got %s, %v", kinds(v.Events(0, 10)), err)
	}
	if got := (&View{}).EventRetention().MaxEvents; got != 10_000 {
		t.Errorf("default %d, want 10000", got)
	}
}

// E-641
func TestTheDefaultLimitHoldsWithoutADaemon(t *testing.T) {
	s := fresh(t)
	update(t, s, func(tx *Tx) error {
		for range 10_000 {
			tx.Emit("tick", "", nil)
		}
		return nil
	})
	if got := len(eventTail(s.View())); got != 10_000 {
		t.Fatalf("got %d events", got)
	}
	update(t, s, func(tx *Tx) error { tx.Emit("tick", "", nil); return nil })
	tail := s.View().Events(s.View().h.discardedThrough(), 1<<20)
	if len(tail) != 8_000 || tail[len(tail)-1].Kind != "events_pruned" || tail[len(tail)-2].Sequence != 10_001 {
		t.Errorf("got %d events, the last is %s", len(tail), tail[len(tail)-1].Kind)
	}
}

// E-639, E-645: the prune is in the same line of the journal as the change that made it.
func TestPruningIsReplayed(t *testing.T) {
	dir := storeDir(t)
	var want string
	killed(t, dir, func(s *Store) {
		update(t, s, func(tx *Tx) error { return tx.SetEventLimit(100) })
		for range 3 {
			update(t, s, func(tx *Tx) error {
				for range 150 { // more than the limit in one transaction
					tx.Emit("tick", "", nil)
				}
				return nil
			})
		}
		want = everything(s.View())
		if got := len(eventTail(s.View())); got != 80 {
			t.Errorf("got %d events", got)
		}
	})
	s := openStore(t, options(dir, nil))
	if got := everything(s.View()); got != want {
		t.Errorf("got %.400s\nwant %.400s", got, want)
	}
	update(t, s, func(tx *Tx) error { tx.Emit("next", "", nil); return nil })
	closeStore(t, s)
}

// E-598
func TestRunsKeepTheirObservationWhenEventsGo(t *testing.T) {
	s := fresh(t)
	update(t, s, func(tx *Tx) error {
		tx.Observe(map[string]Revision{"feature_dev/0001-a.yaml": "rev-0001-a"})
		return tx.SetEventLimit(100)
	})
	c := claim(t, s, "0001-a")
	before := string(encode(c.QueueObservation))
	update(t, s, func(tx *Tx) error {
		for range 200 {
			tx.Emit("tick", "", nil)
		}
		return tx.Recover(c.ID, "owner2")
	})
	if got := string(encode(s.View().Run(c.ID).QueueObservation)); got != before || before == "null" {
		t.Errorf("got %s, want %s", got, before)
	}
}

// E-647, E-648, E-649
func TestAGapIsToldBeforeThePage(t *testing.T) {
	s := fresh(t)
	update(t, s, func(tx *Tx) error {
		if err := tx.SetEventLimit(100); err != nil {
			return err
		}
		for range 150 {
			tx.Emit("tick", "", nil)
		}
		return nil
	})
	v := s.View()
	before := everything(v)
	through := v.EventRetention().DiscardedThrough
	page := v.Events(3, 10)
	gap := page[0]
	want := fmt.Sprintf(`{"discarded_through":%d,"first_available_sequence":%d,"requested_after":3}`, through, through+1)
	if len(page) != 11 || gap.Kind != "events_gap" || gap.RunID != nil || gap.Sequence != through || string(gap.Data) != want {
		t.Errorf("got %d events, first %s %s, want %s", len(page), gap.Kind, gap.Data, want)
	}
	seen := []uint64{}
	for after := gap.Sequence; ; {
		page := v.Events(after, 7)
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			seen = append(seen, e.Sequence)
		}
		after = page[len(page)-1].Sequence
	}
	if !slices.Equal(seen, eventTail(v)) || seen[0] != through+1 {
		t.Errorf("going on from the gap saw %d events from %d", len(seen), seen[0])
	}
	if got := v.Events(through, 1); got[0].Kind == "events_gap" {
		t.Error("a gap where nothing is missing")
	}
	if got := v.Events(0, 0); len(got) != 1 || got[0].Kind != "events_gap" {
		t.Errorf("limit 0: got %s", kinds(got))
	}
	if got := v.Events(1<<60, 5); len(got) != 0 {
		t.Errorf("beyond the end: got %s", kinds(got))
	}
	if everything(s.View()) != before {
		t.Error("reading changed the state")
	}
}
