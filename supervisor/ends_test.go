package supervisor

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"greatminds/runstore"
)

func TestEndsAreRememberedByTheMonotonicClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := ends{began: time.Now()}
		pass := func(d time.Duration) { <-time.NewTimer(d).C }
		pass(time.Minute)
		e.begin("r1")
		pass(time.Minute)
		if got := e.waited("r1"); got != 0 {
			t.Errorf("a run that goes on is over for %v", got)
		}
		e.end("r1")
		pass(time.Second)
		if got := e.waited("r1"); got != time.Second {
			t.Errorf("over for %v, want 1s", got)
		}
		if got := e.waited("earlier"); got != 2*time.Minute+time.Second {
			t.Errorf("a run of an earlier process is over for %v, want as long as this one is there", got)
		}
		for i := range maxEnds {
			e.begin(runstore.RunID(fmt.Sprint("more", i)))
		}
		e.end("r1")
		if len(e.at) != maxEnds || len(e.order) != maxEnds || e.waited("r1") != e.waited("earlier") {
			t.Errorf("%d ends are remembered in %d places, want %d", len(e.at), len(e.order), maxEnds)
		}
	})
}
