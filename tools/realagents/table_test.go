package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func exit(n int) *int { return &n }

// mergedRow is a row of an agent that did its part.
func mergedRow() row {
	return row{
		Agent: "sample", Pipeline: merged, PipelineAt: &noon, Mode: "ask", Packages: []string{"sample@1.2.3"}, AgentInfo: []string{"sample-agent 1.2.3"},
		Permissions: []permission{
			{Role: "DEVELOPER", Tool: "edit", Options: []option{{"yes", "allow_once"}, {"ever", "allow_always"}}, Chosen: "yes", Status: exit(0)},
			{Role: "TESTER", Tool: "execute", Options: []option{{"a|b", "allow_once"}}, Chosen: "a|b", Status: exit(0)},
		},
		Merge: "0123456789abcdef0123456789abcdef01234567", File: "AGENT.txt", Changed: []string{"AGENT.txt", "greeter.go"},
		ModelRequests: 7, AssignedRequests: 6, InstallSeconds: 1.25, Seconds: 12.34, Note: "a note", Lacks: "bwrap (get it)",
		Cells: []cell{
			{Scenario: "text", At: noon, Expected: scenarios[0].want, Seen: scenarios[0].want, Permissions: []permission{}, Seconds: 1.25},
			{Scenario: "rejected", At: noon, Expected: facts{"run": "cancelled agent_cancelled", "task": "stays"}, Why: "a rejection cancels its turn",
				Seen: facts{"run": "failed timeout", "task": "stays"}, Permissions: []permission{{Tool: "edit", Chosen: "no<b>"}},
				Seconds: 3, Error: `run: "failed timeout", want "cancelled agent_cancelled"`, Kept: "/tmp/kept"},
		},
	}
}

func TestTheTablesShowEachRow(t *testing.T) {
	lost := newRow(recipe{name: "lost", packages: []string{"lost@0.0.1"}})
	lost.Error = "npm install\nended with status 1"
	rows := []row{mergedRow(), lost}
	for file, got := range map[string]string{"testdata/table.md": markdownTable(rows), "testdata/table.json": jsonTable(rows)} {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s: want -, got +\n%s", file, diff)
		}
	}
	var doc struct{ Agents []row }
	if err := json.Unmarshal([]byte(jsonTable(rows)), &doc); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rows, doc.Agents); diff != "" {
		t.Errorf("the JSON reads back as\n%s", diff)
	}
}

func TestARowCountsOnlyWithAllItsEvidence(t *testing.T) {
	if err := mergedRow().missing(); err != nil {
		t.Errorf("a whole row: %v", err)
	}
	for _, c := range []struct {
		name string
		take func(*row)
		want string
	}{
		{"no request at all", func(r *row) { r.ModelRequests, r.AssignedRequests = 0, 0 }, "the model stand-in saw no request"},
		{"side requests alone", func(r *row) { r.AssignedRequests = 0 }, "the model stand-in saw no request with the assignment"},
		{"no name", func(r *row) { r.AgentInfo = nil }, "the agent did not say its name on the wire"},
		{"no question", func(r *row) { r.Permissions = nil }, "the agent asked for no permission"},
		{"a refused answer", func(r *row) { r.Permissions[1].Status = exit(3) }, "a permission was not answered"},
		{"a question left open", func(r *row) { r.Permissions[0].Status = nil }, "a permission was not answered"},
		{"no merge", func(r *row) { r.Merge = "" }, "there is no merge with the agent's file"},
		{"a merge without the file", func(r *row) { r.File = "" }, "there is no merge with the agent's file"},
		{"nothing", func(r *row) { *r = row{} }, "the model stand-in saw no request\nthe agent did not say its name on the wire\n" +
			"the agent asked for no permission\nthere is no merge with the agent's file"},
	} {
		r := mergedRow()
		c.take(&r)
		if err := r.missing(); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestAnAnswerIsPickedByKind(t *testing.T) {
	for _, c := range []struct {
		name    string
		options []option
		want    string
	}{
		{"the lasting one comes first", []option{{"always", "allow_always"}, {"once", "allow_once"}, {"no", "reject_once"}}, "once"},
		{"ids mislead", []option{{"allow_once", "reject_once"}, {"deny", "allow_once"}}, "deny"},
		{"the first of two", []option{{"1", "allow_once"}, {"2", "allow_once"}}, "1"},
		{"only lasting ones", []option{{"always", "allow_always"}, {"no", "reject_once"}}, ""},
		{"none", nil, ""},
	} {
		got, err := pick(c.options, "allow_once")
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: picks %q, %v; want %q", c.name, got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "no option of kind allow_once among") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
