// Package audit holds the promises of the runtime against what is on record: once, for tests,
// for `run doctor` and for a daemon's start.
//
// The promises:
//
//	nothing lost       what was acknowledged is found, at least as far as it was acknowledged
//	nothing twice      one result a run, one operation a result, one journal line a transition,
//	                   one merge a verified task, no uncertain effect repeated
//	one place          a task stands in one queue, the one that its last transition led to
//	nothing left       no process of a run or command that has ended; none that no record names
//	nothing stuck      every hold has a reason, and a remedy where time alone does not help; every
//	                   uncertain outcome has a command that leads out
//	no budget reset    what a session has cost, and every doubt about it, outlasts its runs
//	whole              every record fits those it refers to, and its documents are there
//
// Check is pure: it reads the values that it is given and nothing else. What was not looked at
// (a nil member of Facts) is not judged.
package audit

import (
	"cmp"
	"fmt"
	"slices"

	"greatminds/runstore"
	"greatminds/supervisor/status"
	"greatminds/tasks"
)

// Severities, as the reference of `run doctor` has them.
const (
	// Error is a broken promise.
	Error = "error"
	// Warning needs a person, and breaks no promise.
	Warning = "warning"
	// Info is worth knowing.
	Info = "info"
)

// Finding is one thing that is not as it should be.
type Finding struct {
	// Component is the part of the runtime: accounts, assignments, commands, environment,
	// intents, results, runtime, stale_tasks, worktrees.
	Component string
	// Code is stable, snake_case.
	Code     string
	Severity string
	// Place is the record or file at fault, such as "result 3f2a" or "feature_dev/0001-a.yaml".
	Place string
	// What says it in words with the values, Remedy what to do.
	What, Remedy string
	// Commands lead out of it, to be typed as they are but for TEXT; often none.
	Commands []string
}

// Facts are what is looked at. A nil member was not looked at; View is always needed.
type Facts struct {
	View *runstore.View
	// Recovered says that a start has just recovered the store: nothing is at work.
	Recovered bool
	// Tasks are the entries of all queues, as tasks.Tree.Discover has them.
	Tasks []tasks.Found
	// Journal is the task journal; the empty one is not nil.
	Journal []tasks.JournalLine
	// Changing are the tasks that an operator's change is under way of, as tasks.Tree.Unfinished
	// has them.
	Changing []tasks.ID
	// Merges are the merge commits of the default branch, as tasks.Git.Merges has them.
	Merges []tasks.MergeCommit
	// Life tells whether a recorded process lives; known is false where that cannot be told.
	Life func(*runstore.Process) (alive, known bool)
	// Assignments are the tasks as dispatch judges them now.
	Assignments []status.Assignment
	// Pinned and Output check a document that a run pinned, and the captured output of a command.
	Pinned func(kind, sha string) error
	Output func(*runstore.Command) error
	// Command tells whether a command line begins with a command of ours.
	Command func(line string) bool
	// Ledger is what was acknowledged before.
	Ledger Ledger
}

// Check returns what is not as it should be, errors first, then by place.
func Check(f Facts) []Finding {
	a := &audit{Facts: f, open: map[runstore.TaskID]bool{}}
	a.openTasks()
	for _, question := range []func(){a.acknowledged, a.runs, a.accounts, a.commands, a.permissions, a.results, a.operations,
		a.journal, a.merges, a.places, a.holds, a.uncertain, a.documents, a.costs} {
		question()
	}
	slices.SortStableFunc(a.found, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(rank(x.Severity), rank(y.Severity)), cmp.Compare(x.Place, y.Place), cmp.Compare(x.Code, y.Code))
	})
	return a.found
}

func rank(severity string) int { return slices.Index([]string{Error, Warning, Info}, severity) }

// Errors returns the findings that are broken promises.
func Errors(found []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return f.Severity != Error })
}

// audit is one check under way.
type audit struct {
	Facts
	found []Finding
	// open are the tasks of which an operation is under way: where they stand is still moving.
	open map[runstore.TaskID]bool
}

func (a *audit) add(f Finding) { a.found = append(a.found, f) }

// openTasks notes the tasks that an unfinished operation may be moving.
func (a *audit) openTasks() {
	for _, o := range a.View.OpenOperations() {
		a.open[o.TaskID] = true
	}
	for _, id := range a.Changing {
		a.open[runstore.TaskID(id)] = true
		if a.Recovered {
			a.add(Finding{Component: "intents", Code: "change_unfinished", Severity: Warning, Place: "task " + string(id),
				What:   fmt.Sprintf("a change of task %s was begun, and its file is neither as before nor as after", id),
				Remedy: "look at the task and at the runtime folder's intent/, mend the file, then remove the intent"})
		}
	}
}
