package audit_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"greatminds/internal/durable"
	"greatminds/runstore"
	"greatminds/supervisor/audit"
	"greatminds/supervisor/status"
	"greatminds/tasks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	theirs = "1111111111111111111111111111111111111111"
	merge  = "2222222222222222222222222222222222222222"
)

// finished is a store in which run r1 has run a command, asked a question, decided, and its
// decision has moved task 0001-a to verified with a merge.
func finished(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := runstore.Open(t.Context(), runstore.Options{Dir: dir, Disk: durable.NewDisk(nil), Now: time.Now})
	must(t, err)
	update := func(f func(tx *runstore.Tx) error) {
		t.Helper()
		must(t, s.Update(t.Context(), f))
	}
	update(func(tx *runstore.Tx) error {
		_, _, err := tx.Claim(runstore.Claim{ID: "r1", TaskID: "0001-a", TaskPath: "feature_review/0001-a.yaml", TaskRevision: "v1",
			Role: "ARCHITECT-REVIEWER", ConfigSHA256: "c", SchemaSHA256: "s", Workspace: "/w"}, nil)
		return errors.Join(err, tx.Transition("r1", "e1", runstore.Starting, "", nil), tx.Transition("r1", "e2", runstore.Running, "", nil))
	})
	update(func(tx *runstore.Tx) error {
		_, _, err := tx.RequestCommand(runstore.Command{ID: "c1", RunID: "r1", TaskID: "0001-a", CommandID: "check"})
		return err
	})
	for _, status := range []string{"starting", "running", "succeeded"} {
		update(func(tx *runstore.Tx) error {
			return tx.SetCommand("c1", status, func(c *runstore.Command) {
				if status != "starting" {
					c.Process = &runstore.Process{PID: 11}
				}
			})
		})
	}
	update(func(tx *runstore.Tx) error {
		return tx.AskPermission(runstore.Permission{ID: "p1", RunID: "r1", Tool: json.RawMessage("{}"), ExpiresAt: 4e9,
			Options: []runstore.Option{{OptionID: "yes", Kind: "allow_once"}}})
	})
	update(func(tx *runstore.Tx) error {
		_, _, err := tx.AnswerPermission("p1", "yes")
		return errors.Join(err, tx.ConsumePermission("p1"))
	})
	op := runstore.Operation{ID: "d1", Kind: runstore.ResultOperation, Phase: "prepared", ResultID: "d1", RunID: "r1", TaskID: "0001-a",
		Source: "feature_review", Destination: "verified", Merge: json.RawMessage(`{"branch":"refs/heads/main","theirs":"` + theirs + `","commit":"` + merge + `"}`)}
	update(func(tx *runstore.Tx) error {
		_, _, err := tx.Receive("r1", runstore.Envelope{ResultID: "d1", RunID: "r1", TaskID: "0001-a", TaskRevision: "v1", SchemaSHA256: "s",
			Decision: "handoff", Payload: json.RawMessage("{}")})
		return errors.Join(err, tx.Transition("r1", "e3", runstore.Completed, "turn_ended", nil), tx.PutOperation(op), tx.SetResult("d1", "applying", nil))
	})
	op.Phase = "committed"
	update(func(tx *runstore.Tx) error {
		return errors.Join(tx.PutOperation(op), tx.SetResult("d1", "applied", func(r *runstore.Result) {
			r.Details = &runstore.ResultDetails{Destination: "verified"}
		}))
	})
	must(t, s.Close(t.Context()))
	return dir
}

// edited reads the store after a change of its document, which no transaction would make.
func edited(t *testing.T, dir string, edit func(doc map[string]any)) *runstore.View {
	t.Helper()
	path := filepath.Join(dir, "state.json")
	data, err := os.ReadFile(path)
	must(t, err)
	var doc map[string]any
	must(t, json.Unmarshal(data, &doc))
	edit(doc)
	data, err = json.Marshal(doc)
	must(t, err)
	copied := filepath.Join(t.TempDir(), "store")
	must(t, os.Mkdir(copied, 0o700))
	must(t, os.WriteFile(filepath.Join(copied, "state.json"), data, 0o600))
	v, err := runstore.Read(copied)
	must(t, err)
	return v
}

// member walks down a document.
func member(doc map[string]any, names ...string) map[string]any {
	for _, n := range names {
		doc = doc[n].(map[string]any)
	}
	return doc
}

