package main

import (
	"bytes"
	"strings"
	"testing"
)

// scenesOf runs the named scenarios with the test's own agent, and returns its row.
func scenesOf(t *testing.T, manners, names string) row {
	t.Helper()
	var out bytes.Buffer
	b := whole(t, "", &out)
	var o options
	if err := o.chooseScenarios(names); err != nil {
		t.Fatal(err)
	}
	b.pipeline, b.scenarios = o.pipeline, o.scenarios
	rows, err := b.run(t.Context(), []recipe{sampleRecipe("sample", manners, "%U")})
	if err != nil || len(rows) != 1 || len(rows[0].Cells) != len(b.scenarios) {
		t.Fatalf("rows %+v, %v\n%s", rows, err, out.String())
	}
	wantNoProcessOf(t, b.folder)
	return rows[0]
}

// The test's own agent does what is expected of all.
func TestScenesOfAnAgentThatDoesItsPart(t *testing.T) {
	got := scenesOf(t, "polite", "text,submit-cli,allowed,rejected,cancelled,detached")
	for _, c := range got.Cells {
		if c.Error != "" || c.Kept != "" || c.Seconds <= 0 || c.Why != "" {
			t.Errorf("%s: %+v", c.Scenario, c)
		}
	}
	if got.Error != "" || got.Pipeline != notRun || strings.Join(got.AgentInfo, ", ") != "sample-agent 1.2.3" {
		t.Errorf("the row is %+v", got)
	}
	if asked := got.cell("rejected").Permissions; len(asked) != 1 || asked[0].String() != "DEVELOPER, edit: ever (allow_always), now (allow_once), no (reject_once) → no, 0" {
		t.Errorf("the rejection was %v", asked)
	}
}

// It cannot load a session, and it dies of a model that fails: a cell that is not as expected fails
// the row, and says in what.
func TestASceneThatIsNotAsExpectedFailsTheRow(t *testing.T) {
	got := scenesOf(t, "polite", "killed,429")
	for name, want := range map[string]string{
		"killed": `session: "new_load_unavailable", want "loaded"`,
		"429":    `run: "failed transport_failure", want "failed timeout"`,
	} {
		c := got.cell(name)
		if c.Error != want || c.Kept == "" || !strings.Contains(got.Error, name+": "+want) {
			t.Errorf("%s: %+v, want %s\n%s", name, c, want, got.Error)
		}
	}
	killed := got.cell("killed").Seen
	if killed["first"] != "failed transport_failure" || killed["run"] != endedWell || killed["task"] != moved {
		t.Errorf("killed: %s", killed)
	}
	if seen := got.cell("429").Seen; seen["task"] != stays || seen["left"] != "nothing" {
		t.Errorf("429: %s", seen)
	}
}

// One that asks nobody is not taken for one that was allowed to.
func TestASceneWithoutAQuestionIsNotAllowed(t *testing.T) {
	got := scenesOf(t, "bold", "allowed")
	if c := got.cell("allowed"); c.Error != `asked: "0", want "1"` || c.Seen["file"] != "written" {
		t.Errorf("%+v", c)
	}
}

func TestScenariosAreChosenByName(t *testing.T) {
	for _, c := range []struct {
		args, want string
	}{
		{"", "pipeline"},
		{"--scenarios pipeline", "pipeline"},
		{"--scenarios killed,text", "killed text"},
		{"--scenarios killed,pipeline", "pipeline killed"},
		{"--lightest", "pipeline"},
		{"--lightest --scenarios text", "text"},
		{"--scenarios juggle", `no scenario named "juggle"`},
	} {
		o, err := parse(strings.Fields(c.args), &bytes.Buffer{})
		var got []string
		if o.pipeline {
			got = append(got, pipeline)
		}
		for _, sc := range o.scenarios {
			got = append(got, sc.name)
		}
		if err != nil {
			got = []string{err.Error()}
		}
		want := c.want
		if c.args == "" {
			for _, sc := range scenarios {
				want += " " + sc.name
			}
		}
		if text := strings.Join(got, " "); !strings.HasPrefix(text, want) || (err == nil && text != want) {
			t.Errorf("%q runs %q, want %q", c.args, text, want)
		}
	}
}

// A deviation names an agent and a scenario that there are, and differs from what it replaces.
func TestEachDeviationIsOne(t *testing.T) {
	seen := map[[2]string]bool{}
	for _, d := range deviations {
		_, err := find(d.agent)
		if seen[[2]string{d.agent, d.scenario}] || err != nil || d.why == "" || len(d.want) == 0 {
			t.Errorf("%s in %s: there twice, without a reason, or of nobody: %v", d.agent, d.scenario, err)
		}
		seen[[2]string{d.agent, d.scenario}] = true
		var o options
		if err := o.chooseScenarios(d.scenario); err != nil || len(o.scenarios) != 1 {
			t.Errorf("%s: %v", d.agent, err)
			continue
		}
		for name, want := range d.want {
			if o.scenarios[0].want[name] == want {
				t.Errorf("%s in %s: %s is what all are expected to come to", d.agent, d.scenario, name)
			}
		}
	}
}
