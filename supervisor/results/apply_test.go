package results_test

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// E-199 E-205
func TestApprovedTaskIsMergedMovedAndTold(t *testing.T) {
	l := newLab(t)
	l.review()
	l.runner = nil // under a keeper, as in the daemon
	l.reopen()
	if err := l.apply(); err != nil {
		t.Fatal(err)
	}
	l.wantVerified()
	line := l.lines()[0]
	if line.Actor != "SYSTEM" || line.ActorKind != "system" || line.DecisionBy != "ARCHITECT-REVIEWER" ||
		line.Task != string(taskID) || line.From != "feature_review" || line.Reason != "apply handoff result" ||
		line.IntentID != string(resultID) || line.RunID != string(runID) || line.SchemaSHA256 != l.schema.SHA256 {
		t.Errorf("journal line %+v", line)
	}
	if got := l.result().Details.DestinationRevision; got == "" || l.store.View().Run(runID).DomainProgress == nil {
		t.Errorf("revision %q, progress %+v", got, l.store.View().Run(runID).DomainProgress)
	}
	var merge string
	if err := json.Unmarshal(l.result().Details.Extra["merge_commit"], &merge); err != nil || merge != l.git(l.root, "rev-parse", "main") {
		t.Errorf("merge on the receipt %q %v", merge, err)
	}
	if err := l.apply(); err != nil {
		t.Errorf("again: %v", err)
	}
	l.wantVerified()
}

// E-204
func TestNewBlockSaysWhereItComesFrom(t *testing.T) {
	l := newLab(t)
	l.review()
	run := l.store.View().Run(runID)
	if err := l.apply(); err != nil {
		t.Fatal(err)
	}
	task, err := l.tree.ReadCurrent(taskID)
	if err != nil {
		t.Fatal(err)
	}
	b := task.Latest("review")
	for _, want := range []string{string(runID), string(resultID), string(run.TaskRevision), l.schema.SHA256, "SYSTEM"} {
		if !strings.Contains(string(task.Bytes), want) {
			t.Errorf("the task file does not name %s", want)
		}
	}
	if b.By != "ARCHITECT-REVIEWER" || b.At == "" || !b.Fields.Has("provenance") || b.Text("reviewed_by") != "ARCHITECT-REVIEWER" {
		t.Errorf("block %+v", b)
	}
}

// state is everything of a task that a refused decision must leave as it was.
func (l *lab) state() string {
	l.t.Helper()
	journal, err := os.ReadFile(filepath.Join(l.project.Runtime, "journal.ndjson"))
	if err != nil && !os.IsNotExist(err) {
		l.t.Fatal(err)
	}
	text := l.queues() + "\n" + string(journal) + l.git(l.root, "for-each-ref") + l.git(l.root, "status", "--porcelain")
	for _, q := range strings.Fields(l.queues()) {
		text += l.read(l.taskFile(q))
	}
	if _, err := os.Stat(l.worktree()); err == nil {
		text += l.git(l.worktree(), "status", "--porcelain")
	}
	return text
}

// E-162 E-212
func TestDecisionAboutAnotherRevisionIsRejected(t *testing.T) {
	cases := map[string]func(l *lab){
		"edited": func(l *lab) {
			l.write(l.taskFile("feature_review"), l.read(l.taskFile("feature_review"))+"# by hand\n")
		},
		"broken": func(l *lab) { l.write(l.taskFile("feature_review"), "{") },
		"moved": func(l *lab) {
			if err := os.MkdirAll(filepath.Join(l.project.Runtime, "feature_dev"), 0o755); err != nil {
				l.t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(l.root, l.taskFile("feature_review")), filepath.Join(l.root, l.taskFile("feature_dev"))); err != nil {
				l.t.Fatal(err)
			}
		},
		"gone": func(l *lab) {
			if err := os.Remove(filepath.Join(l.root, l.taskFile("feature_review"))); err != nil {
				l.t.Fatal(err)
			}
		},
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.review()
			spoil(l)
			before := l.state()
			wantCode(t, l.apply(), refusal.CodeResultRejected, string(taskID), "run retry run1")
			if got := l.result(); got.Status != "rejected" || got.Details.Error == "" {
				t.Errorf("result %s %+v", got.Status, got.Details)
			}
			if after := l.state(); after != before {
				t.Errorf("something changed:\n%s\nbefore:\n%s", after, before)
			}
			if l.store.View().Operation(runstore.OperationID(resultID)) != nil {
				t.Error("an operation was recorded")
			}
		})
	}
}

