package runstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"greatminds/internal/durable"
	"greatminds/internal/refusal"
)

// gate is a disk whose journal syncs wait for the test. Other syncs are skipped.
type gate struct {
	reached chan struct{}
	release chan error
}

func newGate() *gate { return &gate{reached: make(chan struct{}), release: make(chan error)} }

func (g *gate) Before(s durable.Step) error {
	if journalSync(s) {
		g.reached <- struct{}{}
		if err := <-g.release; err != nil {
			return err
		}
	}
	if s.Op == durable.OpSync || s.Op == durable.OpSyncDir {
		return durable.ErrSkip
	}
	return nil
}

func (g *gate) After(_ durable.Step, err error) error { return err }

func gated(t *testing.T) (*Store, *gate, string) {
	g, dir := newGate(), storeDir(t)
	s := openStore(t, Options{Dir: dir, Disk: durable.NewDisk(g), Now: newClock().now})
	return s, g, dir
}

func put(id string) func(tx *Tx) error {
	return func(tx *Tx) error { return tx.PutRequest(id, []byte(`1`)) }
}

// enqueue starts an Update and returns when its function has run, with the outcome to come.
func enqueue(s *Store, f func(tx *Tx) error) <-chan error {
	ran, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- s.Update(context.Background(), func(tx *Tx) error {
			defer close(ran)
			return f(tx)
		})
	}()
	<-ran
	return done
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestNobodySeesATransactionBeforeItsSync(t *testing.T) {
	s, g, dir := gated(t)
	changed := s.Changed()
	first := enqueue(s, put("a"))
	<-g.reached
	if s.View().Request("a") != nil || closed(changed) {
		t.Error("seen before its sync")
	}
	// A transaction that only reads what is on its way is not told before that is durable.
	var saw bool
	reading := enqueue(s, func(tx *Tx) error { saw = tx.Request("a") != nil; return nil })
	select {
	case err := <-reading:
		t.Errorf("told %v of something that is not durable", err)
	default:
	}
	g.release <- nil
	if err := errors.Join(<-first, <-reading); err != nil || !saw {
		t.Errorf("got %v, saw %v", err, saw)
	}
	if s.View().Request("a") == nil || !closed(changed) || closed(s.Changed()) {
		t.Error("not seen, or not told, after its sync")
	}
	if v, err := Read(dir); err != nil || v.Request("a") == nil {
		t.Errorf("not on the disk: %v", err)
	}
	closeStore(t, s)
}

func TestTransactionsThatWaitTogetherShareOneSync(t *testing.T) {
	s, g, dir := gated(t)
	waiting := []<-chan error{enqueue(s, put("first"))}
	<-g.reached
	for i := range 10 {
		waiting = append(waiting, enqueue(s, put(fmt.Sprint("r", i))))
	}
	g.release <- nil
	<-g.reached
	if s.View().Request("first") == nil || s.View().Request("r0") != nil {
		t.Error("the first group is to be seen, the second not yet")
	}
	g.release <- nil
	for _, w := range waiting {
		if err := <-w; err != nil {
			t.Error(err)
		}
	}
	text := readText(t, dir+"/journal.jsonl")
	if got := strings.Count(text, "\n"); got != 3 || !strings.Contains(text, `"first":2,"last":11}`) {
		t.Errorf("got %d lines, want a header, a group of one and a group of ten:\n%s", got, text)
	}
	closeStore(t, s)
}

