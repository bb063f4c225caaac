package setup

import (
	"fmt"
	"slices"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// Preset is a roster of bindings for one way of working.
type Preset struct {
	ID          string          `json:"id"`
	Description string          `json:"description"`
	Bindings    []PresetBinding `json:"bindings"`
}

// PresetBinding is one binding of a preset; its agent is named when the preset is used.
type PresetBinding struct {
	ID         string        `json:"id"`
	Role       contract.Role `json:"role"`
	Scheduling string        `json:"scheduling"`
}

// PresetList is the answer of `project presets`.
type PresetList struct {
	Version int      `json:"version"`
	Presets []Preset `json:"presets"`
}

// roster is every binding that a preset can have. A planner and whoever works on a stand with a
// person is started by hand; the others when a task waits for them.
var roster = []PresetBinding{
	{"planner", "ARCHITECT-PLANNER", contract.SchedulingOnDemand},
	{"reviewer", "ARCHITECT-REVIEWER", contract.SchedulingQueue},
	{"developer", "DEVELOPER", contract.SchedulingQueue},
	{"tester", "TESTER", contract.SchedulingQueue},
	{"ui-developer", "UI-DEVELOPER", contract.SchedulingQueue},
	{"writer", "TECHNICAL-WRITER", contract.SchedulingQueue},
	{"reader", "READER", contract.SchedulingQueue},
	{"live-developer", "LIVE-DEVELOPER", contract.SchedulingOnDemand},
	{"explorer", "EXPLORER", contract.SchedulingQueue},
	{"maintainer", "MAINTAINER", contract.SchedulingOnDemand},
}

// Presets lists the presets. Spec: reference "Presets".
func Presets() PresetList {
	preset := func(id, description string, names ...string) Preset {
		p := Preset{ID: id, Description: description}
		for _, name := range names {
			i := slices.IndexFunc(roster, func(b PresetBinding) bool { return b.ID == name })
			p.Bindings = append(p.Bindings, roster[i])
		}
		return p
	}
	return PresetList{Version: 1, Presets: []Preset{
		preset("local", "Code: planned, implemented, tested by a configured command, reviewed.",
			"planner", "reviewer", "developer", "tester"),
		preset("ui", "User interface: as local, with a developer of its own; each plan says whether a stand is needed.",
			"planner", "reviewer", "ui-developer", "tester"),
		preset("docs", "Documentation: written, followed by a reader, reviewed.",
			"planner", "reviewer", "writer", "reader"),
		preset("deployed", "Code and user interface, looked at on a stand; the stand is configured separately.",
			"planner", "reviewer", "developer", "tester", "ui-developer", "live-developer", "explorer"),
		preset("full", "Every role: code, user interface, documentation, stand and maintenance.",
			"planner", "reviewer", "developer", "tester", "ui-developer", "writer", "reader", "live-developer", "explorer", "maintainer"),
	}}
}

func presetNamed(id string) (Preset, error) {
	var names []string
	for _, p := range Presets().Presets {
		if p.ID == id {
			return p, nil
		}
		names = append(names, p.ID)
	}
	return Preset{}, refusal.New(refusal.CodePresetUnknown, "use one of "+strings.Join(names, ", "), "there is no preset %q", id)
}

// block is the preset as the value of `bindings`, indented by two blanks. Every binding has exactly
// four keys, and behind them those that its agent needs.
func (p Preset) block(agent string, needs []bindingKey) string {
	var b strings.Builder
	for _, x := range p.Bindings {
		fmt.Fprintf(&b, "  %s:\n    role: %s\n    scheduling: %s\n    agent: '%s'\n    permission: ask\n", x.ID, x.Role, x.Scheduling, agent)
		for _, k := range needs {
			fmt.Fprintf(&b, "    %s: %s\n", k.name, scalar(k.value))
		}
	}
	return b.String()
}
