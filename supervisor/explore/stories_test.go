package explore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"greatminds/contract"
	"greatminds/fixtures/sample"
	"greatminds/internal/redact"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/permission"
	"greatminds/transport"
)

// scenarios are all stories, the pipeline first.
var scenarios = []scenario{pipeline, conflict, planned, needsInput, blocked, retry, answered, cancel, changed, compaction, history, takeover}

const noChange = `{"decision":"no_change","payload":{"reason":"it is all there"}}`

// research files a task that needs no worktree.
func research(w *world) { w.file("feature_dev", "research", "") }

// decided tells whether some decision of a kind was applied.
func decided(v *runstore.View, kind string) bool {
	for _, r := range v.Results() {
		if r.Status == "applied" && r.Envelope.Decision == kind {
			return true
		}
	}
	return false
}

// stays wants the task where it was, with as many journal lines as decisions were applied.
func stays(queue string) func(l *life) error {
	return func(l *life) error {
		lines, err := l.r.Tree.Journal()
		if err != nil {
			return err
		}
		applied := 0
		for _, r := range l.view().Results() {
			if r.Status == "applied" {
				applied++
			}
		}
		if l.w.queues() != queue || len(lines) != applied {
			return fmt.Errorf("the task stands in %q with %d lines of %d applied decisions", l.w.queues(), len(lines), applied)
		}
		return nil
	}
}

var needsInput = scenario{
	name: "needs_input, answered by a retry",
	set:  research,
	play: func(l *life) error {
		return l.toEnd(func(v *runstore.View, _ string) bool { return decided(v, "no_change") }, func(a *attempt) error {
			if !decided(a.view(), "needs_input") {
				return a.submit(`{"decision":"needs_input","payload":{"question":"which one?"}}`)
			}
			return a.submit(noChange)
		})
	},
	check: stays("feature_dev"),
	steps: 40,
	must:  []string{"result.receive", "apply.intent", "write:journal.ndjson", "apply.commit"},
}

var blocked = scenario{
	name: "blocked",
	set:  func(w *world) { w.file("feature_dev", "research", sample.PlanBlock) },
	play: func(l *life) error {
		return l.toEnd(func(_ *runstore.View, queue string) bool { return queue == "feature_blocked" }, func(a *attempt) error {
			return a.submit(`{"decision":"blocked","payload":{"reason":"waits","dependencies":["verified/0002-other.yaml"],"resume_to":"feature_dev"}}`)
		})
	},
	check: func(l *life) error {
		if err := stays("feature_blocked")(l); err != nil {
			return err
		}
		if text := l.w.read(".greatminds/feature_blocked/" + task0 + ".yaml"); strings.Count(text, "kind: blocked") != 1 {
			return fmt.Errorf("the blocked block: %s", text)
		}
		return nil
	},
	steps: 40,
	must:  []string{"apply.write", "rename:" + task0 + ".yaml", "move:feature_blocked/" + task0 + ".yaml", "syncdir:feature_blocked", "syncdir:feature_dev"},
}

var retry = scenario{
	name: "a failed run, retried",
	set:  research,
	play: func(l *life) error {
		return l.toEnd(func(v *runstore.View, _ string) bool { return decided(v, "no_change") }, func(a *attempt) error {
			for _, r := range a.view().Runs() {
				if r.State == runstore.Failed && r.Reason == "configuration_error" {
					return a.submit(noChange)
				}
			}
			return a.do("fail", func() error { return a.end(runstore.Failed, "configuration_error") })
		})
	},
	check: stays("feature_dev"),
	steps: 40,
	must:  []string{"walk.launch", "result.receive", "apply.commit"},
}

var answered = scenario{
	name:      "a permission request, answered",
	set:       research,
	liveAgent: true,
	play: func(l *life) error {
		return l.toEnd(func(v *runstore.View, _ string) bool { return decided(v, "no_change") }, func(a *attempt) error {
			if err := a.do("permission", a.permission); err != nil {
				return err
			}
			return a.submit(noChange)
		})
	},
	check: func(l *life) error {
		consumed := 0
		for _, r := range l.view().Runs() {
			for _, p := range l.view().PermissionsOfRun(r.ID) {
				if p.Status == "consumed" {
					consumed++
				}
			}
		}
		if consumed == 0 {
			return errors.New("no answer was handed over")
		}
		return stays("feature_dev")(l)
	},
	steps: 40,
	must:  []string{"write:journal.jsonl", "sync:journal.jsonl"},
}

