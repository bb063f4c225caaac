package sourceid_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/internal/sourceid"
)

func TestMain(m *testing.M) {
	execgate.Main()
	goleak.VerifyTestMain(m)
}

func git(ctx context.Context, dir string, args ...string) ([]byte, int, error) {
	out, err := execgate.RunTool(ctx, execgate.Tool{
		Argv: append([]string{"git"}, args...), Dir: dir,
		Env: execgate.GitEnv([]string{
			"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent",
		}),
	})
	return out.Stdout, out.Code, err
}

// lab is a source tree under test.
type lab struct {
	t   *testing.T
	dir string
}

// plain is a tree without Git, repository one with two tracked files and an ignore rule.
func plain(t *testing.T) *lab {
	l := &lab{t, t.TempDir()}
	l.write("a.txt", "one")
	l.write("sub/b.sh", "two")
	return l
}

func repository(t *testing.T) *lab {
	l := plain(t)
	l.write(".gitignore", "*.log\nbuild/\n")
	l.git("init", "-q", "-b", "main")
	l.commit()
	return l
}

func (l *lab) write(name, text string) {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	l.must(os.MkdirAll(filepath.Dir(path), 0o755))
	l.must(os.WriteFile(path, []byte(text), 0o644))
}

func (l *lab) commit() {
	l.t.Helper()
	l.git("add", "-A")
	l.git("-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-q", "--allow-empty", "-m", "m")
}

func (l *lab) git(args ...string) {
	l.t.Helper()
	if out, code, err := git(l.t.Context(), l.dir, args...); err != nil || code != 0 {
		l.t.Fatalf("git %v: %d %v %s", args, code, err, out)
	}
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) identity(exclude ...string) sourceid.Source {
	l.t.Helper()
	s, err := sourceid.Tree(l.t.Context(), l.dir, git, exclude)
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// E-095
func TestEachChangeAloneChangesTheIdentity(t *testing.T) {
	path := func(l *lab, name string) string { return filepath.Join(l.dir, name) }
	for _, c := range []struct {
		name   string
		change func(l *lab)
	}{
		{"contents of a tracked file", func(l *lab) { l.write("a.txt", "ONE") }},
		{"permissions", func(l *lab) { l.must(os.Chmod(path(l, "sub/b.sh"), 0o755)) }},
		{"permissions that Git does not keep", func(l *lab) { l.must(os.Chmod(path(l, "a.txt"), 0o640)) }},
		{"a new file", func(l *lab) { l.write("new", "") }},
		{"a removed file", func(l *lab) { l.must(os.Remove(path(l, "a.txt"))) }},
		{"another name", func(l *lab) { l.must(os.Rename(path(l, "a.txt"), path(l, "c.txt"))) }},
		{"a new link", func(l *lab) { l.must(os.Symlink("a.txt", path(l, "link"))) }},
		{"a link to nothing", func(l *lab) { l.must(os.Symlink("nothing", path(l, "link"))) }},
		{"a file in place of a folder", func(l *lab) {
			l.must(os.RemoveAll(path(l, "sub")))
			l.write("sub", "two")
		}},
	} {
		for kind, make := range map[string]func(*testing.T) *lab{"git": repository, "plain": plain} {
			t.Run(c.name+" "+kind, func(t *testing.T) {
				l := make(t)
				before := l.identity()
				if again := l.identity(); again != before {
					t.Fatalf("two looks differ: %v %v", before, again)
				}
				c.change(l)
				if after := l.identity(); after.SHA256 == before.SHA256 || after.Commit != before.Commit {
					t.Errorf("got %v after %v", after, before)
				}
			})
		}
	}
}

// E-095
func TestLinksInsideTheTreeCountWithTargetAndContents(t *testing.T) {
	l := repository(t)
	link := filepath.Join(l.dir, "link")
	l.write("build/out", "generated")
	l.write("build/same", "generated")
	l.must(os.Symlink("build/out", link))
	first := l.identity()
	l.must(os.Remove(link))
	l.must(os.Symlink("build/same", link))
	second := l.identity()
	l.write("build/same", "changed")
	third := l.identity()
	if first == second || second == third {
		t.Errorf("another target: %v %v; other contents behind it: %v", first, second, third)
	}
	l.must(os.Remove(link))
	l.must(os.Symlink(filepath.Join(l.dir, "a.txt"), link)) // absolute, but inside
	l.identity()
}

func TestTheCommitIsPartOfTheIdentity(t *testing.T) {
	l := repository(t)
	before := l.identity()
	l.commit()
	after := l.identity()
	if before.Commit == "" || before.Commit == after.Commit || before.SHA256 != after.SHA256 {
		t.Errorf("got %v after %v, want another commit and the same files", after, before)
	}
	fresh := plain(t)
	fresh.git("init", "-q")
	if s := fresh.identity(); s.Commit != "" || s.SHA256 == "" {
		t.Errorf("before the first commit got %v", s)
	}
}

// E-096
func TestMetadataIsOutside(t *testing.T) {
	l := repository(t)
	l.write(".greatminds/.runtime/state.json", "1")
	before := l.identity(".greatminds", ".worktrees")
	l.write(".greatminds/.runtime/state.json", "2")
	l.write(".greatminds/feature_dev/t.yaml", "x")
	l.write(".worktrees/t/a.txt", "x")
	l.must(os.Chtimes(filepath.Join(l.dir, "a.txt"), time.Unix(1, 0), time.Unix(1, 0)))
	l.git("update-index", "--refresh")
	l.write(".git/info/anything", "x")
	if after := l.identity(".greatminds", ".worktrees"); after != before {
		t.Errorf("got %v after %v", after, before)
	}
	l.write(".greatminds-notes", "x")
	if after := l.identity(".greatminds", ".worktrees"); after == before {
		t.Error("a file whose name only begins like an excluded folder is left out")
	}
}

// E-097
func TestWithoutGitTheFilesAreScanned(t *testing.T) {
	l := plain(t)
	before := l.identity()
	if before.Commit != "" {
		t.Errorf("got commit %s", before.Commit)
	}
	l.write("build/out.log", "no ignore rules here")
	if l.identity() == before {
		t.Error("a file was left out")
	}
	called := func(context.Context, string, ...string) ([]byte, int, error) {
		return nil, 0, errors.New("git was called")
	}
	if _, err := sourceid.Tree(t.Context(), l.dir, called, nil); err != nil {
		t.Error(err)
	}
}

// E-098
func TestLinksOutOfTheTreeAndToFoldersAreRefused(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"absolute": outside, "relative": "",
		"outside and missing": "/no/such/file", "upwards and missing": "../../../missing",
		"folder": "sub", "the tree itself": ".", "device": "/dev/null", "itself": "link",
	} {
		for kind, make := range map[string]func(*testing.T) *lab{"git": repository, "plain": plain} {
			t.Run(name+" "+kind, func(t *testing.T) {
				l, target := make(t), target
				if target == "" {
					var err error
					target, err = filepath.Rel(l.dir, outside)
					l.must(err)
				}
				l.must(os.Symlink(target, filepath.Join(l.dir, "link")))
				s, err := sourceid.Tree(t.Context(), l.dir, git, nil)
				r, ok := refusal.Find(err)
				if !ok || r.Code != refusal.CodeSourceTree || !strings.Contains(r.What, "link") {
					t.Errorf("got %v, %v, want a refusal that names the link", s, err)
				}
			})
		}
	}
}

