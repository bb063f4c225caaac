package results_test

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
	"greatminds/fixtures/original"
	"greatminds/internal/refusal"
	"greatminds/runstore"
)

// takenOver is a project that the original left in the state of the name, with git's part of it as
// it was, and its store taken over.
func takenOver(t *testing.T, name string, git func(l *lab)) *lab {
	t.Helper()
	top := t.TempDir()
	l := &lab{t: t, top: top, root: filepath.Join(top, "project"), schema: contract.EmbeddedSchema(), now: time.Unix(1_800_000_000, 0), runner: baretool.Run, stale: map[string]string{}}
	l.project = contract.Project{Root: l.root, Runtime: filepath.Join(l.root, ".greatminds")}
	l.policy = l.schema.Worktrees
	l.policy.DefaultBranch = "main"
	for _, dir := range []string{l.root, filepath.Join(top, "home")} {
		must(t, os.MkdirAll(dir, 0o700))
	}
	l.old(l.root, "init", "-q", "-b", "main")
	l.write("a.txt", "one\n")
	l.write(".gitignore", "/.greatminds/\n/.worktrees/\n")
	l.old(l.root, "add", "-A")
	l.old(l.root, "commit", "-q", "-m", "base")
	if git != nil {
		git(l)
	}
	must(t, original.Write(l.root, name))
	l.schemaOf = func(sha string) (*contract.Schema, error) {
		doc, err := l.store.Pinned(runstore.PinnedSchema, sha)
		if err != nil {
			return nil, err
		}
		text, err := runstore.SchemaText(doc)
		if err != nil {
			return nil, err
		}
		return contract.ParsePinnedSchema("schema-"+sha+".json", text)
	}
	l.open()
	run := l.store.View().Runs()[0]
	doc, err := l.store.Pinned(runstore.PinnedExecution, run.ConfigSHA256)
	must(t, err)
	l.pinned, err = contract.FromCanonical(doc)
	must(t, err)
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// old runs git as it was run when the stores were recorded, so that commits have the same ids.
func (l *lab) old(dir string, args ...string) string {
	l.t.Helper()
	const date = "2026-01-05T09:00:00Z"
	c := exec.Command("git", args...)
	c.Dir, c.Env = dir, append(l.env(), "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.invalid", "GIT_AUTHOR_DATE="+date,
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.invalid", "GIT_COMMITTER_DATE="+date)
	out, err := c.CombinedOutput()
	if err != nil {
		l.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// worked makes the task's worktree, with the developer's change in it.
func worked(l *lab) {
	l.old(l.root, "worktree", "add", "-q", "-b", "task/0001-sample", l.worktree(), "main")
	l.writeIn(l.worktree(), "a.txt", "two\n")
}

// overlaid has the change committed, as the original does before it merges.
func overlaid(l *lab) {
	worked(l)
	l.old(l.worktree(), "commit", "-q", "-a", "-m", "impl(0001-sample): worktree overlay captured at merge")
}

// reviewed has it merged.
func reviewed(l *lab) {
	overlaid(l)
	l.old(l.root, "merge", "-q", "--no-ff", "-m", "review(0001-sample)", "task/0001-sample")
}

// openResult is the one result that is not settled.
func (l *lab) openResult() *runstore.Result {
	l.t.Helper()
	open := l.store.View().OpenResults()
	if len(open) != 1 {
		l.t.Fatalf("%d open results, want 1", len(open))
	}
	return open[0]
}

// lands recovers and applies what the original left, and checks that it came to its end once.
func (l *lab) lands(id runstore.ResultID, queue string, lines int) {
	l.t.Helper()
	must(l.t, l.applier.Recover(l.ctx()))
	if res := l.store.View().Result(id); res.Status != "applied" {
		if _, err := l.applier.Apply(l.ctx(), id); err != nil {
			l.t.Fatal(err)
		}
	}
	res := l.store.View().Result(id)
	if res.Status != "applied" || l.queues() != queue || len(l.lines()) != lines {
		l.t.Errorf("the result is %s, the task in %s, the journal has %d lines; want applied, %s, %d", res.Status, l.queues(), len(l.lines()), queue, lines)
	}
	if op := l.store.View().Operation(runstore.OperationID(id)); op == nil || op.Open() {
		l.t.Errorf("the operation is %+v", op)
	}
}

// E-202, E-203: every application that the original left is finished once, from wherever it was.
func TestApplicationsOfTheOriginalAreFinishedOnce(t *testing.T) {
	for name, git := range map[string]func(*lab){"intent": worked, "applying": worked, "moved": worked, "committed": worked} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := takenOver(t, name, git)
			l.lands(l.openResult().ID(), "feature_test", 1)
		})
	}
	for _, name := range []string{"merged", "removing"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := takenOver(t, name, reviewed)
			head := l.git(l.root, "rev-parse", "main")
			l.lands(l.openResult().ID(), "verified", 3)
			if l.git(l.root, "rev-parse", "main") != head {
				t.Error("it was merged again")
			}
			if _, err := os.Stat(l.worktree()); !os.IsNotExist(err) || l.git(l.root, "branch", "--list", "task/*") != "" {
				t.Errorf("the worktree is still there: %v", err)
			}
		})
	}
}

