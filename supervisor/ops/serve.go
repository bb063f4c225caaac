package ops

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/control"
)

// changeTime bounds a changing operation that the caller no longer waits for: locks are waited
// for 30 s, and a decision's check hashes a source tree.
const changeTime = 3 * time.Minute

// Serve performs one call of the table for the process peer.
func (e *Env) Serve(ctx context.Context, peer execgate.Peer, c control.Call) (any, error) {
	op, known := table[c.Op]
	if !known {
		return nil, refusal.New(refusal.CodeUnknownOperation, "restart the daemon when it is older than the command",
			"operation %q is not known", c.Op)
	}
	r := &request{Env: e, Call: c, peer: peer}
	if err := r.authorize(op.Authority); err != nil {
		return nil, err
	}
	if !op.Changing {
		return op.do(ctx, r)
	}
	return r.once(ctx, op)
}

// once performs a changing operation under its request id. The same id again, at the same time or
// later, gets the first answer.
func (r *request) once(ctx context.Context, op Operation) (any, error) {
	if r.ID == "" {
		return nil, refusal.New(refusal.CodeRequestMalformed, "send a fresh request id with every changing call",
			"%s changes something, but came without a request id", r.Op)
	}
	leave, err := r.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if prior, err := r.prior(r.view()); prior != nil || err != nil {
		return prior, err
	}
	// A caller that hangs up must not leave the change half done. A call that waits for something
	// else looks at the caller's own context.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTime)
	defer cancel()
	r.caller = ctx
	return op.do(bounded, r)
}

