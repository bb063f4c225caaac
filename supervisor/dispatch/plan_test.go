package dispatch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/contract"
	"greatminds/runstore"
	"greatminds/supervisor/dispatch"
	"greatminds/supervisor/policy"
	"greatminds/tasks"
)

// A plan says of every task what admission says of it alone, whichever tasks and bindings stand
// before it: of tasks with a history, too, whose runs were pinned to the binding.
func TestAPlanIsMadeOfSingleJudgements(t *testing.T) {
	l := newLab(t)
	// Turns without progress are repeated only while the contracts stay the same.
	text := strings.ReplaceAll(project, "scheduling: queue", "scheduling: queue, max_no_progress_turns: 3")
	l.contract(text)
	files := []tasks.Found{found("feature_dev", "0001-a"), found("feature_test", "0002-b"), found("feature_dev", "0003-c"), found("feature_test", "0004-d")}
	for i, binding := range []string{"dev2", "tester"} {
		run := l.claim(files[i], binding)
		l.to(run.Run.ID, runstore.Starting, runstore.Running, runstore.Completed)
	}
	var all []string
	for _, text := range []string{text, project} {
		l.contract(text)
		plan := dispatch.Plan(l.world, l.store.View(), files)
		if len(plan) != 6 {
			t.Fatalf("%d judgements, want one for each of two tasks and two developers, and two tasks and a tester", len(plan))
		}
		reasons := map[string]int{}
		for _, j := range plan {
			alone := dispatch.Judge(l.world, l.store.View(), j.Candidate)
			if diff := cmp.Diff(alone, j, cmp.AllowUnexported(contract.Number{})); diff != "" {
				t.Errorf("%s under %s (-alone +plan):\n%s", j.Task.ID, j.Binding.ID, diff)
			}
			reasons[j.Reason]++
		}
		all = append(all, fmt.Sprint(reasons))
	}
	if all[0] == all[1] || !strings.Contains(all[0], string(policy.NoProgressBackoff)) {
		t.Errorf("judgements %v, want a repeat under the first contract alone", all)
	}
}
