package status

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"greatminds/runstore"
	"greatminds/supervisor/usage"
)

// document is the part of `run status` that the readable view shows.
type document struct {
	Paused      bool                                           `json:"paused"`
	Runs        map[runstore.RunID]*runstore.Run               `json:"runs"`
	Permissions map[runstore.PermissionID]*runstore.Permission `json:"permissions"`
	Assignments []Assignment                                   `json:"assignments"`
	Accounts    map[string]Account                             `json:"accounts"`
	Tasks       []Task                                         `json:"tasks"`
	Recovery    []Recovery                                     `json:"recovery"`
	TakenOver   json.RawMessage                                `json:"taken_over"`
	Changed     *Changed                                       `json:"contract_changed"`
}

// Text renders the document of `run status` for a terminal: what needs a person first, then what
// runs, what is held and why, and where every task stands. Text that agents wrote is in it; the
// caller escapes it.
func Text(data json.RawMessage, now time.Time, from Source) (string, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return "", fmt.Errorf("the status document: %w", err)
	}
	var b strings.Builder
	if from == NoDaemon {
		b.WriteString("No daemon serves this project: nothing is claimed. `greatminds coordd` starts one.\n\n")
	}
	if d.Paused {
		b.WriteString("Dispatch is paused: nothing new is claimed. `greatminds run resume` goes on.\n\n")
	}
	if d.Changed != nil {
		fmt.Fprintf(&b, "%s\n    %s\n\n", oneLine(d.Changed.What), oneLine(d.Changed.Remedy))
	}
	d.questions(&b, now, from)
	d.recoveries(&b)
	d.running(&b, now, from)
	d.held(&b, now)
	d.queues(&b)
	var earlier runstore.TakenOver
	if json.Unmarshal(d.TakenOver, &earlier) == nil && earlier.File != "" {
		fmt.Fprintf(&b, "\nTaken over from the original at %s; its state.json is kept as %s.\n",
			time.UnixMilli(int64(earlier.At*1000)).UTC().Format(time.RFC3339), oneLine(earlier.File))
	}
	return strings.TrimRight(b.String(), "\n"), nil
}

// questions lists the permission requests that are open.
func (d *document) questions(b *strings.Builder, now time.Time, from Source) {
	open := sorted(d.Permissions, func(p *runstore.Permission) (bool, float64) { return p.Status == "pending", p.CreatedAt })
	if len(open) == 0 {
		return
	}
	title := "WAITING FOR YOUR ANSWER"
	if from != FromDaemon {
		title = "QUESTIONS THAT NOBODY TAKES AN ANSWER TO NOW"
	}
	b.WriteString(title + "\n")
	for _, p := range open {
		task := "run " + string(p.RunID)
		if run := d.Runs[p.RunID]; run != nil {
			task = string(run.TaskID)
		}
		for _, l := range AskLines(p, task, now, from) {
			b.WriteString("  " + l + "\n")
		}
	}
	b.WriteByte('\n')
}

// recoveries lists what only a person can lead on, each with the commands that do.
func (d *document) recoveries(b *strings.Builder) {
	if len(d.Recovery) == 0 {
		return
	}
	b.WriteString("NEEDS RECOVERY\n")
	for _, r := range d.Recovery {
		fmt.Fprintf(b, "  %s %s of task %s: %s\n", r.Kind, r.ID, r.TaskID, oneLine(r.Reason))
		for _, c := range r.Commands {
			b.WriteString("    " + c + "\n")
		}
	}
	b.WriteByte('\n')
}

