package contract_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func mkdir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestProjectIsFoundFromWithin(t *testing.T) {
	world := realTemp(t)
	set, clone, old, none := filepath.Join(world, "set"), filepath.Join(world, "clone"), filepath.Join(world, "old"), mkdir(t, world, "none")
	mkdir(t, set, ".greatminds")
	mkdir(t, set, "sub/deep")
	mkdir(t, set, ".worktrees/0001-x/coordination")
	mkdir(t, set, ".worktrees/0001-x/src")
	mkdir(t, clone, "coordination")
	mkdir(t, old, "coordination/feature_dev")
	link := filepath.Join(world, "link")
	if err := os.Symlink(set, link); err != nil {
		t.Fatal(err)
	}
	runtime := func(root string) contract.Project {
		return contract.Project{Root: root, Runtime: filepath.Join(root, ".greatminds")}
	}
	for _, c := range []struct {
		name, start, variable string
		want                  contract.Project
	}{
		{"its own folder", set, "", runtime(set)},
		{"a folder below", filepath.Join(set, "sub/deep"), "", runtime(set)},
		{"a worktree is a copy and no project", filepath.Join(set, ".worktrees/0001-x/src"), "", runtime(set)},
		{"through a link", filepath.Join(link, "sub"), "", runtime(set)},
		{"a fresh clone has its runtime to be", clone, "", runtime(clone)},
		{"the old layout", old, "", contract.Project{Root: old, Runtime: filepath.Join(old, "coordination")}},
		{"the variable wins", old, set, runtime(set)},
		{"a variable that names no project", set, none, runtime(set)},
		{"a variable that names nothing", set, filepath.Join(world, "gone"), runtime(set)},
		{"a variable that names a worktree", old, filepath.Join(set, ".worktrees/0001-x"), contract.Project{Root: old, Runtime: filepath.Join(old, "coordination")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := contract.FindProject(c.start, func(name string) string {
				if name == "GREATMINDS_PROJECT_DIR" {
					return c.variable
				}
				return ""
			})
			if d := cmp.Diff(c.want, got); err != nil || d != "" {
				t.Fatalf("%v (-want +got):\n%s", err, d)
			}
		})
	}
	nothing := func(string) string { return "" }
	for _, start := range []string{none, filepath.Join(world, "gone")} {
		_, err := contract.FindProject(start, nothing)
		refusedWith(t, err, refusal.CodeProjectMissing, "no greatminds project found from "+start, "greatminds setup")
		_, err = contract.OpenProject(start)
		refusedWith(t, err, refusal.CodeProjectMissing, start)
	}
	if _, err := contract.OpenProject(filepath.Join(set, "sub")); err == nil {
		t.Error("OpenProject searched upward")
	}
	if got, err := contract.OpenProject(link); err != nil || got != runtime(set) {
		t.Errorf("OpenProject through a link: %v %v", got, err)
	}
	if got, err := contract.ProjectAt(none); err != nil || got != runtime(none) {
		t.Errorf("ProjectAt: %v %v", got, err)
	}
}

func TestPlacesOfAProject(t *testing.T) {
	p := contract.Project{Root: "/p", Runtime: "/p/.greatminds"}
	for got, want := range map[string]string{
		p.ExecutionPath(): "/p/coordination/execution.yaml", p.CoordPath(): "/p/coordination/coord.yaml", p.StoreDir(): "/p/.greatminds/.runtime",
		p.QueueDir("feature_dev"): "/p/.greatminds/feature_dev", p.WorktreesDir(): "/p/.worktrees", p.SchemaMirrorPath(): "/p/.greatminds/schema.yaml",
		p.SocketPath(): "/p/.greatminds/.runtime/coordd.sock",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestProjectOverridesItsWorktrees(t *testing.T) {
	s := contract.EmbeddedSchema()
	policy := func(t *testing.T, name, text string) (contract.Worktrees, error) {
		t.Helper()
		p := contract.Project{Root: realTemp(t)}
		if name != "" {
			write(t, filepath.Join(p.Root, name), text)
		}
		branch, err := contract.DefaultBranch(p, s)
		got, again := contract.WorktreePolicy(p, s)
		if branch != got.DefaultBranch || (err == nil) != (again == nil) {
			t.Errorf("DefaultBranch says %s (%v), the policy %s (%v)", branch, err, got.DefaultBranch, again)
		}
		return got, again
	}
	every := "worktrees:\n  base_path: wt\n  branch_prefix: t-\n  default_branch: trunk\n  merge_strategy: --no-ff\n  cleanup_on_archive: false\n  cleanup_on_verified: false\n  conflict_handback_to: feature_ui_dev\n  required_for_task_kinds: [bugfix]\nother: ~\n"
	all := contract.Worktrees{BasePath: "wt", BranchPrefix: "t-", DefaultBranch: "trunk", MergeStrategy: "--no-ff", ConflictHandbackTo: "feature_ui_dev", RequiredForTaskKinds: []string{"bugfix"}}
	trunk := s.Worktrees
	trunk.DefaultBranch = "trunk"
	for _, c := range []struct {
		name, file, text string
		want             contract.Worktrees
	}{
		{"no file", "", "", s.Worktrees},
		{"every field", "coordination/coord.yaml", every, all},
		{"one field", "coordination/coord.yaml", "worktrees: {default_branch: trunk}\n", trunk},
		{"at the root", "coord.yaml", "worktrees: {default_branch: trunk}\n", trunk},
		{"an empty file", "coordination/coord.yaml", "", s.Worktrees},
		{"comments", "coordination/coord.yaml", "# c\n", s.Worktrees},
		{"others' members", "coordination/coord.yaml", "report: {mode: gh}\nworktrees:\n", s.Worktrees},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := policy(t, c.file, c.text)
			if d := cmp.Diff(c.want, got); err != nil || d != "" {
				t.Fatalf("%v (-want +got):\n%s", err, d)
			}
		})
	}
	for text, want := range map[string]string{
		"worktrees: {default_brnch: x}":                     `coord.yaml:1:13: unknown field "default_brnch" in worktrees; did you mean default_branch?`,
		"worktrees: {default_branch: -f}":                   "is no name of a branch",
		"worktrees: {default_branch: a..b}":                 "is no name of a branch",
		"worktrees: {default_branch: 1.0}":                  `quote it: "1.0"`,
		"worktrees: {default_branch: a, default_branch: b}": "is repeated",
		"worktrees: {conflict_handback_to: verified}":       "is no queue that works on tasks",
		"worktrees: {conflict_handback_to: nowhere}":        "is no queue that works on tasks",
		"worktrees: {required_for_task_kinds: [chore]}":     "which is no kind of task",
		"worktrees: {merge_strategy: --squash}":             "write one of --no-ff",
		"worktrees: []":                                     "worktrees is a list, but must be a mapping",
		"- a":                                               "but must be a mapping",
		"{":                                                 "not valid YAML",
	} {
		got, err := policy(t, "coordination/coord.yaml", text)
		refusedWith(t, err, refusal.CodeCoordInvalid, want)
		if d := cmp.Diff(s.Worktrees, got); d != "" {
			t.Errorf("%s: half of it is taken:\n%s", text, d)
		}
	}
	odd := contract.Project{Root: realTemp(t)}
	mkdir(t, odd.CoordPath())
	_, err := contract.WorktreePolicy(odd, s)
	refusedWith(t, err, refusal.CodeContractUnreadable, "coord.yaml")
}
