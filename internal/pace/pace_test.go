package pace_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"greatminds/internal/pace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Work is done after a notice, never more often than the pace, also where it takes a while, and not
// at all without a notice or after the end.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		notices, ended := make(chan struct{}, 1), make(chan struct{})
		began := time.Now()
		var done []time.Duration
		go func() {
			defer close(ended)
			pace.Keep(ctx, notices, time.Second, func() {
				done = append(done, time.Since(began))
				<-time.NewTimer(300 * time.Millisecond).C
			})
		}()
		notify := func() {
			select {
			case notices <- struct{}{}:
			default:
			}
		}
		until := func(span time.Duration) { <-time.NewTimer(time.Until(began.Add(span))).C }
		for at := range 20 { // two seconds
			until(time.Duration(at) * 100 * time.Millisecond)
			notify()
		}
		until(time.Minute)
		notify()
		until(2 * time.Minute)
		cancel()
		<-ended
		notify()
		// Each takes 300 ms, the third acts on the notices that came beside the second's wait.
		want := []time.Duration{time.Second, 2300 * time.Millisecond, 3600 * time.Millisecond, time.Minute}
		if !slices.Equal(done, want) {
			t.Errorf("done at %v, want %v", done, want)
		}
	})
}
