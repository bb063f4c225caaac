package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// kind says which promise a finding breaks.
type kind string

// The kinds of findings.
const (
	lost    kind = "lost"    // something acknowledged is not there
	twice   kind = "twice"   // something happened a second time
	left    kind = "left"    // a process is left running
	stuck   kind = "stuck"   // something does not move, and says neither why nor what helps
	unsound kind = "unsound" // anything else that must never be
)

// finding is one broken promise.
type finding struct {
	kind kind
	what string
}

func (f finding) String() string { return fmt.Sprintf("%s: %s", f.kind, f.what) }

// judgement collects findings.
type judgement struct {
	pic   *picture
	l     *ledger
	final bool
	out   []finding
}

// judge holds a picture against the invariants and the ledger. Final says that the project has been
// brought to its end and no daemon runs: then nothing may be under way.
func judge(pic *picture, l *ledger, final bool) []finding {
	j := &judgement{pic: pic, l: l, final: final}
	l.with(func(*ledger) {
		j.tasks()
		j.journal()
		j.merges()
		j.commands()
		j.permissions()
		j.results()
		j.controls()
		j.holds()
		j.processes()
	})
	if pic.doctor != "" {
		j.found(unsound, "run doctor: %s", pic.doctor)
	}
	if pic.fsck != "" && (final || !onlyUnborn(pic.fsck)) {
		j.found(unsound, "git fsck: %s", pic.fsck)
	}
	if pic.dirty != "" && (final || !pic.unsettled()) {
		j.found(unsound, "the user's checkout is not clean: %s", pic.dirty)
	}
	return j.out
}

// unborn is what git says of a worktree that it was killed over while it added it, before it wrote
// its HEAD. It is made anew when the task is taken up again, so that nothing of it is left at the end.
var unborn = regexp.MustCompile(`error: worktrees/\S+/HEAD: detached HEAD points at nothing`)

// onlyUnborn tells whether git complains of nothing else.
func onlyUnborn(fsck string) bool {
	return unborn.MatchString(fsck) && !strings.Contains(unborn.ReplaceAllString(fsck, ""), "error: ")
}

// unsettled tells whether a result waits: then a merge may stand half made in the user's checkout.
func (pic *picture) unsettled() bool {
	for _, r := range pic.status.Results {
		if r.open() {
			return true
		}
	}
	return false
}

func (j *judgement) found(k kind, format string, args ...any) {
	j.out = append(j.out, finding{k, fmt.Sprintf(format, args...)})
}

// tasks: each stands in exactly one queue, and none was filed twice.
func (j *judgement) tasks() {
	for _, id := range sorted(j.pic.queues) {
		if q := j.pic.queues[id]; len(q) > 1 {
			j.found(twice, "task %s stands in %d queues: %s", id, len(q), strings.Join(q, ", "))
		}
	}
	for _, id := range sorted(j.l.filed) {
		q := j.pic.queues[id]
		if len(q) == 0 {
			j.found(lost, "task %s was filed and is in no queue", id)
		}
		if j.l.planned[id] && (slices.Contains(q, "feature_inbox") || slices.Contains(q, "feature_plan")) {
			j.found(lost, "task %s was planned and stands in %s", id, strings.Join(q, ", "))
		}
		if j.final && !slices.Contains(q, "verified") {
			j.found(stuck, "task %s stands in %s at the end", id, strings.Join(q, ", "))
		}
	}
	for _, title := range j.l.titles {
		if ids := j.pic.titles[title]; len(ids) > 1 {
			j.found(twice, "%q was filed as %s", title, strings.Join(ids, ", "))
		}
	}
}

