// Package permission decides the permission requests of agents: by policy where the binding
// says so, by the operator otherwise.
//
// The invariant kept: an operator's question is on record before anybody is asked, an answer is
// handed to the agent only while the supervisor, the run, the deadline and the task revision are
// still those of the question, and whatever ends the wait without an answer answers "cancelled".
// Nothing here ever picks a persistent option. Spec: "Operator permission requests".
package permission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"greatminds/contract"
	"greatminds/internal/redact"
	"greatminds/runstore"
	"greatminds/transport"
)

// MaxWait bounds one question, however long the prompt may still take.
const MaxWait = 300 * time.Second

// Reasons of a closed question.
const (
	CallbackClosed    = "callback_closed"
	Withdrawn         = "withdrawn" // by the agent
	RunClosed         = "run_closed"
	SupervisorRestart = "supervisor_restart"
)

const (
	allowOnce  = "allow_once"
	rejectOnce = "reject_once"
)

// Broker asks the operator through the store. One broker serves every run of a daemon.
type Broker struct {
	Store *runstore.Store
	// Owner is the supervisor's identity; an answer meant for another one is never delivered.
	Owner string
	Now   func() time.Time
	Log   *slog.Logger
	// Revision reads a task's revision as its file stands now.
	Revision func(runstore.TaskID) (runstore.Revision, error)

	mu    sync.Mutex
	waits map[runstore.PermissionID]time.Time // when each callback that waits gives up
}

// Waits tells whether the agent's callback still waits for the answer to a question. Its time is
// that of this process and runs on whatever becomes of the wall clock; the expiry on record only
// tells people when that will be.
func (b *Broker) Waits(id runstore.PermissionID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Before(b.waits[id])
}

func (b *Broker) begin(id runstore.PermissionID, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waits == nil {
		b.waits = map[runstore.PermissionID]time.Time{}
	}
	b.waits[id] = until
}

func (b *Broker) end(id runstore.PermissionID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waits, id)
}

// Asked is one question together with whose it is.
type Asked struct {
	Run       *runstore.Run
	Policy    string
	Workspace string
	SessionID string
	// PromptEnds is when the prompt's budget ends, zero without one.
	PromptEnds time.Time
	// Secrets masks the values assigned to the run.
	Secrets *redact.Redactor
	Request transport.PermissionRequest
	// Progress, when not nil, is told what becomes of the question. It must not block.
	Progress func(Progress)
}

// Progress is one step of a question's life.
type Progress struct {
	// ID is the question's record; empty where policy decided.
	ID runstore.PermissionID
	// Status is pending, consumed or cancelled as on record; allowed or denied where policy decided.
	Status string
	// OptionID is the chosen option as it stands on record, Reason why the question was closed.
	OptionID, Reason string
}

func (a Asked) tell(p Progress) {
	if a.Progress != nil {
		a.Progress(p)
	}
}

// Answered is the outcome of a question.
type Answered struct {
	transport.PermissionAnswer
	// TimedOut says that a person was asked and did not answer in time.
	TimedOut bool
	// Unrecorded is why the store did not take the question or its answer's delivery; nil where it
	// did. Nobody was heard then, which is not the same as no.
	Unrecorded error
}

// Ask answers one question. It returns when the answer may be handed to the agent, or when ctx
// ends; then the question is closed on record and the answer is "cancelled".
func (b *Broker) Ask(ctx context.Context, a Asked) Answered {
	switch {
	case a.Policy == contract.PermissionDeny:
		a.tell(Progress{Status: "denied"})
		return Answered{PermissionAnswer: transport.PermissionAnswer{OptionID: first(a.Request, rejectOnce)}}
	case a.Policy == contract.PermissionAllowWorkspace && Inside(a.Workspace, a.Request):
		if id := first(a.Request, allowOnce); id != "" {
			a.tell(Progress{Status: "allowed"})
			return Answered{PermissionAnswer: transport.PermissionAnswer{OptionID: id}}
		}
	}
	id, limit := runstore.PermissionID(runstore.NewID()), MaxWait
	if !a.PromptEnds.IsZero() {
		limit = max(0, min(limit, time.Until(a.PromptEnds)))
	}
	b.begin(id, time.Now().Add(limit))
	defer b.end(id)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	o := offer(a.Secrets, a.Request.Options)
	if err := b.record(ctx, a, id, limit, o); err != nil {
		b.Log.Error("permission request not recorded", "run_id", a.Run.ID, "err", err)
		if ctx.Err() != nil {
			return Answered{}
		}
		return Answered{Unrecorded: err}
	}
	a.tell(Progress{ID: id, Status: "pending"})
	answered := b.wait(ctx, a, id, timer.C)
	if p := b.Store.View().Permission(id); p != nil {
		a.tell(Progress{ID: id, Status: p.Status, OptionID: p.OptionID, Reason: p.Reason})
	}
	if answered.OptionID != "" {
		answered.Delivered = b.delivered(a, id)
	}
	return o.chosen(answered)
}

// delivered hears whether the agent got the answer. Its callback may have ended while the delivery was
// made durable; the record cannot take back that it was handed over, but whoever watches is told.
func (b *Broker) delivered(a Asked, id runstore.PermissionID) func(bool) {
	return func(ok bool) {
		if ok {
			return
		}
		b.Log.Warn("permission answer came too late: the agent was told cancelled", "run_id", a.Run.ID, "request_id", id)
		a.tell(Progress{ID: id, Status: "cancelled", Reason: CallbackClosed})
	}
}

func first(r transport.PermissionRequest, kind string) string {
	for _, o := range r.Options {
		if o.Selectable && o.Kind == kind {
			return o.ID
		}
	}
	return ""
}

