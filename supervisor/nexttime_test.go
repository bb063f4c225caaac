package supervisor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"greatminds/contract"
	"greatminds/runstore"
	"greatminds/supervisor/status"
)

// Every hold that time ends says when, in JSON and in words, and says the same after a restart.
//
// E-494 E-495 E-506 E-512 E-530
func TestEveryHoldThatTimeEndsSaysWhen(t *testing.T) {
	t.Parallel()
	const failing = `{"exit":{"code":1}}`
	for _, c := range []struct {
		reason string
		plan   plan
		other  bool // seen on another task of the account
		delay  float64
	}{
		{"retry_backoff", plan{steps: failing, binding: ", retry_initial_seconds: 700, retry_max_seconds: 700",
			root: "account_retry_initial_seconds: 1\naccount_retry_max_seconds: 1\n"}, false, 700},
		{"account_backoff", plan{steps: failing, root: "max_running: 1\naccount_retry_initial_seconds: 800\naccount_retry_max_seconds: 800\n"}, true, 800},
		{"no_progress_backoff", plan{steps: fine, binding: ", max_no_progress_turns: 3, retry_initial_seconds: 900, retry_max_seconds: 900"}, false, 900},
		{"account_rate_limit", plan{steps: answering(429), agent: limiting(1000), root: "max_running: 1\n"}, true, 1000},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, c.plan)
			id := taskID
			h.task("feature_dev", taskID)
			if c.other {
				id = "0002-other"
				h.task("feature_dev", id)
			}
			must(t, h.once())
			var first float64
			for range 2 {
				v := h.read()
				began := *run0(v).EndedAt
				if c.reason == "account_rate_limit" {
					began = v.AccountHold("default").ObservedAt
				}
				d := h.judged(v)
				for _, a := range d.Assignments {
					if a.TaskID != id {
						continue
					}
					if a.Reason != c.reason || a.NextAt == nil || *a.NextAt-began < c.delay-2 || *a.NextAt-began > c.delay+0.01 {
						t.Fatalf("began %v: got %+v, next %v", began, a, a.NextAt)
					}
					if retry := a.Retry["next_at"]; !c.other && (retry == nil || retry != *a.NextAt) {
						t.Errorf("the retry verdict says %v", retry)
					}
					if first == 0 {
						first = *a.NextAt
					}
					if diff := *a.NextAt - first; diff < -0.01 || diff > 0.01 {
						t.Errorf("%v after a restart, %v before", *a.NextAt, first)
					}
					if word := time.Unix(int64(*a.NextAt), 0).UTC().Format(time.RFC3339); !strings.Contains(a.What, word) {
						t.Errorf("%q does not say %s", a.What, word)
					}
					if text := h.text(v, d); !strings.Contains(text, a.What) {
						t.Errorf("the readable status does not say %q:\n%s", a.What, text)
					}
				}
				if acc := d.Accounts["default"]; c.other && (acc.Reason != c.reason || acc.NextAt == nil || fmt.Sprint(*acc.NextAt) != fmt.Sprint(first) && *acc.NextAt-first > 0.01) {
					t.Errorf("the account says %+v", acc)
				}
				must(t, h.once())
			}
			if n := len(h.read().Runs()); n != 1 {
				t.Errorf("%d runs", n)
			}
		})
	}
}

// judged is how a status beside no daemon tells of dispatch.
func (h *house) judged(v *runstore.View) status.Dispatch {
	h.t.Helper()
	h.open()
	defer h.shut()
	found, err := h.d.tree.Discover()
	must(h.t, err)
	return Judge(h.o, h.d.contract, h.d.schema, v, found)
}

// text is the readable status.
func (h *house) text(v *runstore.View, d status.Dispatch) string {
	h.t.Helper()
	c, err := contract.Load(h.o.Project, h.o.Project.ExecutionPath(), contract.EmbeddedSchema())
	must(h.t, err)
	doc, err := status.Build(status.Input{View: v, Contract: c, Schema: contract.EmbeddedSchema(), Dispatch: d, Alive: func(*runstore.Process) *bool { return nil }})
	must(h.t, err)
	text, err := status.Text(doc, h.now(), status.FromDaemon)
	must(h.t, err)
	return text
}