// E-195
func TestResultWaitsForTheEndOfItsRun(t *testing.T) {
	l := newLab(t)
	l.put("feature_review", planBlock, implementationBlock, testsBlock)
	l.runs("ARCHITECT-REVIEWER", l.root)
	l.receive("no_change", `{}`)
	before := l.state()
	wantCode(t, l.apply(), refusal.CodeResultBusy, "run1")
	if got := l.result(); got.Status != "received" || got.Validation != nil || l.state() != before {
		t.Errorf("result %s %+v", got.Status, got.Validation)
	}
	l.end()
	if err := l.apply(); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]uint64{}
	for _, e := range l.store.View().Events(0, 1000) {
		kinds[e.Kind] = e.Sequence
	}
	order := []string{"result_received", "completed", "result_validation_started", "result_validation_completed", "result_applying", "result_applied"}
	for i := 1; i < len(order); i++ {
		if kinds[order[i]] == 0 || kinds[order[i-1]] >= kinds[order[i]] {
			t.Errorf("%s (%d) is not after %s (%d)", order[i], kinds[order[i]], order[i-1], kinds[order[i-1]])
		}
	}
	if v := l.result().Validation; v == nil || v.Attempts != 1 || v.Valid == nil || !*v.Valid || v.Seconds == nil {
		t.Errorf("validation %+v", v)
	}
}

// E-197
func TestAnAgentAndAnOperatorGetTheSameVerdict(t *testing.T) {
	l := newLab(t)
	l.put("feature_dev", planBlock)
	l.git(l.root, "worktree", "add", "-q", "-b", "task/0001-sample", l.worktree(), "main")
	l.writeIn(l.worktree(), "a.txt", "ours\n")
	run := l.runs("DEVELOPER", l.worktree())
	good := map[string]any{"base_commit": "x", "files": []any{"a.txt"}, "ready_for_test": true}
	cases := map[string]struct {
		kind string
		set  map[string]any // nil removes
		good bool
	}{
		"good":             {"implementation", nil, true},
		"unchanged file":   {"implementation", map[string]any{"files": []any{"k.txt"}}, false},
		"path outside":     {"implementation", map[string]any{"files": []any{"../a.txt"}}, false},
		"no flag":          {"implementation", map[string]any{"ready_for_test": nil}, false},
		"flag of a string": {"implementation", map[string]any{"ready_for_test": "yes"}, false},
		"sentinel commit":  {"implementation", map[string]any{"base_commit": "unknown-git-worktree"}, false},
		"other role":       {"implementation", map[string]any{"closed_by": "TESTER"}, false},
		"reserved":         {"implementation", map[string]any{"by": "DEVELOPER"}, false},
		"other kind":       {"review", nil, false},
		"unknown kind":     {"opinion", nil, false},
	}
	original := l.read(l.taskFile("feature_dev"))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			block, fields := map[string]any{"kind": c.kind}, tasks.Fields{}
			for _, key := range []string{"base_commit", "files", "ready_for_test", "closed_by", "by"} {
				value, given := good[key]
				if changed, ok := c.set[key]; ok {
					value, given = changed, changed != nil
				}
				if given {
					block[key], fields = value, append(fields, tasks.Field{Key: key, Value: value})
				}
			}
			payload, err := json.Marshal(map[string]any{"to_queue": "feature_test", "blocks": []any{block}})
			if err != nil {
				t.Fatal(err)
			}
			reasons, err := l.applier.Check(l.ctx(), run, l.envelope("handoff", string(payload)))
			if err != nil {
				t.Fatal(err)
			}
			_, err = l.tree.AppendBlock(l.ctx(), tasks.Operator{Role: "DEVELOPER", Evidence: l.applier}, tasks.NewBlock{ID: string(taskID), Kind: contract.BlockKind(c.kind), Fields: fields})
			l.write(l.taskFile("feature_dev"), original)
			if (len(reasons) == 0) != c.good || (err == nil) != c.good {
				t.Fatalf("the agent gets %v, the operator %v, want accepted %v", reasons, err, c.good)
			}
			if c.good {
				return
			}
			codes := map[refusal.Code]bool{}
			for _, r := range reasons {
				codes[r.Code] = true
			}
			if r, ok := refusal.Find(err); !ok || !codes[r.Code] {
				t.Errorf("the agent gets %v, the operator %v", reasons, err)
			}
		})
	}
}