// enter waits until no other call of the same id is in work.
func (r *request) enter(ctx context.Context) (leave func(), err error) {
	for {
		r.mu.Lock()
		other, busy := r.inWork[r.ID]
		if !busy {
			if r.inWork == nil {
				r.inWork = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			r.inWork[r.ID] = mine
			r.mu.Unlock()
			return func() {
				r.mu.Lock()
				delete(r.inWork, r.ID)
				r.mu.Unlock()
				close(mine)
			}, nil
		}
		r.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// prior returns the stored answer of this request, nil where it is new.
func (r *request) prior(v *runstore.View) (json.RawMessage, error) {
	stored := v.Request(r.ID)
	if stored == nil {
		return nil, v.HistoryFault() // what cannot be looked up must not be done a second time
	}
	var known receipt
	if err := json.Unmarshal(stored.Receipt, &known); err != nil {
		return nil, fmt.Errorf("receipt of request %s: %w", r.ID, err)
	}
	if known.Op != r.Op || known.Caller != r.RunID || known.SHA256 != r.sum() {
		return nil, refusal.New(refusal.CodeRequestReused, "use a fresh request id for another request",
			"request id %s already stands for another request (%s)", r.ID, known.Op)
	}
	switch known.State {
	case "done":
		return json.RawMessage(known.Result), nil
	case "refused":
		return nil, nil // nothing was done, so it may be tried
	default:
		return nil, refusal.New(refusal.CodeOutcomeUnknown,
			"look at `greatminds task show ID` and `greatminds journal tail` before you ask for it again",
			"request %s (%s) was begun, but its outcome is on no record", r.ID, r.Op)
	}
}

func (r *request) sum() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00", r.Op, r.Role, r.Cwd)
	h.Write(r.Args)
	return hex.EncodeToString(h.Sum(nil))
}

func (r *request) receipt(state string, result json.RawMessage) (json.RawMessage, error) {
	return json.Marshal(receipt{Op: r.Op, Caller: r.RunID, SHA256: r.sum(), State: state, Result: string(result)})
}

// change runs f as one transaction of the store, together with the receipt of its answer.
func (r *request) change(ctx context.Context, f func(tx *runstore.Tx) (any, error)) (json.RawMessage, error) {
	var answer json.RawMessage
	err := r.Store.Update(ctx, func(tx *runstore.Tx) error {
		value, err := f(tx)
		if err != nil {
			return err
		}
		if answer, err = control.Encode(value); err != nil {
			return err
		}
		stored, err := r.receipt("done", answer)
		if err != nil {
			return err
		}
		return tx.PutRequest(r.ID, stored)
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// around performs an effect that lies outside the store, such as a change of a task file. The
// intent is durable first; a crash in between leaves an outcome that is told as unknown.
func (r *request) around(ctx context.Context, f func() (any, error)) (json.RawMessage, error) {
	if err := r.put(ctx, "begun", nil); err != nil {
		return nil, err
	}
	value, err := f()
	if _, refused := refusal.Find(err); refused {
		return nil, errors.Join(err, r.put(ctx, "refused", nil))
	}
	if err != nil {
		return nil, err // the intent stays: how far it went is not known
	}
	answer, err := control.Encode(value)
	if err != nil {
		return nil, err
	}
	return answer, r.put(ctx, "done", answer)
}

func (r *request) put(ctx context.Context, state string, result json.RawMessage) error {
	stored, err := r.receipt(state, result)
	if err != nil {
		return err
	}
	return r.Store.Update(ctx, func(tx *runstore.Tx) error { return tx.PutRequest(r.ID, stored) })
}

// authorize checks who asks, before anything is looked at for them.
func (r *request) authorize(a Authority) error {
	switch a {
	case Anyone:
		return nil
	case Operator:
		return r.operator()
	case Assigned:
		return r.authenticate()
	case Either:
		if r.Assigned() {
			return r.authenticate()
		}
		return r.operator()
	}
	panic(fmt.Sprintf("ops: operation %s has no authority (%d)", r.Op, a))
}

// operator refuses callers that are, or may be, agents of this daemon. E-050, E-051, E-259.
func (r *request) operator() error {
	const remedy = "let the operator do it, from a terminal of their own"
	switch {
	case r.Assigned():
		return refusal.New(refusal.CodeOperatorOnly, remedy,
			"%s is for the operator, but the caller carries the credential of run %q", r.Op, r.RunID)
	case !r.peer.Known:
		return refusal.New(refusal.CodeOperatorOnly, remedy,
			"%s is for the operator, and it cannot be told who the caller (pid %d) descends from", r.Op, r.peer.PID)
	case r.peer.Descends:
		return refusal.New(refusal.CodeOperatorOnly, remedy,
			"%s is for the operator, but the caller (pid %d) was started by this daemon's agents", r.Op, r.peer.PID)
	}
	return nil
}

// authenticate takes the caller for the run whose credential it shows. Whether the run may still
// act is the operation's question. E-016, E-192.
func (r *request) authenticate() error {
	const remedy = "call it from inside the run, with the environment that the run was started with"
	if r.RunID == "" || r.Token == "" {
		return refusal.New(refusal.CodeCredential, remedy, "%s needs a run's credential (GREATMINDS_RUN_ID and GREATMINDS_RUN_TOKEN)", r.Op)
	}
	run := r.view().Run(runstore.RunID(r.RunID))
	sum := sha256.Sum256([]byte(r.Token))
	if run == nil || subtle.ConstantTimeCompare([]byte(hex.EncodeToString(sum[:])), []byte(run.TokenSHA256)) != 1 {
		// The same words for both, so that a guess learns nothing.
		return refusal.New(refusal.CodeCredential, remedy, "the credential given for run %q is not valid", r.RunID)
	}
	if role := strings.ToUpper(strings.TrimSpace(r.Role)); role != "" && role != run.Role {
		return refusal.New(refusal.CodeCredential, "unset GREATMINDS_ROLE or set it to the run's role",
			"GREATMINDS_ROLE is %s, but run %s works as %s", r.Role, run.ID, run.Role)
	}
	r.run = run
	return nil
}

// active refuses a run that has ended.
func (r *request) active() error {
	if r.run.State.Terminal() {
		return refusal.New(refusal.CodeCredential, "nothing more can be done in this run",
			"run %s has ended (%s), and its credential with it", r.run.ID, r.run.State)
	}
	return nil
}

// Permit refuses a call that is the operator's while its caller carries any part of a run's
// credential. A command asks it before it goes anywhere; [Env.Serve] asks it again.
func Permit(c control.Call) error {
	op, known := table[c.Op]
	if !known || op.Authority != Operator || !c.Assigned() {
		return nil
	}
	return (&request{Call: c}).operator()
}
