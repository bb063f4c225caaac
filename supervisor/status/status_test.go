package status_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/runstore"
	"greatminds/supervisor/status"
	"greatminds/tasks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const agreed = `version: 1
agents: {a: {transport: acp, argv: [agent], adapter_version: "1", harness_version: "1"}}
bindings:
  writer: {role: TECHNICAL-WRITER, agent: a}
  dev: {role: DEVELOPER, agent: a}
  idle: {role: TESTER, agent: a}
`

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) (*runstore.Store, *contract.Contract) {
	t.Helper()
	c, err := contract.Parse("execution.yaml", []byte(agreed), contract.EmbeddedSchema())
	must(t, err)
	store, err := runstore.Open(t.Context(), runstore.Options{Dir: t.TempDir(), Disk: durable.NewDisk(nil), Now: func() time.Time { return now }})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close(context.Background())) })
	return store, c
}

func claim(t *testing.T, s *runstore.Store, c *contract.Contract, binding string, task runstore.TaskID, states ...runstore.State) runstore.RunID {
	t.Helper()
	b, _ := c.Binding(binding)
	a, _ := c.Agent("a")
	var id runstore.RunID
	must(t, s.Update(t.Context(), func(tx *runstore.Tx) error {
		run, _, err := tx.Claim(runstore.Claim{OwnerID: "o", TaskID: task, TaskPath: "feature_dev/" + string(task) + ".yaml",
			TaskRevision: runstore.Revision(strings.Repeat("a", 64)), Role: string(b.Role), BindingID: binding, BindingSHA256: b.SHA256(), AgentID: "a",
			AgentSHA256: a.SHA256(), ConfigSHA256: c.SHA256(), SchemaSHA256: strings.Repeat("b", 64), SchemaVersion: 1, Workspace: "/w",
			Account: "default", Permission: "ask"}, func(*runstore.View) []runstore.Hold { return nil })
		if err != nil {
			return err
		}
		id = run.ID
		for _, state := range states {
			if err := tx.Transition(id, runstore.NewID(), state, "because", nil); err != nil {
				return err
			}
		}
		return nil
	}))
	return id
}

func build(t *testing.T, s *runstore.Store, c *contract.Contract, d status.Dispatch, found []tasks.Found) json.RawMessage {
	t.Helper()
	yes := true
	data, err := status.Build(status.Input{View: s.View(), Tasks: found, Contract: c, Schema: contract.EmbeddedSchema(), Dispatch: d,
		Alive: func(*runstore.Process) *bool { return &yes }})
	must(t, err)
	return data
}

func keysOf(t *testing.T, object json.RawMessage) []string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for dec.More() {
		key, err := dec.Token()
		must(t, err)
		keys = append(keys, key.(string))
		var skip json.RawMessage
		must(t, dec.Decode(&skip))
	}
	return keys
}

// E-254: the document is versioned, holds runs and assignments, and has the stored members first,
// sorted, then the computed ones in their order.
func TestTheDocumentKeepsItsOrder(t *testing.T) {
	s, c := open(t)
	claim(t, s, c, "dev", "0001-one")
	data := build(t, s, c, status.Dispatch{Assignments: []status.Assignment{{TaskID: "0001-one", Reason: "active_run"}}}, nil)
	keys := keysOf(t, data)
	cut := slices.Index(keys, "stand_deployments")
	if cut < 0 || !slices.IsSorted(keys[:cut]) {
		t.Fatalf("got keys %v", keys)
	}
	for _, stored := range []string{"events", "paused", "project_id", "results", "runs", "version"} {
		if !slices.Contains(keys[:cut], stored) {
			t.Errorf("%s is missing among %v", stored, keys[:cut])
		}
	}
	want := []string{"stand_deployments", "stand_lease", "stand_dispatch", "stand_schedule", "maintenance_findings", "assignments", "accounts", "agents", "tasks", "recovery", "totals"}
	if !slices.Equal(keys[cut:], want) {
		t.Fatalf("got %v, want %v", keys[cut:], want)
	}
	var doc struct {
		Version     int
		Assignments []status.Assignment
	}
	must(t, json.Unmarshal(data, &doc))
	if doc.Version != 1 || len(doc.Assignments) != 1 || doc.Assignments[0].Reason != "active_run" {
		t.Fatalf("got %+v", doc)
	}
	if bytes.Contains(data, []byte("token_sha256")) {
		t.Fatal("the document holds a credential's hash") // E-189
	}
}

func TestAnEmptyProjectHasTheOriginalsShape(t *testing.T) {
	s, c := open(t)
	data := build(t, s, c, status.Dispatch{}, nil)
	for _, part := range []string{
		`"stand_deployments":{"version":1,"attempts":{}}`, `"stand_lease":{"status":"no_active_lease"}`,
		`"stand_dispatch":{"status":"automatic_deployment_disabled"}`, `"stand_schedule":{"version":1,"tickets":{}}`,
		`"maintenance_findings":{"version":1,"tasks":{},"cycles":[],"schema_sha256":"`, `"assignments":[]`, `"accounts":{}`, `"tasks":[]`,
		`{"binding_id":"dev","role":"DEVELOPER","agent_id":"a","transport":"acp","configured":true,"state":"idle","reason":"",` +
			`"run_id":null,"task_id":null,"task_revision":null,"session_id":null,"conversation_id":null,"updated_at":null,` +
			`"config_current":true,"pid":null,"alive":false,"usable":false,"dispatch_paused":false}`,
	} {
		if !bytes.Contains(data, []byte(part)) {
			t.Errorf("%s is missing in\n%s", part, data)
		}
	}
}

