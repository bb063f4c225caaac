package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
)

// shown is what `run show` prints of one run.
type shown struct {
	Run         runRow
	Result      *resultRow
	Commands    []commandRow
	Permissions []permissionRow
}

// settled tells whether nothing of the run will change any more, but for a retry of it.
func (s shown) settled() bool {
	if s.Run.active() || s.Result != nil && s.Result.open() {
		return false
	}
	for _, c := range s.Commands {
		if c.open() || c.Status == "needs_recovery" {
			return false
		}
	}
	return true
}

// put enters the run's rows where the status has none.
func (s shown) put(d *statusDoc) {
	enter(d.Runs, s.Run.ID, s.Run)
	if s.Result != nil {
		enter(d.Results, s.Result.Envelope.ResultID, *s.Result)
	}
	for _, c := range s.Commands {
		enter(d.Commands, c.ID, c)
	}
	for _, p := range s.Permissions {
		enter(d.Permissions, p.ID, p)
	}
}

func enter[V any](rows map[string]V, id string, row V) {
	if _, there := rows[id]; !there {
		rows[id] = row
	}
}

// fill makes room for rows that are asked for by themselves.
func (d *statusDoc) fill() {
	if d.Runs == nil {
		d.Runs = map[string]runRow{}
	}
	if d.Permissions == nil {
		d.Permissions = map[string]permissionRow{}
	}
	if d.Commands == nil {
		d.Commands = map[string]commandRow{}
	}
	if d.Results == nil {
		d.Results = map[string]resultRow{}
	}
}

// askers is how many calls for missing rows are made at a time.
const askers = 2

// takeMissing asks by id for what was acknowledged and is not in the status: it holds what is under way
// and the newest of what is over, but every id stays good. What was seen settled is believed until the
// end, when everything is asked for again.
func (p *project) takeMissing(ctx context.Context, pic *picture, final bool) error {
	pic.status.fill()
	var ask []string
	for _, run := range p.wanted(pic) {
		if known, settled := p.settled[run]; settled && !final {
			known.put(&pic.status)
		} else {
			ask = append(ask, run)
		}
	}
	answers, faults := make([]*shown, len(ask)), make([]error, len(ask))
	var wait sync.WaitGroup
	for worker := range askers {
		wait.Go(func() {
			for i := worker; i < len(ask); i += askers {
				answers[i], faults[i] = p.show(ctx, ask[i])
			}
		})
	}
	wait.Wait()
	for i, answer := range answers {
		if answer == nil {
			continue
		}
		answer.put(&pic.status)
		if answer.settled() {
			p.settled[ask[i]] = *answer
		}
	}
	return errors.Join(errors.Join(faults...), p.takeResolved(ctx, pic))
}

// wanted are the runs of everything that was acknowledged or seen and is not in the status.
func (p *project) wanted(pic *picture) []string {
	runs := map[string]bool{}
	for _, id := range pic.acknowledged() {
		if _, there := pic.status.Results[id]; !there {
			runs[strings.TrimSuffix(id, "-result")] = true
		}
	}
	for mark := range pic.started {
		run, id, _ := strings.Cut(mark, "/")
		if _, there := pic.status.Commands[id]; !there {
			runs[run] = true
		}
	}
	p.ledger.with(func(l *ledger) {
		for id, run := range l.asked {
			if _, there := pic.status.Permissions[id]; !there {
				runs[run] = true
			}
		}
		for _, id := range append(sorted(l.retried), sorted(l.cancelled)...) {
			if _, there := pic.status.Runs[id]; !there {
				runs[id] = true
			}
		}
	})
	return sorted(runs)
}

// takeResolved asks for resolved commands that were never begun, whose run nothing told.
func (p *project) takeResolved(ctx context.Context, pic *picture) error {
	var ids []string
	p.ledger.with(func(l *ledger) { ids = sorted(l.resolved) })
	for _, id := range ids {
		if _, there := pic.status.Commands[id]; there {
			continue
		}
		var row commandRow
		if there, err := p.ask(ctx, &row, "run", "command-status", id); err != nil {
			return err
		} else if there {
			pic.status.Commands[id] = row
		}
	}
	return nil
}

// show asks for one run; nil where there is none.
func (p *project) show(ctx context.Context, run string) (*shown, error) {
	var s shown
	there, err := p.ask(ctx, &s, "run", "show", run)
	if err != nil || !there {
		return nil, err
	}
	return &s, nil
}

// ask decodes the answer of a call; false where it was refused.
func (p *project) ask(ctx context.Context, into any, args ...string) (bool, error) {
	c, err := p.call(ctx, "", append(args, "--json", "--project-dir", p.dir)...)
	if err != nil || !c.done() {
		return false, err
	}
	if err := json.Unmarshal([]byte(c.out), into); err != nil {
		p.found(unsound, "%s printed no JSON: %v\n%.300s", c, err, c.out)
		return false, nil
	}
	return true, nil
}

// executed are the requests of the commands that were executed.
func (pic *picture) executed() (ids []string) {
	for _, mark := range sorted(pic.started) {
		_, id, _ := strings.Cut(mark, "/")
		ids = append(ids, id)
	}
	return ids
}

// examine has the product look at itself, where it can.
func (p *project) examine(ctx context.Context, pic *picture) error {
	if !p.doctor {
		return nil
	}
	c, err := p.call(ctx, "", "run", "doctor", "--json", "--project-dir", p.dir)
	if err == nil && !c.done() {
		pic.doctor = c.out + c.err
	}
	return err
}
