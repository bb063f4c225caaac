package permission_test

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/runstore"
	"greatminds/supervisor/permission"
)

// BenchmarkAnswer measures from an accepted answer to the moment at which the agent's callback has it:
// the answer's commit, the look at the task, the commit of its consumption, on a real disk.
func BenchmarkAnswer(b *testing.B) {
	store, err := runstore.Open(b.Context(), runstore.Options{Dir: filepath.Join(b.TempDir(), ".runtime"), Disk: durable.NewDisk(nil), Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close(context.Background())
	l := &lab{store: store, revision: "rev"}
	l.begin(b)
	l.broker = &permission.Broker{Store: store, Owner: "owner", Now: time.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Revision: func(runstore.TaskID) (runstore.Revision, error) { return "rev", nil }}
	var spans []time.Duration
	for b.Loop() {
		b.StopTimer()
		out := make(chan permission.Answered, 1)
		asked := make(chan runstore.PermissionID, 1)
		go func() {
			out <- l.broker.Ask(b.Context(), permission.Asked{Run: l.run, Policy: contract.PermissionAsk, SessionID: "s", Request: request(),
				Progress: func(p permission.Progress) {
					if p.Status == "pending" {
						asked <- p.ID
					}
				}})
		}()
		id := <-asked
		b.StartTimer()
		began := time.Now()
		err := store.Update(b.Context(), func(tx *runstore.Tx) error { _, _, err := tx.AnswerPermission(id, "yes"); return err })
		got := <-out
		spans = append(spans, time.Since(began))
		if err != nil || got.OptionID != "yes" {
			b.Fatal(err, got)
		}
	}
	b.ReportMetric(float64(median(spans).Microseconds())/1000, "median-ms")
}

func median(spans []time.Duration) time.Duration {
	slices.Sort(spans)
	return spans[len(spans)/2]
}
