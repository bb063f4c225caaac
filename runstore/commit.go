package runstore

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"

	"greatminds/internal/durable"
	"greatminds/internal/refusal"
)

// journaled is the disk's side of an open store. One goroutine owns it.
type journaled struct {
	// log is nil where the next commit has to begin a journal.
	log *durable.Log
	// journalThere tells that a journal file may exist.
	journalThere bool
	meta         meta
	// snapshotThere tells that state.json holds everything up to meta.LastSequence, namesSafe that
	// its name is on the disk: what an earlier process renamed before it was killed need not be.
	snapshotThere, namesSafe bool
	// last is the last durable transaction.
	last uint64
	// foldAt is the length beyond which the journal is folded into a snapshot.
	foldAt int64
	// nextSegment and nextIndex are the numbers of the next new files of the history.
	nextSegment, nextIndex uint32
	// mergeLimit bounds how many entries of older indexes a roll-over takes into its own.
	mergeLimit uint64
	// freshSegment is set where no line may follow in the last segment.
	freshSegment bool
}

// commits is the committer: it ends when the store is closing and nothing waits.
func (s *Store) commits() {
	defer close(s.ended)
	for range s.wake {
		for {
			b, over := s.take()
			if over {
				return
			}
			if b == nil {
				break
			}
			s.commit(b)
		}
	}
}

// take returns the next batch. Transactions that come from now on form another one.
func (s *Store) take() (b *batch, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, s.waiting = s.waiting, nil
	s.flying = b
	return b, b == nil && s.closing
}

func (s *Store) commit(b *batch) {
	before := &s.View().h
	b.group.events = eventsAfter(b.state.events, before.lastEvent)
	if d := b.state.discardedThrough(); d != before.discardedThrough() {
		b.group.discarded = d
	}
	if err := s.append(encodeGroup(&b.group, b.state)); err != nil {
		s.refuse(b, s.judge(err))
		return
	}
	s.publish(b)
	if s.o.foldAlways || s.disk.log.Size() > s.disk.foldAt {
		s.fold()
	}
}

// append writes one line to the journal, which it begins where there is none.
func (s *Store) append(line []byte) error {
	if s.disk.log == nil {
		if err := s.beginJournal(); err != nil {
			return err
		}
	}
	return s.disk.log.Append(line)
}

// publish makes a batch's state the durable one.
func (s *Store) publish(b *batch) {
	s.disk.last = b.group.last
	s.durable.Store(newView(b.state))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying = nil
	close(s.changed)
	s.changed = make(chan struct{})
	close(b.done)
}

// judge says what a failed write means for its group, after mending what can be mended.
func (s *Store) judge(err error) error {
	if !errors.Is(err, durable.ErrPoisoned) {
		// Cut back, or never begun: the journal is as before.
		return notKept(err)
	}
	s.log.Warn("journal given up, a new snapshot takes its place", slog.Any("err", err))
	if healing := s.heal(); healing != nil {
		return &refusal.Refusal{Code: refusal.CodeStoreUncertain, Err: errors.Join(err, healing),
			What:   "the change may or may not have been kept: " + err.Error(),
			Remedy: "free space or mend the disk, restart coordd, look at `greatminds run status` before you repeat anything"}
	}
	return notKept(err)
}

func notKept(err error) error {
	return &refusal.Refusal{Code: refusal.CodeStoreWrite, Err: err, What: "nothing was changed, for the run store could not be written: " + err.Error(),
		Remedy: "free space or mend the disk, then repeat the request"}
}

// heal gives up the journal: a new snapshot of the last durable state, of a generation that
// makes whatever the journal holds void. Where that fails too, the store has failed.
func (s *Store) heal() error {
	s.dropJournal()
	err := s.writeSnapshot(nil)
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = &refusal.Refusal{Code: refusal.CodeStoreFailed, Err: err, What: "the run store can no longer be written: " + err.Error(),
		Remedy: "free space or mend the disk, then start coordd again; everything acknowledged is kept"}
	close(s.failed)
	return err
}

// refuse undoes a batch and every transaction that was built on it.
func (s *Store) refuse(b *batch, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Error("transactions refused", slog.Any("err", err))
	s.tip, s.tipSeq, s.flying = s.View().h.clipped(), s.disk.last, nil
	for _, lost := range []*batch{b, s.waiting} {
		if lost != nil {
			lost.err = err
			close(lost.done)
		}
	}
	s.waiting = nil
}

