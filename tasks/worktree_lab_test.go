package tasks_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"greatminds/contract"
	"greatminds/fixtures/baretool"
	"greatminds/internal/durable"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

// lab is one real repository with a project in it, and git settings of its own.
type lab struct {
	t       *testing.T
	root    string // the main checkout, and the project
	home    string
	git     *tasks.Git
	project contract.Project
	policy  contract.Worktrees
	id      tasks.ID
}

const labTask = tasks.ID("0001-sample")

// newLab makes a repository on the branch, with two files and a commit.
func newLab(t *testing.T, branch string) *lab {
	t.Helper()
	top := t.TempDir()
	l := &lab{t: t, root: filepath.Join(top, "project"), home: filepath.Join(top, "home"), id: labTask}
	for _, dir := range []string{l.root, l.home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l.git = &tasks.Git{Env: l.env(), Disk: durable.NewDisk(nil), Scratch: filepath.Join(top, "scratch"), Run: baretool.Run}
	l.project = contract.Project{Root: l.root, Runtime: filepath.Join(l.root, ".greatminds")}
	l.policy = contract.Worktrees{BasePath: ".worktrees", BranchPrefix: "task/", DefaultBranch: branch, MergeStrategy: "--no-ff",
		CleanupOnArchive: true, CleanupOnVerified: true, ConflictHandbackTo: "feature_dev",
		RequiredForTaskKinds: []string{"feature", "bugfix", "ops", "docs", "release"}}
	l.run(top, "init", "-q", "-b", branch, l.root)
	l.write("a.txt", "one\n")
	l.write("dir/b.txt", "two\n")
	l.write("keep.txt", "keep\n")
	l.write(".gitignore", ".worktrees/\n.greatminds/\nignored.txt\n")
	l.commit(l.root, "base")
	return l
}

func (l *lab) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.home, "GIT_CONFIG_NOSYSTEM=1"}
}

// run calls git as a person would.
func (l *lab) run(dir string, args ...string) string {
	l.t.Helper()
	out, err := l.try(dir, args...)
	if err != nil {
		l.t.Fatalf("git %v in %s: %v\n%s", args, dir, err, out)
	}
	return out
}

func (l *lab) try(dir string, args ...string) (string, error) {
	c := exec.Command("git", args...)
	c.Dir, c.Env = dir, append(l.env(), "GIT_AUTHOR_NAME=A Person", "GIT_AUTHOR_EMAIL=person@example.invalid",
		"GIT_COMMITTER_NAME=A Person", "GIT_COMMITTER_EMAIL=person@example.invalid")
	out, err := c.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

func (l *lab) commit(dir, subject string) string {
	l.t.Helper()
	l.run(dir, "add", "-A")
	l.run(dir, "commit", "-q", "--allow-empty", "-m", subject)
	return l.run(dir, "rev-parse", "HEAD")
}

func (l *lab) write(name, text string) { l.t.Helper(); l.writeIn(l.root, name, text) }

func (l *lab) writeIn(dir, name, text string) {
	l.t.Helper()
	full := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) read(dir, name string) string {
	l.t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(data)
}

// executable puts a program in place, such as a hook.
func (l *lab) executable(path, text string) {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) hook(name, script string) {
	l.t.Helper()
	l.executable(filepath.Join(l.root, ".git/hooks", name), "#!/bin/sh\n"+script)
}

func (l *lab) task(kind string, blocks ...tasks.Block) *tasks.Task {
	return &tasks.Task{Ref: tasks.Ref{ID: l.id, Queue: "feature_dev"}, Kind: kind, Blocks: blocks}
}

func (l *lab) prepare() (tasks.Workspace, error) { return l.prepareFor(l.task("feature"), ".") }

func (l *lab) prepareFor(task *tasks.Task, workspace string) (tasks.Workspace, error) {
	return tasks.PrepareWorktree(l.ctx(), tasks.WorktreeRequest{Git: l.git, Project: l.project, Policy: l.policy, Task: task, Workspace: workspace})
}

// worktree prepares the task's worktree and returns its path.
func (l *lab) worktree() string {
	l.t.Helper()
	ws, err := l.prepare()
	if err != nil {
		l.t.Fatalf("prepare: %v", err)
	}
	return ws.Path
}

func (l *lab) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	l.t.Cleanup(cancel)
	return ctx
}

var labTime = time.Unix(1_800_000_000, 0)

func (l *lab) compute() (tasks.MergePlan, error) {
	return tasks.ComputeMerge(l.ctx(), tasks.MergeRequest{Git: l.git, Project: l.project, Policy: l.policy, Task: l.id,
		Message: "review(0001-sample): Sample task", When: labTime})
}

func (l *lab) mustCompute() tasks.MergePlan {
	l.t.Helper()
	m, err := l.compute()
	if err != nil {
		l.t.Fatalf("compute: %v", err)
	}
	return m
}

// merge computes, checks and performs, as an application does.
func (l *lab) merge() (tasks.MergePlan, error) {
	l.t.Helper()
	m := l.mustCompute()
	overlaps, err := m.CheckCheckouts(l.ctx())
	if err != nil {
		return m, err
	}
	if len(overlaps) > 0 {
		return m, tasks.OverlapRefusal(m.Branch, overlaps)
	}
	return m, m.Perform(l.ctx(), false)
}

// head is the commit of a branch or ref.
func (l *lab) head(ref string) string { l.t.Helper(); return l.run(l.root, "rev-parse", ref) }

// picture is everything that a refused call must leave as it is: refs, the state of a checkout
// and the bytes of its files.
func (l *lab) picture(dirs ...string) string {
	l.t.Helper()
	var b strings.Builder
	b.WriteString(l.run(l.root, "for-each-ref"))
	for _, dir := range dirs {
		b.WriteString("\n== " + dir + "\n" + l.run(dir, "symbolic-ref", "HEAD") + "\n" + l.run(dir, "status", "--porcelain", "--ignored") + "\n")
		files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
		if err != nil {
			l.t.Fatal(err)
		}
		for _, f := range files {
			b.WriteString(f + ": " + l.read(filepath.Dir(f), filepath.Base(f)))
		}
	}
	return b.String()
}

// wantCode checks that err is a refusal of a code that names every one of the words.
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
		if !strings.Contains(r.What+"\n"+r.Remedy, w) {
			t.Errorf("%s: %q does not name %q", code, r.What, w)
		}
	}
}
