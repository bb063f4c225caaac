package tasks_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

// E-197: a decision of a run and the same block and move of an operator get the same verdict,
// for the same reasons.
func TestOperatorsAndRunsAreJudgedAlike(t *testing.T) {
	dev := stage{queue: "feature_dev", kind: "feature", scope: "backend", blocks: []string{plannedBlock}}
	test := stage{queue: "feature_test", kind: "feature", scope: "backend", blocks: []string{plannedBlock, implBlock}}
	stand := stage{queue: "feature_test", kind: "feature", scope: "backend", blocks: []string{standBlock, implBlock}}
	review := stage{queue: "feature_review", kind: "feature", scope: "backend", blocks: []string{plannedBlock, implBlock, testsBlock}}
	with := func(block, old, new string) string { return strings.Replace(block, old, new, 1) }
	cases := map[string]struct {
		stage     stage
		role      contract.Role
		to, block string
	}{
		"good":            {dev, "DEVELOPER", "feature_test", implPayload},
		"not ready":       {dev, "DEVELOPER", "feature_test", with(implPayload, "true", "false")},
		"missing field":   {dev, "DEVELOPER", "feature_test", with(implPayload, `"base_commit":"abc1234",`, "")},
		"file":            {dev, "DEVELOPER", "feature_test", with(implPayload, "a.go", "b.go")},
		"author":          {dev, "UI-DEVELOPER", "feature_test", implPayload},
		"no row":          {dev, "DEVELOPER", "verified", implPayload},
		"reserved":        {dev, "DEVELOPER", "feature_test", with(implPayload, `"notes"`, `"by":"X","notes"`)},
		"good tests":      {test, "TESTER", "feature_review", testsPayload},
		"hand-back":       {test, "TESTER", "feature_dev", with(testsPayload, `"pass"`, `"fail"`)},
		"hand-back scope": {test, "TESTER", "feature_ui_dev", with(testsPayload, `"pass"`, `"fail"`)},
		"hand-back pass":  {test, "TESTER", "feature_dev", testsPayload},
		"stand":           {stand, "TESTER", "feature_review", testsPayload},
		"approved":        {review, "ARCHITECT-REVIEWER", "verified", `{"kind":"review","outcome":"approved","commit":"abc1234"}`},
		"no commit":       {review, "ARCHITECT-REVIEWER", "verified", `{"kind":"review","outcome":"approved"}`},
		"changes":         {review, "ARCHITECT-REVIEWER", "feature_dev", `{"kind":"review","outcome":"changes_requested"}`},
		"blocked":         {dev, "DEVELOPER", "feature_blocked", `{"kind":"blocked","reason":"x","dependencies":["verified/0002-x.yaml"],"resume_to":"feature_dev"}`},
		"resume to end":   {dev, "DEVELOPER", "feature_blocked", `{"kind":"blocked","reason":"x","dependencies":["verified/0002-x.yaml"],"resume_to":"archive"}`},
	}
	accepted := 0
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			task := c.stage.task(t)
			_, reasons := checkEffect(t, task, decide(t, "handoff", `{"to_queue":"`+c.to+`","blocks":[`+c.block+`]}`), facts(c.role))

			l := newDesk(t)
			l.put(string(task.Queue), string(task.ID)+".yaml", string(task.Bytes))
			var object map[string]any
			if err := json.Unmarshal([]byte(c.block), &object); err != nil {
				t.Fatal(err)
			}
			block := tasks.NewBlock{ID: "1", Kind: contract.BlockKind(object["kind"].(string))}
			for key, v := range object {
				if key != "kind" {
					block.Fields = append(block.Fields, tasks.Field{Key: key, Value: v})
				}
			}
			_, err := l.tree.AppendBlock(bg, as(c.role), block)
			if err == nil {
				_, err = l.tree.Mv(bg, as(c.role), "1", contract.Queue(c.to), "")
			}
			if (err == nil) != (len(reasons) == 0) {
				t.Fatalf("a run gets %v, an operator %v", reasons, err)
			}
			if err == nil {
				accepted++
				return
			}
			r, _ := refusal.Find(err)
			if !slices.Contains(codes(reasons), string(r.Code)) {
				t.Errorf("a run gets %v, an operator %s: %v", reasons, r.Code, err)
			}
		})
	}
	if accepted < 5 {
		t.Errorf("only %d cases were accepted", accepted)
	}
}

// Of two who move one task at once, one moves it and the other hears where it is.
func TestOneOfTwoMoversWins(t *testing.T) {
	l := newDesk(t)
	l.newTask("One", "feature", "backend")
	l.newTask("Two", "feature", "backend")
	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, errs[i] = l.tree.Mv(bg, as("ARCHITECT-PLANNER"), "1", "archive", "")
		}()
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		refused(t, err, refusal.CodeTaskThere)
	}
	lines, err := l.tree.Journal()
	if won != 1 || err != nil || len(lines) != 3 {
		t.Errorf("%d won, and the journal has %d lines, %v", won, len(lines), err)
	}
}

// Numbers stay unique when many file at once.
func TestConcurrentIntakeGivesEachItsNumber(t *testing.T) {
	l := newDesk(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := l.tree.New(bg, as("TESTER"), tasks.NewTask{Stream: "product", Title: "Same title", Kind: "feature", Scope: "ui"}); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	list, err := l.tree.List("feature_inbox")
	if err != nil || len(list) != 8 || list[7].ID != "0008-same-title" {
		t.Errorf("got %v, %v", list, err)
	}
}
