package ops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/activity"
	"greatminds/supervisor/control"
	"greatminds/supervisor/ops"
	"greatminds/supervisor/status"
	"greatminds/tasks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const agreed = `version: 1
agents: {a: {transport: acp, argv: [agent], adapter_version: "1", harness_version: "1"}}
bindings: {dev: {role: DEVELOPER, agent: a, scheduling: queue}}
commands:
  unit: {argv: [test], roles: [DEVELOPER]}
  other: {argv: [test], roles: [DEVELOPER]}
`

const taskText = `id: 0001-one
stream: product
title: One
reporter: ARCHITECT-PLANNER
opened_at: '2026-01-02T03:04:05Z'
priority: normal
kind: feature
scope: backend
blocks: []
`

// world is a project with its store open, and everything around the operations made visible.
type world struct {
	t       *testing.T
	env     *ops.Env
	dir     string
	mu      sync.Mutex
	live    map[runstore.RunID]bool
	feeds   map[runstore.RunID]*activity.Feed
	expired bool // no callback waits any more
	woken   int
	stopped []runstore.RunID
	// reasons is what the next Check answers, checked counts the calls.
	reasons []refusal.Reason
	checked int
	repairs []string
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newWorld(t *testing.T) *world {
	t.Helper()
	root := t.TempDir()
	p := contract.Project{Root: root, Runtime: filepath.Join(root, ".greatminds")}
	schema := contract.EmbeddedSchema()
	for _, q := range schema.TaskQueues() {
		must(t, os.MkdirAll(p.QueueDir(q), 0o755))
	}
	must(t, os.MkdirAll(p.StoreDir(), 0o700))
	must(t, os.WriteFile(filepath.Join(p.QueueDir("feature_dev"), "0001-one.yaml"), []byte(taskText), 0o600))
	c, err := contract.Parse("execution.yaml", []byte(agreed), schema)
	must(t, err)
	w := &world{t: t, dir: root, live: map[runstore.RunID]bool{}, feeds: map[runstore.RunID]*activity.Feed{}}
	now := func() time.Time { return epoch }
	disk := durable.NewDisk(nil)
	store, err := runstore.Open(t.Context(), runstore.Options{Dir: p.StoreDir(), Disk: disk, Now: now})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close(context.Background())) })
	must(t, store.PinDocument("execution", c.SHA256(), c.Canonical()))
	document, err := runstore.SchemaDocument(schema.Text, schema.Version)
	must(t, err)
	must(t, store.PinDocument("schema", schema.SHA256, document))
	w.env = &ops.Env{Project: p, Contract: c, Schema: schema, Store: store, Tree: tasks.Open(p, schema, disk, now), Now: now,
		Log: slog.New(slog.DiscardHandler), OwnerID: "owner", Daemon: w, Commands: w, Results: w,
		Brief:    func(run *runstore.Run) (any, error) { return map[string]string{"run_id": string(run.ID)}, nil },
		Dispatch: func(*runstore.View, []tasks.Found) status.Dispatch { return status.Dispatch{} }}
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) Wake() { w.mu.Lock(); defer w.mu.Unlock(); w.woken++ }

func (w *world) Live(run runstore.RunID) bool { w.mu.Lock(); defer w.mu.Unlock(); return w.live[run] }

func (w *world) Activity(run runstore.RunID) *activity.Feed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.feeds[run]
}

func (w *world) Waits(runstore.PermissionID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.expired
}

func (w *world) Cancel(run runstore.RunID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.live[run] {
		w.stopped = append(w.stopped, run)
	}
}

func (w *world) Admit(ctx context.Context, run *runstore.Run, c contract.Command, id runstore.CommandID) (*runstore.Command, error) {
	var receipt *runstore.Command
	err := w.env.Store.Update(ctx, func(tx *runstore.Tx) (err error) {
		receipt, _, err = tx.RequestCommand(runstore.Command{ID: id, RunID: run.ID, TaskID: run.TaskID, TaskRevision: run.TaskRevision,
			CommandID: c.ID, DefinitionSHA256: c.SHA256(), ConfigSHA256: run.ConfigSHA256, SchemaSHA256: run.SchemaSHA256, Workspace: run.Workspace})
		return err
	})
	return receipt, err
}

func (w *world) Preview(c *runstore.Command, limit int) (any, error) {
	return map[string]int{"limit": limit}, nil
}

func (w *world) Check(context.Context, *runstore.Run, runstore.Envelope) ([]refusal.Reason, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checked++
	return w.reasons, nil
}

func (w *world) Repair(_ context.Context, id string) (any, error) {
	w.repairs = append(w.repairs, "repair "+id)
	return map[string]string{"id": id}, nil
}

func (w *world) Abandon(_ context.Context, id, reason string) (any, error) {
	w.repairs = append(w.repairs, "abandon "+id+" "+reason)
	return map[string]string{"id": id}, nil
}

// run is a claimed run with its credential.
type run struct {
	id    runstore.RunID
	token string
}

func (w *world) update(f func(tx *runstore.Tx) error) {
	w.t.Helper()
	must(w.t, w.env.Store.Update(w.t.Context(), f))
}

// claim makes a run of the task and takes it along the given states.
func (w *world) claim(path ...runstore.State) run {
	w.t.Helper()
	task, err := w.env.Tree.ReadCurrent("0001-one")
	must(w.t, err)
	binding, _ := w.env.Contract.Binding("dev")
	agent, _ := w.env.Contract.Agent("a")
	var r run
	w.update(func(tx *runstore.Tx) error {
		claimed, holds, err := tx.Claim(runstore.Claim{OwnerID: "owner", TaskID: "0001-one", TaskPath: task.File,
			TaskRevision: runstore.Revision(task.Revision), Role: "DEVELOPER", BindingID: "dev", BindingSHA256: binding.SHA256(),
			AgentID: "a", AgentSHA256: agent.SHA256(), ConfigSHA256: w.env.Contract.SHA256(), SchemaSHA256: w.env.Schema.SHA256,
			SchemaVersion: 1, Workspace: w.dir, Account: "default", Permission: "ask"}, func(*runstore.View) []runstore.Hold { return nil })
		if err != nil || len(holds) > 0 {
			return fmt.Errorf("not claimed: %v %w", holds, err)
		}
		r = run{claimed.ID, string(claimed.Token)}
		session := "session"
		return tx.EditRun(r.id, func(run *runstore.Run) { run.SessionID = &session })
	})
	for _, state := range path {
		w.move(r, state)
	}
	return r
}

func (w *world) move(r run, state runstore.State) {
	w.t.Helper()
	w.update(func(tx *runstore.Tx) error { return tx.Transition(r.id, runstore.NewID(), state, "test", nil) })
}

// running is a run in its turn, with its process up.
func (w *world) running() run {
	w.t.Helper()
	r := w.claim(runstore.Starting)
	w.update(func(tx *runstore.Tx) error { return tx.RecordProcess(r.id, ourselves(w.t)) })
	w.move(r, runstore.Running)
	w.live[r.id] = true
	return r
}

// ourselves is the identity of this very process.
func ourselves(t *testing.T) runstore.Process {
	t.Helper()
	stat, err := os.ReadFile("/proc/self/stat")
	must(t, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	ticks, err := strconv.ParseUint(fields[19], 10, 64)
	must(t, err)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	must(t, err)
	group, err := unix.Getpgid(0)
	must(t, err)
	session, err := unix.Getsid(0)
	must(t, err)
	return runstore.Process{PID: os.Getpid(), StartTicks: ticks, BootID: strings.TrimSpace(string(boot)), Group: group, Session: session}
}

// Callers.
var (
	operator = execgate.Peer{PID: 10, Known: true}
	agent    = execgate.Peer{PID: 11, Known: true, Descends: true}
	stranger = execgate.Peer{PID: 12}
)

// ask performs one call under a fresh request id.
func (w *world) ask(peer execgate.Peer, c control.Call, args any) (json.RawMessage, error) {
	w.t.Helper()
	if args != nil {
		data, err := json.Marshal(args)
		must(w.t, err)
		c.Args = data
	}
	if c.ID == "" {
		c.ID = control.NewID()
	}
	value, err := w.env.Serve(w.t.Context(), peer, c)
	if err != nil {
		if value != nil && !isNil(value) {
			w.t.Errorf("%s: a result %v beside the error %v", c.Op, value, err)
		}
		return nil, err
	}
	data, err := json.Marshal(value)
	must(w.t, err)
	return data, nil
}

func isNil(v any) bool {
	data, _ := json.Marshal(v) // what has no JSON form is not nil
	return string(data) == "null"
}

func (w *world) operate(op string, args any) (json.RawMessage, error) {
	w.t.Helper()
	return w.ask(operator, control.Call{Op: op}, args)
}

func (r run) call(op string) control.Call {
	return control.Call{Op: op, RunID: string(r.id), Token: r.token}
}

func code(err error) refusal.Code {
	if r, is := refusal.Find(err); is {
		return r.Code
	}
	if err != nil {
		return refusal.Code("no refusal: " + err.Error())
	}
	return ""
}

func exit(err error) int {
	if r, is := refusal.Find(err); is {
		return int(r.Status())
	}
	return 0
}

// wants fails unless the error is a refusal of this code with this exit status.
func wants(t *testing.T, err error, want refusal.Code, status int) {
	t.Helper()
	if code(err) != want || exit(err) != status {
		t.Fatalf("got %v (%s, exit %d), want %s with exit %d", err, code(err), exit(err), want, status)
	}
}

func field[T any](t *testing.T, data json.RawMessage, key string) T {
	t.Helper()
	var members map[string]json.RawMessage
	must(t, json.Unmarshal(data, &members))
	var v T
	must(t, json.Unmarshal(members[key], &v))
	return v
}

// state is the whole durable state, for comparing before and after a refusal.
func (w *world) state() string { return string(w.env.Store.View().Document()) }