// clone copies a record of a section under another id.
func clone(doc map[string]any, section, from, to string) map[string]any {
	data, _ := json.Marshal(member(doc, section, from)) // what was decoded encodes
	var c map[string]any
	_ = json.Unmarshal(data, &c)
	member(doc, section)[to] = c
	return c
}

// asItShouldBe are the facts beside the finished store.
func asItShouldBe(v *runstore.View) audit.Facts {
	return audit.Facts{View: v, Recovered: true,
		Tasks:   []tasks.Found{{Ref: tasks.Ref{ID: "0001-a", Queue: "verified", File: "verified/0001-a.yaml"}}},
		Journal: []tasks.JournalLine{{Task: "0001-a", From: "feature_review", To: "verified", OperationID: "d1", IntentID: "d1"}},
		Merges:  []tasks.MergeCommit{{Commit: merge, Parents: []string{"0", theirs}}},
		Life:    func(*runstore.Process) (bool, bool) { return false, true },
		Pinned:  func(string, string) error { return nil },
		Output:  func(*runstore.Command) error { return nil },
		Command: func(line string) bool { return strings.HasPrefix(line, "greatminds run") },
		Assignments: []status.Assignment{{TaskID: "0002-b", Reason: "ready"},
			{TaskID: "0003-c", Reason: "active_run", What: "run r9 is running"}},
		Ledger: audit.Ledger{{Kind: "run", ID: "r1", As: "claimed"}, {Kind: "run", ID: "r1", As: "completed"}, {Kind: "result", ID: "d1", As: "received"},
			{Kind: "command", ID: "c1", As: "succeeded"}, {Kind: "permission", ID: "p1", As: "answered"}, {Kind: "line", ID: "d1"}}}
}

func TestWhatIsAsItShouldBeHasNoFindings(t *testing.T) {
	v := edited(t, finished(t), func(map[string]any) {})
	if found := audit.Check(asItShouldBe(v)); len(found) > 0 {
		t.Errorf("got %+v", found)
	}
	if found := audit.Check(audit.Facts{View: v}); len(found) > 0 {
		t.Errorf("the store alone: got %+v", found)
	}
}

