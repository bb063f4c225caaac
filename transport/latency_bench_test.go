package transport_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"greatminds/transport"
)

// arrives reads the client's next line and says when it was there.
func (p *peer) arrives() (string, time.Time) {
	line, err := p.lines.ReadString('\n')
	at := time.Now()
	if err != nil {
		p.t.Error(err)
	}
	return line, at
}

// idOf returns the id of a line that the client wrote, which it writes behind "jsonrpc".
func idOf(b testing.TB, line string) string {
	_, rest, found := strings.Cut(line, `"id":`)
	id, _, more := strings.Cut(rest, ",")
	if !found || !more {
		b.Errorf("got %.100q, want a message with an id", line)
	}
	return id
}

// quantiles reports the spans' median and 99th percentile.
func quantiles(b *testing.B, spans []time.Duration) {
	slices.Sort(spans)
	b.ReportMetric(float64(spans[len(spans)/2].Microseconds()), "µs-p50")
	b.ReportMetric(float64(spans[len(spans)*99/100].Microseconds()), "µs-p99")
}

// BenchmarkPermissionAnswer measures from the handler's answer to its bytes at the agent.
func BenchmarkPermissionAnswer(b *testing.B) {
	p := newPeer(b)
	p.stdin.SetReadDeadline(time.Time{})
	p.stdout.SetWriteDeadline(time.Time{})
	var answered time.Time
	p.options.Handler = &recorder{answer: func(context.Context, transport.PermissionRequest) transport.PermissionAnswer {
		answered = time.Now()
		return transport.PermissionAnswer{OptionID: "ok"}
	}}
	_, m, done := p.turn(context.Background())
	spans := make([]time.Duration, 0, b.N)
	for b.Loop() {
		p.ask("7")
		line, at := p.arrives()
		if !strings.Contains(line, `"ok"`) {
			b.Fatalf("got %s", line)
		}
		spans = append(spans, at.Sub(answered))
	}
	p.reply(m, `{"stopReason":"end_turn"}`)
	if got := receive(b, done); got.err != nil {
		b.Fatal(got.err)
	}
	quantiles(b, spans)
}

// BenchmarkPrompt measures from the call of Prompt to the last byte of the request at the agent.
func BenchmarkPrompt(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			p := newPeer(b)
			p.stdin.SetReadDeadline(time.Time{})
			p.stdout.SetWriteDeadline(time.Time{})
			s := p.session()
			text := strings.Repeat("word ", size/5)
			spans := make([]time.Duration, 0, b.N)
			arrivals := make(chan time.Time, 1)
			expected := make(chan struct{})
			go func() {
				for range expected {
					line, at := p.arrives()
					p.reply(message{ID: []byte(idOf(b, line))}, `{"stopReason":"end_turn"}`)
					arrivals <- at
				}
			}()
			defer close(expected)
			b.SetBytes(int64(size))
			for b.Loop() {
				expected <- struct{}{}
				began := time.Now()
				if _, err := s.Prompt(context.Background(), text); err != nil {
					b.Fatal(err)
				}
				spans = append(spans, (<-arrivals).Sub(began))
			}
			quantiles(b, spans)
		})
	}
}
