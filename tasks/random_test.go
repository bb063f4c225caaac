package tasks_test

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

// anyJSON draws what a JSON decoder could have made, and a little that it could not.
func anyJSON(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind == 0:
			return nil
		case kind == 1:
			return rapid.Bool().Draw(t, "bool")
		case kind == 2:
			return json.Number(rapid.SampledFrom([]string{"0", "-1", "1e400", "99999999999999999999", "1.5", "1e5", "nonsense"}).Draw(t, "number"))
		case kind == 3 && depth > 0:
			return rapid.SliceOfN(anyJSON(depth-1), 0, 3).Draw(t, "list")
		case kind == 4 && depth > 0:
			return rapid.MapOfN(anyKey(), anyJSON(depth-1), 0, 3).Draw(t, "object")
		case kind == 5:
			return rapid.SampledFrom([]any{5, []string{"x"}, "\xff", struct{}{}}).Draw(t, "odd")
		}
		return anyWord().Draw(t, "word")
	})
}

func anyWord() *rapid.Generator[string] {
	words := []string{"", " ", "pass", "fail", "partial", "n/a", "approved", "changes_requested", "abc1234", "a.go", "../x", "/x", "verified/0002-x.yaml",
		"withdrawn", "full", "A", "2026-01-05T09:00:00Z", "DEVELOPER", "c1", "c2", "out/log.txt", "unknown-git-worktree"}
	for _, q := range testSchema.Queues {
		words = append(words, string(q.Name))
	}
	return rapid.OneOf(rapid.SampledFrom(words), rapid.String())
}

func anyKey() *rapid.Generator[string] {
	keys := []string{"kind", "by", "at", "role", "run_id", "to_queue", "blocks", "artifacts", "reason", "dependencies", "resume_to", "question",
		"command_evidence", "command_request_id", "base_commit", "files", "ready_for_test", "test_files", "test_command", "test_result", "stand_evidence",
		"outcome", "commit", "notes", "provenance", "closed_by", "closed_at", "worktree_fingerprint", "plan_kind", "mode", ""}
	return rapid.OneOf(rapid.SampledFrom(keys), rapid.String())
}

// goodBlocks are blocks that pass in the right place; half of what is drawn starts from one.
var goodBlocks = []string{implPayload, testsPayload, planPayload, `{"kind":"triage","notes":"x"}`, `{"kind":"review","outcome":"approved","commit":"abc1234"}`,
	`{"kind":"review","outcome":"changes_requested"}`, `{"kind":"reader_review","outcome":"pass","stand_checked":false,"ready_for_architect":true}`,
	`{"kind":"rollback","reason":"x"}`, `{"kind":"blocked","reason":"x","dependencies":["verified/0002-x.yaml"],"resume_to":"feature_dev"}`}

func anyBlock() *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if rapid.IntRange(0, 5).Draw(t, "junk") == 0 {
			return anyJSON(3).Draw(t, "block")
		}
		var block map[string]any
		if err := json.Unmarshal([]byte(rapid.SampledFrom(goodBlocks).Draw(t, "good")), &block); err != nil {
			panic(err) // the list is the test's own
		}
		for range rapid.IntRange(0, 2).Draw(t, "spoil") {
			block[anyKey().Draw(t, "key")] = anyJSON(2).Draw(t, "value")
		}
		return block
	})
}

func anyDecision() *rapid.Generator[tasks.Decision] {
	return rapid.Custom(func(t *rapid.T) tasks.Decision {
		d := tasks.Decision{Kind: rapid.SampledFrom([]string{"handoff", "handoff", "handoff", "blocked", "needs_input", "no_change", "done", ""}).Draw(t, "kind"),
			Payload: map[string]any{}}
		switch d.Kind {
		case "handoff":
			d.Payload["to_queue"] = anyWord().Draw(t, "to")
			d.Payload["blocks"] = rapid.SliceOfN(anyBlock(), 0, 2).Draw(t, "blocks")
		case "blocked":
			d.Payload = map[string]any{"reason": "waits", "dependencies": []any{"verified/0002-x.yaml"}, "resume_to": "feature_dev"}
		case "needs_input":
			d.Payload["question"] = anyWord().Draw(t, "question")
		}
		for range rapid.IntRange(0, 2).Draw(t, "extra") {
			d.Payload[anyKey().Draw(t, "key")] = anyJSON(3).Draw(t, "value")
		}
		return d
	})
}

