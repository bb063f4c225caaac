package runstore

import "greatminds/internal/refusal"

// RequestCommand queues a command of a run and emits command_requested, or returns the receipt
// that the request id already has for the same command of the same run; true means new. C
// needs the identities and the command's hashes; status and times are the store's.
//
// It is refused when the id stands for another command; when another command of the run has no
// outcome yet; and when the run is neither running nor waiting for input.
// Spec: "Configured commands and evidence".
func (tx *Tx) RequestCommand(c Command) (*Command, bool, error) {
	if !validName(string(c.ID)) {
		return nil, false, badName("command request", string(c.ID))
	}
	if old := tx.Command(c.ID); old != nil {
		if old.RunID == c.RunID && old.CommandID == c.CommandID && old.DefinitionSHA256 == c.DefinitionSHA256 {
			return old, false, nil
		}
		return nil, false, refusal.New(refusal.CodeRequestReused, "give the request an id of its own", "request %s already stands for command %s of run %s", c.ID, old.CommandID, old.RunID)
	}
	r, err := tx.need(c.RunID)
	if err != nil {
		return nil, false, err
	}
	if r.State != Running && r.State != WaitingInput {
		return nil, false, refusal.New(refusal.CodeRunNotAccepting, "nothing can be requested any more", "run %s is %s", r.ID, r.State)
	}
	if open := tx.unresolved(c.RunID); open != nil {
		return nil, false, refusal.New(refusal.CodeCommandPending, "wait for it: `greatminds run command-status "+string(open.ID)+"`",
			"command %s of run %s is %s", open.ID, c.RunID, open.Status)
	}
	c.Status, c.RequestedAt = commandQueued, tx.at()
	fresh, err := normal(&c)
	if err != nil {
		return nil, false, unstorable("command", string(c.ID), err)
	}
	tx.putCommand(fresh)
	tx.Emit("command_requested", c.RunID, map[string]any{"command_request_id": c.ID, "id": c.CommandID})
	return fresh, true, nil
}

func (tx *Tx) putCommand(c *Command) {
	tx.thawRun(c.RunID)
	tx.View.h.putCommand(c)
	tx.touch(inCommands, string(c.ID))
}

// SetCommand moves a command along its edges and emits command_STATUS; f, which may be nil,
// changes the fields that belong to the step. An empty status, or the one it has, changes
// fields alone and emits nothing. Identity and request time stay.
func (tx *Tx) SetCommand(id CommandID, status string, f func(*Command)) error {
	old := tx.Command(id)
	if old == nil {
		return refusal.New(refusal.CodeCommandReceipt, "read the ids from `greatminds run status`", "unknown command request %q", id)
	}
	if status == "" {
		status = old.Status
	}
	if status != old.Status && !allowed(commandEdges, old.Status, status) {
		return refusal.New(refusal.CodeTransition, "look at `greatminds run command-status "+string(id)+"`", "command %s is %s and cannot become %s", id, old.Status, status)
	}
	next, err := normal(old)
	if err == nil && f != nil {
		f(next)
		next.ID, next.RunID, next.CommandID, next.RequestedAt = old.ID, old.RunID, old.CommandID, old.RequestedAt
	}
	if err == nil {
		next.Status = status
		next, err = normal(next)
	}
	if err != nil {
		return unstorable("command", string(id), err)
	}
	tx.putCommand(next)
	if status != old.Status {
		data := map[string]any{"command_request_id": id}
		if next.Reason != "" {
			data["reason"] = next.Reason
		}
		tx.Emit("command_"+status, old.RunID, data)
	}
	return nil
}
