package runstore

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// RebuildIndex makes the index of the history in o.Dir again from its segments, for the holder of
// the project's lease and while the store is not open. It returns how many lines the segments hold.
//
// It refuses what Open refuses. Every line is read and checked. One that is damaged is refused with its file and byte, and nothing
// is changed. The snapshot is written again with the new index; a journal beside it stays good.
func RebuildIndex(o Options) (lines int, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	f, err := readFiles(o.Dir)
	if err != nil {
		return 0, err
	}
	// What Open refuses is refused here: writing the snapshot again would make it fit.
	if _, err := f.replay(); err != nil || f.snapshot == nil {
		return 0, err
	}
	snap, err := decodeSnapshot(f.snapshot)
	if err != nil {
		return 0, f.snapshotRefusal(err)
	}
	listed := snap.meta.History
	if listed == nil {
		return 0, nil
	}
	dir := filepath.Join(o.Dir, historyName)
	var keys []keyEntry
	var ends []endEntry
	for _, l := range listed.Segments {
		number, _ := segmentNumber(l.Name)
		err := readSegment(dir, l, func(text []byte, at int) error {
			b, err := decodeBundle(text)
			if err != nil {
				return err
			}
			k, e := b.entries(place{number, uint32(at), uint32(len(text))})
			keys, ends, lines = append(keys, k...), append(ends, e...), lines+1
			return nil
		})
		if err != nil {
			return 0, historyRefusal(err)
		}
	}
	s := &Store{o: o, log: o.Log}
	s.durable.Store(newView(&hot{history: openHistory(o.Dir, listed)}))
	// What is not listed is left for the next start, which knows the journal too.
	if err := s.tidyHistory(false); err != nil {
		return 0, notKept(err)
	}
	old := listed.Indexes
	x, err := writeIndex(o.Disk, dir, s.disk.nextIndex, keys, ends, nil)
	if err != nil {
		return 0, notKept(err)
	}
	listed.Indexes = []indexListed{x.listed}
	if err := o.Disk.Replace(filepath.Join(o.Dir, snapshotName), encodeSnapshot(snap.state, snap.meta), 0o600); err != nil {
		return 0, notKept(err)
	}
	for _, l := range old {
		if err := o.Disk.Remove(filepath.Join(dir, l.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			o.Log.Warn("a replaced index file stays until the next start", slog.Any("err", err))
		}
	}
	return lines, nil
}

// readSegment visits every line of a segment but its header, which it checks.
func readSegment(dir string, l segmentListed, visit func(text []byte, at int) error) error {
	path := filepath.Join(dir, l.Name)
	bad := func(off int64, err error) error { return &historyFault{path: path, off: off, what: err.Error()} }
	data, err := os.ReadFile(path)
	if err != nil {
		return bad(0, err)
	}
	if int64(len(data)) < l.Length {
		return bad(int64(len(data)), errors.New("the segment ends before its valid length"))
	}
	data = data[:l.Length]
	number, _ := segmentNumber(l.Name)
	for at := 0; at < len(data); {
		end := bytes.IndexByte(data[at:], '\n') + 1
		if end == 0 {
			return bad(int64(at), errors.New("no end of line"))
		}
		if at == 0 {
			err = checkSegmentHeader(data[:end], number)
		} else {
			err = visit(data[at:at+end], at)
		}
		if err != nil {
			return bad(int64(at), err)
		}
		at += end
	}
	return nil
}

func checkSegmentHeader(text []byte, number uint32) error {
	object, err := openLine(text[:len(text)-1], 0)
	if err != nil {
		return err
	}
	var h segmentHeader
	if err := decode(object.raw, object.off, &h); err != nil {
		return err
	}
	if h.Format != segmentFormat || h.Number != uint64(number) {
		return faultAt(object.off, "the header of segment %d in format %q", h.Number, h.Format)
	}
	return nil
}

// CheckHistory reads the whole history that the view goes on in: the checksums of every block of its
// indexes and of every line of its segments. It returns a refusal with the first thing that is damaged.
func (v *View) CheckHistory() error {
	h := v.h.history
	if h == nil {
		return nil
	}
	for _, x := range h.indexes {
		if err := x.check(); err != nil {
			return historyRefusal(err)
		}
	}
	for _, l := range h.segments {
		err := readSegment(h.dir, l, func(text []byte, _ int) error {
			if _, ok := unseal(text[:len(text)-1]); !ok {
				return errors.New("the line's checksum does not fit")
			}
			return nil
		})
		if err != nil {
			return historyRefusal(err)
		}
	}
	return nil
}