// E-099
func TestGitsIgnoreRulesDecide(t *testing.T) {
	l := repository(t)
	before := l.identity()
	l.write("x.log", "1")
	l.write("build/deep/out", "1")
	if after := l.identity(); after != before {
		t.Errorf("ignored files changed %v to %v", before, after)
	}
	l.write("result.json", "{}")
	if after := l.identity(); after == before {
		t.Error("a file that is not ignored is left out")
	}
}

func TestOddNames(t *testing.T) {
	l := repository(t)
	before := l.identity()
	for _, name := range []string{"with space", "line\nend", "quote\"", "\xff\xfe", "-dash", "ümlaut"} {
		l.write(name, "x")
		after := l.identity()
		if after == before {
			t.Errorf("%q does not count", name)
		}
		before = after
	}
}

// Names and contents cannot be shifted against each other: different trees have different
// identities.
func TestDifferentTreesDiffer(t *testing.T) {
	seen := map[string]string{}
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		files := rapid.MapOfN(rapid.StringMatching(`[a-c \n]{1,3}`), rapid.StringMatching(`[a-c]{0,2}`), 0, 3).Draw(r, "files")
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				r.Fatal(err)
			}
		}
		s, err := sourceid.Tree(t.Context(), dir, git, nil)
		if err != nil {
			r.Fatal(err)
		}
		tree := fmt.Sprintf("%q", files)
		if other, known := seen[s.SHA256]; known && other != tree {
			r.Fatalf("%s and %s have the same identity", tree, other)
		}
		seen[s.SHA256] = tree
	})
}

func TestRepositoriesInsideTheTree(t *testing.T) {
	l := repository(t)
	inner := &lab{t, filepath.Join(l.dir, "vendored")}
	inner.write("lib.c", "1")
	inner.git("init", "-q", "-b", "main")
	inner.commit()
	before := l.identity()
	inner.write("lib.c", "2")
	edited := l.identity()
	inner.commit()
	if committed := l.identity(); before == edited || edited == committed {
		t.Errorf("an edit inside: %v %v, a commit inside: %v", before, edited, committed)
	}
	// Its files are not those of the outer one, so nothing of it is left out by the outer's rules.
	inner.write("x.log", "1")
	if got := l.identity(); got == edited {
		t.Error("the ignore rules of the outer repository were applied inside")
	}
}

