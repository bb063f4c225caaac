package ops

import (
	"context"
	"fmt"
	"strings"

	"greatminds/commands"
	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/audit"
	"greatminds/tasks"
)

// Doctor inspects the project's files, changes nothing and never fails: what cannot be inspected
// is a finding. environ is what git gets; command tells whether a line begins with a command of
// ours, and may be nil. It works beside a daemon, also one that hangs.
// Spec: reference 6.6.
func (f Files) Doctor(ctx context.Context, environ []string, command func(line string) bool) *Report {
	d := &doctor{Files: f, report: newReport(f.Project)}
	schema, agreed := d.configuration()
	if schema == nil {
		return d.report
	}
	d.schema, d.tree = schema, tasks.Open(f.Project, schema, durable.NewDisk(nil), f.Now)
	d.git = &tasks.Git{Env: execgate.GitEnv(environ), Disk: durable.NewDisk(nil)}
	facts, ok := d.look(ctx)
	d.report.Disk = d.disk()
	if !ok {
		return d.report
	}
	if agreed != nil {
		d.silent(agreed, facts.View)
	}
	facts.Command, facts.Life = command, life
	if agreed != nil && facts.Tasks != nil {
		facts.Assignments = notNil(f.Dispatch(agreed, schema, facts.View, facts.Tasks).Assignments)
		d.inspected("assignments")
	}
	facts.Pinned = func(kind, sha string) error { return runstore.CheckPinned(f.Project.StoreDir(), kind, sha) }
	reader := commands.Reader{Dir: f.Project.StoreDir()}
	facts.Output = func(c *runstore.Command) error { _, err := reader.Preview(c, 0); return err }
	d.inspected("runtime", "results", "commands", "maintenance", "schema")
	if r, damaged := refusal.Find(facts.View.CheckHistory()); damaged {
		d.report.add(audit.Finding{Component: "runtime", Code: string(r.Code), Severity: audit.Error, Place: f.Project.StoreDir(), What: r.What, Remedy: r.Remedy})
	}
	d.takenOver(facts.View)
	for _, found := range audit.Check(facts) {
		d.report.add(found)
	}
	return d.report
}

// doctor is one inspection.
type doctor struct {
	Files
	report *Report
	schema *contract.Schema
	tree   *tasks.Tree
	git    *tasks.Git
}

func (d *doctor) inspected(checks ...string) {
	for _, c := range checks {
		if d.report.Checks[c] != "failed" {
			d.report.Checks[c] = "inspected"
		}
	}
}

// failed notes that a part could not be inspected.
func (d *doctor) failed(component string, err error) {
	d.report.Checks[component] = "failed"
	f := audit.Finding{Component: component, Code: "inspection_failed", Severity: audit.Error, Place: d.Project.Root, What: err.Error(), Remedy: "mend what it names"}
	if r, ok := refusal.Find(err); ok {
		f.What, f.Remedy = r.Error(), r.Remedy
	}
	d.report.add(f)
}

// configuration reads schema and contract. Without a schema nothing else can be read.
func (d *doctor) configuration() (*contract.Schema, *contract.Contract) {
	schema, err := contract.LoadSchema(d.Getenv)
	if err != nil {
		d.failed("configuration", err)
		return nil, nil
	}
	agreed, err := contract.Load(d.Project, "", schema)
	if err != nil {
		d.failed("configuration", err)
		return schema, nil
	}
	d.inspected("configuration")
	return schema, agreed
}

// looks bounds how often the files are read again because a daemon changed them meanwhile.
const looks = 5

// look reads store, task files, journal and branch as of one moment.
func (d *doctor) look(ctx context.Context) (audit.Facts, bool) {
	for n := 1; ; n++ {
		v, err := runstore.Read(d.Project.StoreDir())
		if err != nil {
			d.failed("runtime", err)
			return audit.Facts{}, false
		}
		facts := audit.Facts{View: v}
		if err := d.files(ctx, &facts); err != nil {
			d.failed("stale_tasks", err)
			return facts, true
		}
		again, err := runstore.Read(d.Project.StoreDir())
		if err == nil && string(again.Document()) == string(v.Document()) {
			d.inspected("stale_tasks", "intents", "worktrees")
			return facts, true
		}
		if n == looks {
			d.report.add(audit.Finding{Component: "runtime", Code: "runtime_busy", Severity: audit.Info, Place: d.Project.StoreDir(),
				What: fmt.Sprintf("the store changed during each of %d looks: task files, journal and merges were not compared with it", looks), Remedy: "try again"})
			return audit.Facts{View: v}, true
		}
	}
}

// files reads what stands outside the store.
func (d *doctor) files(ctx context.Context, facts *audit.Facts) error {
	var err error
	if facts.Changing, err = d.tree.Unfinished(); err != nil {
		return err
	}
	if facts.Tasks, err = d.tree.Discover(); err != nil {
		return err
	}
	if facts.Journal, err = d.tree.Journal(); err != nil {
		return err
	}
	policy, err := contract.WorktreePolicy(d.Project, d.schema)
	if err == nil {
		facts.Merges, err = d.git.Merges(ctx, d.Project.Root, policy.DefaultBranch)
	}
	if err != nil {
		facts.Merges = nil
		d.noBranch(err)
	}
	return nil
}

// noBranch tells that merges could not be looked at; a project of research alone needs no branch.
func (d *doctor) noBranch(err error) {
	d.report.Checks["worktrees"] = "failed"
	d.report.add(audit.Finding{Component: "worktrees", Code: "inspection_failed", Severity: audit.Warning, Place: d.Project.Root,
		What: "the merges of the default branch cannot be read: " + err.Error(), Remedy: "put right what git names"})
}

// life is [look] in the audit's form.
func life(p *runstore.Process) (alive, known bool) {
	lives := look(p)
	return lives != nil && *lives, lives != nil
}

// Text is the report for a person, a finding a line.
func (r *Report) Text() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-7s %s: %s\n", f.Severity, f.Component, f.What)
		if f.Action != "" {
			fmt.Fprintf(&b, "        %s\n", f.Action)
		}
		for _, a := range f.RecoveryActions {
			if line := strings.Join(a.Argv, " "); line != f.Action {
				fmt.Fprintf(&b, "        %s\n", line)
			}
		}
	}
	if len(r.Findings) == 0 {
		b.WriteString("No findings.\n")
	}
	b.WriteString(r.Disk.text())
	return strings.TrimRight(b.String(), "\n")
}
