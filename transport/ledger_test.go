package transport

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLedgerWaits(t *testing.T) {
	t.Parallel()
	const bound = time.Second
	t.Run("no more updates are out than there are credits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLedger()
			for range credits {
				if err := l.pass(bound); err != nil {
					t.Fatal(err)
				}
			}
			passed := make(chan error, 1)
			go func() { passed <- l.pass(bound) }()
			synctest.Wait()
			if len(passed) != 0 {
				t.Fatal("passed without a credit")
			}
			for range credits / 2 {
				l.step(&l.handled)
			}
			if err := <-passed; err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("nothing handled within the bound is stuck", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLedger()
			l.passed.Store(3)
			began := time.Now()
			if err := l.settled(bound); !errors.Is(err, errStuck) || time.Since(began) != bound {
				t.Fatalf("got %v after %s", err, time.Since(began))
			}
		})
	})
	t.Run("slow is not stuck", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLedger()
			l.passed.Store(10)
			began := time.Now()
			tick := time.NewTicker(bound * 3 / 4)
			defer tick.Stop()
			go func() {
				for range 10 {
					<-tick.C
					l.step(&l.handled)
				}
			}()
			if err := l.settled(bound); err != nil || time.Since(began) != 10*bound*3/4 {
				t.Fatalf("got %v after %s", err, time.Since(began))
			}
		})
	})
	t.Run("an answer is delivered when its caller has it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLedger()
			l.answered.Store(1)
			if err := l.settled(bound); err != nil {
				t.Fatal(err)
			}
			delivered := make(chan error, 1)
			go func() { delivered <- l.delivered(bound) }()
			synctest.Wait()
			if len(delivered) != 0 {
				t.Fatal("delivered before the caller had it")
			}
			l.step(&l.returned)
			if err := <-delivered; err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("closing ends every wait but the last", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLedger()
			l.passed.Store(1)
			ended, empty := make(chan error, 1), make(chan struct{})
			go func() { ended <- l.settled(bound) }()
			go func() { l.emptied(); close(empty) }()
			synctest.Wait()
			l.close()
			if err := <-ended; !errors.Is(err, errClosed) {
				t.Fatal(err)
			}
			select {
			case <-empty:
				t.Fatal("an update is still with the SDK")
			default:
			}
			l.step(&l.handled)
			<-empty
		})
	})
}
