package tasks_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"greatminds/fixtures/baretool"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
)

// Every lock file that a killed git can leave is named with its whole path, wherever it stands in the way
// and however long git's own words are, and the way out that is named helps.
func TestALockThatIsLeftIsNamed(t *testing.T) {
	worktree := func(l *lab) error { _, err := l.prepare(); return err }
	for name, c := range map[string]struct {
		lock string
		code refusal.Code
		// before makes what do needs; do meets the lock.
		before func(l *lab)
		do     func(l *lab) error
	}{
		"branch of a new worktree": {"refs/heads/task/0001-sample.lock", refusal.CodeGitLocked, func(*lab) {}, worktree},
		"branch merged into":       {"refs/heads/main.lock", refusal.CodeGitLocked, func(l *lab) { l.workTree() }, func(l *lab) error { _, err := l.merge(); return err }},
		"branch of the task":       {"refs/heads/task/0001-sample.lock", refusal.CodeGitLocked, func(l *lab) { l.workTree() }, func(l *lab) error { _, err := l.merge(); return err }},
		"index of the user":        {"index.lock", refusal.CodeGitIndexLocked, func(l *lab) { l.workTree() }, func(l *lab) error { _, err := l.merge(); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "main")
			c.before(l)
			lock := filepath.Join(l.root, ".git", filepath.FromSlash(c.lock))
			if err := os.MkdirAll(filepath.Dir(lock), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(lock, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			err := c.do(l)
			wantCode(t, err, c.code, lock+" exists")
			r, _ := refusal.Find(err)
			if !strings.HasSuffix(r.Remedy, "remove "+lock) {
				t.Errorf("the remedy %q does not name the file", r.Remedy)
			}
			if err := os.Remove(lock); err != nil {
				t.Fatal(err)
			}
			if err := c.do(l); err != nil {
				t.Errorf("with the lock away: %v", err)
			}
		})
	}
}

// A call that only reads is made again where nobody knows how it ended; one that writes is not.
func TestOnlyReadingCallsAreRepeated(t *testing.T) {
	l := newLab(t, "main")
	l.workTree()
	var unknown string // the subcommand that is lost at its first try
	calls := map[string]int{}
	l.git.Run = func(ctx context.Context, tool execgate.Tool) (execgate.ToolOutput, error) {
		args := strings.Join(tool.Argv, " ")
		out, err := baretool.Run(ctx, tool)
		if strings.Contains(args, " "+unknown+" ") {
			if calls[unknown]++; calls[unknown] == 1 {
				return execgate.ToolOutput{}, fmt.Errorf("outcome of the program: %w", execgate.ErrUnknown)
			}
		}
		return out, err
	}
	unknown = "ls-files"
	m, err := l.compute()
	if err != nil || calls[unknown] < 2 {
		t.Fatalf("a reading call that was lost: %v after %d tries", err, calls[unknown])
	}
	unknown = "update-ref"
	if err := m.Perform(l.ctx(), false); err == nil || calls[unknown] != 1 {
		t.Errorf("a writing call that was lost: %v after %d tries", err, calls[unknown])
	}
	unknown = "none"
	if err := m.Perform(l.ctx(), true); err != nil {
		t.Fatal(err)
	}
	l.wantMerged(m, l.root)
}
