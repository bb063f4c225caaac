package status

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"greatminds/runstore"
)

// Listed is one run as `run list` shows it.
type Listed struct {
	ID        runstore.RunID  `json:"id"`
	TaskID    runstore.TaskID `json:"task_id"`
	TaskPath  string          `json:"task_path"`
	BindingID string          `json:"binding_id"`
	Role      string          `json:"role"`
	State     runstore.State  `json:"state"`
	Reason    string          `json:"reason"`
	CreatedAt float64         `json:"created_at"`
	// EndedAt is null while the run has not ended.
	EndedAt *float64 `json:"ended_at"`
	// The run's decision and what became of it; null where it has made none.
	ResultID     *string `json:"result_id"`
	Decision     *string `json:"decision"`
	ResultStatus *string `json:"result_status"`
}

// List describes runs with their results.
func List(v *runstore.View, runs []*runstore.Run) []Listed {
	rows := make([]Listed, 0, len(runs))
	for _, r := range runs {
		row := Listed{ID: r.ID, TaskID: r.TaskID, TaskPath: r.TaskPath, BindingID: r.BindingID, Role: r.Role, State: r.State,
			Reason: r.Reason, CreatedAt: r.CreatedAt, EndedAt: r.EndedAt}
		if r.EndedAt == nil && r.State.Terminal() {
			row.EndedAt = &r.UpdatedAt // of an older store, which has no other time
		}
		if res := v.ResultOfRun(r.ID); res != nil {
			row.ResultID, row.Decision, row.ResultStatus = text(res.ID()), text(res.Envelope.Decision), text(res.Status)
		}
		rows = append(rows, row)
	}
	return rows
}

// ListText renders a page of `run list` for a terminal. Times are UTC.
func ListText(data json.RawMessage, now time.Time) (string, error) {
	var page struct {
		Active, Runs []Listed
		Next         *string
		Totals       Totals
	}
	if err := json.Unmarshal(data, &page); err != nil {
		return "", fmt.Errorf("the page of runs: %w", err)
	}
	var b strings.Builder
	for _, r := range page.Active {
		fmt.Fprintf(&b, "%-16s %-32s %-28s %-14s %s\n", since(r.CreatedAt, now), r.ID, r.TaskID, r.BindingID, r.said())
	}
	for _, r := range page.Runs {
		fmt.Fprintf(&b, "%-16s %-32s %-28s %-14s %s\n", time.UnixMicro(int64(*r.EndedAt*1e6)).UTC().Format("2006-01-02 15:04"),
			r.ID, r.TaskID, r.BindingID, r.said())
	}
	if b.Len() == 0 {
		b.WriteString("no runs\n")
	}
	fmt.Fprintf(&b, "\n%d runs in all, %d active", page.Totals.Runs, page.Totals.Active)
	if page.Next != nil {
		fmt.Fprintf(&b, "; older ones: greatminds run list --after %s", *page.Next)
	}
	return b.String(), nil
}

// said is the run's state with its reason, and its decision with what became of it.
func (r Listed) said() string {
	out := string(r.State)
	if r.Reason != "" {
		out += " (" + oneLine(r.Reason) + ")"
	}
	if r.Decision != nil {
		out += ", " + oneLine(*r.Decision) + " " + *r.ResultStatus
	}
	return out
}
