package runstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// keepUnknown copies a segment beside the snapshot before what it holds from a byte on is given up,
// where a bundle in that is not known. Whoever finds that an old snapshot was put back can then take
// the newer one up again, with the copies in place of the segments.
func (s *Store) keepUnknown(path string, from int64) error {
	if _, ok := segmentNumber(filepath.Base(path)); !ok {
		return nil
	}
	if st, err := os.Lstat(path); err != nil || !st.Mode().IsRegular() || st.Size() <= from {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if s.allKnown(data[min(from, int64(len(data))):]) {
		return nil
	}
	aside := s.path(fmt.Sprintf("history-aside-%d-%s", s.disk.meta.Generation, filepath.Base(path)))
	if err := settleKept(s.o.Disk, aside, data); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s is there already, with other contents: %w", aside, err)
		}
		return err
	}
	s.log.Warn("the history holds finished work that the snapshot does not know, as after an older snapshot was put back; set aside",
		slog.String("segment", path), slog.String("file", aside))
	return nil
}

// allKnown tells whether the state knows everything that a part of a segment holds. A line that does
// not check is what a killed process was writing.
func (s *Store) allKnown(lines []byte) bool {
	for line := range bytes.Lines(lines) {
		if b, err := decodeBundle(line); err == nil && !s.View().h.knows(b) {
			return false
		}
	}
	return true
}

// knows tells whether everything in a bundle is over in h too, or in its history. What cannot be
// looked up is not known.
func (h *hot) knows(b *hot) bool {
	all := true
	past := func(kind, id string) bool {
		if h.history == nil {
			return false
		}
		places, err := h.history.places(kind, id, false)
		return err == nil && len(places) > 0
	}
	putAll(b.runs, func(r *Run) {
		if now, hot := h.runs.get(string(r.ID)); hot {
			all = all && now.State.Terminal()
			return
		}
		all = all && past(keyRun, string(r.ID))
	})
	putAll(b.maintenance, func(o *Operation) {
		if now := h.operation(o.ID); now != nil {
			all = all && !now.Open()
			return
		}
		all = all && past(keyOperation, string(o.ID))
	})
	putAll(b.requests, func(r *Request) {
		_, hot := h.requests.get(r.ID)
		all = all && (hot || past(keyRequest, r.ID))
	})
	return all
}