// permission asks the operator, who answers, and answers again.
func (a *attempt) permission() error {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	b := &permission.Broker{Store: a.r.Store, Owner: a.r.Owner, Now: a.w.now, Log: a.r.Operations.Log,
		Revision: func(id runstore.TaskID) (runstore.Revision, error) { return runstore.Revision(a.task.Revision), nil }}
	asked := permission.Asked{Run: a.run(), Policy: contract.PermissionAsk, Workspace: a.w.root, SessionID: *a.run().SessionID, Secrets: redact.New(),
		Request: transport.PermissionRequest{ToolCall: []byte(`{"title":"write"}`), Options: []transport.Option{
			{ID: "yes", Name: "Yes", Kind: "allow_once", Selectable: true}, {ID: "no", Name: "No", Kind: "reject_once", Selectable: true}}}}
	heard := make(chan permission.Answered, 1)
	go func() { heard <- b.Ask(ctx, asked) }()
	for {
		changed := a.r.Store.Changed()
		if open := a.view().OpenPermissions(); len(open) > 0 {
			if err := a.answer(string(open[0].ID)); err != nil {
				cancel()
				<-heard
				return err
			}
			break
		}
		select {
		case <-changed:
		case got := <-heard:
			return got.Unrecorded
		}
	}
	got := <-heard
	if got.Unrecorded == nil && got.OptionID != "yes" {
		return fmt.Errorf("the agent was told %+v", got)
	}
	return got.Unrecorded
}

func (a *attempt) answer(id string) error {
	_, err := a.ask("run.permission-answer", "", map[string]any{"request_id": id, "option_id": "yes"})
	return err
}

var cancel = scenario{
	name: "a run, cancelled",
	set:  research,
	play: func(l *life) error {
		return l.toEnd(func(v *runstore.View, _ string) bool {
			for _, r := range v.Runs() {
				if r.Control != nil && r.Control.Kind == "cancel" && r.State.Terminal() {
					return len(v.OpenControls()) == 0
				}
			}
			return false
		}, func(a *attempt) error {
			return a.do("cancel", func() error {
				if a.run().Control == nil {
					if _, err := a.ask("run.cancel", "", map[string]any{"run_id": string(a.id)}); err != nil {
						return err
					}
				}
				return a.r.Settle(a.ctx)
			})
		})
	},
	check: stays("feature_dev"),
	steps: 30,
	must:  []string{"walk.launch", "write:journal.jsonl"},
}

// changed is a contract that changes between two runs: the second needs a new start.
var changed = scenario{
	name: "a contract change between runs",
	set:  research,
	play: func(l *life) error {
		const more = "  other: {argv: [\"true\"], roles: [DEVELOPER]}\n"
		asked := decided(l.view(), "needs_input")
		if _, is := l.r.Contract.Command("other"); asked && !is {
			l.w.contract(more)
			return errAgain
		}
		return l.toEnd(func(v *runstore.View, _ string) bool {
			return decided(v, "no_change") || !asked && decided(v, "needs_input")
		}, func(a *attempt) error {
			if !asked {
				return a.submit(`{"decision":"needs_input","payload":{"question":"which one?"}}`)
			}
			return a.submit(noChange)
		})
	},
	check: func(l *life) error {
		if !decided(l.view(), "no_change") {
			return errAgain
		}
		pinned := map[string]bool{}
		for _, r := range l.view().Runs() {
			pinned[r.ConfigSHA256] = true
			if _, err := l.r.Store.Pinned("execution", r.ConfigSHA256); err != nil {
				return err
			}
		}
		if len(pinned) != 2 {
			return fmt.Errorf("the runs pinned %d contracts", len(pinned))
		}
		return stays("feature_dev")(l)
	},
	steps: 60,
	must:  []string{"mkdir:contracts", "move:.json", "syncdir:contracts", "rename:state.json"},
}

const pauses = 24

