package runstore

import (
	"os"

	"greatminds/internal/refusal"
)

// readTries bounds Read. Each try fails only when a snapshot was written during it, which
// takes far longer than a try.
const readTries = 100

// Read returns the last durable state of the store in dir, without the lease and without
// writing, also while another process writes the store. A missing store is an empty view. It
// refuses what Open refuses, but leaves an unfinished tail of the journal alone: it may be a
// line that is being written.
func Read(dir string) (*View, error) {
	for range readTries {
		r, err := readOnce(dir, nil)
		if err != nil {
			return nil, err
		}
		if r != nil {
			return newView(r.state), nil
		}
	}
	return nil, refusal.New(refusal.CodeStoreBusy, "try again", "%s changed during each of %d attempts to read it", dir, readTries)
}

// readOnce reads the snapshot, the journal, and then looks whether the snapshot is still the
// same file: otherwise the journal may go on from another one. It returns nil to try again.
//
// The first snapshot stays open meanwhile, so that no other file can get its inode. Tests do
// between the two files what another process might.
func readOnce(dir string, between func()) (*replayed, error) {
	f := &files{dir: dir}
	snap, before, err := openFile(f.path(snapshotName))
	if err != nil {
		return nil, err
	}
	if snap != nil {
		defer snap.Close()
		if f.snapshot, err = readAll(f.path(snapshotName), snap); err != nil {
			return nil, err
		}
	}
	if between != nil {
		between()
	}
	if f.journal, err = readFile(f.path(journalName)); err != nil {
		return nil, err
	}
	f.past = hasHistory(dir)
	same := func() bool {
		after, err := os.Lstat(f.path(snapshotName))
		if snap == nil {
			return os.IsNotExist(err)
		}
		return err == nil && os.SameFile(before, after)
	}
	if !same() {
		return nil, nil
	}
	r, err := f.replay()
	// An index file goes when a newer snapshot lists another one in its place.
	if err == nil && !r.state.history.complete() && !same() {
		return nil, nil
	}
	return r, err
}
