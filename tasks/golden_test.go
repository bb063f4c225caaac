package tasks_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"greatminds/tasks"
)

var update = flag.Bool("update", false, "write the files of testdata anew")

// The files below testdata/ours were validated by the reference implementation.
func TestFilesThatWeWrite(t *testing.T) {
	l := newDesk(t)
	odd := "a rather long line that goes on well beyond the eighty columns at which a folding writer breaks it\n\n  indented\ttab\n# no comment\ntrailing space \nquotes ' \" \u00fc 漢 \U0001F600\u0085\u2028\x00\x1b end\n"
	l.must(l.tree.New(bg, as("TESTER"), tasks.NewTask{Stream: "product", Title: "yes", Kind: "bugfix", Scope: "ui", Description: odd, Hosts: []string{"null", "1.5", ""}, Reporter: "0x10"}))
	l.must(l.tree.New(bg, as("ARCHITECT-PLANNER"), tasks.NewTask{Stream: "review_session", Title: "- Look: at #it", TargetFunctionality: "~", Scenarios: []string{"a: b", "1e5"}, Description: " lead\n\n"}))
	l.planned("feature", "backend", "DEVELOPER")
	body := odd
	if _, err := l.tree.AppendBlock(bg, as("DEVELOPER"), tasks.NewBlock{ID: "3", Kind: "implementation", Body: &body, Fields: tasks.Fields{
		{Key: "base_commit", Value: "1234567"}, {Key: "files", Value: ""}, {Key: "ready_for_test", Value: "true"}, {Key: "odd key: #", Value: "{a: {b: [[], {}, -1.5e+300]}, c: null}"}}}); err != nil {
		t.Fatal(err)
	}
	task, err := l.tree.ReadCurrent("0003-planned-feature-backend")
	if err != nil {
		t.Fatal(err)
	}
	planned, _ := accepted(t, task, decide(t, "handoff", `{"to_queue":"feature_test","blocks":[`+strings.Replace(implPayload, `"done"`, `{"b":[1,2.5e-9,null,"\u0000"],"a":"x\ny\n"}`, 1)+`]}`), facts("DEVELOPER"))
	l.put("feature_test", "0003-planned-feature-backend.yaml", string(planned.After))
	if _, err := l.tree.Withdraw(bg, as("ARCHITECT-PLANNER"), "2", "no: need"); err != nil {
		t.Fatal(err)
	}
	for name, text := range l.everything() {
		if filepath.Ext(name) != ".yaml" || filepath.Dir(name) == "feature_dev" {
			continue
		}
		golden := filepath.Join("testdata", "ours", name)
		if *update {
			if err := errors.Join(os.MkdirAll(filepath.Dir(golden), 0o755), os.WriteFile(golden, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || string(want) != text {
			t.Errorf("%s: got\n%s\nwant\n%s (%v)", name, text, want, err)
		}
	}
}
