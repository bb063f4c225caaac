package dispatch

import (
	"encoding/json"
	"fmt"

	"greatminds/runstore"
	"greatminds/supervisor/policy"
)

// Said is what a decision says in the agent's own words: the question of needs_input, else the reason;
// empty where it gives none.
func Said(res *runstore.Result) string {
	if res.Details != nil && res.Details.Question != nil {
		return *res.Details.Question
	}
	var payload struct{ Question, Reason string }
	_ = json.Unmarshal(res.Envelope.Payload, &payload) // what has another form was refused, or says nothing
	if payload.Question != "" {
		return payload.Question
	}
	return payload.Reason
}

// decided says that it is the decision of a task's last run that holds the task, and where it is to be
// read: holds are logged, and a decision holds the agent's text. ok is false where something else
// holds the task.
func decided(hold policy.Reason, last *runstore.Run, res *runstore.Result) (what string, ok bool) {
	if res == nil {
		return "", false
	}
	read := fmt.Sprintf("greatminds run show %s", last.ID)
	switch {
	case hold == policy.HumanInput:
		return fmt.Sprintf("run %s asked you a question, which `%s` shows", last.ID, read), true
	case hold == policy.NoChange:
		return fmt.Sprintf("run %s decided that nothing is to be changed; `%s` says why", last.ID, read), true
	case hold == policy.ResultRejected:
		return fmt.Sprintf("the decision of run %s (%s) does not count; `%s` says why", last.ID, res.Envelope.Decision, read), true
	case hold == policy.AlreadyAttempted && res.Status == "abandoned":
		return fmt.Sprintf("the decision of run %s (%s) was given up; `%s` says why", last.ID, res.Envelope.Decision, read), true
	}
	return "", false
}
