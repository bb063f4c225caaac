package tasks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// reservedFields are set by the service alone, on every block.
var reservedFields = []string{"kind", "by", "at", "provenance", "worktree_fingerprint"}

// signatures are the fields in which a block kind repeats its author and time.
var signatures = map[contract.BlockKind][2]string{
	blockPlan:           {"written_by", "written_at"},
	blockImplementation: {"closed_by", "closed_at"},
	blockTests:          {"closed_by", "closed_at"},
	blockReader:         {"reviewed_by", "reviewed_at"},
	blockReview:         {"reviewed_by", "reviewed_at"},
	blockBlocked:        {"blocked_by", "blocked_at"},
}

// GeneratedFields lists, per block kind, the fields that the service sets besides by, at and
// provenance, which it sets on every block. The result is the caller's own.
func GeneratedFields() map[string][]string {
	out := map[string][]string{}
	for kind, names := range signatures {
		out[string(kind)] = names[:]
	}
	out[string(blockImplementation)] = append(out[string(blockImplementation)], "worktree_fingerprint")
	return out
}

// draft is a block on its way into a task.
type draft struct {
	s *contract.Schema
	// task holds the blocks that stand before this one, new ones included.
	task  *Task
	facts Facts
	kind  contract.BlockKind
	// fields are the author's own, in the order in which they are to stand.
	fields Fields
	// request is the command request whose receipt fills a tests block, "" for none.
	request string
	// place says where the block stands in the submission, "" for an operator's arguments.
	place  string
	faults []refusal.Reason
}

func (d *draft) where(path string) string { return join(d.place, path) }

func (d *draft) fault(code refusal.Code, path, remedy, format string, args ...any) {
	d.faults = append(d.faults, refusal.Reason{Code: code, Place: d.where(path), Remedy: remedy,
		What: fmt.Sprintf(format, args...)})
}

// build judges the draft in the order in which the reference judges an appended block, and
// returns the finished block. The block counts only where there are no faults.
func (d *draft) build() (Block, []refusal.Reason) {
	spec, known := d.s.BlockKind(d.kind)
	if !known {
		d.fault(refusal.CodeBlockKind, "kind", "use one of "+joinKinds(d.s.QueueAccepts[d.task.Queue]),
			"%q is no kind of block", d.kind)
		return Block{}, d.faults
	}
	d.reserved()
	d.author(spec)
	if !d.s.Accepts(d.task.Queue, d.kind) {
		d.fault(refusal.CodeBlockQueue, "kind", "file one of "+joinKinds(d.s.QueueAccepts[d.task.Queue]),
			"%s takes no %s block", d.task.Queue, d.kind)
	}
	d.fromReceipt()
	b := Block{Kind: d.kind, By: d.facts.Role, At: stamp(d.facts.Now), Fields: d.fields}
	d.faults = append(d.faults, fieldFaults(d.s, &b, d.where)...)
	d.resume(&b)
	d.isolation()
	d.files(&b)
	d.across(&b)
	b.Fields = d.signed(b.Fields)
	return b, d.faults
}

// stamp spells a time as task files do.
func stamp(t time.Time) string { return t.UTC().Format(timeLayout) }

// reserved refuses what only the service sets, and a signature in another role's name. The
// author's own name is accepted there, and so is a time; the service's take their place.
func (d *draft) reserved() {
	for _, key := range reservedFields {
		if d.fields.Has(key) {
			d.fault(refusal.CodeBlockReserved, key, "leave it out", "%s.%s is set by the service", d.kind, key)
		}
	}
	names := signatures[d.kind]
	for _, f := range d.fields {
		if by, _ := f.Value.(string); isSignature(f.Key) && by != string(d.facts.Role) {
			d.fault(refusal.CodeBlockAuthor, f.Key, "leave it out", "%s.%s names %s, but the block is filed by %s",
				d.kind, f.Key, shown(f.Value), d.facts.Role)
		}
	}
	if names[1] != "" {
		if v, given := d.fields.Lookup(names[1]); given {
			if s, ok := v.(string); !ok || !isMoment(s) {
				d.fault(refusal.CodeBlockField, names[1], "leave it out", "%s.%s is %s, no time", d.kind, names[1], shown(v))
			}
		}
	}
}

// isSignature reports whether a field is the signature of any kind of block.
func isSignature(key string) bool {
	for _, names := range signatures {
		if names[0] == key {
			return true
		}
	}
	return false
}

// author judges whether the role may file this block on this task.
func (d *draft) author(spec contract.BlockKindSpec) {
	role := d.facts.Role
	queue, _ := d.s.Queue(d.task.Queue) // an unknown queue has no owner
	switch {
	case d.kind == blockBlocked:
		byPlanner := role == rolePlanner && withdrawn(&Block{Fields: d.fields})
		if queue.Owner != role && !byPlanner {
			d.fault(refusal.CodeBlockAuthor, "kind", "leave it to "+string(queue.Owner),
				"only %s may block a task in %s (and %s may withdraw it), not %s", queue.Owner, d.task.Queue, rolePlanner, role)
		}
		return
	case !slices.Contains(spec.Authors, role):
		d.fault(refusal.CodeBlockAuthor, "kind", "leave it to "+joinRoles(spec.Authors),
			"%s may not file a %s block", role, d.kind)
		return
	case d.kind != blockImplementation:
		return
	}
	want, mapped := d.s.AssigneeRoleByScope[d.task.Scope]
	if d.task.Queue == queueLive {
		// Work at the live stand is one role's, whatever the scope.
		want, mapped = queue.Owner, true
	}
	if mapped && want != role {
		d.fault(refusal.CodeBlockAuthor, "kind", "leave it to "+string(want),
			"the implementation of scope %s in %s is filed by %s, not by %s", d.task.Scope, d.task.Queue, want, role)
	}
}