// fold replaces snapshot and journal by a new snapshot and an empty journal.
func (s *Store) fold() {
	err := s.writeSnapshot(s.rollOver())
	switch {
	case err == nil:
		if err := s.beginJournal(); err != nil {
			s.log.Warn("new journal not begun, the next change tries again", slog.Any("err", err))
		}
	case errors.Is(err, durable.ErrUncertain):
		// state.json may be the new one by now; a line in the old journal would be void.
		if err := s.heal(); err != nil {
			s.log.Error("run store failed", slog.Any("err", err))
		}
	default:
		s.disk.foldAt = 2 * s.disk.log.Size()
		s.log.Warn("snapshot not written, the journal goes on", slog.Any("err", err))
	}
}

// writeSnapshot puts the durable state into a new state.json of the next generation. On
// success the journal, if any, is void and dropped. After an uncertain failure either file may
// stand there, so nothing may be written to the old journal any more: the caller tries again,
// from the same state, or gives up.
//
// With a roll-over, which may be nil, the snapshot is of the state without what has left, and lists
// where it is; then that state becomes the durable one.
func (s *Store) writeSnapshot(r *rollOver) error {
	h := &s.View().h
	if r != nil {
		h = r.state
	}
	m := s.disk.meta
	m.Generation++
	m.LastSequence = s.disk.last
	m.History = h.history.listed(h.totals)
	data := encodeSnapshot(h, m)
	if err := s.o.Disk.Replace(s.path(snapshotName), data, 0o600); err != nil {
		s.abandon(r, err)
		return err
	}
	s.dropJournal()
	if r != nil {
		s.adopt(r)
	}
	s.disk.meta, s.disk.snapshotThere, s.disk.namesSafe = m, true, true
	s.disk.foldAt = max(s.o.MinJournal, int64(len(data)))
	return nil
}

func (s *Store) dropJournal() {
	if s.disk.log == nil {
		return
	}
	if err := s.disk.log.Close(); err != nil {
		s.log.Warn("journal not closed", slog.Any("err", err))
	}
	s.disk.log = nil
}

// beginJournal puts an empty journal of the snapshot's generation in place.
func (s *Store) beginJournal() error {
	if !s.disk.snapshotThere {
		// Whoever made our folder may have been killed before its name was on the disk.
		if err := s.o.Disk.SyncDir(filepath.Dir(s.o.Dir)); err != nil {
			return err
		}
		if err := s.writeSnapshot(nil); err != nil {
			return err
		}
	}
	if !s.disk.namesSafe {
		if err := s.o.Disk.SyncDir(s.o.Dir); err != nil {
			return err
		}
		s.disk.namesSafe = true
	}
	s.disk.journalThere = true
	s.keepBase()
	head := encodeHeader(header{Generation: s.disk.meta.Generation, After: s.disk.meta.LastSequence, ProjectID: s.View().h.projectID})
	if err := s.o.Disk.Replace(s.path(journalName), head, 0o600); err != nil {
		return err
	}
	log, err := s.o.Disk.OpenLog(s.path(journalName), 0o600)
	if err != nil {
		return err
	}
	if log.Size() != int64(len(head)) {
		return errors.Join(errors.New("the new journal is not empty: somebody else writes the store"), log.Close())
	}
	s.disk.log = log
	return nil
}

func (s *Store) path(name string) string { return filepath.Join(s.o.Dir, name) }

// rest leaves state.json alone on the disk, with everything in it.
func (s *Store) rest() error {
	defer s.dropJournal()
	if s.disk.snapshotThere && s.disk.last == s.disk.meta.LastSequence && !s.disk.journalThere {
		return nil
	}
	if s.disk.last != s.disk.meta.LastSequence {
		if err := s.writeSnapshot(s.rollOver()); err != nil {
			return &refusal.Refusal{Code: refusal.CodeStoreWrite, Err: err, What: "no snapshot at the end: " + err.Error(),
				Remedy: "free space or mend the disk; everything acknowledged is kept, the next start takes the journal up"}
		}
	}
	if !s.disk.journalThere {
		return nil
	}
	s.dropJournal()
	s.o.Disk.Discard(s.path(baseName)) // the removal of the journal syncs the folder
	if err := s.o.Disk.Remove(s.path(journalName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &refusal.Refusal{Code: refusal.CodeStoreWrite, Err: err, What: "the empty journal was not removed: " + err.Error(),
			Remedy: "nothing is lost; the next start removes it"}
	}
	return nil
}
