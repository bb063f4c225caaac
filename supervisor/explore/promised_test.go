package explore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"greatminds/cmd/cli"
	"greatminds/commands"
	"greatminds/internal/execgate"
	"greatminds/runstore"
	"greatminds/supervisor/audit"
	"greatminds/supervisor/status"
)

// facts are what the promises are held against. recovered says that nothing has been started yet.
func (l *life) facts(recovered bool) (audit.Facts, error) {
	v := l.view()
	f := audit.Facts{View: v, Recovered: recovered, Command: command, Life: lives,
		Pinned: func(kind, sha string) error { return runstore.CheckPinned(l.w.project.StoreDir(), kind, sha) },
		Output: func(c *runstore.Command) error {
			_, err := commands.Reader{Dir: l.w.project.StoreDir()}.Preview(c, 0)
			return err
		}}
	var err error
	if f.Changing, err = l.r.Tree.Unfinished(); err == nil {
		f.Tasks, err = l.r.Tree.Discover()
	}
	if err == nil {
		f.Journal, err = l.r.Tree.Journal()
	}
	if err == nil {
		f.Merges, err = l.r.Git.Merges(l.ctx, l.w.root, l.r.Worktrees.DefaultBranch)
	}
	if err == nil {
		for _, j := range l.plan(f.Tasks) {
			f.Assignments = append(f.Assignments, status.Assignment{TaskID: string(j.Task.ID), Reason: j.Reason, What: j.What, Remedy: j.Remedy})
		}
	}
	return f, err
}

// promised holds the promises against what is on record. What a person has to decide about is
// no broken promise.
func (l *life) promised(recovered bool, acknowledged *runstore.View) error {
	f, err := l.facts(recovered)
	if err != nil {
		return fmt.Errorf("the project cannot be looked at: %w", err)
	}
	f.Ledger = ledgerOf(acknowledged)
	var broken []error
	for _, found := range audit.Check(f) {
		if found.Code != "needs_recovery" {
			broken = append(broken, fmt.Errorf("%s %s: %s", found.Code, found.Place, found.What))
		}
	}
	if acknowledged != nil && f.View.Sequence() < acknowledged.Sequence() {
		broken = append(broken, fmt.Errorf("event %d was acknowledged, the last one is %d", acknowledged.Sequence(), f.View.Sequence()))
	}
	if done, known := l.w.executed(), l.executable(); done > known {
		broken = append(broken, fmt.Errorf("the command was executed %d times, the processes of %d are on record", done, known))
	}
	return errors.Join(broken...)
}

// executable counts the commands that may have been executed as far as is on record.
func (l *life) executable() int {
	n := 0
	for _, r := range l.view().Runs() {
		for _, c := range l.view().CommandsOfRun(r.ID) {
			if c.Process != nil {
				n++
			}
		}
	}
	return n
}

// ledgerOf is everything that a view holds: nobody sees what is not durable.
func ledgerOf(v *runstore.View) audit.Ledger {
	if v == nil {
		return nil
	}
	var all audit.Ledger
	for _, r := range v.Runs() {
		all = append(all, audit.Entry{Kind: "run", ID: string(r.ID), As: string(r.State)})
		for _, c := range v.CommandsOfRun(r.ID) {
			all = append(all, audit.Entry{Kind: "command", ID: string(c.ID), As: c.Status})
		}
		for _, p := range v.PermissionsOfRun(r.ID) {
			all = append(all, audit.Entry{Kind: "permission", ID: string(p.ID), As: p.Status})
		}
	}
	for _, r := range v.Results() {
		all = append(all, audit.Entry{Kind: "result", ID: string(r.ID()), As: r.Status})
		if r.Status == "applied" {
			all = append(all, audit.Entry{Kind: "line", ID: string(r.ID())})
		}
	}
	return all
}

var commandsKnown sync.Map

// command tells whether a line begins with a command of the real command line, which is asked for
// its help.
func command(line string) bool {
	if is, known := commandsKnown.Load(line); known {
		return is.(bool)
	}
	var out bytes.Buffer
	w := cli.World{Args: append(strings.Fields(line)[1:], "--help"), Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }, Cwd: "/", Now: time.Now}
	is := cli.Greatminds(context.Background(), w) == 0 && !strings.Contains(out.String(), "\nCommands:\n") // a group lists its own
	commandsKnown.Store(line, is)
	return is
}

func lives(p *runstore.Process) (alive, known bool) {
	life, err := execgate.Look(execgate.Process{PID: p.PID, StartTicks: p.StartTicks, BootID: p.BootID, Group: p.Group, Session: p.Session, PidfdInode: p.PidfdInode})
	return life == execgate.Alive, err == nil && life != execgate.Unknown
}