func joinRoles(roles []contract.Role) string {
	var names []string
	for _, r := range roles {
		names = append(names, string(r))
	}
	return strings.Join(names, " or ")
}

// resume wants a new blocked block to lead back into work.
func (d *draft) resume(b *Block) {
	if d.kind != blockBlocked {
		return
	}
	to := b.Text("resume_to")
	if spec, ok := d.s.Queue(contract.Queue(to)); ok && spec.Kind != contract.QueueActive && spec.Kind != contract.QueueState {
		d.fault(refusal.CodeBlockField, "resume_to", "name an active queue", "blocked.resume_to %s is no active queue", to)
	}
}

// policy is the project's worktree policy.
func (f Facts) policy(s *contract.Schema) contract.Worktrees {
	if f.Worktrees != nil {
		return *f.Worktrees
	}
	return s.Worktrees
}

// isolation wants the work of a task with a worktree to have been done there.
func (d *draft) isolation() {
	if d.kind != blockImplementation && d.kind != blockTests || d.facts.InWorktree {
		return
	}
	if policy := d.facts.policy(d.s); policy.Requires(d.task.Kind) {
		d.fault(refusal.CodeWorkspaceIsolation, "", "work in "+policy.BasePath+"/"+string(d.task.ID),
			"a %s task is worked on in its own worktree, not in %s", d.task.Kind, shown(d.facts.Workspace))
	}
}

// files wants a change to show for each file of an implementation block.
func (d *draft) files(b *Block) {
	if d.kind != blockImplementation {
		return
	}
	for i, name := range textsOf(b.Fields.Get("files")) {
		path := fmt.Sprintf("files[%d]", i)
		if why := unsafePath(name); why != "" {
			d.fault(refusal.CodeFileEvidence, path, "name it relative to the workspace", "the file %s %s", shown(name), why)
			continue
		}
		fact, looked := d.facts.Files[name]
		switch {
		case !looked:
			d.fault(refusal.CodeFileEvidence, path, "", "nobody looked at the file %s", shown(name))
		case fact.Problem != "":
			d.fault(refusal.CodeFileEvidence, path, "name a file that was changed", "the file %s %s", shown(name), fact.Problem)
		case fact.InGit && !fact.Changed:
			d.fault(refusal.CodeFileEvidence, path, "name only files that the work has changed",
				"git knows no change of %s", shown(name))
		case !fact.InGit && !fact.Exists:
			d.fault(refusal.CodeFileEvidence, path, "name only files that are there", "the file %s does not exist", shown(name))
		}
	}
}

// unsafePath says why a path may not be looked at, "" when it may.
func unsafePath(name string) string {
	switch {
	case name == "":
		return "has no name"
	case strings.HasPrefix(name, "/"):
		return "is an absolute path"
	case strings.ContainsRune(name, 0):
		return "holds a zero byte"
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "leaves the workspace"
	}
	return ""
}

// across judges the block against those before it.
func (d *draft) across(b *Block) {
	switch d.kind {
	case blockTests:
		d.faults = append(d.faults, standFaults(d.s, d.task, b, d.where)...)
	case blockReview:
		if b.Text("outcome") == "approved" {
			d.approves(b)
		}
	}
}

// approves wants an approval to rest on what was tested or read. An approved sprint and a
// request for changes need no such ground.
func (d *draft) approves(b *Block) {
	task := d.task.with([]Block{*b})
	plan, tests, reader := task.Latest(blockPlan), task.Latest(blockTests), task.Latest(blockReader)
	implementation := task.Latest(blockImplementation)
	switch {
	case tests != nil:
		if tests.Text("test_result") != "pass" && !carvedOut(task) {
			d.fault(refusal.CodeBlockRule, "outcome", "request changes, or have it tested again",
				"the review approves, and the latest test_result is %s", shown(tests.value("test_result")))
		}
	case reader != nil:
		outcome := reader.Text("outcome")
		if outcome != "pass" && !(plan.Is("audit_only") && slices.Contains([]string{"partial", "fail"}, outcome)) {
			d.fault(refusal.CodeBlockRule, "outcome", "request changes, or have it read again",
				"the review approves, and the latest reader_review.outcome is %s", shown(outcome))
		}
	case plan.Is("interactive") && implementation != nil && implementation.By == roleLive:
		// Work at the live stand goes to review without a tester in between.
	default:
		d.fault(refusal.CodeBlockRule, "outcome", "have it tested or read first",
			"the review approves, and there is neither a tests nor a reader_review block")
	}
}

// signed adds the service's own fields behind the author's: signature, fingerprint, provenance.
func (d *draft) signed(fields Fields) Fields {
	out := slices.Clone(fields)
	if d.facts.RunID != "" {
		if names := signatures[d.kind]; names[0] != "" {
			out = append(out.Without(names[0], names[1]), Field{names[0], string(d.facts.Role)},
				Field{names[1], stamp(d.facts.Now)})
		}
	}
	if d.kind == blockImplementation && d.facts.Fingerprint != "" {
		out = append(out, Field{"worktree_fingerprint", d.facts.Fingerprint})
	}
	if d.facts.RunID != "" {
		out = append(out, Field{"provenance", d.provenance()})
	}
	return out
}

func (d *draft) provenance() Fields {
	p := Fields{{"run_id", d.facts.RunID}, {"result_id", d.facts.ResultID}, {"task_revision", string(d.task.Revision)},
		{"schema_sha256", d.facts.SchemaSHA256}, {"applied_by", "SYSTEM"}}
	if d.request != "" {
		p = append(p, Field{"command_request_id", d.request})
	}
	return p
}
