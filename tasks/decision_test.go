package tasks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"greatminds/internal/refusal"
	"greatminds/tasks"
)

func TestDecodeDecisionTakesCompactAndFullForms(t *testing.T) {
	for name, text := range map[string]string{
		"compact":   `{"decision":"no_change","payload":{"reason":"x"}}`,
		"result id": `{"result_id":"my-result.1","decision":"no_change","payload":{"reason":"x"}}`,
		"full": `{"result_id":"r1","run_id":"run","task_id":"0001-x","task_revision":"aa","schema_sha256":"bb",` +
			`"decision":"no_change","payload":{"reason":"x"}}`,
	} {
		e, err := tasks.DecodeDecision([]byte(text))
		if err != nil || e.Decision.Kind != "no_change" || e.Decision.Payload["reason"] != "x" {
			t.Errorf("%s: got %+v, %v", name, e, err)
		}
		if name == "full" && (e.ResultID != "r1" || e.RunID != "run" || e.TaskID != "0001-x" || e.TaskRevision != "aa" || e.SchemaSHA256 != "bb") {
			t.Errorf("the full envelope was read as %+v", e)
		}
	}
}

func TestDecodeDecisionRefusesWhatIsNoDecision(t *testing.T) {
	cases := map[string]struct {
		text string
		code refusal.Code
		word string
	}{
		"NaN":                {`{"decision":"no_change","payload":{"reason":NaN}}`, refusal.CodeDecisionForm, "JSON"},
		"Infinity":           {`{"decision":"no_change","payload":{"reason":-Infinity}}`, refusal.CodeDecisionForm, "JSON"},
		"two decisions":      {`{"decision":"no_change","decision":"blocked","payload":{}}`, refusal.CodeDecisionForm, "decision"},
		"deep duplicate":     {`{"decision":"handoff","payload":{"blocks":[{"kind":"a","x":{"y":1,"y":2}}]}}`, refusal.CodeDecisionForm, `"y"`},
		"role":               {`{"decision":"no_change","payload":{"role":"ARCHITECT-REVIEWER"}}`, refusal.CodeDecisionIdentity, "role"},
		"by":                 {`{"decision":"no_change","payload":{"by":"X"}}`, refusal.CodeDecisionIdentity, "by"},
		"run_id":             {`{"decision":"no_change","payload":{"run_id":"X"}}`, refusal.CodeDecisionIdentity, "run_id"},
		"task_revision":      {`{"decision":"no_change","payload":{"task_revision":"X"}}`, refusal.CodeDecisionIdentity, "task_revision"},
		"schema":             {`{"decision":"no_change","payload":{"schema_sha256":"X"}}`, refusal.CodeDecisionIdentity, "schema_sha256"},
		"unknown word":       {`{"decision":"done","payload":{}}`, refusal.CodeDecisionForm, "done"},
		"payload null":       {`{"decision":"no_change","payload":null}`, refusal.CodeDecisionForm, "payload"},
		"payload list":       {`{"decision":"no_change","payload":[]}`, refusal.CodeDecisionForm, "payload"},
		"no payload":         {`{"decision":"no_change"}`, refusal.CodeDecisionForm, "payload"},
		"no decision":        {`{"payload":{}}`, refusal.CodeDecisionForm, "decision"},
		"unknown field":      {`{"decision":"no_change","payload":{},"note":"x"}`, refusal.CodeDecisionForm, "note"},
		"role at the top":    {`{"decision":"no_change","payload":{},"role":"X"}`, refusal.CodeDecisionForm, "role"},
		"result id":          {`{"result_id":"../x","decision":"no_change","payload":{}}`, refusal.CodeDecisionForm, "result_id"},
		"result id number":   {`{"result_id":5,"decision":"no_change","payload":{}}`, refusal.CodeDecisionForm, "result_id"},
		"deep":               {`{"decision":"no_change","payload":{"reason":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}}`, refusal.CodeDecisionForm, "deep"},
		"trailing":           {`{"decision":"no_change","payload":{}} {}`, refusal.CodeDecisionForm, "follows"},
		"trailing brace":     {`{"decision":"no_change","payload":{}}}`, refusal.CodeDecisionForm, "follows"},
		"list":               {`[]`, refusal.CodeDecisionForm, "object"},
		"text":               {`"no_change"`, refusal.CodeDecisionForm, "object"},
		"nothing":            {``, refusal.CodeDecisionForm, "JSON"},
		"cut":                {`{"decision":"no_change","payload":{"reason":"x"`, refusal.CodeDecisionForm, "JSON"},
		"no UTF-8":           {"{\"decision\":\"no_change\",\"payload\":{\"reason\":\"\xff\"}}", refusal.CodeDecisionForm, "UTF-8"},
		"larger than a task": {`{"decision":"no_change","payload":{"reason":"` + strings.Repeat("x", tasks.MaxDecisionBytes) + `"}}`, refusal.CodeDecisionForm, "bytes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := tasks.DecodeDecision([]byte(c.text))
			r := refused(t, err, c.code)
			if !strings.Contains(r.Error(), c.word) || r.Remedy == "" {
				t.Errorf("got %q with remedy %q, want the word %q", r.Error(), r.Remedy, c.word)
			}
			if r.Status() != refusal.Invalid && r.Status() != refusal.Forbidden {
				t.Errorf("got status %d, want 2 or 3", r.Status())
			}
		})
	}
}

