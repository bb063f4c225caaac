package results_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"greatminds/contract"
	"greatminds/fixtures/baretool"
	"greatminds/fixtures/sample"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/results"
	"greatminds/tasks"
)

// TestMain is keeper and gate of the git calls too, and ends by finding no goroutine left.
func TestMain(m *testing.M) {
	execgate.Main()
	goleak.VerifyTestMain(m)
}

const (
	taskID   = tasks.ID("0001-sample")
	runID    = runstore.RunID("run1")
	resultID = runstore.ResultID("run1-result")
)

const header = `id: 0001-sample
stream: product
title: Sample task
reporter: ARCHITECT-PLANNER
opened_at: "2026-01-05T09:00:00Z"
priority: normal
kind: feature
scope: backend
blocks:
`

// The blocks of the tests' tasks.
const (
	planBlock           = sample.PlanBlock
	implementationBlock = sample.ImplementationBlock
	testsBlock          = sample.TestsBlock
)

// lab is a real project over a real repository, with a run that has decided.
type lab struct {
	t       *testing.T
	top     string
	root    string
	project contract.Project
	schema  *contract.Schema
	policy  contract.Worktrees
	pinned  *contract.Contract
	stale   map[string]string // by command request
	// runner runs git: bare, or nil for the real thing.
	runner func(context.Context, execgate.Tool) (execgate.ToolOutput, error)
	// schemaOf answers for pinned schemas; nil gives schema for each.
	schemaOf func(sha string) (*contract.Schema, error)
	mu       sync.Mutex
	now      time.Time

	fault   *faultdisk.FaultDisk
	store   *runstore.Store
	tree    *tasks.Tree
	applier *results.Applier
}

func newLab(t *testing.T) *lab {
	t.Helper()
	top := t.TempDir()
	l := &lab{t: t, top: top, root: filepath.Join(top, "project"), schema: contract.EmbeddedSchema(), now: time.Unix(1_800_000_000, 0), runner: baretool.Run, stale: map[string]string{}}
	l.project = contract.Project{Root: l.root, Runtime: filepath.Join(l.root, ".greatminds")}
	l.policy = l.schema.Worktrees
	l.policy.DefaultBranch = "main"
	for _, dir := range []string{l.root, filepath.Join(top, "home"), l.project.StoreDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l.git(l.root, "init", "-q", "-b", "main")
	l.write(".gitignore", ".worktrees/\n.greatminds/\n")
	l.write("a.txt", "one\n")
	l.write("k.txt", "keep\n")
	l.commit(l.root, "base")
	pinned, err := contract.Parse("execution.yaml", []byte(execution), l.schema)
	if err != nil {
		t.Fatal(err)
	}
	l.pinned = pinned
	l.open()
	return l
}

const execution = `version: 1
agents:
  fake: {transport: acp, argv: [agent], adapter_version: "1", harness_version: "1"}
bindings:
  dev: {role: DEVELOPER, agent: fake, scheduling: queue}
commands:
  check: {argv: ["go", "test"], roles: [TESTER]}
`

// open opens store, tree and applier.
func (l *lab) open() {
	l.t.Helper()
	if err := l.tryOpen(); err != nil {
		l.t.Fatalf("open: %v", err)
	}
}

// tryOpen opens them over a disk with the given faults, which may keep the store from opening.
func (l *lab) tryOpen(faults ...faultdisk.Fault) error {
	l.t.Helper()
	l.store = nil
	l.fault = faultdisk.New(faults...)
	disk := l.fault.Disk()
	store, err := runstore.Open(context.Background(), runstore.Options{Dir: l.project.StoreDir(), Disk: disk, Now: l.clock})
	if err != nil {
		return err
	}
	l.store = store
	l.t.Cleanup(func() { _ = store.Close(context.Background()) }) // a crashed store cannot close well
	l.tree = tasks.Open(l.project, l.schema, disk, l.clock)
	l.applier, err = results.New(results.Options{Project: l.project, Store: store, Tree: l.tree, Disk: disk,
		Git: &tasks.Git{Env: l.env(), Disk: disk, Run: l.runner},
		Schema: func(sha string) (*contract.Schema, error) {
			if l.schemaOf != nil {
				return l.schemaOf(sha)
			}
			return l.schema, nil
		},
		Contract: func(string) (*contract.Contract, error) { return l.pinned, nil },
		Policy:   l.policy, Commands: l, Now: l.clock, Log: slog.New(slog.DiscardHandler)})
	return err
}

// reopen is a restart of the process: a new store over what is on the disk.
func (l *lab) reopen() {
	l.t.Helper()
	if l.store != nil {
		_ = l.store.Close(context.Background()) // a crashed store cannot close well
	}
	l.open()
}

func (l *lab) clock() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(time.Millisecond)
	return l.now
}

// Stale answers for command evidence.
func (l *lab) Stale(_ context.Context, _ *runstore.Run, c *runstore.Command) (string, error) {
	return l.stale[string(c.ID)], nil
}

