package main

import (
	"fmt"
	"strings"
)

// facts are what was seen of a scene, or what is expected of it, each by its name.
type facts map[string]string

// factNames are all of them, in the order in which they are shown:
//
//	first    state and reason of the run before the last, where there are two
//	run      state and reason of the last run
//	stop     the stop reason of its turn, none without one
//	session  how its session was made
//	task     stays, or the queue that it is in
//	asked    number of permission requests
//	file     whether the file of the writing tool is there
//	child    whether the detached child was there while the turn ran
//	model    the model's name in the last request to the stand-in
//	left     programs of the run's processes that are left after its end
var factNames = []string{"first", "run", "stop", "session", "task", "asked", "file", "child", "model", "left"}

// String has the facts in their order.
func (f facts) String() string {
	var out []string
	for _, name := range factNames {
		if v, ok := f[name]; ok {
			out = append(out, name+": "+v)
		}
	}
	return strings.Join(out, ", ")
}

// differs says in what a scene is not as expected, empty for nothing. What is not expected is not
// compared.
func (f facts) differs(seen facts) string {
	var out []string
	for _, name := range factNames {
		if want, ok := f[name]; ok && seen[name] != want {
			out = append(out, fmt.Sprintf("%s: %q, want %q", name, seen[name], want))
		}
	}
	return strings.Join(out, "; ")
}

// deviation is what an agent comes to other than the rest, with the reason.
type deviation struct {
	agent, scenario string
	want            facts
	why             string
}

// expected is what the agent should come to, and why it is not what the others do.
func expected(r recipe, sc scenario) (facts, string) {
	want, why := facts{}, []string{}
	for name, value := range sc.want {
		want[name] = value
	}
	if sc.name == settingsName && r.set.wire != "" {
		want["model"] = r.set.wire
	}
	for _, d := range deviations {
		if d.agent != r.name || d.scenario != sc.name {
			continue
		}
		for name, value := range d.want {
			want[name] = value
		}
		why = append(why, d.why)
	}
	return want, strings.Join(why, "; ")
}
