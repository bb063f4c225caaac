package audit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"greatminds/supervisor/dispatch"
	"greatminds/supervisor/policy"
	"greatminds/supervisor/status"
)

// passing are the reasons of holds that end by themselves: time ends them, or the work that they
// wait for.
var passing = []string{
	dispatch.ActiveRun, dispatch.ResultUnresolved, dispatch.CommandUnresolved, dispatch.Stopping,
	dispatch.ProjectCapacity, dispatch.BindingCapacity, dispatch.AccountCapacity,
	string(policy.RetryBackoff), string(policy.NoProgressBackoff), string(policy.AccountBackoff), string(policy.AccountRateLimit),
}

// holds looks at everything that does not go on: it must say why, and what helps.
func (a *audit) holds() {
	for _, r := range a.View.OpenResults() {
		if h := r.Hold(); h != nil {
			a.hold("results", "result "+string(r.ID()), h.Code, h.What, h.Remedy, true)
		}
	}
	for _, s := range a.Assignments {
		if s.Reason != dispatch.Ready {
			a.hold("assignments", "task "+s.TaskID, s.Reason, s.What, s.Remedy, !slices.Contains(passing, s.Reason))
		}
	}
}

// hold judges the words of one hold.
func (a *audit) hold(component, place, reason, what, remedy string, need bool) {
	bad := func(format string, args ...any) {
		a.add(Finding{Component: component, Code: "hold_without_way_out", Severity: Error, Place: place, Remedy: reportIt,
			What: fmt.Sprintf("the hold %q of %s ", reason, place) + fmt.Sprintf(format, args...)})
	}
	if what == "" || reason == "" {
		bad("does not say why")
	}
	if remedy == "" && need {
		bad("does not say what helps")
	}
	for _, line := range commandLines(remedy) {
		if a.Command != nil && !a.Command(line) {
			bad("names %q, which is no command", line)
		}
	}
}

var ourCommand = regexp.MustCompile("greatminds( [a-z][a-z-]*)+")

// commandLines are the commands of ours that a text names.
func commandLines(text string) []string { return ourCommand.FindAllString(text, -1) }

// uncertain lists what a person has to decide about, with the commands that do so.
func (a *audit) uncertain() {
	for _, r := range status.Recoveries(a.View) {
		component := map[string]string{"result": "results", "operation": "maintenance", "command": "commands"}[r.Kind]
		f := Finding{Component: component, Code: "needs_recovery", Severity: Warning, Place: r.Kind + " " + r.ID,
			What: fmt.Sprintf("%s %s of task %s needs recovery: %s", r.Kind, r.ID, r.TaskID, r.Reason), Commands: r.Commands}
		if len(r.Commands) > 0 {
			f.Remedy = r.Commands[0]
		}
		a.add(f)
		a.hold(component, f.Place, "needs_recovery", r.Reason, strings.Join(r.Commands, "; "), true)
	}
}

// documents looks whether what records refer to is there: pinned documents and captured output.
func (a *audit) documents() {
	seen := map[[2]string]bool{}
	for _, r := range a.View.Runs() {
		for _, d := range [][2]string{{"execution", r.ConfigSHA256}, {"schema", r.SchemaSHA256}} {
			if a.Pinned == nil || d[1] == "" || seen[d] {
				continue
			}
			seen[d] = true
			if err := a.Pinned(d[0], d[1]); err != nil {
				a.add(Finding{Component: "schema", Code: "document_missing", Severity: Error, Place: d[0] + " " + d[1], Remedy: "put back a copy of the file",
					What: fmt.Sprintf("run %s refers to it, and: %v", r.ID, err)})
			}
		}
		for _, c := range a.View.CommandsOfRun(r.ID) {
			if a.Output == nil || c.Output == nil {
				continue
			}
			if err := a.Output(c); err != nil {
				a.add(Finding{Component: "commands", Code: "output_damaged", Severity: Warning, Place: "command " + string(c.ID),
					What: fmt.Sprintf("the captured output of command %s no longer counts: %v", c.ID, err), Remedy: "run the command again where it is evidence"})
			}
		}
	}
}