// record makes the question durable and the run waiting_input, in one transaction.
func (b *Broker) record(ctx context.Context, a Asked, id runstore.PermissionID, limit time.Duration, o offered) error {
	tool, err := a.Secrets.JSON(a.Request.ToolCall)
	if err != nil {
		return fmt.Errorf("mask the question: %w", err)
	}
	now := b.Now()
	p := runstore.Permission{ID: id, RunID: a.Run.ID, OwnerID: b.Owner, SessionID: a.SessionID,
		TaskRevision: a.Run.TaskRevision, Status: "pending", CreatedAt: runstore.Epoch(now), ExpiresAt: runstore.Epoch(now.Add(limit)),
		Tool: tool, Options: o.shown}
	return b.Store.Update(ctx, func(tx *runstore.Tx) error {
		if err := tx.AskPermission(p); err != nil {
			return err
		}
		if run := tx.Run(a.Run.ID); run.State == runstore.Running {
			return tx.Transition(run.ID, runstore.NewID(), runstore.WaitingInput, "permission_required", nil)
		}
		return nil
	})
}

func (b *Broker) wait(ctx context.Context, a Asked, id runstore.PermissionID, over <-chan time.Time) Answered {
	for {
		changed := b.Store.Changed()
		p := b.Store.View().Permission(id)
		switch {
		case p == nil || p.Status == "cancelled":
			return Answered{}
		case p.Status == "answered":
			return b.consume(ctx, a, p)
		}
		select {
		case <-changed:
		case <-over:
			b.close(ctx, a, id, CallbackClosed)
			return Answered{TimedOut: true}
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), transport.ErrWithdrawn) {
				b.close(ctx, a, id, Withdrawn)
				return Answered{}
			}
			b.close(ctx, a, id, CallbackClosed)
			// The prompt's own deadline ends the callback a moment before our timer does.
			return Answered{TimedOut: !a.PromptEnds.IsZero() && !time.Now().Before(a.PromptEnds)}
		case <-b.Store.Failed():
			return Answered{}
		}
	}
}

// Why an answer must not be delivered.
var (
	// errMoved says that the world of the question is gone.
	errMoved = errors.New("the question no longer stands")
	// errOver says that the answer came in time, but not to the callback: that is nobody's answer.
	errOver = errors.New("the question's time is over")
)

// consume hands an answer over after checking everything again under the store's lock. E-046.
func (b *Broker) consume(ctx context.Context, a Asked, p *runstore.Permission) Answered {
	err := b.deliver(ctx, a, p)
	if err == nil {
		return Answered{PermissionAnswer: transport.PermissionAnswer{OptionID: p.OptionID}}
	}
	b.Log.Warn("permission answer not delivered", "run_id", a.Run.ID, "request_id", p.ID, "err", err)
	b.close(ctx, a, p.ID, CallbackClosed)
	switch {
	case errors.Is(err, errOver):
		return Answered{TimedOut: true}
	case errors.Is(err, errMoved) || ctx.Err() != nil:
		return Answered{}
	}
	return Answered{Unrecorded: err}
}

func (b *Broker) deliver(ctx context.Context, a Asked, p *runstore.Permission) error {
	switch revision, err := b.Revision(a.Run.TaskID); {
	case err != nil:
		return fmt.Errorf("%w: %w", errMoved, err)
	case revision != p.TaskRevision:
		return errMoved
	}
	return b.Store.Update(ctx, func(tx *runstore.Tx) error {
		run, now := tx.Run(a.Run.ID), tx.Permission(p.ID)
		if run == nil || now == nil || now.Status != "answered" || now.OwnerID != b.Owner ||
			run.State != runstore.WaitingInput || run.CancelAsked() {
			return errMoved
		}
		if !b.Waits(p.ID) {
			return errOver
		}
		if err := tx.ConsumePermission(p.ID); err != nil {
			return err
		}
		return b.resume(tx, run)
	})
}

// resume takes the run back to running once no other question of it is open.
func (b *Broker) resume(tx *runstore.Tx, run *runstore.Run) error {
	for _, other := range tx.PermissionsOfRun(run.ID) {
		if other.Status == "pending" || other.Status == "answered" {
			return nil
		}
	}
	if tx.Run(run.ID).State != runstore.WaitingInput {
		return nil
	}
	return tx.Transition(run.ID, runstore.NewID(), runstore.Running, "permission_callback_resolved", nil)
}

// close ends a question without an answer. The wait may have ended because the caller's
// context did; the record is made all the same, within its own bound.
func (b *Broker) close(ctx context.Context, a Asked, id runstore.PermissionID, reason string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := b.Store.Update(ctx, func(tx *runstore.Tx) error {
		p := tx.Permission(id)
		if p == nil || p.Status == "consumed" || p.Status == "cancelled" {
			return nil
		}
		if err := tx.ClosePermission(id, reason); err != nil {
			return err
		}
		return b.resume(tx, a.Run)
	})
	if err != nil {
		b.Log.Error("permission request not closed", "run_id", a.Run.ID, "request_id", id, "err", err)
	}
}

// CloseRun closes every open question of a run, answered ones that were not delivered
// included. It is part of the transaction that ends the run. E-055, E-056.
func CloseRun(tx *runstore.Tx, run runstore.RunID, reason string) error {
	for _, p := range tx.PermissionsOfRun(run) {
		if p.Status == "pending" || p.Status == "answered" {
			if err := tx.ClosePermission(p.ID, reason); err != nil {
				return err
			}
		}
	}
	return nil
}
