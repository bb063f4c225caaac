package main

import (
	"context"
	"encoding/json"
)

// takeMissing asks by id for what was acknowledged and is not in the status: it holds only the newest
// of what is over, but every id stays good.
func (p *project) takeMissing(ctx context.Context, pic *picture) error {
	var permissions, commands, runs []string
	p.ledger.with(func(l *ledger) {
		permissions = absent(sorted(l.asked), pic.status.Permissions)
		commands = absent(sorted(l.resolved), pic.status.Commands)
		runs = absent(append(sorted(l.retried), sorted(l.cancelled)...), pic.status.Runs)
	})
	for _, id := range permissions {
		var row permissionRow
		if there, err := p.ask(ctx, &row, "run", "permission", id); err != nil {
			return err
		} else if there {
			pic.status.Permissions[id] = row
		}
	}
	for _, id := range commands {
		var row commandRow
		if there, err := p.ask(ctx, &row, "run", "command-status", id); err != nil {
			return err
		} else if there {
			pic.status.Commands[id] = row
		}
	}
	for _, id := range runs {
		var shown struct{ Run runRow }
		if there, err := p.ask(ctx, &shown, "run", "show", id); err != nil {
			return err
		} else if there {
			pic.status.Runs[id] = shown.Run
		}
	}
	return nil
}

func absent[V any](ids []string, rows map[string]V) (out []string) {
	for _, id := range ids {
		if _, there := rows[id]; !there {
			out = append(out, id)
		}
	}
	return out
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

// examine has the product look at itself, where it can.
func (p *project) examine(ctx context.Context) {
	if !p.doctor {
		return
	}
	c, err := p.call(ctx, "", "run", "doctor", "--json", "--project-dir", p.dir)
	if err == nil && !c.done() {
		p.found(unsound, "%s: status %d\n%s%s", c, c.status, c.out, c.err)
	}
}
