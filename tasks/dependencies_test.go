package tasks_test

import (
	"os"
	"path/filepath"
	"testing"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/tasks"
)

func TestResumeByHandWaitsForTheDependencies(t *testing.T) {
	l := newDesk(t)
	l.planned("feature", "backend", "DEVELOPER")
	op := as("DEVELOPER")
	block := tasks.NewBlock{ID: "1", Kind: "blocked", Fields: tasks.Fields{{Key: "reason", Value: "waits"}, {Key: "dependencies", Value: "verified/0002-dep.yaml"}, {Key: "resume_to", Value: "feature_dev"}}}
	_, err := l.tree.Mv(bg, op, "1", "feature_blocked", "")
	refused(t, err, refusal.CodeCheckFailed)
	if _, err := l.tree.AppendBlock(bg, op, block); err != nil {
		t.Fatal(err)
	}
	if _, err := l.tree.Mv(bg, op, "1", "feature_blocked", ""); err != nil {
		t.Fatal(err)
	}
	reviewer := as("ARCHITECT-REVIEWER")
	states := map[string]tasks.DependencyStatus{"": tasks.DependencyMissing, "feature_dev": tasks.DependencyWaiting, "archive": tasks.DependencyWrongTerminal}
	for _, place := range []string{"", "feature_dev", "archive"} {
		if place != "" {
			l.put(place, "0002-dep.yaml", at("0002-dep", sampleTask))
		}
		facts, err := l.tree.Dependencies([]string{"verified/0002-dep.yaml", "odd"})
		if err != nil || facts["verified/0002-dep.yaml"].Status != states[place] || facts["odd"].Status != tasks.DependencyMalformed {
			t.Errorf("in %q: got %v, %v", place, facts, err)
		}
		_, err = l.tree.Mv(bg, reviewer, "1", "feature_dev", "")
		refused(t, err, refusal.CodeCheckFailed)
		if place != "" {
			if err := os.Remove(filepath.Join(l.project.Runtime, place, "0002-dep.yaml")); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.put("verified", "0002-dep.yaml", at("0002-dep", sampleTask))
	_, err = l.tree.Mv(bg, reviewer, "1", "feature_plan", "")
	refused(t, err, refusal.CodeCheckFailed)
	if _, err := l.tree.Mv(bg, reviewer, "1", "feature_dev", ""); err != nil {
		t.Error(err)
	}
}

func TestJudgeDependency(t *testing.T) {
	here := func(q contract.Queue) tasks.Location { return tasks.Location{Queue: q, Valid: true, Revision: "r"} }
	for _, c := range []struct {
		declared string
		at       []tasks.Location
		want     tasks.DependencyStatus
	}{
		{"verified/0001-x.yaml", []tasks.Location{here("verified")}, tasks.DependencySatisfied},
		{"archive/0001-x.yaml", []tasks.Location{here("archive")}, tasks.DependencySatisfied},
		{"verified/0001-x.yaml", nil, tasks.DependencyMissing},
		{"verified/0001-x.yaml", []tasks.Location{here("archive")}, tasks.DependencyWrongTerminal},
		{"verified/0001-x.yaml", []tasks.Location{here("feature_blocked")}, tasks.DependencyWaiting},
		{"feature_dev/0001-x.yaml", []tasks.Location{here("feature_dev")}, tasks.DependencyActive},
		{"verified/0001-x.yaml", []tasks.Location{here("verified"), here("archive")}, tasks.DependencyAmbiguous},
		{"verified/0001-x.yaml", []tasks.Location{{Queue: "verified", Legacy: true}}, tasks.DependencyMigration},
		{"verified/0001-x.yaml", []tasks.Location{{Queue: "verified"}}, tasks.DependencyMalformed},
		{"nowhere/0001-x.yaml", []tasks.Location{here("verified")}, tasks.DependencyMalformed},
		{"x", []tasks.Location{here("verified")}, tasks.DependencyMalformed},
	} {
		if got := tasks.JudgeDependency(testSchema, c.declared, c.at); got.Status != c.want || (got.Revision != "") != (c.want == tasks.DependencySatisfied) {
			t.Errorf("%s at %v: got %+v, want %s", c.declared, c.at, got, c.want)
		}
	}
}
