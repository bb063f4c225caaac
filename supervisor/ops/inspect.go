package ops

import (
	"context"
	"encoding/json"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/activity"
	"greatminds/supervisor/control"
	"greatminds/supervisor/status"
)

// runStatus builds the document of `run status`.
func runStatus(ctx context.Context, r *request) (any, error) {
	if err := r.decode(&struct{}{}); err != nil {
		return nil, err
	}
	v := r.view()
	found, err := r.Tree.Discover()
	if err != nil {
		return nil, err
	}
	return status.Build(status.Input{
		View: v, Tasks: found, Contract: r.Contract, Schema: r.Schema,
		Dispatch: r.Dispatch(v, found), Alive: look, Changed: r.contractChanged(),
	})
}

// contractChanged compares the contract that this process goes by with its file, which somebody may
// have edited since: nothing of that counts yet. What was read from the file just now is the file.
func (r *request) contractChanged() *status.Changed {
	if r.files != nil {
		return nil
	}
	file, err := contract.Load(r.Project, "", r.Schema)
	switch {
	case err != nil:
		return &status.Changed{What: "The contract has changed since coordd began, and cannot be used: " + err.Error(),
			Remedy: "mend it, then restart coordd, which goes on with what it read at its start"}
	case file.SHA256() != r.Contract.SHA256():
		return &status.Changed{What: r.Project.ExecutionPath() + " has changed since coordd began: nothing of the change counts yet.",
			Remedy: "restart coordd, which goes on with what it read at its start"}
	}
	return nil
}

// EventsArgs select a page of events.
type EventsArgs struct {
	// After is an exclusive cursor: the sequence of the last event that the caller has.
	After uint64 `json:"after"`
	// Limit bounds the page, 1 to 10000.
	Limit int `json:"limit"`
	// Wait is how long to wait for a first event where there is none, in seconds, at most 600.
	Wait float64 `json:"wait_seconds,omitempty"`
}

// runEvents returns the events after a cursor, and waits for the first one where it is asked to.
func runEvents(ctx context.Context, r *request) (any, error) {
	var args EventsArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	if args.Limit < 1 || args.Limit > 10000 || args.Wait < 0 || args.Wait > maxWait {
		return nil, refusal.New(refusal.CodeUsage, "give a limit of 1 to 10000 and a wait of 0 to 600 seconds",
			"limit %d with a wait of %g seconds is out of range", args.Limit, args.Wait)
	}
	if r.files != nil { // what was read once does not change
		return notNil(r.files.Events(args.After, args.Limit)), nil
	}
	timer := time.NewTimer(time.Duration(args.Wait * float64(time.Second)))
	defer timer.Stop()
	for {
		changed := r.Store.Changed()
		if events := r.view().Events(args.After, args.Limit); len(events) > 0 {
			return events, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return []*runstore.Event{}, nil
		case <-control.Draining(ctx):
			return []*runstore.Event{}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// notNil makes an empty list [], never null.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// absent is the refusal of what was not found, or of the look-up that could not be answered.
func absent(v *runstore.View, unknown error) error {
	if fault := v.HistoryFault(); fault != nil {
		return fault
	}
	return unknown
}

// Shown is everything on record about one run.
type Shown struct {
	Version     int                    `json:"version"`
	Run         *runstore.Run          `json:"run"`
	Result      *runstore.Result       `json:"result"`
	Commands    []*runstore.Command    `json:"commands"`
	Permissions []*runstore.Permission `json:"permissions"`
	Operations  []*runstore.Operation  `json:"operations"`
	// Activity is what the agent was seen doing; null where nothing of it is kept.
	Activity *activity.Document `json:"activity"`
}

// runShow shows one run with everything that belongs to it.
func runShow(ctx context.Context, r *request) (any, error) {
	var args RunArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	v, id := r.view(), args.Run
	run, err := findRun(v, id)
	if err != nil {
		return nil, err
	}
	public := *run
	public.TokenSHA256 = ""
	shown := &Shown{Version: 1, Run: &public, Result: v.ResultOfRun(id), Commands: v.CommandsOfRun(id),
		Permissions: v.PermissionsOfRun(id), Operations: []*runstore.Operation{}}
	for _, o := range v.OperationsOfTask(run.TaskID) {
		if o.RunID == id {
			shown.Operations = append(shown.Operations, o)
		}
	}
	shown.Activity, _ = r.activity(id)
	shown.Commands, shown.Permissions = notNil(shown.Commands), notNil(shown.Permissions)
	if fault := v.HistoryFault(); fault != nil {
		return nil, fault
	}
	return shown, nil
}

// ContractArgs select what run.contract shows.
type ContractArgs struct {
	// Schema asks for the pinned schema instead of the assigned context.
	Schema bool `json:"schema,omitempty"`
	// Decision asks for the JSON Schema of the decisions that the run may submit. At most one of
	// the two is set.
	Decision bool `json:"decision,omitempty"`
}

// runContract shows what the caller's run is assigned, from its pinned documents. E-171..E-173.
func runContract(ctx context.Context, r *request) (any, error) {
	var args ContractArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	if err := r.active(); err != nil {
		return nil, err
	}
	switch {
	case args.Schema && args.Decision:
		return nil, refusal.New(refusal.CodeUsage, "ask for one of them", "schema and decision exclude each other")
	case args.Decision:
		return r.DecisionSchema(r.run)
	case !args.Schema:
		return r.Brief(r.run)
	}
	data, err := r.Store.Pinned("schema", r.run.SchemaSHA256)
	return json.RawMessage(data), err
}

// RepairArgs name an operation that needs recovery.
type RepairArgs struct {
	Operation string `json:"operation_id"`
	// Abandon gives it up, for a Reason, instead of finishing it.
	Abandon bool   `json:"abandon,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// runRepair leads an operation out of needs_recovery: it finishes what can be told to be safe, or
// gives it up. E-218.
func runRepair(ctx context.Context, r *request) (any, error) {
	var args RepairArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	if args.Abandon {
		if err := checkReason(args.Reason); err != nil {
			return nil, err
		}
	}
	v := r.view()
	if v.Operation(runstore.OperationID(args.Operation)) == nil && v.Result(runstore.ResultID(args.Operation)) == nil {
		return nil, absent(v, refusal.New(refusal.CodeNotRecoverable, "read the ids from `greatminds run status`",
			"unknown operation %q", args.Operation))
	}
	answer, err := r.around(ctx, func() (any, error) {
		if args.Abandon {
			return r.Results.Abandon(ctx, args.Operation, args.Reason)
		}
		return r.Results.Repair(ctx, args.Operation)
	})
	if err == nil {
		r.Daemon.Wake()
	}
	return answer, err
}
