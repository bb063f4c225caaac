package setup_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"greatminds/internal/durable"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/setup"
)

func TestMain(m *testing.M) {
	execgate.Main()
	goleak.VerifyTestMain(m)
}

// repository is an empty git repository on the branch.
func repository(t *testing.T, branch string) string {
	t.Helper()
	dir := realTemp(t)
	git(t, dir, "init", "-q", "-b", branch)
	return dir
}

// realTemp is a temporary folder by its real name.
func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := realGit(t)(t.Context(), dir, append([]string{"-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// realGit is git with a home of its own, so that no setting of this machine is read.
func realGit(t *testing.T) setup.Git {
	t.Helper()
	return setup.GitTool([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "XDG_CONFIG_HOME=/nonexistent"})
}

// onBranch is a git that answers like one in a repository with this branch checked out.
func onBranch(branch string) setup.Git {
	return answers(map[string]string{"symbolic-ref --quiet HEAD": "refs/heads/" + branch + "\n"})
}

// answers is a git of version 2.40 inside a work tree; calls it has no answer for end with 1.
func answers(known map[string]string) setup.Git {
	return func(_ context.Context, _ string, args ...string) ([]byte, error) {
		call := strings.Join(args, " ")
		if out, ok := known[call]; ok {
			return []byte(out), nil
		}
		switch call {
		case "version":
			return []byte("git version 2.40.1\n"), nil
		case "rev-parse --is-inside-work-tree":
			return []byte("true\n"), nil
		}
		return nil, &setup.GitError{Args: args, Code: 1}
	}
}

// run is plain setup with a git on branch main.
func run(t *testing.T, dir string, change ...func(*setup.Request)) (setup.Report, error) {
	t.Helper()
	q := setup.Request{ProjectDir: dir, Disk: durable.NewDisk(nil), Git: onBranch("main")}
	for _, c := range change {
		c(&q)
	}
	return setup.Run(t.Context(), q)
}

func withContract(path string) func(*setup.Request) {
	return func(q *setup.Request) { q.ExecutionConfig = path }
}

func withGit(g setup.Git) func(*setup.Request) { return func(q *setup.Request) { q.Git = g } }

// done is run for a setup that must succeed.
func done(t *testing.T, dir string, change ...func(*setup.Request)) setup.Report {
	t.Helper()
	report, err := run(t, dir, change...)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// picture is everything below a folder: mode, and the contents of files.
func picture(t *testing.T, dir string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(data)
		}
		name, err := filepath.Rel(dir, path)
		seen[name] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// refused checks the code, the exit status and that what and remedy hold these words.
func refused(t *testing.T, err error, code refusal.Code, status refusal.Status, words ...string) {
	t.Helper()
	r, ok := refusal.Find(err)
	if !ok {
		t.Fatalf("got %v, want a refusal with code %s", err, code)
	}
	if r.Code != code || r.Status() != status {
		t.Fatalf("got code %s, status %d (%v), want %s, %d", r.Code, r.Status(), r, code, status)
	}
	for _, w := range words {
		if !strings.Contains(r.Error()+"\n"+r.Remedy, w) {
			t.Errorf("refusal %q with remedy %q does not say %q", r.Error(), r.Remedy, w)
		}
	}
}