// E-196 E-213
func TestCheckGivesEveryReasonAndChangesNothing(t *testing.T) {
	l := newLab(t)
	l.put("feature_review", planBlock, implementationBlock, testsBlock)
	run := l.runs("ARCHITECT-REVIEWER", l.root)
	bad := `{"to_queue":"feature_plan","artifacts":["../x","none.txt"],"command_evidence":["c9"],"blocks":[{"kind":"review","outcome":"perhaps"},{"kind":"plan"}]}`
	before, sequence := l.state(), l.store.View().Sequence()
	reasons, err := l.applier.Check(l.ctx(), run, l.envelope("handoff", bad))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, r := range reasons {
		text += r.String() + "\n"
	}
	for _, want := range []string{"../x", "none.txt", "c9", "perhaps", "plan", "feature_plan"} {
		if !strings.Contains(text, want) {
			t.Errorf("no reason names %q:\n%s", want, text)
		}
	}
	if l.state() != before || l.store.View().Sequence() != sequence {
		t.Error("a check changed something")
	}
	if reasons, err := l.applier.Check(l.ctx(), run, l.envelope("no_change", `{"reason":"fine"}`)); err != nil || len(reasons) != 0 {
		t.Errorf("mended: %v %v", reasons, err)
	}
	l.receive("handoff", bad)
	l.end()
	wantCode(t, l.apply(), refusal.CodeResultRejected, "none.txt", "perhaps", "c9")
	if got := l.result().Details.Error; got != strings.TrimSuffix(text, "\n") {
		t.Errorf("application says\n%s\nthe check said\n%s", got, text)
	}
	if l.state() != before {
		t.Error("a rejected decision changed something")
	}
}

func TestCheckTellsAStaleTask(t *testing.T) {
	l := newLab(t)
	l.put("feature_review", planBlock)
	run := l.runs("ARCHITECT-REVIEWER", l.root)
	l.put("feature_review", planBlock, planBlock)
	reasons, err := l.applier.Check(l.ctx(), run, l.envelope("no_change", `{}`))
	if err != nil || len(reasons) != 1 || reasons[0].Code != refusal.CodeRevisionStale {
		t.Errorf("got %v %v", reasons, err)
	}
}

// E-209 E-210
func TestDecisionsThatMoveNothing(t *testing.T) {
	for kind, payload := range map[string]string{"needs_input": `{"question":"which colour?"}`, "no_change": `{"reason":"already there"}`} {
		t.Run(kind, func(t *testing.T) {
			l := newLab(t)
			l.put("feature_review", planBlock, implementationBlock, testsBlock)
			before := l.read(l.taskFile("feature_review"))
			l.decide(decided{"ARCHITECT-REVIEWER", l.root, kind, payload})
			if err := l.apply(); err != nil {
				t.Fatal(err)
			}
			d := l.result().Details
			if l.result().Status != "applied" || path.Dir(d.Destination) != "feature_review" || d.Decision != kind {
				t.Errorf("result %s %+v", l.result().Status, d)
			}
			if kind == "needs_input" && (d.Question == nil || *d.Question != "which colour?") {
				t.Errorf("question %v", d.Question)
			}
			if l.read(l.taskFile("feature_review")) != before || l.queues() != "feature_review" {
				t.Error("the task changed")
			}
			if lines := l.lines(); len(lines) != 1 || lines[0].From != lines[0].To {
				t.Errorf("journal %+v", lines)
			}
			if l.store.View().Run(runID).DomainProgress != nil {
				t.Error("a decision that moves nothing counts as progress")
			}
		})
	}
}