func TestAgentsShowTheActiveRunElseTheLatestElseIdle(t *testing.T) {
	s, c := open(t)
	claim(t, s, c, "dev", "0001-one", runstore.Starting, runstore.Failed)
	active := claim(t, s, c, "dev", "0002-two", runstore.Starting, runstore.Running)
	must(t, s.Update(t.Context(), func(tx *runstore.Tx) error {
		return tx.EditRun(active, func(r *runstore.Run) {
			r.Process = &runstore.Process{PID: 77, StartTicks: 1, BootID: "b", Group: 77, Session: 77}
		})
	}))
	last := claim(t, s, c, "writer", "0003-three", runstore.Starting, runstore.Failed)
	must(t, s.Update(t.Context(), func(tx *runstore.Tx) error { tx.SetPaused(true); return nil }))
	yes := true
	rows := status.Agents(status.Input{View: s.View(), Contract: c, Schema: contract.EmbeddedSchema(), Alive: func(*runstore.Process) *bool { return &yes }})
	if len(rows) != 3 {
		t.Fatalf("got %d rows: %+v", len(rows), rows)
	}
	dev, idle, writer := rows[0], rows[1], rows[2]
	if dev.BindingID != "dev" || dev.State != "running" || *dev.RunID != string(active) || *dev.PID != 77 || !*dev.Alive || !dev.Usable || !dev.ConfigCurrent {
		t.Errorf("dev: %+v", dev)
	}
	if idle.BindingID != "idle" || idle.State != "paused" || idle.RunID != nil || *idle.Alive || !idle.DispatchPaused {
		t.Errorf("idle: %+v", idle)
	}
	if writer.BindingID != "writer" || writer.State != "failed" || writer.Reason != "because" || *writer.RunID != string(last) || writer.PID != nil || writer.Usable {
		t.Errorf("writer: %+v", writer)
	}

	changed, err := contract.Parse("e", []byte(strings.Replace(agreed, "{role: DEVELOPER, agent: a}", "{role: DEVELOPER, agent: a, max_running: 2}", 1)), contract.EmbeddedSchema())
	must(t, err)
	unknown := func(*runstore.Process) *bool { return nil }
	rows = status.Agents(status.Input{View: s.View(), Contract: changed, Schema: contract.EmbeddedSchema(), Alive: unknown})
	if rows[0].ConfigCurrent || rows[0].Usable || rows[0].Alive != nil {
		t.Errorf("after an edit, with a process that cannot be looked at: %+v", rows[0])
	}
	without, err := contract.Parse("e", []byte(strings.Replace(agreed, "  dev: {role: DEVELOPER, agent: a}\n", "", 1)), contract.EmbeddedSchema())
	must(t, err)
	rows = status.Agents(status.Input{View: s.View(), Contract: without, Schema: contract.EmbeddedSchema(), Alive: unknown})
	if len(rows) != 3 || rows[0].BindingID != "dev" || rows[0].Configured {
		t.Errorf("an active run of a removed binding: %+v", rows)
	}
}

