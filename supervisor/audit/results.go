package audit

import (
	"encoding/json"
	"fmt"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// results looks at every result: of a run on record, the only one of it, with the operation that
// its status calls for.
func (a *audit) results() {
	of := map[runstore.RunID]runstore.ResultID{}
	for _, r := range a.View.Results() {
		run, place := r.Envelope.RunID, "result "+string(r.ID())
		bad := func(code, format string, args ...any) {
			a.add(Finding{Component: "results", Code: code, Severity: Error, Place: place, Remedy: reportIt, What: fmt.Sprintf(format, args...)})
		}
		if of[run] != "" {
			bad("two_results", "run %s has the results %s and %s", run, of[run], r.ID())
		}
		of[run] = r.ID()
		if a.View.Run(run) == nil {
			bad("record_dangling", "result %s is of run %s, which is not on record", r.ID(), run)
		}
		op := a.View.Operation(runstore.OperationID(r.ID()))
		switch {
		case r.Status == "applying" && (op == nil || op.Phase != "prepared"):
			bad("operation_missing", "result %s is being applied, but no open operation is on record", r.ID())
		case r.Status == "applied" && op != nil && op.Phase != "committed":
			bad("operation_unfinished", "result %s is applied, but its operation is %s", r.ID(), op.Phase)
		case r.Status != "applied" && op != nil && op.Phase == "committed":
			bad("result_unfinished", "the operation of result %s is committed, but the result is %s", r.ID(), r.Status)
		}
	}
}

// operations looks at what is uncertain: nothing more may be done about its task.
func (a *audit) operations() {
	for _, r := range a.View.OpenResults() {
		if r.Status == "needs_recovery" {
			a.untouched(r.Envelope.TaskID, r.Envelope.RunID, "result "+string(r.ID()))
		}
	}
	for _, c := range a.View.OpenCommands() {
		if c.Status == "needs_recovery" {
			a.untouched(c.TaskID, c.RunID, "command "+string(c.ID))
		}
	}
}

// untouched wants no run of the task after the one whose outcome is uncertain.
func (a *audit) untouched(task runstore.TaskID, run runstore.RunID, place string) {
	uncertain := a.View.Run(run)
	for _, later := range a.View.RunsOfTask(task) {
		if uncertain == nil || later.Sequence <= uncertain.Sequence {
			continue
		}
		a.add(Finding{Component: "results", Code: "uncertain_effect_repeated", Severity: Error, Place: place, Remedy: reportIt,
			What: fmt.Sprintf("the outcome of %s is not known, yet run %s of task %s was started after it", place, later.ID, task)})
	}
}

func (a *audit) linesOf(operation string) int {
	n := 0
	for _, l := range a.Journal {
		if l.OperationID == operation {
			n++
		}
	}
	return n
}

// journal looks at the task journal: one line for each operation that is committed, none for one
// that was given up, and none twice.
func (a *audit) journal() {
	if a.Journal == nil {
		return
	}
	operations, intents := map[string]int{}, map[string]int{}
	for _, l := range a.Journal {
		if l.OperationID != "" {
			operations[l.OperationID]++
		} else if l.IntentID != "" {
			intents[l.IntentID]++
		}
	}
	for _, counted := range []map[string]int{operations, intents} {
		for id, n := range counted {
			if n > 1 {
				a.line("journal_repeated", id, "the journal has %d lines of %s", n, id)
			}
		}
	}
	for _, r := range a.View.Results() {
		op := a.View.Operation(runstore.OperationID(r.ID()))
		if op == nil {
			continue
		}
		switch n := operations[string(op.ID)]; {
		case op.Phase == "committed" && n == 0:
			a.line("journal_missing", string(op.ID), "task %s went from %s to %s by operation %s, and the journal has no line of it", op.TaskID, op.Source, op.Destination, op.ID)
		case op.Phase == "abandoned" && n > 0:
			a.line("journal_of_nothing", string(op.ID), "operation %s was given up, yet the journal has a line of it", op.ID)
		}
	}
}

func (a *audit) line(code, id, format string, args ...any) {
	a.add(Finding{Component: "results", Code: code, Severity: Error, Place: "journal line of " + id, Remedy: reportIt, What: fmt.Sprintf(format, args...)})
}

// merges looks at the default branch: every merge of a committed operation stands in it once.
func (a *audit) merges() {
	if a.Merges == nil {
		return
	}
	commits, brought := map[string]bool{}, map[string]int{}
	for _, m := range a.Merges {
		commits[m.Commit] = true
		for _, parent := range m.Parents[min(1, len(m.Parents)):] {
			brought[parent]++
		}
	}
	for _, r := range a.View.Results() {
		op := a.View.Operation(runstore.OperationID(r.ID()))
		if op == nil || len(op.Merge) == 0 {
			continue
		}
		var m tasks.MergePlan
		if err := json.Unmarshal(op.Merge, &m); err != nil || m.Nothing {
			continue // a record that cannot be read is refused where it is used
		}
		place := "operation " + string(op.ID)
		switch n := brought[m.Theirs]; {
		case n > 1:
			a.add(Finding{Component: "worktrees", Code: "merged_twice", Severity: Error, Place: place, Remedy: reportIt,
				What: fmt.Sprintf("the work %.12s of task %s was merged into %s %d times", m.Theirs, op.TaskID, m.Branch, n)})
		case op.Phase == "committed" && !commits[m.Commit]:
			// A person may have rewritten the branch since.
			a.add(Finding{Component: "worktrees", Code: "merge_missing", Severity: Warning, Place: place,
				What:   fmt.Sprintf("task %s was merged as %.12s, which %s does not contain", op.TaskID, m.Commit, m.Branch),
				Remedy: fmt.Sprintf("unless the branch was rewritten on purpose, merge it again: git merge %.12s", m.Commit)})
		}
	}
}

// places looks at where tasks stand: each in one queue, the one that its last transition led to.
func (a *audit) places() {
	if a.Tasks == nil {
		return
	}
	stands := map[string]contract.Queue{}
	files := map[string]string{}
	for _, t := range a.Tasks {
		id := string(t.ID)
		if files[id] != "" {
			a.add(Finding{Component: "stale_tasks", Code: "task_in_two_queues", Severity: Error, Place: t.File,
				What:   fmt.Sprintf("task %s stands in %s and in %s", id, files[id], t.File),
				Remedy: "keep the newer of the two files, see `greatminds journal tail`"})
		}
		a.unreadable(t)
		stands[id], files[id] = t.Queue, t.File
	}
	for id, want := range a.destinations() {
		queue, there := stands[id]
		switch {
		case a.open[runstore.TaskID(id)] || queue == want:
		case !there:
			a.add(Finding{Component: "stale_tasks", Code: "task_file_missing", Severity: Warning, Place: "task " + id,
				What:   fmt.Sprintf("the journal says that task %s stands in %s, and no queue has it", id, want),
				Remedy: "unless it was removed on purpose, bring the file back"})
		default:
			a.add(Finding{Component: "stale_tasks", Code: "task_moved_by_hand", Severity: Warning, Place: files[id],
				What:   fmt.Sprintf("the journal says that task %s stands in %s, but it is in %s", id, want, queue),
				Remedy: "move tasks with `greatminds task mv`"})
		}
	}
}

// unreadable tells of a file that no task can be read from. That a task stands in two queues is told
// already, and a file that went away meanwhile is no fault.
func (a *audit) unreadable(t tasks.Found) {
	if t.Problem == nil {
		return
	}
	code := refusal.CodeTaskFile
	if r, ok := refusal.Find(t.Problem); ok {
		code = r.Code
	}
	if code == refusal.CodeTaskDuplicate || code == refusal.CodeTaskNotFound {
		return
	}
	what := strings.Join(strings.Fields(t.Problem.Error()), " ")
	a.add(Finding{Component: "stale_tasks", Code: string(code), Severity: Warning, Place: t.File, What: what, Remedy: t.Remedy()})
}

// destinations are the queues that each task's last journal line leads to.
func (a *audit) destinations() map[string]contract.Queue {
	to := map[string]contract.Queue{}
	for _, l := range a.Journal {
		to[l.Task] = contract.Queue(l.To)
	}
	return to
}
