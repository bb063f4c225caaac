package runstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
)

// A file that stands where the next roll-over would begin one belongs to somebody: it stays, and the
// roll-over comes later.
func TestARollOverRemovesNoFileThatItDidNotMake(t *testing.T) {
	for _, name := range []string{"runs-%", "index-%"} {
		dir := storeDir(t)
		s := openStore(t, rolling(dir, nil))
		about := &subjects{}
		for i := range 4 {
			about.lived(t, s, i)
		}
		path := filepath.Join(dir, historyName, ahead(t, dir, name))
		writeText(t, path, "put back by a person")
		for i := range 12 {
			about.lived(t, s, 4+i)
		}
		if got := readText(t, path); got != "put back by a person" {
			t.Errorf("%s holds %q", path, got)
		}
		if err := s.View().HistoryFault(); err != nil {
			t.Error(err)
		}
		if after := ahead(t, dir, name); after <= filepath.Base(path) {
			t.Errorf("the roll-overs came to %s only", after)
		}
		if got := s.View().Totals()[Completed]; got != 16 {
			t.Errorf("%d runs, want 16", got)
		}
		closeStore(t, s)
	}
}

// ahead is a name that a roll-over will come to soon, and not in this moment.
func ahead(t *testing.T, dir, name string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, historyName))
	if err != nil {
		t.Fatal(err)
	}
	number, named := segmentNumber, segmentName
	if name == "index-%" {
		number, named = indexNumber, indexName
	}
	var last uint32
	for _, e := range entries {
		if n, ok := number(e.Name()); ok {
			last = max(last, n)
		}
	}
	return named(last + 3)
}

// Where the folder cannot be read, new files still get numbers that no listed one has.
func TestNumbersAreKnownWhereTheFolderCannotBeRead(t *testing.T) {
	dir, _, _ := past(t, 8)
	v, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{o: options(dir, nil)}
	s.durable.Store(v)
	if err := os.Rename(dir+"/history", dir+"/moved"); err != nil {
		t.Fatal(err)
	}
	writeText(t, dir+"/history", "no folder")
	if err := s.tidyHistory(true); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
	for name := range v.h.history.names() {
		if n, ok := segmentNumber(name); ok && n >= s.disk.nextSegment {
			t.Errorf("the next segment is %d, and %s is there", s.disk.nextSegment, name)
		}
		if n, ok := indexNumber(name); ok && n >= s.disk.nextIndex {
			t.Errorf("the next index is %d, and %s is there", s.disk.nextIndex, name)
		}
	}
}

// A process that was killed between the snapshot's rename and its sync leaves a name that a power cut
// takes back. Until it is on the disk the index files of the snapshot before must stay.
func TestNothingIsRemovedBeforeTheSnapshotsNameIsSafe(t *testing.T) {
	dir, _, _ := past(t, 4)
	writeText(t, filepath.Join(dir, historyName, indexName(999)), "of the snapshot before")
	fd := faultdisk.New()
	s := openStore(t, options(dir, fd))
	synced := false
	for _, step := range fd.Steps() {
		synced = synced || step.Op == durable.OpSyncDir && step.Path == dir
		if step.Op == durable.OpUnlink && strings.HasSuffix(step.Path, ".idx") && !synced {
			t.Errorf("%v comes before the sync of the folder", step)
		}
	}
	if !synced {
		t.Error("the folder was not synced")
	}
	closeStore(t, s)
}