// journal: one line per transition, in an unbroken chain from the filing to where the task stands.
func (j *judgement) journal() {
	intents, operations := map[string]int{}, map[string]int{}
	at, last := map[string]string{}, map[string]journalLine{}
	for i, line := range j.pic.journal {
		if line.fault != "" {
			j.found(unsound, "the journal cannot be read: %s", line.fault)
			continue
		}
		intents[line.IntentID]++
		operations[line.OperationID]++
		if at[line.Task] == "" {
			at[line.Task] = "_new"
		}
		switch before := last[line.Task]; {
		case line.From == at[line.Task]:
		case line.From == before.From && line.To == before.To:
			j.found(twice, "line %d of the journal tells again that task %s went from %s to %s", i+1, line.Task, line.From, line.To)
		default:
			j.found(lost, "line %d of the journal has task %s go from %s to %s, but it was in %s", i+1, line.Task, line.From, line.To, at[line.Task])
		}
		at[line.Task], last[line.Task] = line.To, line
	}
	for name, counts := range map[string]map[string]int{"intent": intents, "operation": operations} {
		for _, id := range sorted(counts) {
			if counts[id] > 1 && id != "" {
				j.found(twice, "%s %s stands %d times in the journal", name, id, counts[id])
			}
		}
	}
	for _, id := range sorted(j.pic.queues) {
		if q := j.pic.queue(id); q != "" && q != at[id] {
			j.found(lost, "task %s stands in %s, but the journal ends with %q", id, q, at[id])
		}
	}
	if j.final && j.pic.torn {
		j.found(unsound, "the journal ends in the middle of a line")
	}
}

var mergeSubject = regexp.MustCompile(`^review\(([0-9]{4}-[a-z0-9-]+)\)`)

// merges: one per verified task, with its work, and nothing else on the branch.
func (j *judgement) merges() {
	merged := map[string]int{}
	for _, c := range j.pic.merges {
		m := mergeSubject.FindStringSubmatch(c.subject)
		if m == nil || len(strings.Fields(c.parents)) != 2 {
			j.found(unsound, "commit %.12s on main is no merge of a task: %q", c.id, c.subject)
			continue
		}
		merged[m[1]]++
	}
	for _, id := range sorted(merged) {
		if merged[id] > 1 {
			j.found(twice, "task %s was merged %d times", id, merged[id])
		}
		if len(j.pic.queues[id]) == 0 {
			j.found(lost, "task %s was merged and is in no queue", id)
		}
	}
	for _, id := range sorted(j.pic.queues) {
		if j.pic.queue(id) != "verified" {
			continue
		}
		if merged[id] == 0 {
			j.found(lost, "task %s is verified and was not merged", id)
		}
		if !slices.ContainsFunc(j.pic.work, func(w string) bool { return strings.HasSuffix(w, "/"+id) }) {
			j.found(lost, "task %s is verified and main does not hold its work", id)
		}
	}
}

// commands: each request was executed at most once, and one that succeeded was executed.
func (j *judgement) commands() {
	for _, mark := range sorted(j.pic.started) {
		if n := j.pic.started[mark]; n > 1 {
			j.found(twice, "command request %s was executed %d times", mark, n)
		}
	}
	for _, id := range sorted(j.pic.status.Commands) {
		c := j.pic.status.Commands[id]
		mark := c.RunID + "/" + id
		switch {
		case c.Status == "succeeded" && (j.pic.started[mark] != 1 || j.pic.ended[mark] != 1):
			j.found(unsound, "command request %s succeeded, but was begun %d times and came to its end %d times", id, j.pic.started[mark], j.pic.ended[mark])
		case c.Status == "cancelled" && c.Reason == "supervisor_restart" && j.pic.started[mark] > 0:
			j.found(unsound, "command request %s was executed, and is recorded as never begun", id)
		}
	}
	for _, id := range j.pic.executed() {
		if _, known := j.pic.status.Commands[id]; !known {
			j.found(lost, "command request %s was executed and is on no record", id)
		}
	}
	for id := range j.l.resolved {
		if c, known := j.pic.status.Commands[id]; !known || c.Status != "resolved" {
			j.found(lost, "command request %s was resolved and is %q", id, c.Status)
		}
	}
}

