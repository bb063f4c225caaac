package runstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/internal/durable"
)

// bare appends to a file and syncs its data: the least that a durable commit can cost.
type bare struct{ f *os.File }

func (b bare) append(line []byte) error {
	if _, err := b.f.Write(line); err != nil {
		return err
	}
	return unix.Fdatasync(int(b.f.Fd()))
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// timed returns how long f takes.
func timed(b *testing.B, f func() error) time.Duration {
	begin := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

// compareWithBare commits 1 KB in turn with bare appends of the same line, at least 40 times
// each, and reports the medians and their ratio, which may be 3 at most.
func compareWithBare(b *testing.B, s *Store) {
	f, err := os.Create(b.TempDir() + "/bare")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	receipt := json.RawMessage(`"` + strings.Repeat("x", 1024) + `"`)
	line := seal([]byte(`"changes":{"requests":{"q":` + string(receipt) + `}}}`))
	var commits, bares []time.Duration
	n := 0
	for b.Loop() {
		for range 40 {
			n++
			id := fmt.Sprintf("q%d", n)
			bares = append(bares, timed(b, func() error { return bare{f}.append(line) }))
			commits = append(commits, timed(b, func() error {
				return s.Update(context.Background(), func(tx *Tx) error { return tx.PutRequest(id, receipt) })
			}))
		}
	}
	c, p := median(commits), median(bares)
	b.ReportMetric(float64(c.Microseconds()), "µs/commit")
	b.ReportMetric(float64(p.Microseconds()), "µs/bare")
	ratio := float64(c) / float64(p)
	b.ReportMetric(ratio, "x-bare")
	b.ReportMetric(0, "ns/op")
	if ratio > 3 {
		b.Errorf("a commit takes %.1f times a bare append, want at most 3", ratio)
	}
}

func benchStore(b *testing.B) *Store {
	s := openStore(b, Options{Dir: b.TempDir() + "/store", Disk: durable.NewDisk(nil), Now: time.Now, MinJournal: 1 << 40})
	b.Cleanup(func() { closeStore(b, s) })
	return s
}

func BenchmarkCommit1KB(b *testing.B) { compareWithBare(b, benchStore(b)) }

// fill puts n finished runs into the store.
func fill(b *testing.B, s *Store, n int) {
	const batch = 1000
	for i := 0; i < n; i += batch {
		update(b, s, func(tx *Tx) error {
			for j := range batch {
				c, _, err := tx.Claim(claimOf(fmt.Sprintf("%06d-x", i+j)), nil)
				if err != nil {
					return err
				}
				if err := tx.Transition(c.ID, "e", Interrupted, "", nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// The processor's share of a typical transaction, without a disk.
func BenchmarkTransitionWithoutDisk(b *testing.B) {
	for _, runs := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			o := options(b.TempDir()+"/store", nil)
			o.MinJournal = 1 << 40
			o.Disk = durable.NewDisk(noSync{})
			s := openStore(b, o)
			defer func() { closeStore(b, s) }()
			fill(b, s, runs)
			c := running(b, s, "bench")
			next := map[State]State{Running: WaitingInput, WaitingInput: Running}
			for b.Loop() {
				move(b, s, c.ID, next[s.View().Run(c.ID).State])
			}
		})
	}
}

type noSync struct{}

func (noSync) Before(s durable.Step) error {
	if s.Op == durable.OpSync || s.Op == durable.OpSyncDir {
		return durable.ErrSkip
	}
	return nil
}
func (noSync) After(_ durable.Step, err error) error { return err }

func BenchmarkViewAndLookUp(b *testing.B) {
	s := benchStore(b)
	fill(b, s, 10_000)
	id := s.View().Runs()[5000].ID
	for b.Loop() {
		if s.View().Run(id) == nil {
			b.Fatal("lost")
		}
	}
}

// workday is a state as a project has it: runs with results, commands and protocol records, and
// a full tail of events.
func workday(t failer, runs, events int) *hot {
	t.Helper()
	h := &hot{projectID: NewID()}
	protocol := json.RawMessage(`{"negotiated":{"protocol_version":1,"load_session":true},"tool_events":[` +
		strings.Repeat(`{"at":1800000000.125,"kind":"edit","phase":"prompt","ref":"0123456789abcdef","status":"completed"},`, 12) + `{}]}`)
	for i := range runs {
		tx := newTx(h, time.Unix(1_800_000_000+int64(i), 0))
		next, err := tx.finish(func(tx *Tx) error { return workRun(tx, i, protocol) })
		if err != nil {
			t.Fatal(err)
		}
		h = next
	}
	tx := newTx(h, time.Unix(1_900_000_000, 0))
	next, err := tx.finish(func(tx *Tx) error {
		for len(tx.View.h.events) < events {
			tx.Emit("run_stage_observed", RunID(NewID()), map[string]any{"stage": "first_prompt_started", "offset_seconds": 1.25})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func workRun(tx *Tx, i int, protocol json.RawMessage) error {
	c, _, err := tx.Claim(claimOf(fmt.Sprintf("%06d-x", i)), nil)
	if err != nil {
		return err
	}
	id := func(kind string) string { return fmt.Sprintf("%s-%d", kind, i) }
	for _, to := range []State{Starting, Running} {
		if err := tx.Transition(c.ID, NewID(), to, "", nil); err != nil {
			return err
		}
	}
	if _, _, err := tx.RequestCommand(Command{ID: CommandID(id("cmd")), RunID: c.ID, TaskID: c.TaskID, CommandID: "unit", Argv: []string{"go", "test", "./..."}}); err != nil {
		return err
	}
	for _, to := range []string{"starting", "running", "succeeded"} {
		if err := tx.SetCommand(CommandID(id("cmd")), to, nil); err != nil {
			return err
		}
	}
	if _, _, err := tx.Receive(c.ID, envelope(c.Run, id("res"))); err != nil {
		return err
	}
	if err := tx.EditRun(c.ID, func(r *Run) { r.Protocol = protocol }); err != nil {
		return err
	}
	if err := tx.Transition(c.ID, NewID(), Completed, "", map[string]any{"details": map[string]any{"stop_reason": "end_turn", "updates": 120}}); err != nil {
		return err
	}
	return errors.Join(tx.SetResult(ResultID(id("res")), "applying", nil), tx.SetResult(ResultID(id("res")), "applied", nil))
}

func BenchmarkDecodeSnapshot(b *testing.B) {
	for _, c := range []struct{ runs, events int }{{50, 10_000}, {1500, 10_000}} {
		b.Run(fmt.Sprintf("runs=%d,events=%d", c.runs, c.events), func(b *testing.B) {
			data := encodeSnapshot(workday(b, c.runs, c.events), meta{Generation: 1})
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := decodeSnapshot(data); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)/(float64(len(data))/1e6), "ms/MB")
		})
	}
}