func TestARefusedGroupTakesWhatWasBuiltOnIt(t *testing.T) {
	s, g, dir := gated(t)
	first := enqueue(s, put("a"))
	<-g.reached
	second := enqueue(s, func(tx *Tx) error {
		if tx.Request("a") == nil {
			t.Error("a transaction does not see the one before it")
		}
		tx.Emit("built", "", nil)
		return tx.PutRequest("b", []byte(`2`))
	})
	reading := enqueue(s, func(*Tx) error { return nil })
	g.release <- syscall.EIO
	for _, w := range []<-chan error{first, second, reading} {
		refused(t, <-w, refusal.CodeStoreWrite)
	}
	if v := s.View(); v.Request("a") != nil || v.Request("b") != nil || v.Sequence() != 0 {
		t.Error("a refused change is seen")
	}
	third := enqueue(s, func(tx *Tx) error {
		if tx.Request("a") != nil || tx.Sequence() != 0 {
			t.Error("a refused change is built upon")
		}
		return tx.PutRequest("c", []byte(`3`))
	})
	<-g.reached
	g.release <- nil
	if err := <-third; err != nil {
		t.Error(err)
	}
	closeStore(t, s)
	if v, err := Read(dir); err != nil || v.Request("a") != nil || v.Request("c") == nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestCloseCarriesWhatWaitsToTheDisk(t *testing.T) {
	s, g, dir := gated(t)
	first := enqueue(s, put("a"))
	<-g.reached
	second := enqueue(s, put("b"))
	ended := make(chan error, 1)
	go func() { ended <- s.Close(context.Background()) }()
	g.release <- nil
	<-g.reached
	g.release <- nil
	if err := errors.Join(<-first, <-second, <-ended); err != nil {
		t.Error(err)
	}
	refused(t, s.Update(context.Background(), put("c")), refusal.CodeStoreClosed)
	if err := s.Close(context.Background()); err != nil {
		t.Errorf("closing again: %v", err)
	}
	if v, err := Read(dir); err != nil || v.Request("b") == nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestWhatFailsChangesNothing(t *testing.T) {
	s := fresh(t)
	claim(t, s, "0001-a")
	before := everything(s.View())
	ours := errors.New("ours")
	spoil := func(tx *Tx) {
		tx.SetPaused(true)
		tx.Emit("lost", "", nil)
		tx.Observe(map[string]Revision{"q/a.yaml": "r"})
	}
	if err := s.Update(t.Context(), func(tx *Tx) error { spoil(tx); return ours }); !errors.Is(err, ours) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("got panic %v", r)
			}
		}()
		_ = s.Update(t.Context(), func(tx *Tx) error { spoil(tx); panic("boom") }) // it does not return
	}()
	refused(t, s.Update(t.Context(), func(tx *Tx) error {
		spoil(tx)
		tx.Emit("odd", "", map[string]any{"f": func() {}})
		return nil
	}), refusal.CodeRecordInvalid)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Update(ctx, func(tx *Tx) error { t.Error("ran"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := everything(s.View()); got != before {
		t.Errorf("got %s\nwant %s", got, before)
	}
	update(t, s, func(tx *Tx) error { tx.Emit("next", "", nil); return nil })
	if got := kinds(s.View().Events(0, 10)); got != "claimed next" {
		t.Errorf("got events %s", got)
	}
}

func TestAViewNeverChanges(t *testing.T) {
	s := fresh(t)
	c := running(t, s, "0001-a")
	old := s.View()
	before := everything(old)
	var admitted *View
	update(t, s, func(tx *Tx) error {
		_, _, err := tx.Claim(claimOf("0002-b"), func(v *View) []Hold { admitted = v; return nil })
		return err
	})
	if len(admitted.Runs()) != 1 {
		t.Errorf("admit's view now holds %d runs, want the one before the claim", len(admitted.Runs()))
	}
	for range 20 {
		_ = s.Update(t.Context(), func(tx *Tx) error { tx.Emit("lost", "", nil); return errors.New("no") }) // undone
		update(t, s, func(tx *Tx) error {
			tx.Emit("tick", c.ID, nil)
			return tx.EditRun(c.ID, func(r *Run) { r.Workspace = "/moved" })
		})
	}
	move(t, s, c.ID, Failed)
	if got := everything(old); got != before {
		t.Errorf("got %s\nwant %s", got, before)
	}

	// Not even what admit saw of a transaction that was undone.
	_ = s.Update(t.Context(), func(tx *Tx) error { // undone
		tx.Emit("undone", "", nil)
		_, _, err := tx.Claim(claimOf("0003-c"), func(v *View) []Hold { admitted = v; return nil })
		return errors.Join(err, errors.New("no"))
	})
	update(t, s, func(tx *Tx) error { tx.Emit("kept", "", nil); return nil })
	if got := kinds(admitted.Events(admitted.Sequence()-1, 1)); got != "undone" {
		t.Errorf("the view of an undone transaction now ends with %q", got)
	}
}

func TestATransactionEndsWithItsFunction(t *testing.T) {
	s := fresh(t)
	var kept *Tx
	update(t, s, func(tx *Tx) error { kept = tx; tx.SetPaused(true); return nil })
	defer func() {
		if recover() == nil {
			t.Error("a transaction was used after its end")
		}
	}()
	kept.SetPaused(false)
}

// Readers and writers at once, for the race detector; each reader sees only whole
// transactions.
func TestReadersBesideWriters(t *testing.T) {
	dir := storeDir(t)
	o := options(dir, nil)
	o.MinJournal = 1 // a snapshot every few transactions
	s := openStore(t, o)
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	whole := func(v *View) {
		runs, requests := len(v.Runs()), v.h.requests.len()
		if runs != requests || len(v.ActiveRuns()) != runs {
			t.Errorf("%d runs, %d requests, %d active", runs, requests, len(v.ActiveRuns()))
		}
	}
	for range 2 {
		readers.Go(func() {
			for !closed(stop) {
				changed := s.Changed()
				whole(s.View())
				v, err := Read(dir)
				if err != nil {
					t.Error(err)
					return
				}
				whole(v)
				select {
				case <-changed:
				case <-stop:
				}
			}
		})
	}
	for w := range 3 {
		writers.Go(func() {
			for i := range 25 {
				task := fmt.Sprintf("%04d-w%d", i, w)
				update(t, s, func(tx *Tx) error {
					if _, _, err := tx.Claim(claimOf(task), nil); err != nil {
						return err
					}
					return tx.PutRequest(task, []byte(`1`))
				})
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	if got := len(s.View().Runs()); got != 75 {
		t.Errorf("got %d runs, want 75", got)
	}
	closeStore(t, s)
	if v, err := Read(dir); err != nil || len(v.Runs()) != 75 {
		t.Errorf("afterwards: %d runs, %v", len(v.Runs()), err)
	}
}

// A real disk, with its real syncs, once.
func TestARealDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	o := Options{Dir: dir, Disk: durable.NewDisk(nil), Now: newClock().now}
	s := openStore(t, o)
	c := running(t, s, "0001-a")
	closeStore(t, s)
	s = openStore(t, o)
	if r := s.View().Run(c.ID); r == nil || r.State != Running {
		t.Errorf("got %v", r)
	}
	closeStore(t, s)
	if _, err := os.Stat(dir + "/journal.jsonl"); !os.IsNotExist(err) {
		t.Errorf("the journal is there: %v", err)
	}
}