// E-153 E-201 E-203 E-214 E-216 E-218 E-240
func TestEachBrokenPromiseIsFoundAlone(t *testing.T) {
	dir := finished(t)
	type doc = map[string]any
	status := func(section, id, status string) func(doc) {
		return func(d doc) { member(d, section, id)["status"] = status }
	}
	later := func(d doc) doc {
		r := clone(d, "runs", "r1", "r2")
		r["id"], r["state"], r["sequence"] = "r2", "waiting_input", 99
		return r
	}
	for name, c := range map[string]struct {
		edit  func(doc)
		facts func(*audit.Facts)
		want  string // component/code, severity, and a word
	}{
		"lost run": {nil, func(f *audit.Facts) { f.Ledger = append(f.Ledger, audit.Entry{Kind: "run", ID: "r7"}) }, "runtime/acknowledged_lost error r7"},
		"lost end": {nil, func(f *audit.Facts) { f.Ledger = append(f.Ledger, audit.Entry{Kind: "run", ID: "r1", As: "failed"}) }, "runtime/acknowledged_lost error completed"},
		"lost result": {nil, func(f *audit.Facts) {
			f.Ledger = append(f.Ledger, audit.Entry{Kind: "result", ID: "d7", As: "received"})
		}, "runtime/acknowledged_lost error d7"},
		"lost answer": {nil, func(f *audit.Facts) {
			f.Ledger = append(f.Ledger, audit.Entry{Kind: "permission", ID: "p1", As: "cancelled"})
		}, "runtime/acknowledged_lost error consumed"},
		"lost request":     {nil, func(f *audit.Facts) { f.Ledger = append(f.Ledger, audit.Entry{Kind: "request", ID: "q"}) }, "runtime/acknowledged_lost error q"},
		"lost line":        {nil, func(f *audit.Facts) { f.Ledger = append(f.Ledger, audit.Entry{Kind: "line", ID: "d2"}) }, "runtime/acknowledged_lost error d2"},
		"process of a run": {func(d doc) { member(d, "runs", "r1")["process"] = doc{"pid": 7} }, alive(7), "runtime/process_left error 7"},
		"process unknown": {func(d doc) { member(d, "runs", "r1")["process"] = doc{"pid": 7} }, func(f *audit.Facts) {
			f.Life = func(p *runstore.Process) (bool, bool) { return false, p.PID != 7 }
		}, "runtime/process_unknown warning 7"},
		"keeper of a command": {func(d doc) { member(d, "commands", "c1")["process"] = doc{"pid": 7, "keeper": doc{"pid": 8}} }, alive(8), "commands/process_left error 8"},
		"executed unrecorded": {func(d doc) { delete(member(d, "commands", "c1"), "process") }, nil, "commands/process_unrecorded error c1"},
		"run not recovered":   {func(d doc) { r := later(d); r["state"] = "running" }, nil, "runtime/run_not_recovered error r2"},
		"limit without a hold": {func(d doc) {
			member(d, "runs", "r1")["account"] = "spent"
			member(d, "runs", "r1")["account_limit_observation"] = doc{"hold_id": "h", "account": "spent"}
		}, nil, "accounts/account_hold_missing error spent"},
		"two active runs": {func(d doc) {
			later(d)
			r := clone(d, "runs", "r2", "r3")
			r["id"] = "r3"
		}, nil, "runtime/two_active_runs error r3"},
		"command not recovered": {status("commands", "c1", "running"), func(f *audit.Facts) { f.Ledger = nil }, "commands/command_not_recovered error c1"},
		"command of nobody": {func(d doc) {
			c := clone(d, "commands", "c1", "c2")
			c["id"], c["run_id"], c["status"] = "c2", "r8", "queued"
		}, nil, "commands/record_dangling error r8"},
		"question of nobody":  {status("permissions", "p1", "pending"), func(f *audit.Facts) { f.Ledger = nil }, "runtime/question_left_open error p1"},
		"result of nobody":    {func(d doc) { r := clone(d, "results", "d1", "d2"); rename(r, "d2", "r8"); r["status"] = "received" }, nil, "results/record_dangling error r8"},
		"applying alone":      {status("results", "d1", "applying"), nil, "results/operation_missing error d1"},
		"applied, unfinished": {func(d doc) { member(d, "operations", "d1")["phase"] = "prepared" }, nil, "results/operation_unfinished error prepared"},
		"committed, rejected": {status("results", "d1", "rejected"), func(f *audit.Facts) { f.Ledger = nil }, "results/result_unfinished error rejected"},
		"line twice":          {nil, func(f *audit.Facts) { f.Journal = append(f.Journal, f.Journal[0]) }, "results/journal_repeated error 2 lines"},
		"operator's line twice": {nil, func(f *audit.Facts) {
			l := tasks.JournalLine{Task: "0001-a", From: "verified", To: "verified", IntentID: "i"}
			f.Journal = append(f.Journal, l, l)
		}, "results/journal_repeated error lines of i"},
		"line missing": {nil, func(f *audit.Facts) { f.Journal, f.Ledger = []tasks.JournalLine{}, nil }, "results/journal_missing error 0001-a"},
		"line of an abandoned operation": {func(d doc) {
			member(d, "operations", "d1")["phase"] = "abandoned"
			member(d, "results", "d1")["status"] = "abandoned"
		}, func(f *audit.Facts) { f.Ledger = nil }, "results/journal_of_nothing error d1"},
		"merged twice": {nil, func(f *audit.Facts) {
			f.Merges = append(f.Merges, tasks.MergeCommit{Commit: "3", Parents: []string{merge, theirs}})
		}, "worktrees/merged_twice error 2 times"},
		"merge missing": {nil, func(f *audit.Facts) { f.Merges = []tasks.MergeCommit{} }, "worktrees/merge_missing warning 222222222222"},
		"two queues": {nil, func(f *audit.Facts) {
			f.Tasks = append(f.Tasks, tasks.Found{Ref: tasks.Ref{ID: "0001-a", Queue: "verified", File: "verified/0001-a.yaml"}})
		}, "stale_tasks/task_in_two_queues error 0001-a"},
		"moved by hand":  {nil, func(f *audit.Facts) { f.Tasks[0].Queue = "feature_dev" }, "stale_tasks/task_moved_by_hand warning feature_dev"},
		"file missing":   {nil, func(f *audit.Facts) { f.Tasks = []tasks.Found{} }, "stale_tasks/task_file_missing warning 0001-a"},
		"hold, no words": {nil, func(f *audit.Facts) { f.Assignments[1].What = "" }, "assignments/hold_without_way_out error 0003-c"},
		"hold, no help": {nil, func(f *audit.Facts) {
			f.Assignments[1] = status2("dispatch_paused", "paused", "")
		}, "assignments/hold_without_way_out error what helps"},
		"hold, no such command": {nil, func(f *audit.Facts) {
			f.Assignments[1] = status2("dispatch_paused", "paused", "`greatminds wake-check` tells")
		}, "assignments/hold_without_way_out error wake-check"},
		"held result without help": {func(d doc) {
			r := clone(d, "results", "d1", "d2")
			rename(r, "d2", "r2")
			later(d)
			r["status"], r["hold"] = "received", doc{"code": "checkout_overlap", "what": "w", "remedy": "", "at": 1}
		}, nil, "results/hold_without_way_out error what helps"},
		"needs recovery": {func(d doc) {
			later(d)
			member(d, "commands", "c1")["status"] = "needs_recovery"
			member(d, "commands", "c1")["run_id"] = "r2"
		}, func(f *audit.Facts) { f.Ledger = nil }, "commands/needs_recovery warning c1"},
		"uncertain, and repeated": {func(d doc) {
			later(d)
			member(d, "results", "d1")["status"] = "needs_recovery"
			member(d, "results", "d1")["details"] = doc{"error": "foreign"}
			member(d, "operations", "d1")["phase"] = "prepared"
		}, func(f *audit.Facts) { f.Ledger = nil }, "results/uncertain_effect_repeated error r2"},
		"document missing":  {nil, func(f *audit.Facts) { f.Pinned = func(kind, _ string) error { return only(kind == "schema", "gone") } }, "schema/document_missing error gone"},
		"output damaged":    {func(d doc) { member(d, "commands", "c1")["output"] = doc{"stdout": doc{}, "stderr": doc{}} }, func(f *audit.Facts) { f.Output = func(*runstore.Command) error { return errors.New("cut") } }, "commands/output_damaged warning cut"},
		"change unfinished": {nil, func(f *audit.Facts) { f.Changing = []tasks.ID{"0001-a"} }, "intents/change_unfinished warning 0001-a"},
	} {
		t.Run(name, func(t *testing.T) {
			edit := c.edit
			if edit == nil {
				edit = func(doc) {}
			}
			f := asItShouldBe(edited(t, dir, edit))
			if c.facts != nil {
				c.facts(&f)
			}
			found := audit.Check(f)
			if name == "uncertain, and repeated" { // that it needs recovery is told too
				found = audit.Errors(found)
			}
			if len(found) != 1 {
				t.Fatalf("got %+v, want %s alone", found, c.want)
			}
			got := found[0]
			said := got.Component + "/" + got.Code + " " + got.Severity + " "
			if !strings.HasPrefix(c.want, said) || !strings.Contains(got.Place+" "+got.What, strings.TrimPrefix(c.want, said)) {
				t.Errorf("got %+v, want %s", got, c.want)
			}
			if got.What == "" || got.Remedy == "" || got.Place == "" {
				t.Errorf("%+v lacks something", got)
			}
		})
	}
}

func alive(pid int) func(*audit.Facts) {
	return func(f *audit.Facts) {
		f.Life = func(p *runstore.Process) (bool, bool) { return p.PID == pid, true }
	}
}

func rename(result map[string]any, id, run string) {
	envelope := result["envelope"].(map[string]any)
	envelope["result_id"], envelope["run_id"] = id, run
}

func status2(reason, what, remedy string) status.Assignment {
	return status.Assignment{TaskID: "0003-c", Reason: reason, What: what, Remedy: remedy}
}

func only(is bool, what string) error {
	if is {
		return errors.New(what)
	}
	return nil
}

// A task that an operation is still moving may stand anywhere, but in two queues.
func TestATaskUnderWayMayStandElsewhere(t *testing.T) {
	v := edited(t, finished(t), func(d map[string]any) {
		member(d, "results", "d1")["status"] = "applying"
		member(d, "operations", "d1")["phase"] = "prepared"
	})
	f := asItShouldBe(v)
	f.Ledger, f.Tasks[0].Queue = nil, "feature_review"
	if found := audit.Check(f); len(found) > 0 {
		t.Errorf("got %+v", found)
	}
}