// A worktree that holds more than what the original merged is kept.
func TestAWorktreeThatTheOriginalMergedIsRemovedWithItsContentsAlone(t *testing.T) {
	l := takenOver(t, "merged", func(l *lab) { reviewed(l); l.writeIn(l.worktree(), "later.txt", "later\n") })
	l.lands(l.openResult().ID(), "verified", 3)
	if data, err := os.ReadFile(filepath.Join(l.worktree(), "later.txt")); err != nil || string(data) != "later\n" {
		t.Errorf("got %q, %v", data, err)
	}
}

// A merge that the original had begun is nobody's to repeat: a person looks, and says.
func TestAMergeThatTheOriginalBeganWaitsForAPerson(t *testing.T) {
	for name, c := range map[string]struct {
		git   func(*lab)
		merge string // the subject of the newest commit on main in the end
	}{
		"not made":       {worked, "review(0001-sample): Sample täsk"},
		"overlay made":   {overlaid, "review(0001-sample): Sample täsk"},
		"made meanwhile": {reviewed, "review(0001-sample)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := takenOver(t, "merging", c.git)
			id := l.openResult().ID()
			must(t, l.applier.Recover(l.ctx()))
			res := l.store.View().Result(id)
			if res.Status != "needs_recovery" || res.Hold() != nil || !strings.Contains(res.Details.Error, "begun to merge") ||
				len(l.lines()) != 2 || l.queues() != "feature_review" {
				t.Fatalf("got %s: %+v", res.Status, res.Details)
			}
			if _, err := l.applier.Repair(l.ctx(), string(id)); err != nil {
				t.Fatal(err)
			}
			l.lands(id, "verified", 3)
			if got := l.git(l.root, "log", "-1", "--format=%s", "main"); got != c.merge {
				t.Errorf("main is at %q, want %q", got, c.merge)
			}
			if l.read("a.txt") != "two\n" {
				t.Errorf("the checkout has %q", l.read("a.txt"))
			}
		})
	}
}

func TestAMergeThatTheOriginalBeganIsGivenUpUnlessItWasMade(t *testing.T) {
	for name, git := range map[string]func(*lab){"not made": worked, "made": reviewed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := takenOver(t, "merging", git)
			id := l.openResult().ID()
			must(t, l.applier.Recover(l.ctx()))
			_, err := l.applier.Abandon(l.ctx(), string(id), "start over")
			if name == "made" {
				if r, ok := refusal.Find(err); !ok || r.Code != refusal.CodeOperationBegun || !strings.Contains(r.Remedy, "run repair") {
					t.Errorf("got %v", err)
				}
				return
			}
			must(t, err)
			if res := l.store.View().Result(id); res.Status != "abandoned" || l.queues() != "feature_review" {
				t.Errorf("got %s in %s", res.Status, l.queues())
			}
		})
	}
}

