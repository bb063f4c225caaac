package runstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"greatminds/internal/refusal"
)

const defaultMinJournal = 1 << 20

// startMerge is how large an index file a start merges at most, in entries.
const startMerge = 1 << 16

// Open opens the store in o.Dir for the holder of the project's lease, who keeps it until
// after Close. A folder without a store is an empty one; nothing is written before the first
// change.
//
// It plays the journal of a store that was not closed, sets aside a tail that was never
// acknowledged, and writes a new snapshot before anything else. A store of the original is taken
// over. It refuses, with status 4 and without changing a byte: what does not parse or fit together,
// with the file, the byte and a way out; a newer version's store; a folder of another user.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MinJournal == 0 {
		o.MinJournal = defaultMinJournal
	}
	if o.MaxEvents != 0 && !validLimit(o.MaxEvents) {
		return nil, limitRefusal(o.MaxEvents)
	}
	switch {
	case o.EagerHistory:
		o.rules = eagerRules
	case o.rules == (rollRules{}):
		o.rules = ordinaryRules
	}
	if err := prepareDir(o); err != nil {
		return nil, err
	}
	f, err := readFiles(o.Dir)
	if err != nil {
		return nil, err
	}
	r, err := f.replay()
	if err != nil {
		return nil, err
	}
	if r.original {
		if err := keepOriginal(o, f, r); err != nil {
			return nil, err
		}
	}
	s := newStore(o, r)
	s.disk.snapshotThere, s.disk.journalThere = f.snapshot != nil, f.journal != nil
	if err := s.recover(f, r); err != nil {
		s.dropJournal()
		return nil, err
	}
	go s.commits()
	if o.MaxEvents == 0 || o.MaxEvents == s.View().EventRetention().MaxEvents && s.View().h.retention != nil {
		return s, nil
	}
	if err := s.Update(ctx, func(tx *Tx) error { return tx.SetEventLimit(o.MaxEvents) }); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

func newStore(o Options, r *replayed) *Store {
	if r.state.projectID == "" {
		r.state.projectID = NewID()
	}
	s := &Store{o: o, log: o.Log, tip: r.state, tipSeq: r.last, failed: make(chan struct{}), ended: make(chan struct{}),
		wake: make(chan struct{}, 1), changed: make(chan struct{})}
	s.durable.Store(newView(r.state))
	s.disk.mergeLimit = maxIndexCount
	s.disk.meta, s.disk.last, s.disk.foldAt = r.meta, r.last, o.MinJournal
	return s
}

// recover makes what was found the only truth on the disk: what the page cache shows after a
// crash need not be there, so a journal is folded before anything is built on it.
func (s *Store) recover(f *files, r *replayed) error {
	if r.original {
		return s.finishTakeOver()
	}
	if !r.fits {
		s.log.Warn("snapshot taken as it stands, its checksum does not fit", slog.String("file", f.path(snapshotName)))
	}
	if r.superseded > 0 {
		s.log.Info("journal of an older generation ignored", slog.Int("groups", r.superseded))
	}
	if r.tailAt >= 0 {
		if err := s.setAside(f.journal[r.tailAt:], r.tailAt); err != nil {
			return err
		}
	}
	if err := s.tidyHistory(r.fits); err != nil {
		s.log.Warn("the history's folder was not tidied, the next start tries again", slog.Any("err", err))
	}
	if f.journal == nil {
		return nil
	}
	// A large merge would keep everybody waiting; a later roll-over makes it.
	s.disk.mergeLimit = startMerge
	err := s.writeSnapshot(s.rollOver())
	s.disk.mergeLimit = maxIndexCount
	if err == nil {
		err = s.beginJournal()
	}
	if err != nil {
		return &refusal.Refusal{Code: refusal.CodeStoreWrite, Err: err, What: "the journal of the last time could not be folded into a snapshot: " + err.Error(),
			Remedy: "free space or mend the disk, then start again; nothing is lost"}
	}
	s.log.Info("journal folded into a snapshot", slog.Int("groups", r.groups), slog.Uint64("last_sequence", r.last))
	return nil
}

// setAside keeps what was never acknowledged, for whoever wants to look at it.
func (s *Store) setAside(tail []byte, at int) error {
	name := fmt.Sprintf("journal-tail-%d-%d.jsonl", s.disk.meta.Generation, at)
	err := s.o.Disk.Create(s.path(name), tail, 0o600)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return &refusal.Refusal{Code: refusal.CodeStoreWrite, Err: err, What: "the journal's unfinished tail could not be set aside: " + err.Error(),
			Remedy: "free space or mend the disk, then start again; nothing is lost"}
	}
	s.log.Warn("journal ends in a group that was never acknowledged; set aside", slog.String("file", s.path(name)),
		slog.Int("offset", at), slog.Int("bytes", len(tail)))
	return nil
}

// Close carries what waits to the disk, writes the snapshot and removes the journal, so that
// state.json alone is the whole hot state. It returns when the committer has ended, whatever
// becomes of the rest. A second Close does nothing. Ctx is there for symmetry: what is
// waited for is the disk alone.
func (s *Store) Close(context.Context) error {
	s.mu.Lock()
	again := s.closing
	s.closing = true
	s.mu.Unlock()
	s.rouse()
	<-s.ended
	if again {
		return nil
	}
	if err := s.Err(); err != nil {
		s.dropJournal()
		return err
	}
	return s.rest()
}

// prepareDir makes the folder where it is missing, and refuses one of another user: who owns
// it can change what we hold true.
func prepareDir(o Options) error {
	parent := filepath.Dir(o.Dir)
	if filepath.Base(o.Dir) == ".runtime" {
		if err := checkOwner(parent); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err := checkOwner(o.Dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := o.Disk.MkdirAll(o.Dir, 0o700); err != nil {
		return unreadable(o.Dir, err)
	}
	return nil
}

func checkOwner(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return unreadable(dir, err)
	}
	if !st.IsDir() {
		return unreadable(dir, syscall.ENOTDIR)
	}
	return ownedByUs(dir, st)
}

func ownedByUs(path string, st os.FileInfo) error {
	if uid := st.Sys().(*syscall.Stat_t).Uid; int(uid) != os.Geteuid() {
		return refusal.New(refusal.CodeForeignRuntime, "run greatminds as the user who owns it, or give it to this one with chown",
			"%s belongs to uid %d, and this process runs as uid %d", path, uid, os.Geteuid())
	}
	return nil
}

func unreadable(path string, err error) error {
	return &refusal.Refusal{Code: refusal.CodeStoreUnreadable, Err: err, What: fmt.Sprintf("%s: %v", path, err),
		Remedy: "mend the path or its permissions, then try again"}
}

// openFile opens one file of the store for reading; nil where it does not exist.
func openFile(path string) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("no regular file")
	}
	if err != nil {
		return nil, nil, errors.Join(unreadable(path, err), f.Close())
	}
	if err := ownedByUs(path, st); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, st, nil
}

// readFile returns a file's bytes, never nil where it exists.
func readFile(path string) ([]byte, error) {
	f, _, err := openFile(path)
	if f == nil {
		return nil, err
	}
	defer f.Close()
	return readAll(path, f)
}

func readAll(path string, f *os.File) ([]byte, error) {
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}

func readFiles(dir string) (*files, error) {
	f := &files{dir: dir}
	var err error
	if f.snapshot, err = readFile(f.path(snapshotName)); err != nil {
		return nil, err
	}
	if f.journal, err = readFile(f.path(journalName)); err != nil {
		return nil, err
	}
	f.past = hasHistory(dir)
	return f, nil
}
