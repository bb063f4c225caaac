package ops_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"greatminds/internal/refusal"
	"greatminds/runstore"
	"greatminds/supervisor/ops"
	"greatminds/supervisor/status"
)

func (w *world) list(after runstore.RunID, limit int) ops.Listed {
	w.t.Helper()
	data, err := w.operate("run.list", ops.ListArgs{After: after, Limit: limit})
	must(w.t, err)
	var page ops.Listed
	must(w.t, json.Unmarshal(data, &page))
	return page
}

func TestListShowsEveryRunOnce(t *testing.T) {
	w := newWorld(t)
	if page := w.list("", 10); page.Version != 1 || len(page.Active)+len(page.Runs) != 0 || page.Next != nil {
		t.Fatalf("an empty store: %+v", page)
	}
	var ended []runstore.RunID
	for range 5 {
		r := w.claim(runstore.Starting, runstore.Running)
		w.receive(r)
		w.move(r, runstore.Completed)
		ended = append(ended, r.id)
	}
	active := w.claim(runstore.Starting)
	slices.Reverse(ended)

	var seen []runstore.RunID
	page := w.list("", 2)
	if len(page.Active) != 1 || page.Active[0].ID != active.id || page.Active[0].EndedAt != nil {
		t.Errorf("active: %+v", page.Active)
	}
	if page.Totals.Runs != 6 || page.Totals.Active != 1 || page.Totals.States[runstore.Completed] != 5 {
		t.Errorf("totals: %+v", page.Totals)
	}
	for {
		for _, r := range page.Runs {
			if r.EndedAt == nil || r.Decision == nil || *r.ResultStatus != "received" {
				t.Errorf("got %+v", r)
			}
			seen = append(seen, r.ID)
		}
		if page.Next == nil {
			break
		}
		if page = w.list(*page.Next, 2); len(page.Active) > 0 {
			t.Error("a later page shows active runs again")
		}
	}
	slices.Sort(seen)
	slices.Sort(ended)
	if !slices.Equal(seen, ended) {
		t.Errorf("listed %v, want %v", seen, ended)
	}

	_, err := w.operate("run.list", ops.ListArgs{After: "none", Limit: 2})
	wants(t, err, refusal.CodeRunUnknown, 2)
	_, err = w.operate("run.list", ops.ListArgs{After: active.id, Limit: 2})
	wants(t, err, refusal.CodeUsage, 2)
	for _, limit := range []int{0, -1, 1001} {
		_, err = w.operate("run.list", ops.ListArgs{Limit: limit})
		wants(t, err, refusal.CodeUsage, 2)
	}

	data, err := w.operate("run.list", ops.ListArgs{Limit: 3})
	must(t, err)
	text, err := status.ListText(data, time.Now())
	must(t, err)
	for _, part := range []string{string(active.id), "starting", "completed", "received", "6 runs in all, 1 active", "greatminds run list --after "} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}
