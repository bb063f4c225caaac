package tasks_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"greatminds/internal/refusal"
)

// cutShort puts a checkout into the state of a killed read-tree: index old, files in between.
// Of the paths a.txt (changed), dir/b.txt (deleted), new/n.txt (added) those named have moved.
func (l *lab) cutShort(moved ...string) {
	l.t.Helper()
	for _, name := range moved {
		switch name {
		case "a.txt":
			l.write("a.txt", "ours\n")
		case "-a.txt":
			l.gone("a.txt")
		case "dir/b.txt":
			l.gone("dir")
		case "new/n.txt":
			l.write("new/n.txt", "new\n")
		}
	}
}

func TestCheckoutCutShortIsFinished(t *testing.T) {
	for _, moved := range [][]string{
		nil, {"dir/b.txt"}, {"dir/b.txt", "-a.txt"}, {"dir/b.txt", "a.txt"}, {"new/n.txt"}, {"a.txt", "dir/b.txt", "new/n.txt"},
	} {
		t.Run(strings.Join(moved, " "), func(t *testing.T) {
			l := newLab(t, "main")
			l.workTree()
			l.write("keep.txt", "mine\n")
			m := l.mustCompute()
			l.cutShort(moved...)
			if err := m.Perform(l.ctx(), true); err != nil {
				t.Fatal(err)
			}
			l.wantMerged(m, l.root)
			if got := l.run(l.root, "status", "--porcelain"); got != " M keep.txt" || l.read(l.root, "keep.txt") != "mine\n" {
				t.Errorf("status %q", got)
			}
		})
	}
	t.Run("with a lock left", func(t *testing.T) {
		l := newLab(t, "main")
		l.workTree()
		m := l.mustCompute()
		l.cutShort("a.txt")
		l.write(".git/index.lock", "")
		wantCode(t, m.Perform(l.ctx(), true), refusal.CodeGitIndexLocked, "index.lock")
		l.gone(".git/index.lock")
		if err := m.Perform(l.ctx(), true); err != nil {
			t.Fatal(err)
		}
		l.wantMerged(m, l.root)
	})
	t.Run("after the index was written", func(t *testing.T) {
		l := newLab(t, "main")
		l.workTree()
		m := l.mustCompute()
		l.run(l.root, "read-tree", "-m", "-u", m.Old, m.Commit)
		l.write("a.txt", "edited since\n")
		if err := m.Perform(l.ctx(), true); err != nil {
			t.Fatal(err)
		}
		if got := l.head("main"); got != m.Commit || l.read(l.root, "a.txt") != "edited since\n" {
			t.Errorf("main at %s, a.txt %q", got, l.read(l.root, "a.txt"))
		}
	})
}

func TestCheckoutCutShortWithForeignContentsIsLeftToAPerson(t *testing.T) {
	l := newLab(t, "main")
	l.workTree()
	m := l.mustCompute()
	l.cutShort("dir/b.txt", "new/n.txt")
	l.write("a.txt", "mine\n")
	wantCode(t, m.Perform(l.ctx(), true), refusal.CodeCheckoutUncertain, "a.txt", l.root)
	if got := l.read(l.root, "a.txt") + l.read(l.root, "new/n.txt"); got != "mine\nnew\n" {
		t.Errorf("contents %q, want both kept", got)
	}
	if got := l.head("main"); got != m.Old {
		t.Errorf("main moved to %s", got)
	}
	if begun, err := m.Begun(l.ctx()); err != nil || !begun {
		t.Errorf("begun: %v %v, want true", begun, err)
	}
	l.write("a.txt", "one\n")
	if err := m.Perform(l.ctx(), true); err != nil {
		t.Fatal(err)
	}
	l.wantMerged(m, l.root)
}

// Git is stopped while a slow filter of the user's runs in the middle of its checkout: it leaves
// no lock and no process, and the same merge is finished later.
func TestCheckoutStoppedInASlowFilterIsFinished(t *testing.T) {
	l := newLab(t, "main")
	l.git.Run = nil // the keeper is what ends git and the filter
	ready, never := filepath.Join(l.home, "ready"), filepath.Join(l.home, "never")
	for _, fifo := range []string{ready, never} {
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.run(l.root, "config", "filter.slow.clean", "cat")
	l.run(l.root, "config", "filter.slow.smudge", "cat")
	l.write(".gitattributes", "*.slow filter=slow\n")
	l.commit(l.root, "filter")
	path := l.workTree()
	l.writeIn(path, "z.slow", "slow\n")
	m := l.mustCompute()
	l.run(l.root, "config", "filter.slow.smudge", "echo up > "+ready+"; cat "+never)
	ctx, cancel := context.WithCancel(l.ctx())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- m.Perform(ctx, false) }()
	if _, err := os.ReadFile(ready); err != nil { // returns once the filter has said so
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want it cancelled", err)
	}
	if got := l.read(l.root, "a.txt") + l.head("main"); got != "ours\n"+m.Old {
		t.Fatalf("stopped at %q, want the checkout half done", got)
	}
	if begun, err := m.Begun(l.ctx()); err != nil || !begun {
		t.Errorf("begun: %v %v, want true", begun, err)
	}
	l.run(l.root, "config", "filter.slow.smudge", "cat")
	if err := m.Perform(l.ctx(), true); err != nil {
		t.Fatal(err)
	}
	l.wantMerged(m, l.root)
	if got := l.run(l.root, "status", "--porcelain") + l.read(l.root, "z.slow"); got != "slow\n" {
		t.Errorf("got %q", got)
	}
}
