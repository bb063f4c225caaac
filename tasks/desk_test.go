package tasks_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

// desk is one project in a temporary folder, with a clock that stands still.
type desk struct {
	t       *testing.T
	project contract.Project
	schema  *contract.Schema
	tree    *tasks.Tree
	now     time.Time
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	return deskOn(t, t.TempDir(), durable.NewDisk(nil))
}

func deskOn(t *testing.T, root string, disk *durable.Disk) *desk {
	t.Helper()
	l := &desk{t: t, schema: contract.EmbeddedSchema(), now: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC),
		project: contract.Project{Root: root, Runtime: filepath.Join(root, ".greatminds")}}
	for _, q := range l.schema.TaskQueues() {
		if err := os.MkdirAll(l.project.QueueDir(q), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l.tree = tasks.Open(l.project, l.schema, disk, func() time.Time { return l.now })
	return l
}

// put writes a task file by other hands than ours.
func (l *desk) put(queue, name, text string) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.project.Runtime, queue, name), []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// read returns a file of the runtime folder, "" where it is missing.
func (l *desk) read(parts ...string) string {
	l.t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{l.project.Runtime}, parts...)...))
	if err != nil && !os.IsNotExist(err) {
		l.t.Fatal(err)
	}
	return string(data)
}

// everything is every file of the runtime folder that means something: not locks, signs of life
// and the counter.
func (l *desk) everything() map[string]string {
	l.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(l.project.Runtime, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(l.project.Runtime, path) // path lies below it
		if filepath.Base(filepath.Dir(name)) == ".locks" || filepath.Ext(name) == ".architect-planner" ||
			filepath.Base(name) == ".id_counter" {
			return nil
		}
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			files[name] = string(data)
			return err
		}
		files[name] = d.Type().String()
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return files
}

// evidence is what a workspace would show.
type evidence struct {
	mu     sync.Mutex
	asked  []tasks.FactNeeds
	facts  tasks.Facts
	refuse error
}

func (e *evidence) Gather(_ context.Context, _ *tasks.Task, needs tasks.FactNeeds, f *tasks.Facts) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, needs)
	f.Workspace, f.InWorktree = "/work/tree", e.facts.InWorktree
	f.Files, f.Fingerprint, f.Gate, f.Worktrees = e.facts.Files, e.facts.Fingerprint, e.facts.Gate, e.facts.Worktrees
	return e.refuse
}

// hooks records worktree actions, and fails those it is told to.
type hooks struct {
	done []tasks.WorktreeAction
	fail map[tasks.WorktreeAction]error
}

func (h *hooks) Worktree(_ context.Context, _ *tasks.Task, a tasks.WorktreeAction) error {
	h.done = append(h.done, a)
	return h.fail[a]
}

func as(role contract.Role) tasks.Operator {
	return tasks.Operator{Role: role, Evidence: &evidence{facts: tasks.Facts{InWorktree: true, Fingerprint: "clean",
		Files: map[string]tasks.FileFact{"a.go": {InGit: true, Changed: true}}}}}
}

// refused wants a refusal with this code and returns it.
func refused(t *testing.T, err error, code refusal.Code) *refusal.Refusal {
	t.Helper()
	r, ok := refusal.Find(err)
	if !ok || r.Code != code {
		t.Fatalf("got %v, want a refusal %s", err, code)
	}
	return r
}

// codes lists the codes of a refusal's reasons, or its own.
func codes(reasons []refusal.Reason) []string {
	var out []string
	for _, r := range reasons {
		if !slices.Contains(out, string(r.Code)) {
			out = append(out, string(r.Code))
		}
	}
	return out
}

func (l *desk) must(ref tasks.Ref, err error) tasks.Ref {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
	return ref
}

// newTask files a product task through the tree.
func (l *desk) newTask(title, kind, scope string) tasks.Ref {
	l.t.Helper()
	return l.must(l.tree.New(context.Background(), as("ARCHITECT-PLANNER"),
		tasks.NewTask{Stream: "product", Title: title, Kind: kind, Scope: scope}))
}

// planned files a task and plans it into its implementer's queue.
func (l *desk) planned(kind, scope, assignee string) tasks.Ref {
	l.t.Helper()
	ref := l.newTask("Planned "+kind+" "+scope, kind, scope)
	p, err := l.tree.Plan(context.Background(), as("ARCHITECT-PLANNER"), tasks.PlanTask{ID: string(ref.ID), Scope: scope,
		AssigneeRole: assignee, BaseCommit: "abc1234", PlanKind: "full", Mode: "A", Body: "do it"})
	if err != nil {
		l.t.Fatal(err)
	}
	return p.Ref
}

var bg = context.Background()
