package runstore

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"greatminds/internal/durable"
)

// aged makes a closed store with n finished runs, nearly all of them in the history, and a full tail of
// events.
func aged(b *testing.B, n int) (dir string) {
	b.Helper()
	dir = b.TempDir() + "/store"
	s := openStore(b, Options{Dir: dir, Disk: durable.NewDisk(noSync{}), Now: time.Now})
	fill(b, s, n)
	update(b, s, func(tx *Tx) error {
		for len(tx.View.h.events) < defaultMaxEvents {
			tx.Emit("run_stage_observed", RunID(NewID()), map[string]any{"stage": "first_prompt_started", "offset_seconds": 1.25})
		}
		return nil
	})
	closeStore(b, s)
	return dir
}

// scales are the numbers of finished runs at which nothing may cost more than at the first.
var scales = []int{0, 10_000, 100_000}

// A commit and a claim cost the change, not the history: within 1.2 times of each other at 0, 10,000
// and 100,000 finished runs, and at most four times a bare append that is synced. Measured in turn.
func BenchmarkCommitAndClaimByHistory(b *testing.B) {
	var stores []*Store
	for _, n := range scales {
		s := openStore(b, Options{Dir: aged(b, n), Disk: durable.NewDisk(nil), Now: time.Now, MinJournal: 1 << 40})
		b.Cleanup(func() { closeStore(b, s) })
		stores = append(stores, s)
	}
	f, err := os.Create(b.TempDir() + "/bare")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	receipt := json.RawMessage(`"` + strings.Repeat("x", 1024) + `"`)
	line := seal([]byte(`"changes":{"requests":{"q":` + string(receipt) + `}}}`))
	var bares []time.Duration
	commits, claims := make([][]time.Duration, len(stores)), make([][]time.Duration, len(stores))
	n := 0
	for b.Loop() {
		for range 40 {
			n++
			bares = append(bares, timed(b, func() error { return bare{f}.append(line) }))
			for i, s := range stores {
				id := fmt.Sprintf("q%d", n)
				commits[i] = append(commits[i], timed(b, func() error {
					return s.Update(context.Background(), func(tx *Tx) error { return tx.PutRequest(id, receipt) })
				}))
				claims[i] = append(claims[i], timed(b, func() error {
					return s.Update(context.Background(), func(tx *Tx) error {
						_, _, err := tx.Claim(claimOf(fmt.Sprintf("%06d-new", n)), func(v *View) []Hold {
							v.RunsOfTask(TaskID(fmt.Sprintf("%06d-new", n)))
							v.AccountRuns()
							return nil
						})
						return err
					})
				}))
			}
		}
	}
	reportScales(b, "commit", commits, median(bares))
	reportScales(b, "claim", claims, median(bares))
	b.ReportMetric(float64(median(bares).Microseconds()), "µs/bare")
	b.ReportMetric(0, "ns/op")
}

// reportScales reports the medians of one kind of change, and fails beyond the bounds.
func reportScales(b *testing.B, what string, times [][]time.Duration, bare time.Duration) {
	first := median(times[0])
	for i, n := range scales {
		m := median(times[i])
		b.ReportMetric(float64(m.Microseconds()), fmt.Sprintf("µs/%s@%dk", what, n/1000))
		if m > first*12/10 {
			b.Errorf("a %s beside %d runs takes %v, beside none %v", what, n, m, first)
		}
		if m > 4*bare {
			b.Errorf("a %s beside %d runs takes %v, a bare append %v", what, n, m, bare)
		}
	}
}

func BenchmarkOpenBeside100kRuns(b *testing.B) {
	dir := aged(b, 100_000)
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		s := openStore(b, Options{Dir: dir, Disk: durable.NewDisk(nil), Now: time.Now})
		took = append(took, time.Since(begin))
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB-heap")
		closeStore(b, s)
	}
	b.ReportMetric(float64(median(took).Microseconds())/1000, "ms/open")
	if m := median(took); m > 50*time.Millisecond {
		b.Errorf("opening takes %v, want at most 50 ms", m)
	}
}

func BenchmarkLookUpBeside100kRuns(b *testing.B) {
	s := openStore(b, Options{Dir: aged(b, 100_000), Disk: durable.NewDisk(nil), Now: time.Now})
	defer closeStore(b, s)
	v := s.View()
	b.Run("never seen", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			if v.Request(fmt.Sprintf("never-%d", n)) != nil {
				b.Fatal("found")
			}
		}
	})
	var old []RunID
	for after := RunID(""); len(old) < 20_000; {
		page, next, err := v.History(after, 1000)
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range page {
			old = append(old, r.ID)
		}
		after = next
	}
	b.Run("a run", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			if v.Run(old[n*7919%len(old)]) == nil {
				b.Fatal("lost")
			}
		}
	})
	b.Run("status", func(b *testing.B) {
		for b.Loop() {
			b.ReportMetric(float64(len(v.Recent())), "bytes")
		}
	})
	b.Run("page of 50", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			if _, _, err := v.History(old[n*7919%len(old)], 50); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Eight writers at once share their syncs: at least twice as fast as one sync each.
func BenchmarkEightWriters(b *testing.B) {
	s := benchStore(b)
	f, err := os.Create(b.TempDir() + "/bare")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := seal([]byte(`"changes":{"requests":{"q":"` + strings.Repeat("x", 1024) + `"}}}`))
	receipt := json.RawMessage(`"` + strings.Repeat("x", 1024) + `"`)
	const each = 25
	var together, apart time.Duration
	n := 0
	for b.Loop() {
		n++
		apart += timed(b, func() error {
			for range 8 * each {
				if err := (bare{f}).append(line); err != nil {
					return err
				}
			}
			return nil
		})
		together += timed(b, func() error {
			var all sync.WaitGroup
			for w := range 8 {
				all.Go(func() {
					for i := range each {
						id := fmt.Sprintf("q-%d-%d-%d", n, w, i)
						if err := s.Update(context.Background(), func(tx *Tx) error { return tx.PutRequest(id, receipt) }); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			return nil
		})
	}
	ratio := float64(apart) / float64(together)
	b.ReportMetric(ratio, "x-one-sync-each")
	b.ReportMetric(0, "ns/op")
	if ratio < 2 {
		b.Errorf("eight writers are %.1f times as fast as one sync each, want at least 2", ratio)
	}
}
