package ops

import (
	"context"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/status"
)

// maxListed bounds a page of run.list.
const maxListed = 1000

// ListArgs select a page of runs.
type ListArgs struct {
	// After is the last run of the page before; empty for the first page.
	After runstore.RunID `json:"after,omitempty"`
	// Limit bounds the page, 1 to 1000.
	Limit int `json:"limit"`
}

// Listed is one page of runs. Runs that have ended are listed the newest first.
type Listed struct {
	Version int `json:"version"`
	// Active are the runs that have not ended, oldest claim first; on the first page alone.
	Active []status.Listed `json:"active"`
	Runs   []status.Listed `json:"runs"`
	// Next is what to give as After for the next page, null where nothing follows.
	Next   *runstore.RunID `json:"next"`
	Totals status.Totals   `json:"totals"`
}

// runList returns a page of runs, whether they are recent or long past.
func runList(ctx context.Context, r *request) (any, error) {
	var args ListArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	if args.Limit < 1 || args.Limit > maxListed {
		return nil, refusal.New(refusal.CodeUsage, "give a limit of 1 to 1000", "limit %d is out of range", args.Limit)
	}
	v := r.view()
	runs, next, err := v.History(args.After, args.Limit)
	if err != nil {
		return nil, err
	}
	page := &Listed{Version: 1, Active: []status.Listed{}, Runs: status.List(v, runs), Totals: status.CountRuns(v)}
	if args.After == "" {
		page.Active = status.List(v, v.ActiveRuns())
	}
	if next != "" {
		page.Next = &next
	}
	if fault := v.HistoryFault(); fault != nil {
		return nil, fault
	}
	return page, nil
}
