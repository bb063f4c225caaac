package tasks

import (
	"strings"
	"testing"
)

func TestCheckoutListIsRead(t *testing.T) {
	text := "worktree /p\x00HEAD 1111\x00branch refs/heads/main\x00\x00worktree /p/w w\nx\x00HEAD 2222\x00detached\x00locked on a stick\x00\x00" +
		"worktree /bare\x00bare\x00\x00worktree /gone\x00HEAD 3\x00branch refs/heads/a b\x00locked\x00prunable gitdir file points to nowhere\x00\x00"
	got := parseCheckouts(text)
	want := []checkout{{path: "/p", head: "1111", ref: "refs/heads/main"}, {path: "/p/w w\nx", head: "2222", locked: true, reason: "on a stick"},
		{path: "/bare", bare: true}, {path: "/gone", head: "3", ref: "refs/heads/a b", locked: true, prunable: true}}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestVersionIsRead(t *testing.T) {
	for text, want := range map[string]bool{"git version 2.38.0": true, "git version 2.39.5 (Apple Git-154)": true, "git version 3.0.1": true, "git version 2.100": true,
		"git version 2.37.9": false, "git version 1.99.0": false, "git version": false, "git version two.3": false, "": false} {
		if got := versionAtLeast(text, 2, 38); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func FuzzCheckoutList(f *testing.F) {
	f.Add("worktree /p\x00HEAD 1\x00branch refs/heads/main\x00\x00")
	f.Add("\x00\x00\x00")
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range parseCheckouts(text) {
			if c.path == "" || !strings.Contains(text, c.path) {
				t.Errorf("made up %+v", c)
			}
		}
	})
}

func FuzzRawChanges(f *testing.F) {
	f.Add([]byte(":100644 000000 1 0 D\x00a b\x00:000000 100644 0 1 A\x00c\nd\x00"))
	f.Add([]byte(":x\x00y"))
	f.Fuzz(func(t *testing.T, data []byte) {
		changes, err := parseRaw(data)
		if err != nil && changes != nil {
			t.Errorf("an error with changes: %v", changes)
		}
		for _, c := range changes {
			if strings.ContainsRune(c.path, 0) {
				t.Errorf("path %q", c.path)
			}
		}
	})
}
