package runstore

import (
	"greatminds/internal/refusal"
)

// RequestControl asks for a run's cancel or retry and emits control_requested. An open control
// of the same kind is returned again; an open one of the other kind is refused.
func (tx *Tx) RequestControl(run RunID, kind string) (*Control, error) {
	r, err := tx.need(run)
	if err != nil {
		return nil, err
	}
	if c := r.Control; c != nil && c.Status != controlCompleted {
		if c.Kind == kind {
			return copied(c), nil
		}
		return nil, refusal.New(refusal.CodeControlPending, "wait until it is completed (`greatminds run status`)", "control %s (%s) of run %s is still %s", c.ID, c.Kind, run, c.Status)
	}
	if kind != "cancel" && kind != "retry" {
		return nil, refusal.New(refusal.CodeRecordInvalid, "ask for cancel or retry", "control %q of run %s", kind, run)
	}
	c := &Control{ID: NewID(), Kind: kind, Status: controlPending, At: tx.at()}
	tx.putControl(r, c, "control_requested")
	return copied(c), nil
}

// SetControl moves a run's control to processing or completed and emits control_STATUS. A
// completed retry authorizes one more attempt. The status it has already changes nothing.
func (tx *Tx) SetControl(run RunID, id, status string) error {
	r, err := tx.need(run)
	if err != nil {
		return err
	}
	if r.Control == nil || r.Control.ID != id {
		return refusal.New(refusal.CodeTransition, "look at `greatminds run status`", "run %s has no control %s", run, id)
	}
	if r.Control.Status == status {
		return nil
	}
	if !allowed(controlEdges, r.Control.Status, status) {
		return refusal.New(refusal.CodeTransition, "look at `greatminds run status`", "control %s of run %s is %s and cannot become %s", id, run, r.Control.Status, status)
	}
	c := copied(r.Control)
	c.Status = status
	tx.putControl(r, c, "control_"+status)
	return nil
}

func (tx *Tx) putControl(r *Run, c *Control, event string) {
	next := r.clone()
	next.Control, next.UpdatedAt = copied(c), tx.at()
	if c.Kind == "retry" && c.Status == controlCompleted {
		next.RetryAuthorized = true
	}
	tx.putRun(next)
	tx.Emit(event, r.ID, map[string]any{"id": c.ID, "kind": c.Kind})
}
