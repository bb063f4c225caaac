package runstore

import (
	"errors"
	"fmt"
	"path/filepath"

	"greatminds/internal/durable"
)

const (
	// segmentRoom is the length beyond which a new segment begins.
	segmentRoom = 8 << 20
	// maxSegment bounds a segment: places count its bytes in 32 bits.
	maxSegment = 1 << 31
	// segmentChunk is how many bytes of lines are written and synced together.
	segmentChunk = 1 << 20
)

func segmentName(number uint32) string { return fmt.Sprintf("runs-%06d.jsonl", number) }

func segmentNumber(name string) (number uint32, ok bool) {
	_, err := fmt.Sscanf(name, "runs-%d.jsonl", &number)
	return number, err == nil && segmentName(number) == name
}

// segmentHeader is the first line of a segment.
type segmentHeader struct {
	Format    string  `json:"format"`
	Number    uint64  `json:"number"`
	ProjectID string  `json:"project_id"`
	Extra     Members `json:"-"`
}

const segmentFormat = "greatminds-go history"

// segmentWriter appends lines to the newest segment, and begins new ones.
type segmentWriter struct {
	disk    *durable.Disk
	dir     string
	project string
	room    int64
	next    uint32 // the number of the next new segment

	log    *durable.Log
	number uint32
	chunk  []byte

	list []segmentListed // all segments with their new lengths
	made []string        // the files that this writer has made
}

// goOn takes up the last listed segment where it has room and is as it should be.
func (w *segmentWriter) goOn() {
	if len(w.list) == 0 {
		return
	}
	last := w.list[len(w.list)-1]
	if last.Length >= w.room {
		return
	}
	log, err := w.disk.OpenLog(filepath.Join(w.dir, last.Name), 0o600)
	if err != nil {
		return
	}
	if log.Size() != last.Length {
		_ = log.Close() // only read so far
		return
	}
	w.log = log
	w.number, _ = segmentNumber(last.Name)
}

// add appends one line and returns its place.
func (w *segmentWriter) add(line []byte) (place, error) {
	if len(line) > maxSegment/4 {
		return place{}, fmt.Errorf("a record of %d bytes", len(line))
	}
	if w.log != nil && w.log.Size()+int64(len(w.chunk)) >= w.room {
		if err := w.finish(); err != nil {
			return place{}, err
		}
	}
	if w.log == nil {
		if err := w.begin(); err != nil {
			return place{}, err
		}
	}
	p := place{w.number, uint32(w.log.Size() + int64(len(w.chunk))), uint32(len(line))}
	w.chunk = append(w.chunk, line...)
	if len(w.chunk) >= segmentChunk {
		return p, w.flush()
	}
	return p, nil
}

// begin makes a new segment.
func (w *segmentWriter) begin() error {
	w.number = w.next
	w.next++
	path := filepath.Join(w.dir, segmentName(w.number))
	log, err := w.disk.OpenLog(path, 0o600)
	if err != nil {
		return err
	}
	if log.Size() != 0 {
		return errors.Join(fmt.Errorf("%s: %w", path, errNotOurs), log.Close())
	}
	w.log, w.made = log, append(w.made, path)
	w.chunk = append(w.chunk, seal(encode(&segmentHeader{Format: segmentFormat, Number: uint64(w.number), ProjectID: w.project})[1:])...)
	w.list = append(w.list, segmentListed{Name: segmentName(w.number)})
	return nil
}

func (w *segmentWriter) flush() error {
	if w.log == nil || len(w.chunk) == 0 {
		return nil
	}
	if err := w.log.Append(w.chunk); err != nil {
		return err
	}
	w.chunk = w.chunk[:0]
	w.list[len(w.list)-1].Length = w.log.Size()
	return nil
}

// finish brings what was added to the disk and closes the segment.
func (w *segmentWriter) finish() error {
	err := w.flush()
	if w.log != nil {
		err = errors.Join(err, w.log.Close())
		w.log = nil
	}
	return err
}
