package runstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"greatminds/internal/durable"
)

// tidyHistory makes the folder what the snapshot says: it cuts off bytes beyond the extents, and
// removes files that are not listed. They come from roll-overs that no snapshot has made valid, so
// that the state holds what is in them; where it does not, an older snapshot was put back, and they
// are set aside. Of a snapshot that somebody else has written only the numbers of the files are taken.
func (s *Store) tidyHistory(ours bool) error {
	h := s.View().h.history
	s.disk.nextSegment, s.disk.nextIndex = 1, 1
	listed := h.names()
	for name := range listed {
		s.disk.countFile(name)
	}
	entries, err := os.ReadDir(s.path(historyName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if ours && len(entries) > len(listed) {
		// An earlier process may have renamed the snapshot and been killed before its name was on the
		// disk. The one before it lists other index files: none goes while it could come back.
		if err := s.o.Disk.SyncDir(s.o.Dir); err != nil {
			return err
		}
	}
	for _, e := range entries {
		s.disk.countFile(e.Name())
		length, known := listed[e.Name()]
		path := filepath.Join(s.path(historyName), e.Name())
		var failed error
		switch {
		case !ours:
		case !known:
			if failed = s.keepUnknown(path, 0); failed == nil {
				failed = s.o.Disk.Remove(path)
			}
		case length > 0:
			if failed = s.keepUnknown(path, length); failed == nil {
				failed = cutTo(s.o.Disk, path, length)
			}
		}
		err = errors.Join(err, failed)
	}
	return err
}

// names returns the listed files, segments with their lengths.
func (h *history) names() map[string]int64 {
	all := map[string]int64{}
	if h == nil {
		return all
	}
	for _, l := range h.segments {
		all[l.Name] = l.Length
	}
	for _, x := range h.indexes {
		all[x.listed.Name] = 0
	}
	return all
}

// countFile keeps the numbers of new files above those in use.
func (d *journaled) countFile(name string) {
	if n, ok := segmentNumber(name); ok {
		d.nextSegment = max(d.nextSegment, n+1)
	}
	if n, ok := indexNumber(name); ok {
		d.nextIndex = max(d.nextIndex, n+1)
	}
}

// cutTo cuts a segment to its valid length. One that is shorter is damaged, which every look-up
// in it tells.
func cutTo(disk *durable.Disk, path string, length int64) error {
	if st, err := os.Lstat(path); err != nil || st.Size() <= length || !st.Mode().IsRegular() {
		return nil
	}
	log, err := disk.OpenLog(path, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(log.Truncate(length), log.Close())
}
