package tasks_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"greatminds/tasks"
)

func TestFileEvidenceIsWhatGitKnows(t *testing.T) {
	l := newLab(t, "main")
	path := l.worktree()
	l.writeIn(path, "committed.txt", "work\n")
	l.writeIn(path, "keep.txt", "work\n")
	l.commit(path, "work")
	l.writeIn(path, "a.txt", "changed\n")
	l.writeIn(path, "new dir/f", "untracked\n")
	l.writeIn(path, "staged.txt", "added\n")
	l.run(path, "add", "staged.txt")
	l.writeIn(path, "ignored.txt", "ignored\n")
	l.run(path, "rm", "-q", "dir/b.txt")
	want := map[string]bool{"a.txt": true, "new dir/f": true, "new dir": true, "new dir/": true, "staged.txt": true, "dir/b.txt": true,
		"committed.txt": true, "keep.txt": true, ".gitignore": false, "ignored.txt": false, "none": false, "a.tx": false}
	var names []string
	for name := range want {
		names = append(names, name)
	}
	facts, err := l.git.FileEvidence(l.ctx(), path, "main", names)
	if err != nil {
		t.Fatal(err)
	}
	for name, changed := range want {
		if f := facts[name]; !f.InGit || f.Changed != changed {
			t.Errorf("%s: %+v, want changed %v", name, f, changed)
		}
	}
	facts, err = l.git.FileEvidence(l.ctx(), filepath.Join(path, "new dir"), "", []string{"f", "a.txt"})
	if err != nil || !facts["f"].Changed || facts["a.txt"].Changed {
		t.Errorf("from a folder inside: %+v %v", facts, err)
	}
	facts, err = l.git.FileEvidence(l.ctx(), path, "no-such-branch", []string{"committed.txt", "a.txt"})
	if err != nil || facts["committed.txt"].Changed || !facts["a.txt"].Changed {
		t.Errorf("without a base: %+v %v", facts, err)
	}
	l.writeIn(l.home, "f", "x")
	facts, err = l.git.FileEvidence(l.ctx(), l.home, "main", []string{"f", "none"})
	if err != nil || facts["f"] != (tasks.FileFact{Exists: true}) || facts["none"] != (tasks.FileFact{}) {
		t.Errorf("outside git: %+v %v", facts, err)
	}
}

func TestFingerprintFollowsUncommittedContents(t *testing.T) {
	l := newLab(t, "main")
	print := func() string { return l.git.Fingerprint(l.ctx(), l.root) }
	if got := print(); got != "clean" {
		t.Errorf("got %q, want clean", got)
	}
	seen := map[string]string{"clean": "clean"}
	for name, change := range map[string]func(){
		"changed":        func() { l.write("a.txt", "x\n") },
		"untracked":      func() { l.write("u.txt", "x\n") },
		"untracked more": func() { l.write("u.txt", "y\n") },
		"link": func() {
			if err := os.Symlink("nowhere", filepath.Join(l.root, "link")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		change()
		got := print()
		if len(got) != 32 || strings.Trim(got, "0123456789abcdef") != "" || seen[got] != "" {
			t.Errorf("%s: %q (like %s)", name, got, seen[got])
		}
		seen[got] = name
		if again := print(); again != got {
			t.Errorf("%s: %q, then %q", name, got, again)
		}
	}
	if got := l.git.Fingerprint(l.ctx(), l.home); got != "" {
		t.Errorf("outside git: %q", got)
	}
}

func TestArtifactEvidenceNeverWaitsOrLeavesTheWorkspace(t *testing.T) {
	l := newLab(t, "main")
	if err := syscall.Mkfifo(filepath.Join(l.root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"good": "dir/b.txt", "out": l.home, "up": "../home"} {
		if err := os.Symlink(to, filepath.Join(l.root, link)); err != nil {
			t.Fatal(err)
		}
	}
	l.writeIn(l.home, "secret", "s")
	for name, word := range map[string]string{"pipe": "regular", "dir": "regular", "out/secret": "out of the workspace", "up/secret": "out of the workspace", "none": "not exist", ".": "out of"} {
		if f := tasks.ArtifactEvidence(l.root, name); f.SHA256 != "" || !strings.Contains(f.Problem, word) {
			t.Errorf("%s: %+v, want a problem with %q", name, f, word)
		}
	}
	a, b := tasks.ArtifactEvidence(l.root, "good"), tasks.ArtifactEvidence(l.root, "dir/b.txt")
	if a.SHA256 == "" || a != b {
		t.Errorf("a link inside: %+v, its file: %+v", a, b)
	}
}