// permissions: what was answered stays so, and nothing is allowed that nobody answered.
func (j *judgement) permissions() {
	for _, id := range sorted(j.l.answered) {
		p, known := j.pic.status.Permissions[id]
		if !known || p.Status == "pending" || p.OptionID != j.l.answered[id] {
			j.found(lost, "permission request %s was answered %q and is %q with %q", id, j.l.answered[id], p.Status, p.OptionID)
		}
	}
	consumed := 0
	for _, id := range sorted(j.pic.status.Permissions) {
		if j.pic.status.Permissions[id].Status != "consumed" {
			continue
		}
		consumed++
		if _, asked := j.l.asked[id]; !asked {
			j.found(unsound, "permission request %s was answered by nobody and is consumed", id)
		}
	}
	allowed := map[string]int{}
	total := 0
	for _, line := range j.pic.traces {
		if line.Kind == "answer" && strings.Contains(string(line.Got), `"selected"`) {
			allowed[fmt.Sprintf("%s %d", line.stage, line.Launch)]++
			total++
		}
	}
	for _, start := range sorted(allowed) {
		if allowed[start] > 1 {
			j.found(twice, "start %s was answered %d times", start, allowed[start])
		}
	}
	if total > consumed {
		j.found(unsound, "agents were allowed something %d times, the operator's answers were handed over %d times", total, consumed)
	}
}

var resultID = regexp.MustCompile(`"result_id": *"([^"]+)"`)

// acknowledged are the results whose receipts agents got.
func (pic *picture) acknowledged() []string {
	var out []string
	for _, line := range pic.traces {
		if line.Kind != "cli" || line.RC == nil || *line.RC != 0 || len(line.Argv) < 2 || line.Argv[1] != "submit" {
			continue
		}
		if m := resultID.FindStringSubmatch(line.Out); m != nil {
			out = append(out, m[1])
		}
	}
	return out
}

// results: a decision that was received is there, and is settled in the end.
func (j *judgement) results() {
	for _, id := range j.pic.acknowledged() {
		r, known := j.pic.status.Results[id]
		switch {
		case !known:
			j.found(lost, "result %s was received and is not there", id)
		case j.final && r.open():
			j.found(lost, "result %s is %s at the end", id, r.Status)
		}
	}
}

// controls: what the operator was told to be done is done.
func (j *judgement) controls() {
	for _, id := range sorted(j.l.retried) {
		r, known := j.pic.status.Runs[id]
		if !known || !r.RetryAuthorized {
			j.found(lost, "the retry of run %s was acknowledged and is not recorded", id)
		}
	}
	for _, id := range sorted(j.l.cancelled) {
		if r, known := j.pic.status.Runs[id]; !known || j.final && r.active() {
			j.found(lost, "the cancel of run %s was acknowledged and it is %q", id, r.State)
		}
	}
	if j.l.paused != nil && *j.l.paused != j.pic.status.Paused {
		j.found(lost, "paused was acknowledged as %v and is %v", *j.l.paused, j.pic.status.Paused)
	}
}

// moving are the holds that end without anybody's doing.
var moving = map[string]bool{"ready": true, "active_run": true, "domain_result_unresolved": true, "command_unresolved": true,
	"retry_backoff": true, "account_backoff": true, "account_rate_limit": true, "no_progress_backoff": true, "project_capacity": true,
	"binding_capacity": true, "account_capacity": true}

// holds: every task that is not finished says why it does not move, and what helps where waiting does not.
func (j *judgement) holds() {
	said := map[string]bool{}
	for _, a := range j.pic.status.Assignments {
		said[a.TaskID] = true
		if !moving[a.Reason] && a.Remedy == "" {
			j.found(stuck, "task %s is held (%s: %s) and no remedy is named", a.TaskID, a.Reason, a.What)
		}
	}
	for _, id := range sorted(j.pic.queues) {
		if q := j.pic.queue(id); q != "verified" && q != "archive" && !said[id] {
			j.found(stuck, "task %s stands in %s and nothing says why", id, q)
		}
	}
}

// processes: what lives is on record as living.
func (j *judgement) processes() {
	for _, mark := range j.pic.live {
		id, request, isCommand := strings.Cut(mark, "/")
		if c, known := j.pic.status.Commands[request]; isCommand && (!known || !c.open()) {
			j.found(left, "a process of command request %s lives, and its record says %q", request, c.Status)
		}
		if r, known := j.pic.status.Runs[id]; !isCommand && (!known || !r.active()) {
			j.found(left, "an agent of run %s lives, and its record says %q", id, r.State)
		}
	}
}

func sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}
