package runstore

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
)

// barrier is a seam that holds up the next write of a snapshot until it is let through.
type barrier struct {
	*faultdisk.FaultDisk
	mu      sync.Mutex
	armed   bool
	reached chan struct{}
	open    chan struct{}
}

func (g *barrier) arm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed, g.reached, g.open = true, make(chan struct{}), make(chan struct{})
}

func (g *barrier) Before(s durable.Step) error {
	g.mu.Lock()
	hold := g.armed && s.Op == durable.OpRename && strings.HasSuffix(s.To, snapshotName)
	reached, open := g.reached, g.open
	if hold {
		g.armed = false
	}
	g.mu.Unlock()
	if hold {
		close(reached)
		<-open
	}
	return g.FaultDisk.Before(s)
}

// Transactions that come while finished work leaves are built on a state in which it is still hot:
// what they change stays hot, and what they do not change leaves.
func TestWorkThatChangesWhileItLeavesIsKeptWhole(t *testing.T) {
	for _, crash := range []bool{false, true} {
		dir, about := storeDir(t), &subjects{}
		g := &barrier{FaultDisk: faultdisk.New()}
		o := rolling(dir, g.FaultDisk)
		o.EagerHistory = false
		o.Disk, o.foldAlways, o.rules = durable.NewDisk(g), false, ordinaryRules
		s := openStore(t, o)
		for i := range 8 {
			about.lived(t, s, i)
		}
		closeStore(t, s)
		if segments, _ := historyFiles(t, dir); len(segments) > 0 {
			t.Fatalf("something has left already: %v", segments)
		}
		o.foldAlways, o.rules = true, eagerRules
		s = openStore(t, o)
		g.arm()
		update(t, s, func(tx *Tx) error { tx.Emit("fold", "", nil); return nil })
		<-g.reached
		var acknowledged sync.WaitGroup
		edit := func(run RunID) {
			acknowledged.Go(func() {
				if err := s.Update(context.Background(), func(tx *Tx) error { return tx.EditRun(run, func(r *Run) { r.Workspace = "/edited" }) }); err != nil {
					t.Error(err)
				}
			})
		}
		edit("run-002")
		edit("run-003")
		acknowledged.Go(func() {
			if err := s.Update(context.Background(), func(tx *Tx) error { tx.Emit("other", "", nil); return nil }); err != nil {
				t.Error(err)
			}
		})
		for waiting := false; !waiting; runtime.Gosched() {
			s.mu.Lock()
			waiting = s.waiting != nil && s.waiting.group.last-s.waiting.group.first == 2
			s.mu.Unlock()
		}
		if crash {
			g.Plan(faultdisk.On(func(st durable.Step) bool {
				return st.Op == durable.OpRename && strings.HasSuffix(st.To, snapshotName)
			}, faultdisk.CrashAt(2)))
		}
		close(g.open)
		acknowledged.Wait()
		want := about.answers(s.View())
		if strings.Count(want, `"workspace":"/edited"`) != 5 { // by id, of their tasks, and of a session
			t.Errorf("%d answers show an edited run, want 5", strings.Count(want, `"workspace":"/edited"`))
		}
		if got := s.View().Totals()[Completed]; got != 8 {
			t.Errorf("%d runs, want 8", got)
		}
		err := s.Close(context.Background())
		if (err != nil) != crash {
			t.Errorf("closing: %v", err)
		}
		s = openStore(t, rolling(dir, nil))
		if got := about.answers(s.View()); got != want {
			t.Errorf("after a restart: %s", firstDifference(got, want))
		}
		if got := s.View().Totals()[Completed]; got != 8 {
			t.Errorf("after a restart: %d runs, want 8", got)
		}
		closeStore(t, s)
	}
}

// Many writers change old and new runs while everything leaves all the time; readers look on.
func TestManyWritersOverARollingHistory(t *testing.T) {
	dir, about := storeDir(t), &subjects{}
	s := openStore(t, rolling(dir, nil))
	for i := range 6 {
		about.lived(t, s, i)
	}
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				v := s.View()
				for _, id := range about.runs {
					if r := v.Run(id); r == nil || v.ResultOfRun(id) == nil {
						t.Errorf("run %s is not there: %v", id, v.HistoryFault())
						return
					}
				}
				if got := v.Totals()[Completed]; got < 6 {
					t.Errorf("%d runs", got)
					return
				}
			}
		})
	}
	for w := range 4 {
		writers.Go(func() {
			for i := range 12 {
				id := about.runs[(w+i)%len(about.runs)]
				err := s.Update(context.Background(), func(tx *Tx) error {
					return tx.EditRun(id, func(r *Run) { r.Reason, r.Workspace = "", r.Workspace+fmt.Sprintf(".%d", w) })
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	edits := 0
	for _, id := range about.runs {
		edits += strings.Count(s.View().Run(id).Workspace, ".")
	}
	if edits != 48 || s.View().Totals()[Completed] != 6 {
		t.Errorf("%d edits of 48, totals %v", edits, s.View().Totals())
	}
	closeStore(t, s)
}
