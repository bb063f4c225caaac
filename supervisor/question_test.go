package supervisor

import (
	"testing"
	"testing/synctest"
	"time"

	"greatminds/runstore"
	"greatminds/transport"
)

// E-053: a turn can end while the handler of its last question still closes it on record. What became of the
// question is heard before the run's end is judged.
func TestTheEndOfATurnHearsWhatBecameOfItsQuestions(t *testing.T) {
	for _, inTime := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			e := &execution{}
			first, second := e.ask(), e.ask()
			go func() {
				first()
				<-time.NewTimer(5 * time.Second).C // a slow disk
				if !inTime {
					e.unanswered.Store(true)
				}
				second()
			}()
			end := e.turnEnded(t.Context(), transport.Turn{}, &transport.Error{Kind: transport.Timeout})
			want := ending{state: runstore.WaitingInput, reason: permissionRequired}
			if inTime {
				want = ending{state: runstore.Failed, reason: timeoutReason}
			}
			if end.state != want.state || end.reason != want.reason {
				t.Errorf("in time %v: got %s (%s), want %s (%s)", inTime, end.state, end.reason, want.state, want.reason)
			}
			e.hearAll() // nothing is asked any more
		})
	}
}
