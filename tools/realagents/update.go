package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// readTable reads a result that was written as JSON; no rows where there is no such file.
func readTable(file string) ([]row, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if doc.Version != 1 {
		return nil, fmt.Errorf("%s has version %d, not 1; write a new one without --update", file, doc.Version)
	}
	return doc.Agents, nil
}

// updated has the new rows, and of the old ones what was not run anew, in the order of the recipes.
// An agent that could not be run at all is as its new row says.
func updated(old, rows []row) []row {
	var out []row
	for _, r := range recipes {
		before, now := rowOf(old, r.name), rowOf(rows, r.name)
		switch {
		case now == nil && before == nil:
		case now == nil:
			out = append(out, *before)
		case before == nil || !now.ran():
			out = append(out, *now)
		default:
			out = append(out, now.over(*before))
		}
	}
	return out
}

func rowOf(rows []row, agent string) *row {
	i := slices.IndexFunc(rows, func(r row) bool { return r.Agent == agent })
	if i < 0 {
		return nil
	}
	return &rows[i]
}

// ran says that the agent was installed and did something.
func (r row) ran() bool { return r.Pipeline != notRun || len(r.Cells) > 0 }

// over is the row with what the older one has beside.
func (r row) over(old row) row {
	out := r
	if r.Pipeline == notRun {
		out.Pipeline, out.PipelineAt, out.PipelineError, out.Permissions = old.Pipeline, old.PipelineAt, old.PipelineError, old.Permissions
		out.Merge, out.File, out.Changed, out.Kept = old.Merge, old.File, old.Changed, old.Kept
		out.ModelRequests, out.AssignedRequests, out.Seconds = old.ModelRequests, old.AssignedRequests, old.Seconds
	}
	for _, name := range old.AgentInfo {
		out.heard(name)
	}
	out.InstallSeconds = max(r.InstallSeconds, old.InstallSeconds)
	out.Cells = []cell{}
	for _, sc := range scenarios {
		if c := r.cell(sc.name); c != nil {
			out.Cells = append(out.Cells, *c)
		} else if c := old.cell(sc.name); c != nil {
			out.Cells = append(out.Cells, *c)
		}
	}
	out.Error = out.faults()
	return out
}
