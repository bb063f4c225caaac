package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"greatminds/transport"
)

// paced is how many updates may be under way: the SDK by itself dies at 1025.
const paced = 1000

// stream writes n updates of size bytes of text and returns when all were handled.
func stream(b testing.TB, to *os.File, n, size int, handled *atomic.Int64, tick <-chan struct{}) {
	block := []byte(strings.Repeat(fmt.Sprintf(chunk, strings.Repeat("x", size))+"\n", paced))
	line := len(block) / paced
	for n > 0 {
		k := min(n, paced)
		want := handled.Load() + int64(k)
		if _, err := to.Write(block[:k*line]); err != nil {
			b.Fatal(err)
		}
		for handled.Load() < want {
			<-tick
		}
		n -= k
	}
}

// counting counts, and ticks when a block is through.
type counting struct {
	n    atomic.Int64
	tick chan struct{}
}

func newCounting() *counting { return &counting{tick: make(chan struct{}, 1)} }

func (c *counting) count() {
	if c.n.Add(1); true {
		select {
		case c.tick <- struct{}{}:
		default:
		}
	}
}

func (c *counting) Update(transport.Update) error { c.count(); return nil }

func (c *counting) Permission(context.Context, transport.PermissionRequest) transport.PermissionAnswer {
	return transport.PermissionAnswer{}
}

// guarded and unguarded return a function that streams n updates.
func guarded(b testing.TB, size int) func(n int) {
	p := newPeer(b)
	p.stdout.SetWriteDeadline(time.Time{})
	p.stdin.SetReadDeadline(time.Time{})
	c := newCounting()
	p.options.Handler = c
	s := p.session()
	done := prompt(context.Background(), s, "go")
	m := p.expect("session/prompt")
	b.Cleanup(func() {
		p.reply(m, `{"stopReason":"end_turn"}`)
		if got := <-done; got.err != nil || int64(got.Updates) != c.n.Load() {
			b.Errorf("got %+v for %d updates", got, c.n.Load())
		}
	})
	return func(n int) { stream(b, p.stdout, n, size, &c.n, c.tick) }
}

func unguarded(b testing.TB, size int) func(n int) {
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	c := newCounting()
	conn := acp.NewConnection(func(context.Context, string, json.RawMessage) (any, *acp.RequestError) {
		c.count()
		return nil, nil
	}, discard{}, r)
	conn.SetLogger(slog.New(slog.DiscardHandler))
	b.Cleanup(func() {
		w.Close()
		<-conn.Done()
		r.Close()
	})
	return func(n int) { stream(b, w, n, size, &c.n, c.tick) }
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkUpdates is the rate of each by itself.
func BenchmarkUpdates(b *testing.B) {
	for _, size := range []int{40, 1 << 10, 16 << 10} {
		for name, open := range map[string]func(testing.TB, int) func(int){"guarded": guarded, "unguarded": unguarded} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				run := open(b, size)
				b.ReportAllocs()
				b.ResetTimer()
				run(b.N)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
			})
		}
	}
}

// BenchmarkGuardShare measures both in turns, so that the machine's mood meets both alike,
// and reports the medians: updates a second with 40 bytes of text, and the guarded share of
// the unguarded rate.
func BenchmarkGuardShare(b *testing.B) {
	const rounds, n = 41, 10 * paced
	with, without := guarded(b, 40), unguarded(b, 40)
	with(n)
	without(n)
	for b.Loop() {
		var a, c []float64
		rate := func(run func(int)) float64 {
			began := time.Now()
			run(n)
			return n / time.Since(began).Seconds()
		}
		for range rounds {
			a, c = append(a, rate(with)), append(c, rate(without))
		}
		slices.Sort(a)
		slices.Sort(c)
		b.ReportMetric(a[rounds/2], "guarded/s")
		b.ReportMetric(c[rounds/2], "unguarded/s")
		b.ReportMetric(a[rounds/2]/c[rounds/2], "share")
	}
}