// E-207 E-208
func TestHandoffAndBlockedMoveTheTask(t *testing.T) {
	t.Run("E-207 handoff", func(t *testing.T) {
		l := newLab(t)
		l.put("feature_dev", planBlock)
		l.git(l.root, "worktree", "add", "-q", "-b", "task/0001-sample", l.worktree(), "main")
		l.writeIn(l.worktree(), "a.txt", "ours\n")
		l.decide(decided{"DEVELOPER", l.worktree(), "handoff", `{"to_queue":"feature_test","artifacts":["a.txt"],"blocks":[{"kind":"implementation",` +
			`"base_commit":"` + l.git(l.root, "rev-parse", "main") + `","files":["a.txt"],"ready_for_test":true,"notes":"done"}]}`})
		if err := l.apply(); err != nil {
			t.Fatal(err)
		}
		task, err := l.tree.ReadCurrent(taskID)
		if err != nil || task.Queue != "feature_test" || task.Latest("implementation").Text("notes") != "done" {
			t.Fatalf("task %+v %v", task, err)
		}
		if got := task.Latest("implementation").Text("worktree_fingerprint"); len(got) != 32 {
			t.Errorf("fingerprint %q", got)
		}
		if a := l.result().Details.Artifacts; len(a) != 1 || a[0].Path != "a.txt" || len(a[0].SHA256) != 64 {
			t.Errorf("artifacts %+v", a)
		}
		if l.read(".worktrees/0001-sample/a.txt") != "ours\n" || l.merges() != "0" {
			t.Error("the worktree was touched")
		}
	})
	t.Run("E-208 blocked", func(t *testing.T) {
		l := newLab(t)
		l.put("feature_dev", planBlock)
		l.decide(decided{"DEVELOPER", l.root, "blocked", `{"reason":"waits","dependencies":["verified/0002-other.yaml"],"resume_to":"feature_dev"}`})
		if err := l.apply(); err != nil {
			t.Fatal(err)
		}
		task, err := l.tree.ReadCurrent(taskID)
		if err != nil || task.Queue != "feature_blocked" || task.Latest("blocked").Text("reason") != "waits" {
			t.Fatalf("task %+v %v", task, err)
		}
	})
}

// E-211
func TestArtifactMustBeAFileInsideTheWorkspace(t *testing.T) {
	l := newLab(t)
	l.put("feature_review", planBlock)
	outside := filepath.Join(l.top, "secret")
	l.writeIn(l.top, "secret", "s")
	for link, to := range map[string]string{"out": outside, "in": "a.txt", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(l.root, link)); err != nil {
			t.Fatal(err)
		}
	}
	run := l.runs("ARCHITECT-REVIEWER", l.root)
	for name, good := range map[string]bool{"a.txt": true, "in": true, "none": false, "out": false, "loop": false, ".git": false,
		"/etc/passwd": false, "../secret": false, outside: false, "x/../../secret": false, "": false} {
		payload, err := json.Marshal(map[string]any{"artifacts": []string{name}})
		if err != nil {
			t.Fatal(err)
		}
		reasons, err := l.applier.Check(l.ctx(), run, l.envelope("no_change", string(payload)))
		if err != nil || (len(reasons) == 0) != good {
			t.Errorf("%q: got %v %v, want accepted %v", name, reasons, err, good)
		}
	}
}

