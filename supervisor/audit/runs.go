package audit

import (
	"fmt"

	"greatminds/runstore"
)

const reportIt = "keep the runtime folder as it is and report it"

// runs looks at every run on record: one active one a task, no process after its end.
func (a *audit) runs() {
	active := map[runstore.TaskID]runstore.RunID{}
	for _, r := range a.View.Runs() {
		place := "run " + string(r.ID)
		switch {
		case r.State.Terminal():
			a.process(place, "runtime", r.Process, fmt.Sprintf("run %s has ended (%s)", r.ID, r.State))
			continue
		case active[r.TaskID] != "":
			a.add(Finding{Component: "runtime", Code: "two_active_runs", Severity: Error, Place: place, Remedy: reportIt,
				What: fmt.Sprintf("task %s has the active runs %s and %s", r.TaskID, active[r.TaskID], r.ID)})
		case a.Recovered && (r.Process != nil || r.State != runstore.WaitingInput && r.State != runstore.WaitingAuth):
			a.add(Finding{Component: "runtime", Code: "run_not_recovered", Severity: Error, Place: place, Remedy: reportIt,
				What: fmt.Sprintf("run %s is %s after the recovery of a start", r.ID, r.State)})
		}
		active[r.TaskID] = r.ID
	}
}

// process wants a recorded process of something that has ended to be gone.
func (a *audit) process(place, component string, p *runstore.Process, what string) {
	if p == nil || a.Life == nil {
		return
	}
	for ; p != nil; p = p.Keeper {
		alive, known := a.Life(p)
		switch {
		case alive:
			a.add(Finding{Component: component, Code: "process_left", Severity: Error, Place: place,
				What: fmt.Sprintf("%s, but its process %d lives", what, p.PID), Remedy: fmt.Sprintf("look at the process, then end it: kill %d", p.PID)})
		case !known:
			a.add(Finding{Component: component, Code: "process_unknown", Severity: Warning, Place: place,
				What: fmt.Sprintf("%s; whether its process %d lives cannot be told", what, p.PID), Remedy: fmt.Sprintf("look at the process %d", p.PID)})
		}
	}
}

// commands looks at the commands of every run: each is of a run on record, one at most has no
// outcome, and none of those that were executed lacks the identity of its process.
func (a *audit) commands() {
	for _, c := range a.View.OpenCommands() {
		if a.View.Run(c.RunID) == nil {
			a.add(Finding{Component: "commands", Code: "record_dangling", Severity: Error, Place: "command " + string(c.ID), Remedy: reportIt,
				What: fmt.Sprintf("command %s is of run %s, which is not on record", c.ID, c.RunID)})
		}
	}
	for _, r := range a.View.Runs() {
		open := 0
		for _, c := range a.View.CommandsOfRun(r.ID) {
			place := "command " + string(c.ID)
			if c.Open() {
				open++
			} else {
				a.process(place, "commands", c.Process, fmt.Sprintf("command %s is %s", c.ID, c.Status))
			}
			if a.Recovered && c.Open() && c.Status != "needs_recovery" {
				a.add(Finding{Component: "commands", Code: "command_not_recovered", Severity: Error, Place: place, Remedy: reportIt,
					What: fmt.Sprintf("command %s is %s after the recovery of a start", c.ID, c.Status)})
			}
			if c.Process == nil && executed(c) {
				a.add(Finding{Component: "commands", Code: "process_unrecorded", Severity: Error, Place: place, Remedy: reportIt,
					What: fmt.Sprintf("command %s is %s, and its process is on no record", c.ID, c.Status)})
			}
		}
		if open > 1 {
			a.add(Finding{Component: "commands", Code: "two_open_commands", Severity: Error, Place: "run " + string(r.ID), Remedy: reportIt,
				What: fmt.Sprintf("%d commands of run %s have no outcome", open, r.ID)})
		}
	}
}

// executed tells whether a command's status says that it was executed.
func executed(c *runstore.Command) bool {
	return c.Status == "running" || c.Status == "succeeded" || c.ExitCode != nil
}

// permissions looks at open questions: somebody must be there to hear the answer.
func (a *audit) permissions() {
	for _, p := range a.View.OpenPermissions() {
		r := a.View.Run(p.RunID)
		if r != nil && !r.State.Terminal() && !a.Recovered {
			continue
		}
		a.add(Finding{Component: "runtime", Code: "question_left_open", Severity: Error, Place: "permission " + string(p.ID), Remedy: reportIt,
			What: fmt.Sprintf("permission request %s is %s, but nobody of run %s waits for its answer", p.ID, p.Status, p.RunID)})
	}
}
