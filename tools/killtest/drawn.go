package main

import (
	"context"
	"path/filepath"
)

// calls are the operator's calls that a round can be about.
var calls = []string{"new", "new", "answer", "answer", "pause", "resume", "cancel", "retry", "plan", "status"}

// drawn is the act of a round. Where there is nothing for it, a task is filed, or dispatch paused
// where there are enough of them. The operator must be quiet.
func (o *operator) drawn(ctx context.Context, name string, pick int) (act, error) {
	doc, err := o.p.status(ctx)
	if err != nil {
		return act{}, err
	}
	var pic picture
	if err := pic.readQueues(filepath.Join(o.p.dir, ".greatminds")); err != nil {
		return act{}, err
	}
	if doc == nil {
		doc = &statusDoc{}
	}
	if fit := o.fitting(name, doc, &pic); len(fit) > 0 {
		return fit[pick%len(fit)], nil
	}
	if open := len(pic.queues) - len(pic.in("verified")); open < int(o.open.Load())+2 {
		if a, ok := o.filing(&pic); ok {
			return a, nil
		}
	}
	return setPaused(true), nil
}

// fitting are the acts of a name that there is reason for now.
func (o *operator) fitting(name string, doc *statusDoc, pic *picture) (fit []act) {
	switch name {
	case "pause", "resume":
		return []act{setPaused(name == "pause")}
	case "status":
		return []act{{args: []string{"run", "status", "--json"}}}
	case "answer":
		for _, id := range sorted(doc.Permissions) {
			if p := doc.Permissions[id]; p.Status == "pending" {
				fit = append(fit, answer(p, "ok"))
			}
		}
	case "cancel":
		for _, id := range sorted(doc.Runs) {
			if doc.Runs[id].active() {
				fit = append(fit, cancelRun(id))
			}
		}
	case "retry":
		for _, a := range doc.Assignments {
			acts, _ := remedies(a.Remedy, 0)
			fit = append(fit, acts...)
		}
	case "plan":
		for _, id := range pic.in("feature_inbox") {
			fit = append(fit, o.p.planTask(id))
		}
	}
	return fit
}