// recorded puts a finished command of the run into the store.
func (l *lab) recorded(id string, exit int) {
	l.t.Helper()
	err := l.store.Update(context.Background(), func(tx *runstore.Tx) error {
		if _, _, err := tx.RequestCommand(runstore.Command{ID: runstore.CommandID(id), RunID: runID, TaskID: runstore.TaskID(taskID), CommandID: "check"}); err != nil {
			return err
		}
		for _, status := range []string{"starting", "running"} {
			if err := tx.SetCommand(runstore.CommandID(id), status, nil); err != nil {
				return err
			}
		}
		status := "succeeded"
		if exit != 0 {
			status = "failed"
		}
		return tx.SetCommand(runstore.CommandID(id), status, func(c *runstore.Command) {
			c.ExitCode, c.Reason, c.Argv = &exit, "exit", []string{"go", "test"}
		})
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

func TestTestsCiteAFreshRecordedCommand(t *testing.T) {
	l := newLab(t)
	l.put("feature_test", planBlock, implementationBlock)
	l.git(l.root, "worktree", "add", "-q", "-b", "task/0001-sample", l.worktree(), "main")
	run := l.runs("TESTER", l.worktree())
	payload := func(cite string) string {
		return `{"to_queue":"feature_review","blocks":[{"kind":"tests","base_commit":"x","test_files":["a.txt"],"gate_check_result":"n/a",` +
			`"gate_check_at":"2026-01-05T09:15:00Z","gate_check_commit":"x","ready_for_review":true` + cite + `}]}`
	}
	verdict := func(cite string) string {
		t.Helper()
		reasons, err := l.applier.Check(l.ctx(), run, l.envelope("handoff", payload(cite)))
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, r := range reasons {
			text += r.String() + "\n"
		}
		return text
	}
	if got := verdict(`,"test_command":"true","test_result":"pass"`); !strings.Contains(got, "check") {
		t.Errorf("without a recorded command: %q", got)
	}
	l.recorded("c1", 0)
	if got := verdict(`,"command_request_id":"c1"`); got != "" {
		t.Errorf("fresh: %s", got)
	}
	l.stale["c1"] = "the source changed"
	if got := verdict(`,"command_request_id":"c1"`); !strings.Contains(got, "the source changed") {
		t.Errorf("stale: %q", got)
	}
	delete(l.stale, "c1")
	l.recorded("c2", 1)
	if got := verdict(`,"command_request_id":"c2","test_result":"pass"`); !strings.Contains(got, "fail") {
		t.Errorf("failed command called a pass: %q", got)
	}
	l.receive("handoff", payload(`,"command_request_id":"c1"`))
	l.end()
	if err := l.apply(); err != nil {
		t.Fatal(err)
	}
	if got := l.result().Details.CommandEvidence; len(got) != 1 || got[0] != "c1" {
		t.Errorf("evidence %v", got)
	}
}

// E-198
func TestDecisionIsJudgedByThePinnedSchema(t *testing.T) {
	l := newLab(t)
	l.put("feature_review", planBlock, implementationBlock, testsBlock)
	l.decide(decided{"ARCHITECT-REVIEWER", l.root, "handoff", `{"to_queue":"feature_dev","blocks":[{"kind":"review","outcome":"changes_requested","notes":"no"}]}`})
	var asked []string
	pinned := *l.schema
	pinned.Transitions = nil
	for _, tr := range l.schema.Transitions {
		if tr.From != "feature_review" {
			pinned.Transitions = append(pinned.Transitions, tr)
		}
	}
	l.schemaOf = func(sha string) (*contract.Schema, error) {
		asked = append(asked, sha)
		return &pinned, nil
	}
	wantCode(t, l.apply(), refusal.CodeResultRejected, "feature_review")
	if len(asked) == 0 || asked[0] != l.schema.SHA256 {
		t.Errorf("asked for %v, want the run's %s", asked, l.schema.SHA256)
	}
}
