package runstore

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"greatminds/internal/refusal"
)

// Claim makes a run of a task in state claimed and emits claimed.
//
// It is refused with holds, and nothing changed, when dispatch is paused, when the task has an
// active run, or when admit, called over the state that the claim would change, gives any. It
// is an error when the claim's id is malformed or taken. The run's credential is in the answer
// alone; the store keeps its hash. Spec: "Persistence and ownership".
func (tx *Tx) Claim(c Claim, admit func(*View) []Hold) (*ClaimedRun, []Hold, error) {
	fresh := c.ID == "" // an id that nobody can have used
	if fresh {
		c.ID = RunID(NewID())
	}
	switch {
	case !validName(string(c.ID)):
		return nil, nil, badName("run", string(c.ID))
	case !fresh && tx.Run(c.ID) != nil:
		return nil, nil, refusal.New(refusal.CodeIdentity, "claim with a new id", "run %s exists already", c.ID)
	case c.TaskID == "" || strings.ContainsRune(string(c.TaskID), 0):
		return nil, nil, refusal.New(refusal.CodeIdentity, "name the task", "task id %q", c.TaskID)
	}
	if holds := tx.ownHolds(c.TaskID); len(holds) > 0 {
		return nil, holds, nil
	}
	if admit != nil {
		seen := *tx.View
		if holds := admit(&seen); len(holds) > 0 {
			return nil, holds, nil
		}
	}
	var secret [32]byte
	rand.Read(secret[:]) // never fails: the runtime ends the process instead
	token := base64.RawURLEncoding.EncodeToString(secret[:])
	r, err := normal(tx.newRun(c, token))
	if err != nil {
		return nil, nil, unstorable("run", string(c.ID), err)
	}
	tx.Emit("claimed", r.ID, claimData(c))
	tx.View.h.putRun(r) // a new one, not in the history
	tx.touch(inRuns, string(r.ID))
	return &ClaimedRun{Run: r, Token: Token(token)}, nil, nil
}

// ownHolds are the reasons against a claim that the store itself knows.
func (tx *Tx) ownHolds(task TaskID) []Hold {
	if tx.Paused() {
		return []Hold{{Code: "dispatch_paused", What: "dispatch is paused"}}
	}
	// A run that has not ended is hot.
	for _, r := range sorted(children(tx.View.h.runsByTask, string(task)), byClaim) {
		if !r.State.Terminal() {
			return []Hold{{Code: "active_run", RunID: r.ID, What: fmt.Sprintf("run %s of the task is %s", r.ID, r.State)}}
		}
	}
	return nil
}

func (tx *Tx) newRun(c Claim, token string) *Run {
	return &Run{ID: c.ID, ProjectID: tx.ProjectID(), OwnerID: c.OwnerID, TaskID: c.TaskID, TaskPath: c.TaskPath,
		TaskRevision: c.TaskRevision, ConversationID: copied(c.ConversationID), ConversationTask: c.ConversationTask,
		Role: c.Role, BindingID: c.BindingID, BindingSHA256: c.BindingSHA256, AgentID: c.AgentID, AgentSHA256: c.AgentSHA256,
		ConfigSHA256: c.ConfigSHA256, SchemaSHA256: c.SchemaSHA256, SchemaVersion: c.SchemaVersion, Workspace: c.Workspace,
		Account: c.Account, Permission: c.Permission, State: Claimed, CreatedAt: tx.at(), UpdatedAt: tx.at(),
		Sequence: tx.Sequence() + 1, SessionID: copied(c.SessionID), TokenSHA256: hashText(token),
		WorkspacePlan: copied(c.WorkspacePlan), QueueObservation: tx.queueWait(c)}
}

// queueWait copies what is known about how long the task has been waiting.
func (tx *Tx) queueWait(c Claim) *QueueWait {
	o := tx.Observation(c.TaskPath)
	if o == nil || o.TaskRevision != c.TaskRevision {
		return nil
	}
	w := &QueueWait{FirstObservedAt: o.FirstObservedAt, TaskRevision: o.TaskRevision, Source: o.Source,
		Scope: "observed_revision_wait", WaitSeconds: between(o.FirstObservedAt, tx.at())}
	if o.Source == sourceTransition {
		w.Scope = "accepted_transition_wait"
	}
	return w
}

func claimData(c Claim) map[string]any {
	data := map[string]any{"task_id": c.TaskID}
	for k, v := range c.Data {
		data[k] = v
	}
	return data
}