// running lists the runs that have not ended.
func (d *document) running(b *strings.Builder, now time.Time, from Source) {
	active := sorted(d.Runs, func(r *runstore.Run) (bool, float64) { return !r.State.Terminal(), r.CreatedAt })
	b.WriteString("RUNS\n")
	if len(active) == 0 {
		b.WriteString("  none\n")
	}
	for _, r := range active {
		reason := ""
		if r.Reason != "" {
			reason = " (" + r.Reason + ")"
		}
		fmt.Fprintf(b, "  %-28s %-12s %-14s %8s  run %s%s\n", r.TaskID, r.BindingID, r.State, since(r.CreatedAt, now), r.ID, reason)
		if used := usage.Text(r.Usage); used != "" {
			b.WriteString("    " + used + "\n")
		}
		if from.lost(r) {
			b.WriteString("    " + lostWords + "\n")
		}
		if r.State == runstore.WaitingAuth || r.State == runstore.WaitingInput && r.Process == nil {
			if what := causeOf(r); what != "" {
				b.WriteString("    " + what + "\n")
			}
			for _, c := range nextCommands(r) {
				b.WriteString("    " + c + "\n")
			}
		}
	}
	b.WriteByte('\n')
}

// held lists every task that is not claimed, with the reason and what helps.
func (d *document) held(b *strings.Builder, now time.Time) {
	var lines []string
	told := map[string]bool{} // a file that cannot be read is a task too, in each of its queues
	for _, a := range d.Assignments {
		told[a.TaskID+a.What] = true
		if a.Reason == "active_run" {
			continue
		}
		what := ""
		if a.What != "" {
			what = ": " + oneLine(a.What)
		}
		lines = append(lines, fmt.Sprintf("  %-28s %-12s %s%s", a.TaskID, a.Binding, a.Reason, what))
		if a.Remedy != "" {
			lines = append(lines, "    "+oneLine(a.Remedy))
		}
	}
	for _, t := range d.Tasks {
		if t.Error != "" && !told[t.ID+t.Problem] {
			told[t.ID+t.Problem] = true
			lines = append(lines, fmt.Sprintf("  %-28s %-12s %s: %s", t.ID, "-", t.Error, oneLine(t.Problem)))
		}
	}
	for _, name := range keys(d.Accounts) {
		a, until := d.Accounts[name], ""
		if a.NextAt != nil {
			until = ", " + left(*a.NextAt, now) + " left"
		}
		switch {
		case a.Reason == "ready":
		case a.What != "":
			lines = append(lines, fmt.Sprintf("  account %s: %s: %s%s", name, a.Reason, oneLine(a.What), until), "    "+oneLine(a.Remedy))
		default:
			lines = append(lines, fmt.Sprintf("  account %s: %s after %d failures%s", name, a.Reason, a.Failures, until))
		}
	}
	if len(lines) > 0 {
		b.WriteString("ASSIGNMENTS\n" + strings.Join(lines, "\n") + "\n\n")
	}
}

// queues lists the tasks by queue.
func (d *document) queues(b *strings.Builder) {
	b.WriteString("TASKS\n")
	if len(d.Tasks) == 0 {
		b.WriteString("  none; file one with `greatminds task new`\n")
	}
	for _, t := range d.Tasks {
		fmt.Fprintf(b, "  %-20s %-28s %s\n", t.Queue, t.ID, oneLine(t.Title))
	}
}

// sorted lists the values of a map that are wanted, by time and then by key.
func sorted[K ~string, V any](m map[K]V, want func(V) (bool, float64)) []V {
	var out []V
	for _, k := range keys(m) {
		if wanted, _ := want(m[k]); wanted {
			out = append(out, m[k])
		}
	}
	slices.SortStableFunc(out, func(a, b V) int {
		_, at := want(a)
		_, bt := want(b)
		switch {
		case at < bt:
			return -1
		case at > bt:
			return 1
		}
		return 0
	})
	return out
}

func keys[K ~string, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func since(at float64, now time.Time) string { return span(runstore.Epoch(now) - at) }
func left(at float64, now time.Time) string  { return span(at - runstore.Epoch(now)) }

func span(seconds float64) string {
	return (time.Duration(max(seconds, 0)) * time.Second).String()
}
