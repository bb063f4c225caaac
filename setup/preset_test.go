package setup_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/refusal"
	"greatminds/setup"
)

const withAgent = `# ours
version: 1
agents: # how to start them
  a: {transport: acp, argv: [my-agent], adapter_version: "1", harness_version: "1"}
bindings: {} # none yet
max_running: 7 # a lot
`

func project(t *testing.T, text string) contract.Project {
	t.Helper()
	dir := realTemp(t)
	done(t, dir)
	write(t, filepath.Join(dir, "coordination/execution.yaml"), text)
	p, err := contract.OpenProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func use(t *testing.T, p contract.Project, preset, agent string, apply bool) (setup.PresetReport, error) {
	t.Helper()
	return setup.UsePreset(t.Context(), setup.PresetRequest{Project: p, Disk: durable.NewDisk(nil), Preset: preset, Agent: agent, Apply: apply})
}

func TestPresetRosters(t *testing.T) {
	const q, o = "queue", "on-demand"
	planner, reviewer, tester := "planner ARCHITECT-PLANNER "+o, "reviewer ARCHITECT-REVIEWER "+q, "tester TESTER "+q
	developer, ui := "developer DEVELOPER "+q, "ui-developer UI-DEVELOPER "+q
	writer, reader := "writer TECHNICAL-WRITER "+q, "reader READER "+q
	live, explorer, maintainer := "live-developer LIVE-DEVELOPER "+o, "explorer EXPLORER "+q, "maintainer MAINTAINER "+o
	want := map[string][]string{
		"local":    {planner, reviewer, developer, tester},
		"ui":       {planner, reviewer, ui, tester},
		"docs":     {planner, reviewer, writer, reader},
		"deployed": {planner, reviewer, developer, tester, ui, live, explorer},
		"full":     {planner, reviewer, developer, tester, ui, writer, reader, live, explorer, maintainer},
	}
	got, order := map[string][]string{}, []string{}
	for _, p := range setup.Presets().Presets {
		order = append(order, p.ID)
		for _, b := range p.Bindings {
			got[p.ID] = append(got[p.ID], b.ID+" "+string(b.Role)+" "+b.Scheduling)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("rosters (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"local", "ui", "docs", "deployed", "full"}, order); d != "" {
		t.Fatalf("order (-want +got):\n%s", d)
	}
}

func TestPresetFillsInBindingsAndKeepsTheRest(t *testing.T) {
	p := project(t, withAgent)
	shown, err := use(t, p, "docs", "a", false)
	if err != nil {
		t.Fatal(err)
	}
	if read(t, p.ExecutionPath()) != withAgent {
		t.Fatal("showing a preset wrote it")
	}
	applied, err := use(t, p, "docs", "a", true)
	if err != nil {
		t.Fatal(err)
	}
	// What the original prints for the same contract and preset.
	const golden = "e6e7436e4deaca0917fe53a13f55158b55a6f11a4f1d1bf7d7940727bec24047"
	for _, r := range []setup.PresetReport{shown, applied} {
		if r.Version != 1 || r.Preset != "docs" || !r.Changed || r.ExecutionSHA256 != golden || r.SchemaSHA256 != contract.EmbeddedSchema().SHA256 {
			t.Errorf("report %+v", r)
		}
	}
	if shown.Applied || !applied.Applied {
		t.Errorf("applied: %v shown, %v applied", shown.Applied, applied.Applied)
	}
	text := read(t, p.ExecutionPath())
	head := "# ours\nversion: 1\nagents: # how to start them\n  a: {transport: acp, argv: [my-agent], adapter_version: \"1\", harness_version: \"1\"}\nbindings: # none yet\n  planner:\n    role: ARCHITECT-PLANNER\n    scheduling: on-demand\n    agent: 'a'\n    permission: ask\n  reviewer:\n"
	if !strings.HasPrefix(text, head) || !strings.HasSuffix(text, "    permission: ask\nmax_running: 7 # a lot\n") {
		t.Fatalf("the contract became\n%s", text)
	}
	var document struct {
		Agents     map[string]json.RawMessage
		Bindings   map[string]map[string]string
		MaxRunning int `json:"max_running"`
	}
	if err := json.Unmarshal(applied.Execution, &document); err != nil || document.MaxRunning != 7 || len(document.Agents) != 1 {
		t.Fatalf("document %s (%v)", applied.Execution, err)
	}
	if d := cmp.Diff(map[string]string{"role": "READER", "scheduling": "queue", "agent": "a", "permission": "ask"}, document.Bindings["reader"]); d != "" {
		t.Fatalf("binding (-want +got):\n%s", d)
	}
	again, err := use(t, p, "docs", "a", true)
	if err != nil || again.Changed || !again.Applied || again.ExecutionSHA256 != golden || read(t, p.ExecutionPath()) != text {
		t.Fatalf("applied again: %+v %v", again, err)
	}
}

func TestPresetRefusals(t *testing.T) {
	p := project(t, withAgent)
	_, err := use(t, p, "everything", "a", true)
	refused(t, err, refusal.CodePresetUnknown, refusal.Invalid, "everything", "local, ui, docs, deployed, full")
	_, err = use(t, p, "local", "b", true)
	refused(t, err, refusal.CodePresetAgent, refusal.Invalid, `"b"`)
	if _, err := use(t, p, "local", "a", true); err != nil {
		t.Fatal(err)
	}
	text := read(t, p.ExecutionPath())
	for _, apply := range []bool{false, true} {
		_, err = use(t, p, "full", "a", apply)
		refused(t, err, refusal.CodePresetBindings, refusal.Invalid, "4 bindings", "full")
	}
	if read(t, p.ExecutionPath()) != text {
		t.Fatal("a refusal wrote")
	}
	for _, flow := range []string{`{version: 1, agents: {a: {transport: acp, argv: [x], adapter_version: v, harness_version: v}}, bindings: {}}` + "\n",
		strings.Replace(withAgent, "bindings: {}", "bindings:\n  {}", 1), strings.Replace(withAgent, "{} #", "{\n  } #", 1)} {
		odd := project(t, flow)
		_, err = use(t, odd, "local", "a", true)
		refused(t, err, refusal.CodeSetupEdit, refusal.Invalid, "bindings: {}")
		if read(t, odd.ExecutionPath()) != flow {
			t.Fatal("a refusal wrote")
		}
	}
	bare := contract.Project{Root: realTemp(t)}
	_, err = use(t, bare, "local", "a", true)
	refused(t, err, refusal.CodePresetUnset, refusal.Invalid, "greatminds setup")
	_, err = use(t, bare, "local", "a", false)
	refused(t, err, refusal.CodePresetUnset, refusal.Invalid, "greatminds setup")
}

// A contract whose last line has no line end, and one with carriage returns.
func TestPresetAtTheEndOfAFile(t *testing.T) {
	for _, text := range []string{
		strings.TrimSuffix(withAgent[:strings.Index(withAgent, " # none")], "\n"),
		strings.ReplaceAll(withAgent, "\n", "\r\n"),
		"\ufeff" + withAgent,
	} {
		p := project(t, text)
		r, err := use(t, p, "local", "a", true)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		c, err := contract.Load(p, "", contract.EmbeddedSchema())
		if err != nil || len(c.Bindings) != 4 || c.SHA256() != r.ExecutionSHA256 {
			t.Errorf("%q: %v", read(t, p.ExecutionPath()), err)
		}
	}
}
