package setup_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/setup"
)

func TestRefusalsOfGit(t *testing.T) {
	old := answers(map[string]string{"version": "git version 2.37.9 (Vendor-12)\n"})
	bare := answers(map[string]string{"rev-parse --is-inside-work-tree": "false\n"})
	none := setup.Git(func(context.Context, string, ...string) ([]byte, error) { return nil, fs.ErrNotExist })
	broken := setup.Git(func(_ context.Context, _ string, args ...string) ([]byte, error) {
		return nil, &setup.GitError{Args: args, Code: 128, Stderr: "fatal: detected dubious ownership"}
	})
	for _, c := range []struct {
		name  string
		git   setup.Git
		code  refusal.Code
		words []string
	}{
		{"older than 2.38", old, refusal.CodeGitTooOld, []string{"2.37.9", "2.38"}},
		{"in a bare repository", bare, refusal.CodeNotARepository, []string{"work tree"}},
		{"no git", none, refusal.CodeGitMissing, []string{"install git"}},
		{"a git that fails", broken, refusal.CodeGitFailed, []string{"dubious ownership"}},
		{"detached and no origin", answers(nil), refusal.CodeSetupDetached, []string{"detached", "git switch", "default_branch"}},
		{"outside any repository", realGit(t), refusal.CodeNotARepository, []string{"git init"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := realTemp(t)
			_, err := run(t, dir, withGit(c.git))
			r, _ := refusal.Find(err)
			if r == nil {
				t.Fatalf("got %v, want a refusal", err)
			}
			refused(t, err, c.code, r.Status(), c.words...)
			if got := picture(t, dir); len(got) != 1 {
				t.Fatalf("something was written: %v", got)
			}
		})
	}
	for _, text := range []string{"git version 2.38.0\n", "git version 2.39.5 (Apple Git-154)\n", "git version 3.0\n", "git version 2.45-rc1\n"} {
		if _, err := run(t, realTemp(t), withGit(answers(map[string]string{"version": text, "symbolic-ref --quiet HEAD": "refs/heads/x"}))); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "git version", "git version two", "hg 9.9"} {
		_, err := run(t, realTemp(t), withGit(answers(map[string]string{"version": text})))
		refused(t, err, refusal.CodeGitTooOld, refusal.Failed)
	}
}

func TestSetupOutsideAProjectsOwnFolder(t *testing.T) {
	dir := realTemp(t)
	inside := filepath.Join(dir, ".worktrees/0001-x")
	write(t, filepath.Join(inside, "x"), "")
	_, err := run(t, inside)
	refused(t, err, refusal.CodeSetupInsideWorktree, refusal.Invalid, "0001-x")
	_, err = run(t, filepath.Join(dir, "none"))
	refused(t, err, refusal.CodeProjectMissing, refusal.Failed, "none")
}

// The default branch comes from the repository itself; every state a repository can be in.
func TestDefaultBranchOfRealRepositories(t *testing.T) {
	recorded := func(t *testing.T, dir string) string {
		t.Helper()
		report := done(t, dir, withGit(realGit(t)))
		p, err := contract.OpenProject(dir)
		if err != nil {
			t.Fatal(err)
		}
		branch, err := contract.DefaultBranch(p, contract.EmbeddedSchema())
		if err != nil || branch != report.DefaultBranch {
			t.Fatalf("recorded %q (%v), reported %q", branch, err, report.DefaultBranch)
		}
		return branch
	}
	t.Run("no commit yet", func(t *testing.T) {
		if got := recorded(t, repository(t, "release/1.0")); got != "release/1.0" {
			t.Fatalf("got %q", got)
		}
	})
	origin := repository(t, "yes")
	git(t, origin, "commit", "-q", "--allow-empty", "-m", "first")
	git(t, origin, "branch", "work")
	t.Run("origin/HEAD before the branch that is checked out", func(t *testing.T) {
		clone := filepath.Join(realTemp(t), "clone")
		git(t, filepath.Dir(clone), "clone", "-q", origin, clone)
		git(t, clone, "switch", "-q", "work")
		if got := recorded(t, clone); got != "yes" {
			t.Fatalf("got %q", got)
		}
		git(t, clone, "switch", "-q", "--detach")
		if got := recorded(t, clone); got != "yes" {
			t.Fatalf("a later setup on a detached HEAD: got %q", got)
		}
	})
	t.Run("the branch at setup, whatever is checked out later", func(t *testing.T) {
		dir := repository(t, "master")
		git(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
		if got := recorded(t, dir); got != "master" {
			t.Fatalf("got %q", got)
		}
		git(t, dir, "switch", "-q", "-c", "wip")
		if got := recorded(t, dir); got != "master" {
			t.Fatalf("got %q", got)
		}
	})
	t.Run("detached", func(t *testing.T) {
		dir := repository(t, "main")
		git(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
		git(t, dir, "switch", "-q", "--detach")
		_, err := run(t, dir, withGit(realGit(t)))
		refused(t, err, refusal.CodeSetupDetached, refusal.Invalid, dir)
		if _, err := os.Lstat(filepath.Join(dir, ".greatminds")); err == nil {
			t.Fatal("something was created")
		}
	})
}

func TestBranchIsRecordedBesideWhatIsThere(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "worktrees:\n  default_branch: trunk\n"},
		{"comments", "# ours\n", "# ours\nworktrees:\n  default_branch: trunk\n"},
		{"other tools", "report:\n  mode: gh # c\nx: ~", "report:\n  mode: gh # c\nx: ~\nworktrees:\n  default_branch: trunk\n"},
		{"a section", "worktrees: # c\n    # d\n    base_path: wt\nz: 1\n", "worktrees: # c\n    # d\n    default_branch: trunk\n    base_path: wt\nz: 1\n"},
		{"a flow section", "worktrees: {base_path: wt}\n", "worktrees: {default_branch: trunk, base_path: wt}\n"},
		{"an empty section", "worktrees: {}\n", "worktrees: {default_branch: trunk}\n"},
		{"byte order mark", "\ufeffworktrees: {base_path: wt}\n", "\ufeffworktrees: {default_branch: trunk, base_path: wt}\n"},
		{"recorded already", "worktrees: {default_branch: dev}\n", "worktrees: {default_branch: dev}\n"},
	} {
		for _, name := range []string{"coordination/coord.yaml", "coord.yaml"} {
			t.Run(c.name+" in "+name, func(t *testing.T) {
				dir := realTemp(t)
				path := filepath.Join(dir, name)
				write(t, path, c.text)
				report := done(t, dir, withGit(onBranch("trunk")))
				got := read(t, path)
				if !strings.HasSuffix(got, c.want) || len(c.text) > 0 && got != c.want {
					t.Fatalf("got %q, want %q", got, c.want)
				}
				p, err := contract.OpenProject(dir)
				if err != nil {
					t.Fatal(err)
				}
				policy, err := contract.WorktreePolicy(p, contract.EmbeddedSchema())
				if err != nil || policy.DefaultBranch != report.DefaultBranch {
					t.Fatalf("policy %+v (%v), report %+v", policy, err, report)
				}
				if other := filepath.Join(dir, "coordination/coord.yaml"); other != path {
					if _, err := os.Lstat(other); err == nil {
						t.Fatal("a second file now hides the first")
					}
				}
				done(t, dir, withGit(onBranch("elsewhere")))
				if read(t, path) != got {
					t.Fatalf("a second setup changed it to %q", read(t, path))
				}
			})
		}
	}
}

