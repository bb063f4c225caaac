package runstore

import (
	"strings"

	"greatminds/internal/refusal"
)

// AskPermission stores a pending permission request of a run and emits permission_requested.
// The run's change to waiting_input is the broker's own transition, best in the same
// transaction. Spec: "Operator permission requests".
func (tx *Tx) AskPermission(p Permission) error {
	if !validName(string(p.ID)) {
		return badName("permission", string(p.ID))
	}
	if tx.Permission(p.ID) != nil {
		return refusal.New(refusal.CodeIdentity, "ask under a new id", "permission request %s exists already", p.ID)
	}
	if _, err := tx.live(p.RunID); err != nil {
		return err
	}
	p.Status, p.OptionID, p.AnsweredAt, p.ConsumedAt, p.ClosedAt, p.Reason = permissionPending, "", nil, nil, nil, ""
	p.CreatedAt = tx.at()
	fresh, err := normal(&p)
	if err != nil {
		return unstorable("permission request", string(p.ID), err)
	}
	tx.putPermission(fresh)
	tx.Emit("permission_requested", p.RunID, map[string]any{"request_id": p.ID})
	return nil
}

func (tx *Tx) putPermission(p *Permission) {
	tx.thawRun(p.RunID)
	tx.View.h.putPermission(p)
	tx.touch(inPermissions, string(p.ID))
}

func (tx *Tx) needPermission(id PermissionID) (*Permission, error) {
	if p := tx.Permission(id); p != nil {
		return p, nil
	}
	return nil, refusal.New(refusal.CodePermissionUnknown, "read the ids from `greatminds run status`", "unknown permission request %q", id)
}

// AnswerPermission records the operator's choice of an offered allow_once or reject_once
// option and emits permission_answered; true means new. The same answer again changes nothing
// while the run lives, also after delivery. Refused are an option that was not offered or
// grants more than once, another answer than the recorded one, and an answer that comes too
// late: the request closed, or its run ended. Whether its time is over is for the process to say
// that waits: the wall clock of ExpiresAt may have been set meanwhile.
func (tx *Tx) AnswerPermission(id PermissionID, option string) (*Permission, bool, error) {
	p, err := tx.needPermission(id)
	if err != nil {
		return nil, false, err
	}
	if err := offered(p, option); err != nil {
		return nil, false, err
	}
	gone := func(why string) error {
		return refusal.New(refusal.CodePermissionGone, "look at `greatminds run status`; `greatminds run retry "+string(p.RunID)+"` tries again", "permission request %s %s", id, why)
	}
	run := tx.Run(p.RunID)
	switch {
	case run == nil || run.State.Terminal():
		return nil, false, gone("belongs to a run that has ended")
	case p.Status == permissionCancelled:
		return nil, false, gone("was closed (" + p.Reason + ")")
	case p.OptionID == option:
		return p, false, nil
	case p.OptionID != "":
		return nil, false, gone("was already answered with " + p.OptionID)
	}
	next, now := *p, tx.at()
	next.Status, next.OptionID, next.AnsweredAt = permissionAnswered, option, &now
	tx.putPermission(&next)
	tx.Emit("permission_answered", p.RunID, map[string]any{"request_id": id, "option_id": option})
	return &next, true, nil
}

func offered(p *Permission, option string) error {
	var ids []string
	for _, o := range p.Options {
		if o.OptionID == option && o.Once() {
			return nil
		}
		if o.Once() {
			ids = append(ids, o.OptionID)
		}
	}
	return refusal.New(refusal.CodeOptionRefused, "choose one of: "+strings.Join(ids, ", "), "option %q of permission request %s was not offered, or grants more than once", option, p.ID)
}

// ConsumePermission marks an answer as handed to the agent's callback, and emits
// permission_consumed. Spec: consumed is no proof of the tool's success.
func (tx *Tx) ConsumePermission(id PermissionID) error {
	return tx.movePermission(id, permissionConsumed, func(p *Permission, now float64) { p.ConsumedAt = &now })
}

// ClosePermission cancels a request that was not consumed and emits permission_cancelled.
// Reason is callback_closed, withdrawn, run_closed or supervisor_restart. One that is closed
// already stays as it is.
func (tx *Tx) ClosePermission(id PermissionID, reason string) error {
	if p := tx.Permission(id); p != nil && p.Status == permissionCancelled {
		return nil
	}
	return tx.movePermission(id, permissionCancelled, func(p *Permission, now float64) { p.ClosedAt, p.Reason = &now, reason })
}

func (tx *Tx) movePermission(id PermissionID, status string, f func(p *Permission, now float64)) error {
	p, err := tx.needPermission(id)
	if err != nil {
		return err
	}
	if !allowed(permissionEdges, p.Status, status) {
		return refusal.New(refusal.CodeTransition, "look at `greatminds run status`", "permission request %s is %s and cannot become %s", id, p.Status, status)
	}
	next := *p
	next.Status = status
	f(&next, tx.at())
	tx.putPermission(&next)
	data := map[string]any{"request_id": id}
	if next.Reason != "" {
		data["reason"] = next.Reason
	}
	tx.Emit("permission_"+status, p.RunID, data)
	return nil
}
