package supervisor

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Each story is told in seconds of a turn whose limit is 10: what happens when, and when the turn
// is ended for silence; 0 for never within 100.
func TestOnlySilenceThatIsTheAgentsOwnCounts(t *testing.T) {
	type act struct {
		at   int
		what string // says, asks, answered
	}
	for _, c := range []struct {
		name string
		acts []act
		want int
	}{
		{"it never says anything", nil, 10},
		{"it says something now and then", []act{{9, "says"}, {18, "says"}, {20, "says"}}, 30},
		{"it talks on and on", []act{{5, "says"}, {10, "says"}, {19, "says"}, {28, "says"}, {37, "says"}, {46, "says"}, {55, "says"}, {64, "says"}, {73, "says"}, {82, "says"}, {91, "says"}, {99, "says"}}, 0},
		{"a question that nobody answers", []act{{4, "says"}, {4, "asks"}}, 0},
		{"a question that is answered late", []act{{3, "says"}, {4, "asks"}, {60, "answered"}}, 69},
		{"silence before a wait counts with what comes after", []act{{6, "asks"}, {50, "answered"}}, 54},
		{"it speaks during a wait", []act{{6, "asks"}, {30, "says"}, {50, "answered"}}, 60},
		{"two waits that overlap", []act{{6, "asks"}, {8, "asks"}, {20, "answered"}, {50, "answered"}}, 54},
		{"two waits after each other", []act{{3, "asks"}, {13, "answered"}, {16, "asks"}, {46, "answered"}}, 50},
		{"it waits from the first moment on", []act{{0, "asks"}, {40, "answered"}}, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var spoke atomic.Pointer[time.Time]
				var s silence
				began := time.Now()
				var mu sync.Mutex
				var done []func()
				s.begin(10*time.Second, func() time.Time {
					if at := spoke.Load(); at != nil {
						return *at
					}
					return time.Time{}
				})
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
				defer cancel()
				for _, a := range c.acts {
					context.AfterFunc(atSecond(ctx, began, a.at), func() {
						mu.Lock()
						defer mu.Unlock()
						switch now := time.Now(); a.what {
						case "says":
							spoke.Store(&now)
						case "asks":
							done = append(done, s.wait())
						case "answered":
							done[0]()
							done = done[1:]
						}
					})
					if a.at == 0 {
						synctest.Wait()
					}
				}
				got := 0
				if s.broken(ctx) {
					got = int(time.Since(began).Seconds())
				}
				if got != c.want {
					t.Errorf("ended after %d s, want %d", got, c.want)
				}
			})
		})
	}
}

// atSecond is over a number of seconds after the beginning.
func atSecond(ctx context.Context, began time.Time, seconds int) context.Context {
	ctx, cancel := context.WithDeadline(ctx, began.Add(time.Duration(seconds)*time.Second))
	context.AfterFunc(ctx, cancel)
	return ctx
}
