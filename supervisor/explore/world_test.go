package explore

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"greatminds/contract"
	"greatminds/fixtures/baretool"
	"greatminds/internal/durable"
	"greatminds/internal/durable/powercut"
	"greatminds/supervisor"
)

// world is a project on a disk that lives in memory, where there is such a place.
type world struct {
	t *testing.T
	// top holds everything that a power cut may change: the project, and the effects of its
	// configured command.
	top, root string
	project   contract.Project
	// clock counts milliseconds; every look moves it.
	clock atomic.Int64
	// seed is what agents hold from before the story.
	seed *agents
	log  bytes.Buffer
	// liveAgent says that the recorded process of a run must live in its turn.
	liveAgent bool
	// minJournal is when the store folds its journal; 0 is the daemon's own measure.
	minJournal int64
}

const task0 = "0001-sample"

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "explore-")
	if err != nil {
		dir = t.TempDir()
	} else {
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
	}
	top, err := filepath.EvalSymlinks(dir)
	must(t, err)
	w := &world{t: t, top: top, root: filepath.Join(top, "project"), seed: newAgents()}
	schema := contract.EmbeddedSchema()
	must(t, os.MkdirAll(filepath.Join(top, "home"), 0o755))
	for _, q := range schema.TaskQueues() {
		must(t, os.MkdirAll(filepath.Join(w.root, ".greatminds", string(q)), 0o755))
	}
	w.contract("")
	w.write(".gitignore", ".worktrees/\n.greatminds/\n")
	w.write("a.txt", "one\n")
	w.write("gone.txt", "gone\n")
	w.write("k.txt", "keep\n")
	w.git(w.root, "init", "-q", "-b", "main", "--template=")
	w.git(w.root, "add", "-A")
	w.git(w.root, "commit", "-q", "-m", "base")
	w.project, err = contract.OpenProject(w.root)
	must(t, err)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contract writes execution.yaml; more is added to it. The configured command leaves a line for
// each time that it is executed.
func (w *world) contract(more string) {
	w.t.Helper()
	w.write("coordination/execution.yaml", fmt.Sprintf(`version: 1
agents:
  fake: {transport: acp, argv: [agent], adapter_version: "1", harness_version: "1"}
bindings:
  review: {role: ARCHITECT-REVIEWER, agent: fake, scheduling: queue}
  dev: {role: DEVELOPER, agent: fake, scheduling: queue}
commands:
  check: {argv: [sh, -c, %q], roles: [ARCHITECT-REVIEWER, DEVELOPER], timeout_seconds: 60}
`, "echo executed; echo executed >> "+w.effects())+more)
}

func (w *world) effects() string { return filepath.Join(w.top, "effects") }

// executed is how often the configured command has been executed.
func (w *world) executed() int {
	data, err := os.ReadFile(w.effects())
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	must(w.t, err)
	return strings.Count(string(data), "\n")
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	must(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(w.t, os.WriteFile(path, []byte(text), 0o644))
}

func (w *world) read(name string) string {
	data, err := os.ReadFile(filepath.Join(w.root, name))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(data)
}

func (w *world) environ() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(w.top, "home"), "GIT_CONFIG_NOSYSTEM=1"}
}

func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	return w.gitAs([]string{"GIT_AUTHOR_NAME=A Person", "GIT_AUTHOR_EMAIL=person@example.invalid",
		"GIT_COMMITTER_NAME=A Person", "GIT_COMMITTER_EMAIL=person@example.invalid"}, dir, args...)
}

func (w *world) gitAs(who []string, dir string, args ...string) string {
	w.t.Helper()
	c := exec.Command("git", args...)
	c.Dir, c.Env = dir, append(w.environ(), who...)
	out, err := c.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// file puts a task of a kind into a queue; blocks may be empty.
func (w *world) file(queue, kind, blocks string) {
	w.t.Helper()
	if blocks == "" {
		blocks = "blocks: []\n"
	} else {
		blocks = "blocks:\n" + strings.ReplaceAll(blocks, "@BASE@", w.git(w.root, "rev-parse", "main"))
	}
	w.write(filepath.Join(".greatminds", queue, task0+".yaml"), fmt.Sprintf("id: %s\nstream: product\ntitle: Sample task\n"+
		"reporter: ARCHITECT-PLANNER\nopened_at: \"2026-01-05T09:00:00Z\"\npriority: normal\nkind: %s\nscope: backend\n%s", task0, kind, blocks))
}

func (w *world) worktree() string { return filepath.Join(w.root, ".worktrees", task0) }

func (w *world) now() time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(w.clock.Add(1)) * time.Millisecond)
}

// pass lets the clock go on to a time.
func (w *world) pass(to time.Time) {
	if span := to.Sub(w.now()); span > 0 {
		w.clock.Add(span.Milliseconds() + 1)
	}
}

// options are those of one process's life on the project.
func (w *world) options(seam durable.Seam) supervisor.Options {
	getenv := func(name string) string {
		for _, v := range w.environ() {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}
	return supervisor.Options{Project: w.project, Log: slog.New(slog.NewTextHandler(&w.log, nil)), Now: w.now,
		Getenv: getenv, Environ: w.environ(), Version: "0", CLI: []string{"greatminds"}, Seam: seam, RunTool: baretool.Run, MinJournal: w.minJournal}
}

func (w *world) capture() powercut.Tree {
	w.t.Helper()
	t, err := powercut.Capture(w.top)
	must(w.t, err)
	return t
}

// restore puts a tree back, and forgets what was logged before.
func (w *world) restore(t powercut.Tree) {
	w.t.Helper()
	must(w.t, t.Restore(w.top))
	w.log.Reset()
}

// rel is a path below top, as trees have it.
func (w *world) rel(path string) string {
	rel, err := filepath.Rel(w.top, path)
	must(w.t, err)
	return filepath.ToSlash(rel)
}