// E-218: whatever needs recovery is named with the commands that lead out, in the document and on
// the terminal; so is an open question, with its answers.
func TestTextSaysWhatHelps(t *testing.T) {
	s, c := open(t)
	run := claim(t, s, c, "dev", "0001-one", runstore.Starting, runstore.Running)
	must(t, s.Update(t.Context(), func(tx *runstore.Tx) error {
		if _, _, err := tx.RequestCommand(runstore.Command{ID: "left", RunID: run, TaskID: "0001-one", CommandID: "unit"}); err != nil {
			return err
		}
		for _, st := range []string{"starting", "running", "needs_recovery"} {
			if err := tx.SetCommand("left", st, nil); err != nil {
				return err
			}
		}
		if err := tx.EditRun(run, func(r *runstore.Run) {
			r.Usage = []byte(`{"version":1,"cost_accounting":{"amount":0.42,"currency":"USD","status":"reported","completed_prompts":0,"pending":true,"fresh":true,"error":null}}`)
		}); err != nil {
			return err
		}
		return tx.AskPermission(runstore.Permission{ID: "ask1", RunID: run, OwnerID: "o", SessionID: "s", ExpiresAt: runstore.Epoch(now) + 120,
			Tool: []byte(`{"title":"edit\nmain.go","kind":"edit"}`), Options: []runstore.Option{
				{OptionID: "y1", Name: "Allow once", Kind: "allow_once"}, {OptionID: "aa", Name: "Allow always", Kind: "allow_always"}}})
	}))
	at := runstore.Epoch(now) + 60
	d := status.Dispatch{
		Assignments: []status.Assignment{
			{TaskID: "0001-one", Binding: "dev", Reason: "active_run"},
			{TaskID: "0002-two", Binding: "dev", Reason: "no_progress_limit", What: "a turn ended without a decision", Remedy: "greatminds run retry r2"}},
		Accounts: map[string]status.Account{"default": {Reason: "account_backoff", Account: "default", Failures: 2, NextAt: &at},
			"slow":  {Reason: "account_rate_limit", Account: "slow", NextAt: &at, What: "told to slow down", Remedy: "wait, or greatminds run account-resume slow"},
			"spent": {Reason: "account_quota_exhausted", Account: "spent", What: "the quota\nis used up", Remedy: "greatminds run account-resume spent"}},
	}
	found := []tasks.Found{
		{Ref: tasks.Ref{ID: "0002-two", Queue: "feature_dev"}, Task: &tasks.Task{Title: "Two"}},
		{Ref: tasks.Ref{ID: "0003-bad", Queue: "feature_dev"}, Problem: errors.New("line 3: what is this")},
	}
	twice := errors.New("task 0004-twice stands in more than one place")
	d.Assignments = append(d.Assignments, status.Assignment{TaskID: "0004-twice", Reason: "unreadable_task", What: twice.Error(), Remedy: "keep one of the files"})
	for _, queue := range []contract.Queue{"feature_dev", "verified"} {
		found = append(found, tasks.Found{Ref: tasks.Ref{ID: "0004-twice", Queue: queue}, Problem: twice})
	}
	text, err := status.Text(build(t, s, c, d, found), now.Add(5*time.Second), status.FromDaemon)
	must(t, err)
	if n := strings.Count(text, twice.Error()); n != 1 {
		t.Errorf("a file that cannot be read is told %d times:\n%s", n, text)
	}
	for _, part := range []string{
		`0001-one asks: edit\nmain.go (edit), 1m55s left`, "greatminds run permission ask1 --option y1    # allow_once, Allow once",
		"greatminds run command-status left", "greatminds run command-resolve left --reason TEXT",
		"running", "run " + string(run), "reported session cost 0.42 USD (as the agent reports it, not a bill), a prompt is pending",
		"0002-two", "no_progress_limit: a turn ended without a decision", "greatminds run retry r2",
		"unreadable_task: line 3: what is this", "account default: account_backoff after 2 failures, 55s left",
		"account slow: account_rate_limit: told to slow down, 55s left\n    wait, or greatminds run account-resume slow\n",
		"account spent: account_quota_exhausted: the quota is used up\n    greatminds run account-resume spent\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
	if strings.Contains(text, "--option aa") {
		t.Errorf("a lasting option is offered:\n%s", text)
	}
	if _, err := status.Text([]byte(`[]`), now, status.FromDaemon); err == nil {
		t.Error("a document of another shape was shown")
	}
}

func TestTextSaysWhatAStoreWasTakenOverFrom(t *testing.T) {
	for document, want := range map[string]bool{
		`{"taken_over":{"at":1800000000.5,"file":"original-state-0123.json","sha256":"x"}}`: true,
		`{}`:                    false,
		`{"taken_over":"mine"}`: false,
	} {
		text, err := status.Text(json.RawMessage(document), time.Unix(1_800_000_100, 0), status.FromDaemon)
		if err != nil {
			t.Fatal(err)
		}
		line := "Taken over from the original at 2027-01-15T08:00:00Z; its state.json is kept as original-state-0123.json."
		if got := strings.Contains(text, line); got != want {
			t.Errorf("%s: got\n%s", document, text)
		}
	}
}