func TestAFolderThatTheRepositoryIgnoresIsScanned(t *testing.T) {
	l := repository(t)
	l.write("build/project/a.txt", "1")
	project := &lab{t, filepath.Join(l.dir, "build/project")}
	before := project.identity()
	project.write("a.txt", "2")
	if after := project.identity(); after == before || after.Commit != "" {
		t.Errorf("got %v after %v", after, before)
	}
}

func TestABrokenRepositoryIsAnErrorNotAPlainFolder(t *testing.T) {
	l := plain(t)
	l.write(".git", "gitdir: /no/such/place\n")
	_, err := sourceid.Tree(t.Context(), l.dir, git, nil)
	if r, ok := refusal.Find(err); !ok || r.Code != refusal.CodeSourceTree {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestWhatCannotBeReadHasNoIdentity(t *testing.T) {
	l := plain(t)
	if _, err := sourceid.Tree(t.Context(), filepath.Join(l.dir, "missing"), git, nil); err == nil {
		t.Error("a missing folder has an identity")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sourceid.Tree(ctx, l.dir, git, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context got %v", err)
	}
	if os.Getuid() != 0 {
		l.must(os.Chmod(filepath.Join(l.dir, "a.txt"), 0))
		if _, err := sourceid.Tree(t.Context(), l.dir, git, nil); err == nil {
			t.Error("an unreadable file has an identity")
		}
	}
}

func TestAPipeInAFilesPlaceDoesNotHang(t *testing.T) {
	l := repository(t)
	l.must(os.Remove(filepath.Join(l.dir, "a.txt")))
	l.must(syscall.Mkfifo(filepath.Join(l.dir, "a.txt"), 0o644))
	if s, err := sourceid.Tree(t.Context(), l.dir, git, nil); err == nil {
		t.Errorf("got %v", s)
	}
}

// E-102
func TestProgramFollowsTheEnvironmentAndTheContents(t *testing.T) {
	l := plain(t)
	for _, name := range []string{"bin/tool", "other/tool"} {
		l.write(name, "#!/bin/sh\n# "+name+"\n")
		l.must(os.Chmod(filepath.Join(l.dir, name), 0o755))
	}
	l.must(os.Symlink("tool", filepath.Join(l.dir, "bin/link")))
	identity := func(name string, path string) sourceid.Executable {
		t.Helper()
		p, err := sourceid.Program(t.Context(), name, l.dir, []string{"PATH=" + path})
		l.must(err)
		return p
	}
	bin, other := filepath.Join(l.dir, "bin"), filepath.Join(l.dir, "other")
	a, b, link := identity("tool", bin+":"+other), identity("tool", other+":"+bin), identity("link", bin)
	if a.Path != bin+"/tool" || b.Path != other+"/tool" || a.SHA256 == b.SHA256 {
		t.Errorf("got %v and %v", a, b)
	}
	if link.Path != bin+"/link" || link.SHA256 != a.SHA256 {
		t.Errorf("a link: got %v, want its own path and the hash of %v", link, a)
	}
	l.write("bin/tool", "#!/bin/sh\nchanged\n")
	if after := identity("link", bin); after.SHA256 == link.SHA256 {
		t.Error("changed contents keep the identity")
	}
	_, err := sourceid.Program(t.Context(), "nothing", l.dir, []string{"PATH=" + bin})
	var fault *execgate.ExecError
	if !errors.As(err, &fault) || fault.Errno != syscall.ENOENT {
		t.Errorf("got %v, want ENOENT", err)
	}
}

// E-093
func TestEnvironmentHMAC(t *testing.T) {
	key := []byte("0123456789abcdef0123456789abcdef")
	base := sourceid.EnvironmentHMAC(key, []string{"A=1", "B=2"})
	if got := sourceid.EnvironmentHMAC(key, []string{"B=2", "A=1"}); got != base {
		t.Error("the order counts")
	}
	for name, got := range map[string]string{
		"another value":  sourceid.EnvironmentHMAC(key, []string{"A=1", "B=3"}),
		"one more":       sourceid.EnvironmentHMAC(key, []string{"A=1", "B=2", "C="}),
		"shifted":        sourceid.EnvironmentHMAC(key, []string{"A=1B=2"}),
		"another key":    sourceid.EnvironmentHMAC(key[1:], []string{"A=1", "B=2"}),
		"no environment": sourceid.EnvironmentHMAC(key, nil),
	} {
		if got == base {
			t.Errorf("%s keeps the HMAC", name)
		}
	}
}