func TestOverridesThatCannotBeExtended(t *testing.T) {
	for _, c := range []struct {
		text string
		code refusal.Code
	}{
		{"{a: 1}\n", refusal.CodeSetupEdit},
		{"worktrees:\n  base_path: wt\n   x: 1\n", refusal.CodeCoordInvalid},
		{"worktrees:\n  base_pth: wt\n", refusal.CodeCoordInvalid},
		{"worktrees:\n", refusal.CodeSetupEdit},
		{"- a\n", refusal.CodeCoordInvalid},
	} {
		dir := realTemp(t)
		write(t, filepath.Join(dir, "coordination/coord.yaml"), c.text)
		before := picture(t, dir)
		_, err := run(t, dir)
		refused(t, err, c.code, refusal.Invalid, "coord.yaml")
		if d := cmp.Diff(before, picture(t, dir)); d != "" {
			t.Fatalf("%q: something was written:\n%s", c.text, d)
		}
	}
}

// Branch names that a reader of YAML could take for something else are quoted.
func TestOddBranchNamesSurvive(t *testing.T) {
	for _, branch := range []string{"yes", "1.0", "010", "null", "feature/x#y", "it's", "ümlaut", "a", "true"} {
		dir := realTemp(t)
		if got := done(t, dir, withGit(onBranch(branch))).DefaultBranch; got != branch {
			t.Errorf("%q became %q", branch, got)
		}
	}
}

func TestIgnoreEntries(t *testing.T) {
	for _, c := range []struct{ name, before, want string }{
		{"there already", "/.worktrees/\nx\n/.greatminds/", "/.worktrees/\nx\n/.greatminds/"},
		{"one of two", "/.worktrees/\n", "/.worktrees/\n/.greatminds/\n"},
		{"alike is not equal", "/.greatminds\n #/.worktrees/\n", "/.greatminds\n #/.worktrees/\n/.greatminds/\n/.worktrees/\n"},
		{"carriage returns", "a\r\n/.greatminds/\r\n", "a\r\n/.greatminds/\r\n/.worktrees/\n"},
	} {
		dir := realTemp(t)
		path := filepath.Join(dir, ".gitignore")
		write(t, path, c.before)
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		done(t, dir)
		done(t, dir)
		if got := read(t, path); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode changed to %v (%v)", c.name, info.Mode(), err)
		}
	}
	outside := filepath.Join(realTemp(t), "shared-ignore")
	write(t, outside, "x\n")
	dir := realTemp(t)
	if err := os.Symlink(outside, filepath.Join(dir, ".gitignore")); err != nil {
		t.Fatal(err)
	}
	_, err := run(t, dir)
	refused(t, err, refusal.CodeSetupEdit, refusal.Invalid, ".gitignore", "/.worktrees/")
	if read(t, outside) != "x\n" {
		t.Fatal("a file outside the project was changed")
	}
}
