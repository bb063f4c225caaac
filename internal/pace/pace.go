// Package pace does a piece of work whenever there is a reason to, at a bounded rate.
package pace

import (
	"context"
	"time"
)

// Keep calls do after each notice, and then not again before every has passed: what is noticed
// meanwhile is done in one. The first call comes no sooner than every after the beginning. It returns
// when ctx ends; a notice that was not acted on is left to the caller. notices should hold one notice
// and drop others, so that nobody who gives one waits.
func Keep(ctx context.Context, notices <-chan struct{}, every time.Duration, do func()) {
	pause := time.NewTimer(every)
	defer pause.Stop()
	for {
		select {
		case <-notices:
		case <-ctx.Done():
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		do()
		pause.Reset(every)
	}
}
