package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rowWith is a row of a known agent with cells that are told apart by their seconds.
func rowWith(agent, pipeline string, seconds float64, cells ...string) row {
	r := newRow(recipe{name: agent, packages: []string{"p@1.2.3"}})
	r.Pipeline, r.Seconds = pipeline, seconds
	for _, name := range cells {
		c := cell{Scenario: name, At: noon, Seen: facts{}, Expected: facts{}, Permissions: []permission{}, Seconds: seconds}
		if seconds < 0 {
			c.Error = "went wrong"
		}
		r.Cells = append(r.Cells, c)
	}
	r.Error = r.faults()
	return r
}

func TestAnUpdateKeepsWhatIsNotRunAnew(t *testing.T) {
	broken := newRow(recipe{name: "gemini", packages: []string{"p@1.2.3"}})
	broken.Error = "npm install failed"
	for _, c := range []struct {
		name           string
		old, now, want []row
	}{
		{"nothing before", nil, []row{rowWith("codex", merged, 2, "text")}, []row{rowWith("codex", merged, 2, "text")}},
		{"another agent, in the recipes' order", []row{rowWith("gemini", merged, 1)}, []row{rowWith("codex", notRun, 2, "text")},
			[]row{rowWith("codex", notRun, 2, "text"), rowWith("gemini", merged, 1)}},
		{"the same anew", []row{rowWith("codex", merged, -1, "text", "killed")}, []row{rowWith("codex", merged, 2, "killed", "text")},
			[]row{rowWith("codex", merged, 2, "text", "killed")}},
		{"an agent that no longer installs", []row{rowWith("gemini", merged, 1, "text")}, []row{broken}, []row{broken}},
	} {
		if diff := cmp.Diff(c.want, updated(c.old, c.now)); diff != "" {
			t.Errorf("%s: want -, got +\n%s", c.name, diff)
		}
	}
}

// What failed before and was not run again still counts as failed.
func TestAnUpdatedRowHasTheFaultsOfBoth(t *testing.T) {
	got := updated([]row{rowWith("codex", merged, -1, "text", "killed")}, []row{rowWith("codex", notRun, 2, "text")})
	if len(got) != 1 || got[0].Error != "killed: went wrong" || got[0].Pipeline != merged || got[0].cell("text").Seconds != 2 {
		t.Errorf("the row is %+v", got)
	}
}

func TestATableIsReadBackOrRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.json")
	if rows, err := readTable(file); err != nil || rows != nil {
		t.Errorf("without a file: %v, %v", rows, err)
	}
	for text, want := range map[string]string{"{": "unexpected end of JSON input", `{"version":2,"agents":[]}`: "has version 2, not 1"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readTable(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	want := []row{rowWith("codex", merged, 2, "text")}
	if err := os.WriteFile(file, []byte(jsonTable(want)), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readTable(file)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, want -, got +\n%s", err, diff)
	}
	if _, err := parse([]string{"--update"}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "--update needs --json") {
		t.Errorf("without a file to go on from: %v", err)
	}
}
