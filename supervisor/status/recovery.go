package status

import (
	"encoding/json"
	"fmt"

	"greatminds/runstore"
)

// Recovery is something that needs a person, mostly because its outcome is uncertain, with the
// commands that lead out of it. E-218.
type Recovery struct {
	// Kind is result, operation or command.
	Kind   string `json:"kind"`
	ID     string `json:"id"`
	TaskID string `json:"task_id"`
	// Reason says what is uncertain, or what stands in the way and how to clear it.
	Reason string `json:"reason"`
	// Commands are to be typed as they are, but for TEXT.
	Commands []string `json:"commands"`
}

// Recoveries lists everything in needs_recovery.
func Recoveries(v *runstore.View) []Recovery {
	out := []Recovery{}
	for _, r := range v.OpenResults() {
		if r.Status != "needs_recovery" {
			continue
		}
		why := ""
		if r.Details != nil {
			why = r.Details.Error
			var remedy string
			// The member is our own; one that is no text says nothing here.
			if json.Unmarshal(r.Details.Extra["remedy"], &remedy) == nil && remedy != "" {
				why += ": " + remedy
			}
		}
		if h := r.Hold(); h != nil {
			why = h.What + ": " + h.Remedy
		}
		out = append(out, Recovery{"result", string(r.ID()), string(r.Envelope.TaskID), why, repairs(string(r.ID()))})
	}
	for _, o := range v.OpenOperations() {
		if o.Kind != runstore.ResultOperation && o.Status == "needs_recovery" {
			out = append(out, Recovery{"operation", string(o.ID), string(o.TaskID), "its outcome is unknown", repairs(string(o.ID))})
		}
	}
	for _, c := range v.OpenCommands() {
		if c.Status == "needs_recovery" {
			out = append(out, Recovery{"command", string(c.ID), string(c.TaskID),
				fmt.Sprintf("the outcome of command %s is unknown (%s)", c.CommandID, c.Reason), []string{
					fmt.Sprintf("greatminds run command-status %s", c.ID),
					fmt.Sprintf("greatminds run command-resolve %s --reason TEXT", c.ID),
				}})
		}
	}
	return out
}

func repairs(id string) []string {
	return []string{
		fmt.Sprintf("greatminds run repair --operation %s", id),
		fmt.Sprintf("greatminds run repair --operation %s --abandon --reason TEXT", id),
	}
}
