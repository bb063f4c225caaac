package runstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/refusal"
)

// record is what became of each of a scenario's transactions.
type record struct {
	mu                       sync.Mutex
	n                        int
	kept, notKept, uncertain []string
	closedCleanly            bool
}

// op is one transaction that leaves traces in four places: all of them, or none.
func (r *record) op(s *Store) error {
	r.mu.Lock()
	r.n++
	id := fmt.Sprintf("op-%02d", r.n)
	r.mu.Unlock()
	err := s.Update(context.Background(), func(tx *Tx) error {
		tx.Emit(id, "", map[string]any{"filler": strings.Repeat("x", 50)})
		tx.Observe(map[string]Revision{"feature_dev/" + id + ".yaml": "r"})
		c, _, err := tx.Claim(claimOf(id), nil)
		if err != nil {
			return err
		}
		if err := tx.Transition(c.ID, "event", Interrupted, id, nil); err != nil {
			return err
		}
		return tx.PutRequest(id, []byte(`{"run":"`+string(c.ID)+`"}`))
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	ref, _ := refusal.Find(err)
	switch {
	case err == nil:
		r.kept = append(r.kept, id)
	case ref.Code == refusal.CodeStoreUncertain:
		r.uncertain = append(r.uncertain, id)
	default:
		r.notKept = append(r.notKept, id)
	}
	return err
}

// folding says when a scenario's store folds its journal, and whether finished work leaves then.
type folding string

const (
	seldom  folding = "at the end"
	always  folding = "always"
	rolls   folding = "always, into the history"
	closing folding = "at the end, into the history"
)

var foldings = []folding{seldom, always, rolls, closing}

func (f folding) options(dir string, fd *faultdisk.FaultDisk) Options {
	o := options(dir, fd)
	o.foldAlways = f == always || f == rolls
	if f == rolls || f == closing {
		o.rules = eagerRules
	}
	return o
}

// scenario opens, changes, folds, closes, and does it again. It goes on after errors, as
// callers may.
func (r *record) scenario(dir string, fd *faultdisk.FaultDisk, fold folding) {
	for range 2 {
		o := fold.options(dir, fd)
		s, err := Open(context.Background(), o)
		if err != nil {
			return
		}
		for range 3 {
			if r.op(s) != nil && s.Err() != nil {
				break
			}
		}
		r.closedCleanly = s.Close(context.Background()) == nil
	}
}

// traces lists the transactions that the state holds, and fails where one is there in part.
func traces(t *testing.T, v *View) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	var last uint64
	for _, e := range v.Events(0, 1000) {
		if e.Sequence <= last {
			t.Errorf("event %d after %d", e.Sequence, last)
		}
		last = e.Sequence
		if strings.HasPrefix(e.Kind, "op-") {
			found[e.Kind] = true
		}
	}
	for id := range found {
		runs := v.RunsOfTask(TaskID(id))
		if len(runs) != 1 || runs[0].State != Interrupted || v.Request(id) == nil {
			t.Errorf("%s is there in part: runs %v, request %v", id, runs, v.Request(id))
		}
	}
	if got := v.Totals()[Interrupted]; got != len(found) {
		t.Errorf("%d runs of %d transactions", got, len(found))
	}
	if err := v.HistoryFault(); err != nil {
		t.Error(err)
	}
	return found
}

// check reopens the folder on a healthy disk and compares with what was told.
func (r *record) check(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); err != nil && len(r.kept) == 0 {
		return // the folder itself was never made
	}
	seen, err := Read(dir)
	if err != nil {
		t.Fatalf("reading afterwards: %v", err)
	}
	s, err := Open(context.Background(), options(dir, nil))
	if err != nil {
		t.Fatalf("opening afterwards: %v", err)
	}
	if everything(seen) != everything(s.View()) && seen.ProjectID() != "" {
		t.Error("Read and Open see different states")
	}
	found := traces(t, s.View())
	for _, id := range r.kept {
		if !found[id] {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
	for _, id := range r.notKept {
		if found[id] {
			t.Errorf("%s was reported as not kept and is there", id)
		}
	}
	if err := (&record{n: 50}).op(s); err != nil {
		t.Errorf("the next change: %v", err)
	}
	closeStore(t, s)
}

// E-153, E-165, E-168
func TestACrashAtAnyStepLosesNothingAcknowledged(t *testing.T) {
	for name, plan := range map[string]func(n int) faultdisk.Fault{
		"before the step":          faultdisk.CrashAt,
		"in the middle of a write": func(n int) faultdisk.Fault { return faultdisk.TearAt(n, 150) },
	} {
		for _, fold := range foldings {
			t.Run(fmt.Sprintf("%s, folding %s", name, fold), func(t *testing.T) {
				steps := 0
				for n := 1; ; n++ {
					dir := storeDir(t)
					fd := faultdisk.New(plan(n))
					r := &record{}
					r.scenario(dir, fd, fold)
					// A crashed process tells nothing: what it would have reported as not kept is open.
					r.uncertain, r.notKept = append(r.uncertain, r.notKept...), nil
					if !fd.Reached() {
						if !r.closedCleanly || len(r.kept) != 6 {
							t.Fatalf("without a fault: %+v", r)
						}
						break
					}
					r.check(t, dir)
					steps = n
				}
				if want := map[folding]int{seldom: 40, always: 90, rolls: 140, closing: 60}[fold]; steps < want {
					t.Errorf("only %d steps were tried, want at least %d", steps, want)
				}
			})
		}
	}
}

// E-165, E-646
func TestAFailureAtAnyStepIsToldAsItIs(t *testing.T) {
	for name, plan := range map[string]func(n int) faultdisk.Fault{
		"EIO once":          func(n int) faultdisk.Fault { return faultdisk.FailAt(n, syscall.EIO) },
		"a short write":     func(n int) faultdisk.Fault { return faultdisk.ShortAt(n, 40, syscall.ENOSPC) },
		"ENOSPC from there": func(n int) faultdisk.Fault { return faultdisk.FailFrom(n, syscall.ENOSPC) },
	} {
		for _, fold := range foldings {
			t.Run(fmt.Sprintf("%s, folding %s", name, fold), func(t *testing.T) {
				for n := 1; ; n++ {
					dir := storeDir(t)
					fd := faultdisk.New(plan(n))
					r := &record{}
					r.scenario(dir, fd, fold)
					if !fd.Reached() {
						break
					}
					r.check(t, dir)
					if t.Failed() {
						t.Fatalf("at step %d", n)
					}
				}
			})
		}
	}
}

// A disk that fills up and is freed again needs no restart.
func TestAFullDiskThatIsFreedAgainGoesOn(t *testing.T) {
	for _, fold := range foldings {
		dir := storeDir(t)
		fd := faultdisk.New()
		o := fold.options(dir, fd)
		s := openStore(t, o)
		r := &record{}
		if err := r.op(s); err != nil {
			t.Fatal(err)
		}
		// Only what takes space fails; cutting back and syncing need none.
		fd.Plan(faultdisk.On(func(st durable.Step) bool { return st.Op == durable.OpWrite || st.Op == durable.OpCreate }, faultdisk.FailFrom(1, syscall.ENOSPC)))
		for range 3 {
			err := r.op(s)
			refused(t, err, refusal.CodeStoreWrite)
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("got %v", err)
			}
			if found := traces(t, s.View()); len(found) != 1 {
				t.Errorf("a refused change is seen: %v", found)
			}
		}
		fd.Heal()
		if err := r.op(s); err != nil {
			t.Errorf("after space was freed: %v", err)
		}
		closeStore(t, s)
		r.check(t, dir)
	}
}

func journalSync(s durable.Step) bool {
	return s.Op == durable.OpSync && strings.HasSuffix(s.Path, journalName)
}

// A failed fsync poisons the journal; a new snapshot and journal in new files are the way back.
func TestAFailedSyncIsHealedByANewSnapshot(t *testing.T) {
	dir := storeDir(t)
	fd := faultdisk.New(faultdisk.On(journalSync, faultdisk.FailAt(2, syscall.EIO)))
	s := openStore(t, options(dir, fd))
	r := &record{}
	if err := r.op(s); err != nil {
		t.Fatal(err)
	}
	old := readText(t, dir+"/state.json")
	refused(t, r.op(s), refusal.CodeStoreWrite)
	if readText(t, dir+"/state.json") == old {
		t.Error("no new snapshot was written")
	}
	if err := r.op(s); err != nil {
		t.Errorf("after healing: %v", err)
	}
	fd.Crash()
	if err := s.Close(context.Background()); err == nil {
		t.Error("a crashed store closed cleanly")
	}
	r.check(t, dir)
}

// uncertainFold is where the sync of the folder after state.json was replaced fails: either file may
// stand there.
func uncertainFold() faultdisk.Fault {
	replaced := false
	return faultdisk.On(func(s durable.Step) bool {
		hit := replaced && s.Op == durable.OpSyncDir
		replaced = s.Op == durable.OpRename && strings.HasSuffix(s.To, snapshotName)
		return hit
	}, faultdisk.FailAt(1, syscall.EIO))
}

// After an uncertain snapshot not one line may follow in the old journal, which it may have
// made void.
func TestAfterAnUncertainSnapshotTheOldJournalIsDone(t *testing.T) {
	dir := storeDir(t)
	fd := faultdisk.New()
	o := options(dir, fd)
	o.MinJournal = 3000 // a few changes
	s := openStore(t, o)
	r := &record{}
	if err := r.op(s); err != nil {
		t.Fatal(err)
	}
	fd.Plan(uncertainFold())
	for n := 0; !fd.Reached(); n++ {
		if err := r.op(s); err != nil || n > 50 {
			t.Fatalf("after %d changes: %v", n, err)
		}
	}
	if err := r.op(s); err != nil {
		t.Fatal(err)
	}
	fd.Crash()
	if err := s.Close(context.Background()); err == nil {
		t.Error("a crashed store closed cleanly")
	}
	r.check(t, dir)
}

// E-167: where the way back fails too, the outcome is told as uncertain and the store ends.
func TestWhereTheWayBackFailsTheStoreEnds(t *testing.T) {
	dir := storeDir(t)
	fd := faultdisk.New()
	s := openStore(t, options(dir, fd))
	r := &record{}
	if err := r.op(s); err != nil {
		t.Fatal(err)
	}
	fd.Plan(faultdisk.On(func(s durable.Step) bool { return s.Op == durable.OpSync }, faultdisk.FailFrom(1, syscall.EIO)))
	err := r.op(s)
	refused(t, err, refusal.CodeStoreUncertain)
	ref, _ := refusal.Find(err)
	if !strings.Contains(ref.What, "may or may not") || !strings.Contains(ref.Remedy, "before you repeat") || ref.Status() != refusal.Storage {
		t.Errorf("got %q, %q", ref.What, ref.Remedy)
	}
	<-s.Failed()
	refused(t, s.Err(), refusal.CodeStoreFailed)
	if e, _ := refusal.Find(s.Err()); e.Status() != refusal.Storage {
		t.Errorf("got status %d, want 4", e.Status())
	}
	fd.Heal() // too late: this process must not go on
	steps := len(fd.Steps())
	refused(t, r.op(s), refusal.CodeStoreFailed)
	refused(t, s.Close(context.Background()), refusal.CodeStoreFailed)
	if got := len(fd.Steps()); got != steps {
		t.Errorf("a failed store made %d more steps", got-steps)
	}
	r.check(t, dir)
}

// Group commit with a crash somewhere in it.
func TestConcurrentWritersLoseNothingAcknowledged(t *testing.T) {
	for n := 4; n < 60; n += 4 { // opening an empty store takes three steps
		dir := storeDir(t)
		fd := faultdisk.New(faultdisk.CrashAt(n))
		s, err := Open(context.Background(), options(dir, fd))
		if err != nil {
			t.Fatal(err)
		}
		r := &record{}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 5 {
					_ = r.op(s) // told in the record
				}
			})
		}
		wg.Wait()
		if err := s.Close(context.Background()); err != nil && !fd.Reached() {
			t.Error(err)
		}
		r.uncertain, r.notKept = append(r.uncertain, r.notKept...), nil
		if !fd.Reached() && len(r.kept) != 20 {
			t.Errorf("kept %d of 20", len(r.kept))
		}
		r.check(t, dir)
	}
}
