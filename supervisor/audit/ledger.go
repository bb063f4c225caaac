package audit

import (
	"fmt"
	"slices"

	"greatminds/runstore"
)

// Ledger is what was acknowledged to somebody, in order. The last entry of a record counts.
type Ledger []Entry

// Entry is one acknowledgement.
type Entry struct {
	// Kind is run, result, command, permission, request or line (of the task journal, by its
	// operation's id).
	Kind string
	ID   string
	// As is the state or status that was acknowledged; empty where the record alone counts.
	As string
}

// courses are the statuses of each kind in the order in which they follow each other. Those of
// the last group are final.
var courses = map[string][][]string{
	"run": {{"claimed"}, {"starting"}, {"running", "waiting_input", "waiting_auth"}, {"cancelling"},
		{"completed", "failed", "cancelled", "interrupted"}},
	// One in needs_recovery is taken up again, by a person or, where it was only held, by itself.
	"result":     {{"received"}, {"applying", "needs_recovery"}, {"applied", "rejected", "abandoned"}},
	"command":    {{"queued"}, {"starting"}, {"running"}, {"needs_recovery"}, {"succeeded", "failed", "stale", "cancelled", "resolved"}},
	"permission": {{"pending"}, {"answered"}, {"consumed", "cancelled"}},
}

// acknowledged looks for everything that the ledger holds.
func (a *audit) acknowledged() {
	last := map[[2]string]Entry{}
	for _, e := range a.Ledger {
		last[[2]string{e.Kind, e.ID}] = e
	}
	for _, e := range last {
		now, there := a.standing(e)
		switch {
		case !there:
			a.lost(e, "is not on record")
		case !follows(e.Kind, e.As, now):
			a.lost(e, "is "+now)
		}
	}
}

func (a *audit) lost(e Entry, now string) {
	as := ""
	if e.As != "" {
		as = " as " + e.As
	}
	a.add(Finding{Component: "runtime", Code: "acknowledged_lost", Severity: Error, Place: e.Kind + " " + e.ID,
		What:   fmt.Sprintf("%s %s was acknowledged%s and %s", e.Kind, e.ID, as, now),
		Remedy: "keep the runtime folder as it is and report it"})
}

// standing is the status of an entry's record now.
func (a *audit) standing(e Entry) (status string, there bool) {
	switch e.Kind {
	case "run":
		if r := a.View.Run(runstore.RunID(e.ID)); r != nil {
			return string(r.State), true
		}
	case "result":
		if r := a.View.Result(runstore.ResultID(e.ID)); r != nil {
			return r.Status, true
		}
	case "command":
		if c := a.View.Command(runstore.CommandID(e.ID)); c != nil {
			return c.Status, true
		}
	case "permission":
		if p := a.View.Permission(runstore.PermissionID(e.ID)); p != nil {
			return p.Status, true
		}
	case "request":
		return "", a.View.Request(e.ID) != nil
	case "line":
		return "", a.Journal == nil || a.linesOf(e.ID) > 0
	}
	return "", false
}

// follows tells whether a record that was acknowledged in one status may stand in another.
func follows(kind, as, now string) bool {
	at := func(status string) int {
		return slices.IndexFunc(courses[kind], func(group []string) bool { return slices.Contains(group, status) })
	}
	if as == "" || as == now {
		return true
	}
	final := len(courses[kind]) - 1
	return at(as) >= 0 && at(as) < final && at(now) >= at(as)
}