// needs_recovery of the original had no way out at all: now a conflict hands the task back.
func TestAConflictThatTheOriginalLeftIsHandedBack(t *testing.T) {
	l := takenOver(t, "conflict", func(l *lab) {
		overlaid(l)
		l.writeIn(l.root, "a.txt", "three\n")
		l.old(l.root, "commit", "-q", "-a", "-m", "meanwhile")
	})
	id := l.openResult().ID()
	must(t, l.applier.Recover(l.ctx()))
	if res := l.store.View().Result(id); res.Status != "needs_recovery" || res.Details.Error != "reviewed worktree could not be merged" {
		t.Fatalf("got %s: %+v", res.Status, res.Details)
	}
	if _, err := l.applier.Repair(l.ctx(), string(id)); err != nil {
		t.Fatal(err)
	}
	l.lands(id, "feature_dev", 3)
	if !strings.Contains(l.read(l.taskFile("feature_dev")), "conflicts in a.txt") {
		t.Errorf("the task does not say why:\n%s", l.read(l.taskFile("feature_dev")))
	}
	// And it can be given up.
	l = takenOver(t, "conflict", overlaid)
	if _, err := l.applier.Abandon(l.ctx(), string(l.openResult().ID()), "no"); err != nil {
		t.Fatal(err)
	}
}

// A received decision is judged by the schema that the original pinned.
func TestADecisionThatTheOriginalReceivedIsApplied(t *testing.T) {
	l := takenOver(t, "received", nil)
	id := l.openResult().ID()
	run := l.store.View().Runs()[0]
	must(t, l.store.Update(context.Background(), func(tx *runstore.Tx) error { return tx.Recover(run.ID, "owner") }))
	l.lands(id, "feature_dev", 1)
}

// E-139, E-140: the resume of a blocked task is finished from its record, or left to a person.
func TestAResumeThatTheOriginalPreparedIsFinishedOnce(t *testing.T) {
	blocked := filepath.Join(".greatminds", "feature_blocked", "0001-sample.yaml")
	resumed := filepath.Join(".greatminds", "feature_dev", "0001-sample.yaml")
	dependency := filepath.Join(".greatminds", "verified", "0002-done.yaml")
	for name, c := range map[string]struct {
		meanwhile func(l *lab)
		status    string
		lines     int
	}{
		"prepared":         {func(*lab) {}, "applied", 2},
		"moved":            {func(l *lab) { must(l.t, os.Rename(filepath.Join(l.root, blocked), filepath.Join(l.root, resumed))) }, "applied", 2},
		"evidence changed": {func(l *lab) { l.write(dependency, l.read(dependency)+"# more\n") }, "needs_recovery", 1},
		"dependency gone":  {func(l *lab) { must(l.t, os.Remove(filepath.Join(l.root, dependency))) }, "needs_recovery", 1},
		"task changed":     {func(l *lab) { l.write(blocked, l.read(blocked)+"# more\n") }, "needs_recovery", 1},
		"task in both":     {func(l *lab) { l.write(resumed, l.read(blocked)) }, "needs_recovery", 1},
		"moved, and changed": {func(l *lab) {
			l.write(resumed, l.read(blocked)+"# more\n")
			must(l.t, os.Remove(filepath.Join(l.root, blocked)))
		}, "needs_recovery", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := takenOver(t, "resume", nil)
			for _, q := range l.schema.Queues {
				must(t, os.MkdirAll(filepath.Join(l.project.Runtime, string(q.Name)), 0o755))
			}
			c.meanwhile(l)
			before := l.read(blocked) + l.read(resumed)
			id := string(l.store.View().OpenOperations()[0].ID)
			for range 2 {
				must(t, l.applier.Recover(l.ctx()))
			}
			op := l.store.View().Operation(runstore.OperationID(id))
			if op.Status != c.status || len(l.lines()) != c.lines {
				t.Fatalf("got %s (%s), %d lines", op.Status, op.Details, len(l.lines()))
			}
			if c.status == "applied" {
				if l.queues() != "feature_dev" {
					t.Errorf("the task stands in %s", l.queues())
				}
				line := l.lines()[1]
				if line.Actor != "SYSTEM" || line.BlockedBy != "DEVELOPER" || line.From != "feature_blocked" || line.To != "feature_dev" ||
					line.OperationID != id || !strings.Contains(string(line.DependencyEvidence), "0002-done") {
					t.Errorf("the journal says %+v", line)
				}
				return
			}
			if l.read(blocked)+l.read(resumed) != before {
				t.Error("a file was changed")
			}
			_, err := l.applier.Repair(l.ctx(), id)
			if r, ok := refusal.Find(err); !ok || r.Code != refusal.CodeOperationForeign {
				t.Errorf("repair without a change: %v", err)
			}
			_, err = l.applier.Abandon(l.ctx(), id, "decided by hand")
			if gone := name == "moved, and changed"; gone != (err != nil) {
				t.Errorf("giving it up: %v", err)
			}
		})
	}
}