func (l *lab) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(l.top, "home"), "GIT_CONFIG_NOSYSTEM=1"}
}

func (l *lab) git(dir string, args ...string) string {
	l.t.Helper()
	c := exec.Command("git", args...)
	c.Dir, c.Env = dir, append(l.env(), "GIT_AUTHOR_NAME=A Person", "GIT_AUTHOR_EMAIL=person@example.invalid",
		"GIT_COMMITTER_NAME=A Person", "GIT_COMMITTER_EMAIL=person@example.invalid")
	out, err := c.CombinedOutput()
	if err != nil {
		l.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

func (l *lab) commit(dir, subject string) string {
	l.t.Helper()
	l.git(dir, "add", "-A")
	l.git(dir, "commit", "-q", "--allow-empty", "-m", subject)
	return l.git(dir, "rev-parse", "HEAD")
}

func (l *lab) write(name, text string) { l.t.Helper(); l.writeIn(l.root, name, text) }

func (l *lab) writeIn(dir, name, text string) {
	l.t.Helper()
	full := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) read(name string) string {
	l.t.Helper()
	data, err := os.ReadFile(filepath.Join(l.root, name))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(data)
}

func (l *lab) taskFile(queue string) string {
	return filepath.Join(".greatminds", queue, string(taskID)+".yaml")
}

func (l *lab) worktree() string { return filepath.Join(l.root, ".worktrees", string(taskID)) }

// put writes the task into a queue with the given blocks.
func (l *lab) put(queue string, blocks ...string) {
	l.t.Helper()
	text := header + strings.ReplaceAll(strings.Join(blocks, ""), "@BASE@", l.git(l.root, "rev-parse", "main"))
	if len(blocks) == 0 {
		text = strings.Replace(header, "blocks:", "blocks: []", 1)
	}
	l.write(l.taskFile(queue), text)
}

// decided is one decision of one run.
type decided struct {
	role      contract.Role
	workspace string
	kind      string
	payload   string
}

const approval = `{"to_queue":"verified","blocks":[{"kind":"review","outcome":"approved","commit":"abc","notes":"ok"}]}`

// review brings a task with work in its worktree to feature_review, approved.
func (l *lab) review() {
	l.t.Helper()
	l.put("feature_review", planBlock, implementationBlock, testsBlock)
	l.git(l.root, "worktree", "add", "-q", "-b", "task/0001-sample", l.worktree(), "main")
	l.writeIn(l.worktree(), "a.txt", "ours\n")
	l.writeIn(l.worktree(), "new.txt", "new\n")
	l.decide(decided{"ARCHITECT-REVIEWER", l.worktree(), "handoff", approval})
}

// decide makes a run of the task that has decided and ended.
func (l *lab) decide(d decided) {
	l.t.Helper()
	l.runs(d.role, d.workspace)
	l.receive(d.kind, d.payload)
	l.end()
}

func (l *lab) runs(role contract.Role, workspace string) *runstore.Run {
	l.t.Helper()
	task, err := l.tree.ReadCurrent(taskID)
	if err != nil {
		l.t.Fatal(err)
	}
	err = l.store.Update(context.Background(), func(tx *runstore.Tx) error {
		_, holds, err := tx.Claim(runstore.Claim{ID: runID, TaskID: runstore.TaskID(taskID), TaskPath: task.File, TaskRevision: runstore.Revision(task.Revision),
			Role: string(role), ConfigSHA256: l.pinned.SHA256(), SchemaSHA256: l.schema.SHA256, SchemaVersion: 1, Workspace: workspace, BindingID: "dev"}, nil)
		if err != nil || len(holds) > 0 {
			return errors.Join(err, errors.New("held"))
		}
		return errors.Join(tx.Transition(runID, "s", runstore.Starting, "", nil), tx.Transition(runID, "r", runstore.Running, "", nil))
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return l.store.View().Run(runID)
}

// second brings another approved task with work of its own, and returns its result.
func (l *lab) second() runstore.ResultID {
	l.t.Helper()
	const id, run, result = "0002-second", "run2", "run2-result"
	text := strings.Replace(l.read(l.taskFile("feature_review")), "id: "+string(taskID), "id: "+id, 1)
	l.write(".greatminds/feature_review/"+id+".yaml", text)
	tree := filepath.Join(l.root, ".worktrees", id)
	l.git(l.root, "worktree", "add", "-q", "-b", "task/"+id, tree, "main")
	l.writeIn(tree, "b.txt", "second\n")
	task, err := l.tree.ReadCurrent(id)
	if err != nil {
		l.t.Fatal(err)
	}
	err = l.store.Update(context.Background(), func(tx *runstore.Tx) error {
		_, holds, err := tx.Claim(runstore.Claim{ID: run, TaskID: id, TaskPath: task.File, TaskRevision: runstore.Revision(task.Revision),
			Role: "ARCHITECT-REVIEWER", ConfigSHA256: l.pinned.SHA256(), SchemaSHA256: l.schema.SHA256, SchemaVersion: 1, Workspace: tree, BindingID: "dev"}, nil)
		if err != nil || len(holds) > 0 {
			return errors.Join(err, errors.New("held"))
		}
		if err := errors.Join(tx.Transition(run, "s", runstore.Starting, "", nil), tx.Transition(run, "r", runstore.Running, "", nil)); err != nil {
			return err
		}
		if _, _, err := tx.Receive(run, runstore.Envelope{ResultID: result, RunID: run, TaskID: id, TaskRevision: runstore.Revision(task.Revision),
			SchemaSHA256: l.schema.SHA256, Decision: "handoff", Payload: json.RawMessage(approval)}); err != nil {
			return err
		}
		return tx.Transition(run, "e", runstore.Completed, "turn_ended", nil)
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return result
}

func (l *lab) envelope(kind, payload string) runstore.Envelope {
	run := l.store.View().Run(runID)
	return runstore.Envelope{ResultID: resultID, RunID: runID, TaskID: run.TaskID, TaskRevision: run.TaskRevision,
		SchemaSHA256: run.SchemaSHA256, Decision: kind, Payload: json.RawMessage(payload)}
}

func (l *lab) receive(kind, payload string) {
	l.t.Helper()
	e := l.envelope(kind, payload)
	err := l.store.Update(context.Background(), func(tx *runstore.Tx) error {
		_, _, err := tx.Receive(runID, e)
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) end() {
	l.t.Helper()
	err := l.store.Update(context.Background(), func(tx *runstore.Tx) error {
		return tx.Transition(runID, "e", runstore.Completed, "turn_ended", nil)
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	l.t.Cleanup(cancel)
	return ctx
}

func (l *lab) apply() error { _, err := l.applier.Apply(l.ctx(), resultID); return err }

func (l *lab) result() *runstore.Result { return l.store.View().Result(resultID) }

// queues lists the queues that the task stands in.
func (l *lab) queues() string {
	l.t.Helper()
	files, err := filepath.Glob(filepath.Join(l.project.Runtime, "*", string(taskID)+".yaml"))
	if err != nil {
		l.t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(filepath.Dir(f)))
	}
	return strings.Join(names, " ")
}

// lines counts the journal's lines.
func (l *lab) lines() []tasks.JournalLine {
	l.t.Helper()
	lines, err := l.tree.Journal()
	if err != nil {
		l.t.Fatal(err)
	}
	return lines
}

func (l *lab) merges() string {
	l.t.Helper()
	return l.git(l.root, "rev-list", "--merges", "--count", "main")
}

// wantVerified checks the one end that an approved task has: merged once, moved once, told once.
func (l *lab) wantVerified() {
	l.t.Helper()
	if got := l.result(); got.Status != "applied" || got.Details.Destination != "verified/0001-sample.yaml" {
		l.t.Fatalf("result is %s: %+v, want applied to verified", got.Status, got.Details)
	}
	if got := l.queues(); got != "verified" {
		l.t.Errorf("the task stands in %q", got)
	}
	if got := l.merges(); got != "1" {
		l.t.Errorf("%s merges, want 1", got)
	}
	lines := l.lines()
	if len(lines) != 1 || lines[0].OperationID != string(resultID) || lines[0].To != "verified" {
		l.t.Errorf("journal %+v, want one line", lines)
	}
	if got := l.read("a.txt") + l.read("new.txt") + l.read("k.txt"); got != "ours\nnew\nkeep\n" {
		l.t.Errorf("the checkout holds %q", got)
	}
	if got := l.git(l.root, "status", "--porcelain"); got != "" {
		l.t.Errorf("the checkout is not clean: %s", got)
	}
	if _, err := os.Lstat(l.worktree()); !os.IsNotExist(err) {
		l.t.Errorf("the worktree: %v, want it gone", err)
	}
	if got := l.git(l.root, "for-each-ref", "--format=%(refname)"); got != "refs/heads/main" {
		l.t.Errorf("refs: %s", got)
	}
	if left, err := filepath.Glob(filepath.Join(l.root, ".git/*.lock")); err != nil || len(left) > 0 {
		l.t.Errorf("locks left: %v %v", left, err)
	}
	if o := l.store.View().Operation(runstore.OperationID(resultID)); o == nil || o.Phase != "committed" {
		l.t.Errorf("operation %+v, want it committed", o)
	}
}

func wantCode(t *testing.T, err error, code refusal.Code, words ...string) {
	t.Helper()
	r, ok := refusal.Find(err)
	if !ok || r.Code != code {
		t.Fatalf("got %v, want a refusal of code %s", err, code)
	}
	if r.Remedy == "" {
		t.Errorf("%s: no remedy", code)
	}
	for _, w := range words {
		if !strings.Contains(r.Error()+"\n"+r.Remedy, w) {
			t.Errorf("%s: %q does not name %q", code, r.Error(), w)
		}
	}
}