// Any decision on any stage, by any role, with any facts: never a panic, all or nothing, and
// what is accepted is legal by the table and leaves a valid task.
func TestAnyDecisionIsPlannedWholeOrNotAtAll(t *testing.T) {
	stages := []*tasks.Task{sampleFor(t)}
	for _, s := range []stage{
		{queue: "feature_inbox", kind: "feature", scope: "backend"}, {queue: "feature_plan", kind: "docs", scope: "docs", blocks: []string{"triage; notes: x"}},
		{queue: "feature_test", kind: "feature", scope: "backend", blocks: []string{plannedBlock, implBlock}},
		{queue: "feature_review", kind: "bugfix", scope: "ui", blocks: []string{plannedBlock, implBlock, testsBlock}},
		{queue: "feature_blocked", kind: "feature", scope: "backend", blocks: []string{plannedBlock, "blocked; reason: x; dependencies: [verified/0002-x.yaml]; resume_to: feature_dev"}},
		{queue: "verified", kind: "research", scope: "backend", blocks: []string{plannedBlock, "rollback; reason: x"}},
		{queue: "feature_docs_review", kind: "docs", scope: "docs", blocks: []string{plannedBlock, implBlock}},
	} {
		stages = append(stages, s.task(t))
	}
	counts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		task := rapid.SampledFrom(stages).Draw(t, "task")
		role := rapid.SampledFrom(testSchema.Roles).Draw(t, "role").Name
		if queue, _ := testSchema.Queue(task.Queue); rapid.Bool().Draw(t, "owner") {
			role = queue.Owner
		}
		f := facts(role)
		f.InWorktree = rapid.IntRange(0, 3).Draw(t, "worktree") > 0
		if rapid.IntRange(0, 3).Draw(t, "validation") == 0 {
			f.ValidationCommands = []string{"unit"}
		}
		f.Dependencies = map[string]tasks.DependencyFact{"verified/0002-x.yaml": {Status: tasks.DependencySatisfied}}
		planned, reasons := checkEffect(t, task, anyDecision().Draw(t, "decision"), f)
		counts[len(reasons) == 0]++
		if len(reasons) == 0 && planned.Moves && !slices.ContainsFunc(tasks.AllowedTransitions(testSchema, task.Queue, role), func(a tasks.AllowedMove) bool {
			return a.To == planned.Destination || a.To == contract.AnyResumeToQueue
		}) {
			t.Fatalf("%s moved the task %s → %s", role, task.Queue, planned.Destination)
		}
	})
	if counts[true] == 0 || counts[false] == 0 {
		t.Errorf("got %v: both answers must occur", counts)
	}
}

// A tree of tasks under random commands by random roles: whatever happens, each task stands in
// one queue, the journal tells its way, and a refused command has changed nothing.
func TestRandomCommandsKeepTheTreeSound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newDesk(t)
		if _, err := l.tree.New(bg, as("ARCHITECT-PLANNER"), tasks.NewTask{Stream: "product", Title: "One", Kind: "feature", Scope: rapid.SampledFrom([]string{"backend", "ui", "docs"}).Draw(rt, "scope")}); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 8).Draw(rt, "commands") {
			before := l.everything()
			task, err := l.tree.ReadCurrent("0001-one")
			if err != nil {
				rt.Fatal(err)
			}
			err = l.randomCommand(rt, task)
			if err == nil {
				continue
			}
			if _, ok := refusal.Find(err); !ok {
				rt.Fatalf("got %v, no refusal", err)
			}
			after := l.everything()
			for name := range after {
				if after[name] != before[name] && len(name) < 200 && name[:3] != "hea" {
					rt.Fatalf("refused (%v), and %s changed", err, name)
				}
			}
		}
		sound(t, l)
		if t.Failed() {
			rt.Fatal("the tree is not sound")
		}
	})
}

func (l *desk) randomCommand(rt *rapid.T, task *tasks.Task) error {
	spec, _ := testSchema.Queue(task.Queue) // the queue of a task that was just read
	op := as(spec.Owner)
	if rapid.IntRange(0, 3).Draw(rt, "stranger") == 0 {
		op = as(rapid.SampledFrom(testSchema.Roles).Draw(rt, "role").Name)
	}
	switch rapid.IntRange(0, 4).Draw(rt, "command") {
	case 0:
		_, err := l.tree.Withdraw(bg, op, "1", "given up")
		return err
	case 1, 2:
		block, _ := anyBlock().Draw(rt, "block").(map[string]any) // junk is no block
		kind, _ := block["kind"].(string)
		var fields tasks.Fields
		for key, v := range block {
			if key != "kind" {
				fields = append(fields, tasks.Field{Key: key, Value: v})
			}
		}
		slices.SortFunc(fields, func(a, b tasks.Field) int { return len(a.Key) - len(b.Key) })
		_, err := l.tree.AppendBlock(bg, op, tasks.NewBlock{ID: "1", Kind: contract.BlockKind(kind), Fields: fields})
		return err
	}
	moves := tasks.AllowedTransitions(testSchema, task.Queue, op.Role)
	to := contract.Queue(anyWord().Draw(rt, "to"))
	if len(moves) > 0 {
		to = rapid.SampledFrom(moves).Draw(rt, "move").To
	}
	if to == contract.AnyResumeToQueue {
		to = contract.Queue(task.Latest("blocked").Text("resume_to"))
	}
	_, err := l.tree.Mv(bg, op, "1", to, "")
	return err
}
