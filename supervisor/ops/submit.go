package ops

import (
	"bytes"
	"context"
	"fmt"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/control"
	"greatminds/tasks"
)

// SubmitArgs carry a decision as its author wrote it.
type SubmitArgs struct {
	// Text is the JSON of the decision, compact or as a full envelope.
	Text string `json:"text"`
}

// runSubmit receives a run's one decision.
//
// The receipt of an exact repetition is returned whatever has become of the run or the task.
// A new decision is judged here, with every reason, while the agent can still mend it; a refused
// one leaves no trace and its result id free. E-178..E-183, E-190..E-194, E-213, E-260.
func runSubmit(ctx context.Context, r *request) (any, error) {
	var args SubmitArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	given, err := tasks.DecodeDecision([]byte(args.Text))
	if err != nil {
		return nil, err
	}
	envelope, err := complete(r.run, given)
	if err != nil {
		return nil, err
	}
	if prior, err := priorResult(r.view(), r.run.ID, envelope); prior != nil || err != nil {
		return prior, err
	}
	if err := r.accepting(r.view()); err != nil {
		return nil, err
	}
	reasons, err := r.Results.Check(ctx, r.run, envelope)
	if err != nil {
		return nil, err
	}
	if len(reasons) > 0 {
		return nil, &refusal.Refusal{Code: refusal.CodeDecisionRefused, Reasons: reasons,
			What:   fmt.Sprintf("the %s decision of run %s cannot be applied", envelope.Decision, r.run.ID),
			Remedy: "mend every point and submit again in this turn; nothing was stored"}
	}
	var answer any
	err = r.step("result.receive", func() (err error) {
		answer, err = r.receive(ctx, envelope)
		return err
	})
	if err == nil {
		r.Daemon.Wake()
	}
	return answer, err
}

// receive makes the decision durable, unless the world has changed since it was judged.
func (r *request) receive(ctx context.Context, envelope runstore.Envelope) (any, error) {
	return r.change(ctx, func(tx *runstore.Tx) (any, error) {
		if prior, err := priorResult(tx.View, r.run.ID, envelope); prior != nil || err != nil {
			return prior, err
		}
		if err := r.accepting(tx.View); err != nil {
			return nil, err
		}
		result, _, err := tx.Receive(r.run.ID, envelope)
		return result, err
	})
}

// complete fills the identity that the author left out from the run, and refuses another one.
func complete(run *runstore.Run, given tasks.Envelope) (runstore.Envelope, error) {
	e := runstore.Envelope{ResultID: runstore.ResultID(given.ResultID), RunID: run.ID, TaskID: run.TaskID,
		TaskRevision: run.TaskRevision, SchemaSHA256: run.SchemaSHA256, Decision: given.Decision.Kind}
	if e.ResultID == "" {
		e.ResultID = runstore.ResultID(run.ID) + "-result"
	}
	var reasons []refusal.Reason
	for _, claimed := range []struct{ field, given, own string }{
		{"run_id", given.RunID, string(run.ID)},
		{"task_id", given.TaskID, string(run.TaskID)},
		{"task_revision", given.TaskRevision, string(run.TaskRevision)},
		{"schema_sha256", given.SchemaSHA256, run.SchemaSHA256},
	} {
		if claimed.given != "" && claimed.given != claimed.own {
			reasons = append(reasons, refusal.Reason{Place: claimed.field,
				What: fmt.Sprintf("%q is not the run's own %q", claimed.given, claimed.own)})
		}
	}
	if len(reasons) > 0 {
		return e, &refusal.Refusal{Code: refusal.CodeIdentityMismatch, Reasons: reasons,
			What:   fmt.Sprintf("the decision does not speak for run %s", run.ID),
			Remedy: "leave these members out; they are filled in from the run"}
	}
	var err error
	e.Payload, err = control.Encode(given.Decision.Payload)
	return e, err
}

// priorResult returns the receipt that an exact repetition gets. Another decision, or another
// result id, of a run that has decided is a conflict.
func priorResult(v *runstore.View, run runstore.RunID, e runstore.Envelope) (*runstore.Result, error) {
	prior := v.ResultOfRun(run)
	if prior == nil {
		if taken := v.Result(e.ResultID); taken != nil {
			return nil, refusal.New(refusal.CodeDecisionConflict, "leave the result id out",
				"result id %s belongs to run %s", e.ResultID, taken.Envelope.RunID)
		}
		return nil, nil
	}
	same, err := equalEnvelopes(prior.Envelope, e)
	if err != nil {
		return nil, err
	}
	if same {
		return prior, nil
	}
	return nil, refusal.New(refusal.CodeDecisionConflict, "a run decides once; its receipt stands",
		"run %s has submitted another decision already (%s, %s)", run, prior.ID(), prior.Status)
}

func equalEnvelopes(a, b runstore.Envelope) (bool, error) {
	one, err := canonical(a)
	if err != nil {
		return false, err
	}
	other, err := canonical(b)
	return bytes.Equal(one, other), err
}

// accepting refuses a decision of a run that is not in its turn, or that still waits for a
// command of its own.
func (r *request) accepting(v *runstore.View) error {
	run := v.Run(r.run.ID)
	if run == nil || (run.State != runstore.Running && run.State != runstore.WaitingInput) || !r.Daemon.Live(run.ID) {
		state := runstore.State("unknown")
		if run != nil {
			state = run.State
		}
		return refusal.New(refusal.CodeRunNotAccepting, "a decision is taken only during the run's own turn",
			"run %s is %s", r.run.ID, state)
	}
	for _, c := range v.CommandsOfRun(run.ID) {
		if c.Open() {
			return refusal.New(refusal.CodeCommandPending,
				fmt.Sprintf("wait for its receipt (`run command-status %s`), then submit again", c.ID),
				"command %s of run %s is still %s", c.ID, run.ID, c.Status)
		}
	}
	return nil
}
