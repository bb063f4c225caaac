package dispatch_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
	"greatminds/tasks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const project = `version: 1
max_running: 2
account_limits: {small: 1}
agents: {a: {transport: acp, argv: [x], adapter_version: "1", harness_version: "1"}}
bindings:
  dev: {role: DEVELOPER, agent: a, scheduling: queue, account: small}
  dev2: {role: DEVELOPER, agent: a, scheduling: queue}
  tester: {role: TESTER, agent: a, scheduling: queue}
  writer: {role: TECHNICAL-WRITER, agent: a, scheduling: on-demand}
`

// lab is a store with a moving clock, and the contract above.
type lab struct {
	t     *testing.T
	dir   string
	store *runstore.Store
	world dispatch.World
	now   time.Time
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, now: time.Unix(1_790_000_000, 0)}
	l.dir = filepath.Join(t.TempDir(), ".runtime")
	schema := contract.EmbeddedSchema()
	var err error
	l.store, err = runstore.Open(t.Context(), runstore.Options{Dir: l.dir, Disk: durable.NewDisk(nil),
		Now: func() time.Time { return l.now }})
	must(t, err)
	t.Cleanup(func() { must(t, l.store.Close(context.Background())) })
	l.world = dispatch.World{Schema: schema, Now: l.now}
	l.contract(project)
	text, err := runstore.SchemaDocument(schema.Text, schema.Version)
	must(t, err)
	must(t, l.store.PinDocument("schema", schema.SHA256, text))
	return l
}

// contract puts another contract in force.
func (l *lab) contract(text string) {
	l.t.Helper()
	c, err := contract.Parse("execution.yaml", []byte(text), contract.EmbeddedSchema())
	must(l.t, err)
	must(l.t, l.store.PinDocument("execution", c.SHA256(), c.Canonical()))
	l.world.Contract, l.world.ContractSHA256 = c, c.SHA256()
}

func found(queue contract.Queue, id tasks.ID) tasks.Found {
	file := tasks.FileOf(queue, id)
	ref := tasks.Ref{ID: id, Queue: queue, File: file, Revision: tasks.RevisionOf(file, []byte(id))}
	return tasks.Found{Ref: ref, Task: &tasks.Task{Ref: ref, Priority: "normal"}}
}

// claim records a run of the task under the binding, in the way the supervisor does.
func (l *lab) claim(f tasks.Found, binding string) *runstore.ClaimedRun {
	l.t.Helper()
	b, _ := l.world.Contract.Binding(binding)
	a, _ := l.world.Contract.Agent(b.Agent)
	var run *runstore.ClaimedRun
	l.update(func(tx *runstore.Tx) error {
		var holds []runstore.Hold
		var err error
		run, holds, err = tx.Claim(runstore.Claim{OwnerID: "o", TaskID: runstore.TaskID(f.ID), TaskPath: f.File,
			TaskRevision: runstore.Revision(f.Revision), Role: string(b.Role), BindingID: b.ID, BindingSHA256: b.SHA256(), AgentID: a.ID,
			AgentSHA256: a.SHA256(), ConfigSHA256: l.world.ContractSHA256, SchemaSHA256: l.world.Schema.SHA256, SchemaVersion: 1,
			Workspace: "/w", Account: b.Account, Permission: b.Permission}, func(v *runstore.View) []runstore.Hold {
			if h, held := dispatch.Judge(l.world, v, dispatch.Candidate{Task: f.Ref, Binding: b}).Hold(); held {
				return []runstore.Hold{h}
			}
			return nil
		})
		if err == nil && len(holds) > 0 {
			err = errors.New(holds[0].Code)
		}
		return err
	})
	return run
}

func (l *lab) update(f func(*runstore.Tx) error) {
	l.t.Helper()
	must(l.t, l.store.Update(l.t.Context(), f))
}

func (l *lab) to(run runstore.RunID, states ...runstore.State) {
	l.t.Helper()
	for _, s := range states {
		l.update(func(tx *runstore.Tx) error { return tx.Transition(run, runstore.NewID(), s, "turn_ended", nil) })
	}
}

// reasons maps "task/binding" to the judged reason.
func (l *lab) reasons(files ...tasks.Found) map[string]string {
	out := map[string]string{}
	for _, j := range dispatch.Plan(l.world, l.store.View(), files) {
		out[string(j.Task.ID)+"/"+j.Binding.ID] = j.Reason
		if j.Reason != dispatch.Ready && j.What == "" {
			l.t.Errorf("%s is held as %s without a word", j.Task.ID, j.Reason)
		}
	}
	return out
}

// E-005 E-159 E-160 E-243 E-244 E-246
func TestEveryTaskHasAReason(t *testing.T) {
	l := newLab(t)
	one, two, three := found("feature_dev", "0001-one"), found("feature_dev", "0002-two"), found("feature_dev", "0003-three")
	parked, docs := found("feature_blocked", "0004-four"), found("feature_docs", "0005-five")
	broken := tasks.Found{Ref: found("feature_dev", "0006-six").Ref, Problem: errors.New("line 3: no blocks")}
	done := found("verified", "0007-seven")
	all := []tasks.Found{one, two, three, parked, docs, broken, done}

	expect(t, "at rest", l.reasons(all...), map[string]string{
		"0001-one/dev": "ready", "0001-one/dev2": "ready", "0002-two/dev": "ready", "0002-two/dev2": "ready", "0003-three/dev": "ready",
		"0003-three/dev2": "ready", "0004-four/": "waiting_for_dependencies", "0005-five/": "no_queue_binding", "0006-six/": "unreadable_task"})

	run := l.claim(one, "dev")
	expect(t, "one active", l.reasons(one, two), map[string]string{
		"0001-one/dev": "active_run", "0001-one/dev2": "active_run", "0002-two/dev": "binding_capacity", "0002-two/dev2": "ready"})

	second := l.claim(two, "dev2")
	expect(t, "the project is full", l.reasons(three), map[string]string{"0003-three/dev": "project_capacity", "0003-three/dev2": "project_capacity"})

	l.to(second.ID, runstore.Starting, runstore.Running, runstore.WaitingInput)
	expect(t, "a waiting run counts", l.reasons(three), map[string]string{"0003-three/dev": "project_capacity", "0003-three/dev2": "project_capacity"})

	l.to(run.ID, runstore.Starting, runstore.Running, runstore.Completed)
	expect(t, "a turn without progress", l.reasons(one), map[string]string{"0001-one/dev": "no_progress_limit", "0001-one/dev2": "no_progress_limit"})

	l.update(func(tx *runstore.Tx) error { tx.SetPaused(true); return nil })
	expect(t, "paused", l.reasons(three), map[string]string{"0003-three/dev": "dispatch_paused", "0003-three/dev2": "dispatch_paused"})
}

// E-159 E-496
func TestAClaimIsJudgedAgainUnderTheLock(t *testing.T) {
	l := newLab(t)
	one, two := found("feature_dev", "0001-one"), found("feature_dev", "0002-two")
	l.claim(one, "dev")
	b, _ := l.world.Contract.Binding("dev")
	l.update(func(tx *runstore.Tx) error {
		_, holds, err := tx.Claim(runstore.Claim{OwnerID: "o", TaskID: "0002-two", TaskPath: two.File, TaskRevision: runstore.Revision(two.Revision),
			BindingID: "dev", ConfigSHA256: l.world.ContractSHA256, SchemaSHA256: l.world.Schema.SHA256, Account: "small", AgentID: "a"},
			func(v *runstore.View) []runstore.Hold {
				h, _ := dispatch.Judge(l.world, v, dispatch.Candidate{Task: two.Ref, Binding: b}).Hold()
				return []runstore.Hold{h}
			})
		if err != nil {
			return err
		}
		if len(holds) != 1 || holds[0].Code != "binding_capacity" {
			t.Errorf("got holds %+v, want binding_capacity", holds)
		}
		return nil
	})
	if n := len(l.store.View().ActiveRuns()); n != 1 {
		t.Fatalf("got %d active runs, want 1", n)
	}
}

func TestTasksAreClaimedByPriorityThenAge(t *testing.T) {
	l := newLab(t)
	low, normal, high := found("feature_dev", "0001-a"), found("feature_dev", "0002-b"), found("feature_dev", "0003-c")
	low.Task.Priority, high.Task.Priority = "low", "high"
	plan := dispatch.Plan(l.world, l.store.View(), []tasks.Found{low, normal, high})
	if plan[0].Task.ID != "0003-c" || plan[2].Task.ID != "0002-b" || plan[4].Task.ID != "0001-a" {
		t.Fatalf("got order %s %s %s", plan[0].Task.ID, plan[2].Task.ID, plan[4].Task.ID)
	}
}

func expect(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
		return
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %s is %q, want %q", what, k, got[k], v)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