var compaction = scenario{
	name:       "snapshot and compaction",
	set:        research,
	minJournal: 1,
	play: func(l *life) error {
		for n := range pauses {
			for _, op := range []string{"run.pause", "run.resume"} {
				id := fmt.Sprintf("%s-%02d", op[4:], n)
				if l.view().Request(id) != nil {
					continue
				}
				if err := l.do("change", func() error { return l.request(id, op) }); err != nil {
					return err
				}
			}
		}
		return nil
	},
	check: func(l *life) error {
		n := 0
		for i := range pauses {
			for _, op := range []string{"run.pause", "run.resume"} {
				if l.view().Request(fmt.Sprintf("%s-%02d", op[4:], i)) != nil {
					n++
				}
			}
		}
		if n != 2*pauses || l.view().Paused() {
			return fmt.Errorf("%d of %d requests, paused %v", n, 2*pauses, l.view().Paused())
		}
		return nil
	},
	steps: 150,
	must:  []string{"write:journal.jsonl", "rename:state.json", "rename:journal.jsonl", "unlink:journal.jsonl"},
}

// planned is an operator who plans a task: blocks and moves, each under an intent of its own.
var planned = scenario{
	name: "an operator's plan",
	set:  func(w *world) { w.file("feature_inbox", "research", "") },
	play: func(l *life) error {
		if l.w.queues() == "feature_dev" {
			return nil
		}
		base := l.w.git(l.w.root, "rev-parse", "main")
		return l.do("plan", func() error {
			_, err := l.ask("task.plan", "", map[string]any{"id": task0, "scope": "backend", "assignee_role": "DEVELOPER", "base_commit": base,
				"plan_kind": "full", "mode": "A", "stand_required": false, "body": "do it"})
			if r, is := refusal.Find(err); is && r.Code == refusal.CodeNotReady && l.w.queues() == "feature_dev" {
				return nil // asked again after a fault, it says that the task has gone there meanwhile
			}
			return err
		})
	},
	check: func(l *life) error {
		text := l.w.read(".greatminds/feature_dev/" + task0 + ".yaml")
		if l.w.queues() != "feature_dev" || strings.Count(text, "kind: plan\n") != 1 || strings.Count(text, "kind: triage\n") != 1 {
			return fmt.Errorf("the task stands in %s: %s", l.w.queues(), text)
		}
		lines, err := l.r.Tree.Journal()
		if err != nil {
			return err
		}
		if len(lines) != 4 {
			return fmt.Errorf("%d journal lines, want those of two blocks and two moves", len(lines))
		}
		if left, err := filepath.Glob(filepath.Join(l.w.root, ".greatminds/intent/*.json")); err != nil || len(left) > 0 {
			return fmt.Errorf("intents left: %v %w", left, err)
		}
		return nil
	},
	steps: 60,
	must:  []string{"mkdir:intent", "move:.json", "syncdir:intent", "write:journal.ndjson", "move:feature_dev/" + task0 + ".yaml", "unlink:.json"},
}

// conflict is approved work that does not merge: the task is handed back with the files named.
var conflict = scenario{
	name: "a merge conflict, handed back",
	set: func(w *world) {
		pipeline.set(w)
		w.write("a.txt", "theirs\n")
		w.git(w.root, "commit", "-q", "-am", "meanwhile")
	},
	play: func(l *life) error {
		return l.toEnd(func(_ *runstore.View, queue string) bool { return queue != "feature_review" }, func(a *attempt) error { return a.submit(approval) })
	},
	check: func(l *life) error {
		back := string(l.r.Worktrees.ConflictHandbackTo)
		if got := l.w.git(l.w.root, "rev-list", "--merges", "--count", "main"); got != "0" {
			return fmt.Errorf("%s merges", got)
		}
		text := l.w.read(".greatminds/" + back + "/" + task0 + ".yaml")
		if !strings.Contains(text, "conflicts in a.txt") {
			return fmt.Errorf("the task in %s does not name the file: %s", back, text)
		}
		if _, err := os.Stat(filepath.Join(l.w.worktree(), "new.txt")); err != nil {
			return fmt.Errorf("the work is gone: %w", err)
		}
		return stays(back)(l)
	},
	steps: 40,
	must:  []string{"git.merge-tree", "apply.intent", "apply.write", "apply.move", "apply.journal"},
}
