package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/tasks"
)

// PermissionArgs name a permission request.
type PermissionArgs struct {
	Request runstore.PermissionID `json:"request_id"`
}

// runPermission shows one request and answers nothing. E-039.
func runPermission(ctx context.Context, r *request) (any, error) {
	var args PermissionArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	return findPermission(r.view(), args.Request)
}

// Questions are the permission requests that an operator can answer now, oldest first.
type Questions struct {
	Version   int        `json:"version"`
	Questions []Question `json:"questions"`
}

// Question is one of them, with what a person needs beside it.
type Question struct {
	Request   *runstore.Permission `json:"request"`
	TaskID    runstore.TaskID      `json:"task_id"`
	AgentID   string               `json:"agent_id"`
	BindingID string               `json:"binding_id"`
	Workspace string               `json:"workspace"`
	// SecondsLeft is what is left of the time for an answer.
	SecondsLeft float64 `json:"seconds_left"`
	// Waits says that the agent's callback still waits; only the daemon knows, so null from the files.
	Waits *bool `json:"waits"`
}

// runPermissions lists the open requests and answers nothing.
func runPermissions(_ context.Context, r *request) (any, error) {
	if err := r.decode(&struct{}{}); err != nil {
		return nil, err
	}
	v := r.view()
	list := Questions{Version: 1, Questions: []Question{}}
	for _, p := range v.OpenPermissions() {
		if p.Status == "pending" {
			list.Questions = append(list.Questions, r.question(v, p))
		}
	}
	return list, nil
}

func (r *request) question(v *runstore.View, p *runstore.Permission) Question {
	q := Question{Request: p, SecondsLeft: max(0, p.ExpiresAt-runstore.Epoch(r.Now()))}
	if run := v.Run(p.RunID); run != nil {
		q.TaskID, q.AgentID, q.BindingID, q.Workspace = run.TaskID, run.AgentID, run.BindingID, run.Workspace
	}
	if r.files == nil {
		waits := r.Daemon.Waits(p.ID)
		q.Waits = &waits
	}
	return q
}

// AnswerArgs choose one of the options that were offered.
type AnswerArgs struct {
	Request runstore.PermissionID `json:"request_id"`
	Option  string                `json:"option_id"`
}

// runPermissionAnswer records the operator's choice for the agent's open callback.
//
// The choice must be one that was offered and that holds once. The same choice again changes
// nothing; anything else about a request that is no longer open is refused, and so is an answer
// to a request whose daemon, process, session, deadline or task revision is no longer the one
// that it was made under. E-040..E-048, E-059.
func runPermissionAnswer(ctx context.Context, r *request) (any, error) {
	var args AnswerArgs
	if err := r.decode(&args); err != nil {
		return nil, err
	}
	p, err := findPermission(r.view(), args.Request)
	if err != nil {
		return nil, err
	}
	if err := offered(p, args.Option); err != nil {
		return nil, err
	}
	current := currentRevision(r.Tree, r.view().Run(p.RunID))
	answer, err := r.change(ctx, func(tx *runstore.Tx) (any, error) {
		p, err := findPermission(tx.View, args.Request)
		if err != nil {
			return nil, err
		}
		run := tx.Run(p.RunID)
		if err := r.deliverable(tx, p, run, current); err != nil {
			return nil, err
		}
		if p.Status != "pending" {
			return p, sameAnswer(p, args.Option)
		}
		answered, _, err := tx.AnswerPermission(p.ID, args.Option)
		return answered, err
	})
	if err == nil {
		r.Daemon.Wake()
	}
	return answer, err
}

func findPermission(v *runstore.View, id runstore.PermissionID) (*runstore.Permission, error) {
	if p := v.Permission(id); p != nil {
		return p, nil
	}
	return nil, absent(v, refusal.New(refusal.CodePermissionUnknown, "read the ids of open requests from `greatminds run permission`",
		"unknown permission request %q", id))
}

// offered refuses an option that the agent did not offer, and one that would hold for later
// requests too.
func offered(p *runstore.Permission, option string) error {
	i := slices.IndexFunc(p.Options, func(o runstore.Option) bool { return o.OptionID == option })
	if i < 0 {
		return refusal.New(refusal.CodeOptionRefused, "choose one of: "+onceOptions(p),
			"option %q was not offered by request %s", option, p.ID)
	}
	if o := p.Options[i]; !o.Once() {
		return refusal.New(refusal.CodeOptionRefused, "choose one of: "+onceOptions(p),
			"option %q of request %s is a lasting one (%s), and only single answers are given", option, p.ID, o.Kind)
	}
	return nil
}

func onceOptions(p *runstore.Permission) string {
	var ids []string
	for _, o := range p.Options {
		if o.Once() {
			ids = append(ids, fmt.Sprintf("%s (%s)", o.OptionID, o.Kind))
		}
	}
	if len(ids) == 0 {
		return "none, it offers no single answer; `greatminds run cancel " + string(p.RunID) + "` ends the run"
	}
	return strings.Join(ids, ", ")
}

func sameAnswer(p *runstore.Permission, option string) error {
	if p.OptionID == option && p.Status != "cancelled" {
		return nil
	}
	return gone(p, "it is %s already", describe(p))
}

func describe(p *runstore.Permission) string {
	switch {
	case p.Status == "cancelled":
		return "closed (" + p.Reason + ")"
	default:
		return p.Status + " with " + p.OptionID
	}
}

// deliverable checks that an answer can still reach the callback that asked.
func (r *request) deliverable(tx *runstore.Tx, p *runstore.Permission, run *runstore.Run, current tasks.Revision) error {
	switch {
	case p.Status == "cancelled":
		return gone(p, "it is %s", describe(p))
	case run == nil || run.State.Terminal():
		return gone(p, "its run has ended")
	case p.Open() && (run.State == runstore.Cancelling || run.CancelAsked()):
		return gone(p, "its run is being cancelled")
	case p.OwnerID != r.OwnerID || !r.Daemon.Live(p.RunID):
		return gone(p, "the daemon that asked is gone")
	case run.SessionID == nil || *run.SessionID != p.SessionID:
		return gone(p, "its session is no longer the run's")
	case p.Status == "pending" && !alive(run.Process):
		return gone(p, "its agent process has ended")
	case p.Status == "pending" && !r.Daemon.Waits(p.ID):
		return gone(p, "its time is over")
	case p.Status == "pending" && current != "" && string(current) != string(p.TaskRevision):
		return gone(p, "task %s has changed since it was asked", run.TaskID)
	case p.Status == "pending" && current == "" && !run.ConversationTask && run.ConversationID == nil:
		return gone(p, "task %s can no longer be read", run.TaskID)
	}
	return nil
}

// currentRevision is the task's revision as it stands, empty where it cannot be read.
func currentRevision(tree *tasks.Tree, run *runstore.Run) tasks.Revision {
	if run == nil {
		return ""
	}
	t, err := tree.ReadCurrent(tasks.ID(run.TaskID))
	if err != nil {
		return ""
	}
	return t.Revision
}

func gone(p *runstore.Permission, why string, args ...any) error {
	return refusal.New(refusal.CodePermissionGone,
		fmt.Sprintf("look at the run (`greatminds run status`); `greatminds run retry %s` starts over once it has ended", p.RunID),
		"permission request %s can no longer be answered: %s", p.ID, fmt.Sprintf(why, args...))
}