// The limits of the command line are the caller's; what comes by file may be larger.
func TestDecodeDecisionTakesLargeDecisions(t *testing.T) {
	for _, size := range []int{65536, 200 << 10} {
		head, tail := `{"decision":"no_change","payload":{"reason":"`, `"}}`
		text := head + strings.Repeat("x", size-len(head)-len(tail)) + tail
		if _, err := tasks.DecodeDecision([]byte(text)); err != nil || len(text) != size {
			t.Errorf("%d bytes: got %v", size, err)
		}
	}
}

func TestDecodeDecisionListsAllFaultsAtOnce(t *testing.T) {
	_, err := tasks.DecodeDecision([]byte(`{"decision":"done","payload":{"role":"X","by":"Y"},"a":1,"b":2}`))
	r, ok := refusal.Find(err)
	if !ok || len(r.Reasons) != 5 {
		t.Fatalf("got %v, want five reasons", err)
	}
}

func FuzzDecodeDecision(f *testing.F) {
	for _, seed := range []string{`{"decision":"no_change","payload":{"reason":"x"}}`, `{"decision":"handoff","payload":{"to_queue":"feature_test","blocks":[{"kind":"implementation","files":["a"],"n":1.5e300}]}}`,
		`{"decision":"blocked","payload":{"reason":"x","dependencies":[null],"resume_to":7}}`, `{"a":{"a":[[]]}}`, "\xef\xbb\xbf{}", `{"decision":"no_change","payload":{"role":1}}`} {
		f.Add([]byte(seed))
	}
	task := sampleFor(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := tasks.DecodeDecision(data)
		if err != nil {
			if r, ok := refusal.Find(err); !ok || r.What == "" {
				t.Fatalf("got %v, want a refusal", err)
			}
			return
		}
		checkEffect(t, task, e.Decision, tasks.Facts{Role: "DEVELOPER", RunID: "r", ResultID: "r-result"})
	})
}

// checkEffect holds Effect to what it promises for any decision: no panic, all or nothing, a
// file that reads back, and the same answer twice.
func checkEffect(t interface {
	Helper()
	Fatalf(string, ...any)
}, task *tasks.Task, d tasks.Decision, facts tasks.Facts) (tasks.Planned, []refusal.Reason) {
	t.Helper()
	before := string(task.Bytes)
	_ = tasks.Needs(testSchema, task, d)
	planned, reasons := tasks.Effect(testSchema, task, d, facts)
	again, reasons2 := tasks.Effect(testSchema, task, d, facts)
	if string(task.Bytes) != before || fmt.Sprint(planned) != fmt.Sprint(again) || fmt.Sprint(reasons) != fmt.Sprint(reasons2) {
		t.Fatalf("the second answer differs, or the task was changed:\n%v %v\n%v %v", planned, reasons, again, reasons2)
	}
	if len(reasons) > 0 {
		if fmt.Sprint(planned) != fmt.Sprint(tasks.Planned{}) {
			t.Fatalf("rejected for %v, and yet planned %+v", reasons, planned)
		}
		for _, r := range reasons {
			if r.What == "" || r.Code == "" {
				t.Fatalf("a reason without text or code: %+v", r)
			}
		}
		return planned, reasons
	}
	if wrong := against(tasks.DecisionSchema(testSchema, task, facts.Role), map[string]any{"decision": d.Kind, "payload": d.Payload}); wrong != "" {
		t.Fatalf("accepted, and yet the schema says %s of %v", wrong, d)
	}
	if planned.Artifacts == nil || planned.Commands == nil || planned.Moves != (planned.Destination != task.Queue) {
		t.Fatalf("got the plan %+v", planned)
	}
	after, err := tasks.Parse(testSchema, planned.Destination, tasks.FileOf(planned.Destination, task.ID), planned.After)
	if err != nil {
		t.Fatalf("the planned file is no valid task: %v\n%s", err, planned.After)
	}
	if len(after.Blocks) < len(task.Blocks) {
		t.Fatalf("blocks were lost:\n%s", planned.After)
	}
	return planned, nil
}

func TestTheContextListsFieldsAndRoutes(t *testing.T) {
	fields := tasks.DecisionFields()
	if len(fields) != 4 || !slices.Equal(fields["handoff"], []string{"artifacts", "blocks", "command_evidence", "reason", "to_queue"}) {
		t.Errorf("got %v", fields)
	}
	fields["handoff"][0] = "spoilt"
	if tasks.DecisionFields()["handoff"][0] != "artifacts" {
		t.Error("the list is shared with its callers")
	}
	generated := tasks.GeneratedFields()
	if !slices.Equal(generated["implementation"], []string{"closed_by", "closed_at", "worktree_fingerprint"}) || !slices.Equal(generated["blocked"], []string{"blocked_by", "blocked_at"}) {
		t.Errorf("got %v", generated)
	}
	moves := tasks.AllowedTransitions(testSchema, "feature_dev", "DEVELOPER")
	if len(moves) != 2 || moves[0].To != "feature_test" || moves[1].To != "feature_blocked" || len(moves[1].Requires) == 0 {
		t.Errorf("got %v, want the tester's queue and the blocked one", moves)
	}
	if got := tasks.AllowedTransitions(testSchema, "verified", "DEVELOPER"); got == nil || len(got) != 0 {
		t.Errorf("got %v, want an empty list", got)
	}
}
