package runstore

import (
	"context"
	"encoding/json"
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

// A commit costs the change, not the history: beside 100,000 finished runs too.
func BenchmarkCommit1KBBeside100kRuns(b *testing.B) {
	s := benchStore(b)
	fill(b, s, 100_000)
	compareWithBare(b, s)
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
