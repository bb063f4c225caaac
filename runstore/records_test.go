package runstore

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

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

const wantHold = `{"account":"acc","id":"h1","kind":"quota_exhausted","observed_at":5.0,"rpc_code":402,"source_run":"r1","status":"active","until":null}`

func TestRequestsFindingsAndHolds(t *testing.T) {
	dir := storeDir(t)
	s := openStore(t, options(dir, nil))
	update(t, s, func(tx *Tx) error {
		if err := tx.PutRequest("q1", json.RawMessage(` {"b":1, "a":[]} `)); err != nil {
			return err
		}
		if err := tx.HoldAccount(AccountHold{Account: "acc", ID: "h1", Kind: "quota_exhausted", ObservedAt: 5, RPCCode: 402, SourceRun: "r1"}); err != nil {
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
		"hold":     func(tx *Tx) error { return tx.HoldAccount(AccountHold{Account: "x"}) },
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
		if string(v.Request("q1").Receipt) != `{"a":[],"b":1}` || string(encode(v.AccountHold("acc"))) != wantHold || string(v.Findings()) != `{"tasks":{},"version":1}` {
			t.Errorf("got %s", everything(v))
		}
		update(t, s, func(tx *Tx) error { _, err := tx.ResumeAccount("acc", "h1", "paid"); return err })
	})
	v, err := Read(dir)
	if err != nil || len(v.AccountHolds()) != 1 || v.AccountHold("acc").Active() || !strings.Contains(string(v.Document()), `"account_holds":{"acc":{`) || strings.Contains(string(v.Document()), "requests") {
		t.Errorf("got %v, %s", err, v.Document())
	}
}
