package explore

import (
	"fmt"
	"os"
	"path/filepath"

	"greatminds/fixtures/sample"
	"greatminds/runstore"
)

const approval = `{"decision":"handoff","payload":{"to_queue":"verified","blocks":[{"kind":"review","outcome":"approved","commit":"abc","notes":"ok"}]}}`

// pipeline is the whole way of an approved task: claim, run, command, result, application with
// a merge.
var pipeline = scenario{
	name: "claim, run, command, result, merge",
	set: func(w *world) {
		w.file("feature_review", "feature", sample.PlanBlock+sample.ImplementationBlock+sample.TestsBlock)
		w.git(w.root, "worktree", "add", "-q", "-b", "task/"+task0, w.worktree(), "main")
		must(w.t, os.WriteFile(filepath.Join(w.worktree(), "a.txt"), []byte("ours\n"), 0o644))
		must(w.t, os.WriteFile(filepath.Join(w.worktree(), "new.txt"), []byte("new\n"), 0o644))
		must(w.t, os.Remove(filepath.Join(w.worktree(), "gone.txt")))
	},
	play: func(l *life) error {
		return l.toEnd(func(v *runstore.View, queue string) bool { return queue == "verified" }, func(a *attempt) error {
			if err := a.command(); err != nil {
				return err
			}
			if c := a.view().CommandsOfRun(a.id)[0]; c.Open() {
				return nil // its outcome is not known: the agent waits for a person, and ends its turn
			}
			return a.submit(approval)
		})
	},
	check: merged,
	steps: 40,
	must: []string{"mkdir:contracts", "rename:state.json", "rename:journal.jsonl", "write:journal.jsonl", "sync:journal.jsonl",
		"walk.launch", "command.open", "command-output.sync", "result.receive", "apply.intent", "git.merge-tree", "git.commit-merge", "git.read-tree",
		"merge.sync-files", "git.update-ref", "apply.write", "rename:" + task0 + ".yaml", "apply.move", "move:verified/" + task0 + ".yaml", "syncdir:verified", "syncdir:feature_review",
		"apply.journal", "write:journal.ndjson", "sync:journal.ndjson", "apply.post", "git.worktree-remove", "git.branch-delete", "apply.commit", "unlink:journal.jsonl"},
}

// merged is the one end of an approved task: merged once, moved once, told once.
func merged(l *life) error {
	w := l.w
	results := l.view().Results()
	applied := 0
	for _, r := range results {
		if r.Status == "applied" {
			applied++
		}
	}
	for what, c := range map[string][2]string{
		"applied results": {fmt.Sprint(applied), "1"},
		"queue":           {w.queues(), "verified"},
		"merges":          {w.git(w.root, "rev-list", "--merges", "--count", "main"), "1"},
		"checkout":        {w.read("a.txt") + w.read("new.txt") + w.read("k.txt"), "ours\nnew\nkeep\n"},
		"changes":         {w.git(w.root, "status", "--porcelain"), ""},
		"refs":            {w.git(w.root, "for-each-ref", "--format=%(refname)"), "refs/heads/main"},
	} {
		if c[0] != c[1] {
			return fmt.Errorf("%s: %q, want %q", what, c[0], c[1])
		}
	}
	return nil
}

// queues lists the queues that the task stands in.
func (w *world) queues() string {
	files, err := filepath.Glob(filepath.Join(w.root, ".greatminds", "*", task0+".yaml"))
	must(w.t, err)
	names := ""
	for _, f := range files {
		names += filepath.Base(filepath.Dir(f))
	}
	return names
}
