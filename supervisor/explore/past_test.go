package explore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"greatminds/fixtures/original"
	"greatminds/internal/durable/faultdisk"
	"greatminds/runstore"
)

// oldRuns is how many finished runs a project has had: one short of what leaves for history.
const oldRuns = 99

func oldRun(n int) runstore.RunID { return runstore.RunID(fmt.Sprintf("old-%02d", n)) }

const oldText = `{"decision":"no_change","payload":{"reason":"long ago"}}`

// aged gives a project a past: finished runs of tasks that are in no queue any more, the oldest
// with a decision that its agent may hand in again.
func aged(w *world) {
	research(w)
	must(w.t, w.live(w.seed, w.options(faultdisk.New()), nil, func(l *life) error {
		for n := range oldRuns {
			if err := l.finished(n); err != nil {
				return err
			}
		}
		return nil
	}))
}

// finished makes one run that has ended long ago.
func (l *life) finished(n int) error {
	id, task := oldRun(n), runstore.TaskID(fmt.Sprintf("%04d-old", 100+n))
	err := l.update(func(tx *runstore.Tx) error {
		c, _, err := tx.Claim(runstore.Claim{ID: id, TaskID: task, TaskPath: "feature_dev/" + string(task) + ".yaml", TaskRevision: "r", Role: "DEVELOPER",
			BindingID: "dev", ConfigSHA256: l.r.Contract.SHA256(), SchemaSHA256: l.r.Schema.SHA256, Workspace: l.w.root, Account: "default"}, nil)
		if err != nil {
			return err
		}
		l.agents.tokens[id] = string(c.Token)
		return errors.Join(tx.Transition(id, "s", runstore.Starting, "", nil), tx.Transition(id, "r", runstore.Running, "", nil))
	})
	if err != nil {
		return err
	}
	if n == 0 {
		l.driven = id
		// What it decides about is in no queue, so the check at the door is left out.
		if err := l.update(func(tx *runstore.Tx) error {
			res, _, err := tx.Receive(id, runstore.Envelope{ResultID: runstore.ResultID(id) + "-result", RunID: id, TaskID: task, TaskRevision: "r",
				SchemaSHA256: l.r.Schema.SHA256, Decision: "no_change", Payload: []byte(`{"reason":"long ago"}`)})
			if err != nil {
				return err
			}
			return tx.SetResult(res.ID(), "rejected", nil)
		}); err != nil {
			return err
		}
		l.agents.texts[id] = oldText
	}
	return l.update(func(tx *runstore.Tx) error { return tx.Transition(id, "e", runstore.Completed, "turn_ended", nil) })
}

// history is a store of which the oldest runs leave at the end of a life; the next one finds them
// all the same.
var history = scenario{
	name: "history roll-over",
	set:  aged,
	play: func(l *life) error {
		asked := decided(l.view(), "needs_input")
		err := l.toEnd(func(v *runstore.View, _ string) bool {
			return decided(v, "no_change") || !asked && decided(v, "needs_input")
		}, func(a *attempt) error {
			if !asked {
				return a.submit(`{"decision":"needs_input","payload":{"question":"which one?"}}`)
			}
			return a.submit(noChange)
		})
		if err == nil && !asked {
			return errAgain
		}
		return err
	},
	check: func(l *life) error {
		for n := range oldRuns {
			if r := l.view().Run(oldRun(n)); r == nil || r.State != runstore.Completed {
				return fmt.Errorf("run %s is %v", oldRun(n), r)
			}
		}
		return stays("feature_dev")(l)
	},
	steps: 90,
	must:  []string{"mkdir:history", "rename:state.json", "syncdir:history"},
}

// takeover is a project that the original was killed in: its store is taken over, once, and the
// work goes on.
var takeover = scenario{
	name: "the original's store, taken over",
	set: func(w *world) {
		must(w.t, os.RemoveAll(w.root))
		w.write("a.txt", "one\n")
		w.write(".gitignore", "/.greatminds/\n/.worktrees/\n")
		// The commit that the recorded plan names.
		const date = "2026-01-05T09:00:00Z"
		for _, args := range [][]string{{"init", "-q", "-b", "main", "--template="}, {"add", "-A"}, {"commit", "-q", "-m", "base"}} {
			w.gitAs([]string{"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.invalid", "GIT_AUTHOR_DATE=" + date,
				"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.invalid", "GIT_COMMITTER_DATE=" + date}, w.root, args...)
		}
		must(w.t, original.Write(w.root, "claimed"))
	},
	play: func(l *life) error {
		return l.toEnd(func(v *runstore.View, _ string) bool { return decided(v, "no_change") }, func(a *attempt) error { return a.submit(noChange) })
	},
	check: func(l *life) error {
		kept, err := filepath.Glob(filepath.Join(l.w.project.StoreDir(), "original-state-*.json"))
		if err != nil || len(kept) != 1 {
			return fmt.Errorf("the original's state is kept as %v: %w", kept, err)
		}
		have, err := os.ReadFile(kept[0])
		if err != nil {
			return err
		}
		want, err := l.w.originalState()
		if err != nil || !bytes.Equal(have, want) {
			return fmt.Errorf("%s is not what the original wrote: %w", kept[0], err)
		}
		if n := len(l.view().Runs()); n < 2 {
			return fmt.Errorf("%d runs", n)
		}
		return stays("feature_dev")(l)
	},
	steps: 60,
	must:  []string{"rename:state.json", "git.worktree-add", "git.worktree-checkout", "mkdir:.worktrees"},
}

// originalState is state.json as the original left it.
func (w *world) originalState() ([]byte, error) {
	dir, err := os.MkdirTemp(filepath.Dir(w.top), "original-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := original.Write(dir, "claimed"); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, ".greatminds/.runtime/state.json"))
	return bytes.ReplaceAll(data, []byte(dir), []byte(w.root)), err
}
