package runstore

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"greatminds/internal/durable"
)

// keyCursor moves over the keys of one index file, in their order.
type keyCursor struct {
	x     *indexFile
	at    int64
	block []byte
	entry keyEntry
	err   error
}

func (c *keyCursor) next() bool {
	if c.err != nil || c.at >= int64(c.x.listed.Keys) {
		return false
	}
	if c.at%keysPerBlock == 0 {
		if c.block, c.err = c.x.block(1 + c.at/keysPerBlock); c.err != nil {
			return false
		}
	}
	c.entry = c.x.key(c.block, int(c.at%keysPerBlock))
	c.at++
	return true
}

func (e keyEntry) compare(o keyEntry) int {
	return cmp.Or(cmp.Compare(e.hash, o.hash), e.at.compare(o.at))
}

// listedBefore is the order of the ends in a file: of equal ones the newest line comes first.
func (e endEntry) listedBefore(o endEntry) int { return cmp.Or(e.newestFirst(o), o.at.compare(e.at)) }

// source is one of the sorted rows that a merge reads. Next moves on, and tells whether there is
// an entry.
type source[E any] struct {
	next  func() bool
	entry func() E
	err   func() error
}

func slicesSource[E any](all []E) source[E] {
	i := -1
	return source[E]{next: func() bool { i++; return i < len(all) }, entry: func() E { return all[i] }, err: func() error { return nil }}
}

// merged visits the entries of all sources in order.
func merged[E any](sources []source[E], order func(a, b E) int, visit func(E) error) error {
	var live []source[E]
	advance := func(s source[E]) error {
		if s.next() {
			live = append(live, s)
		}
		return s.err()
	}
	for _, s := range sources {
		if err := advance(s); err != nil {
			return err
		}
	}
	for len(live) > 0 {
		best := 0
		for i := range live {
			if order(live[i].entry(), live[best].entry()) < 0 {
				best = i
			}
		}
		s := live[best]
		if err := visit(s.entry()); err != nil {
			return err
		}
		live = slices.Delete(live, best, best+1)
		if err := advance(s); err != nil {
			return err
		}
	}
	return nil
}

// indexWriter gives out the blocks of an index file one after the other.
type indexWriter struct {
	id     identity
	block  []byte
	number int64
	emit   func(block []byte) error
}

// add appends one entry to the block under way, which holds room bytes of entries.
func (w *indexWriter) add(entry []byte, room int) error {
	if len(w.block)+len(entry) > room {
		if err := w.close(); err != nil {
			return err
		}
	}
	w.block = append(w.block, entry...)
	return nil
}

// close gives out the block under way, where there is one.
func (w *indexWriter) close() error {
	if len(w.block) == 0 {
		return nil
	}
	full := append(w.block, make([]byte, blockSize-len(w.block))...)
	sealBlock(full, w.id, w.number)
	w.number, w.block = w.number+1, w.block[:0]
	return w.emit(full)
}

// encodeIndex gives out the blocks of an index file of the entries in keys and ends, which it sorts,
// and of all entries of old. It holds a block of each at a time.
func encodeIndex(listed indexListed, keys []keyEntry, ends []endEntry, old []*indexFile, emit func(block []byte) error) error {
	slices.SortFunc(keys, keyEntry.compare)
	slices.SortFunc(ends, endEntry.listedBefore)
	keySources, endSources := []source[keyEntry]{slicesSource(keys)}, []source[endEntry]{slicesSource(ends)}
	for _, x := range old {
		k, e := &keyCursor{x: x}, x.from(0)
		keySources = append(keySources, source[keyEntry]{k.next, func() keyEntry { return k.entry }, func() error { return k.err }})
		endSources = append(endSources, source[endEntry]{e.next, func() endEntry { return e.entry }, func() error { return e.err }})
	}
	w := &indexWriter{id: listed.identity(), block: make([]byte, 0, blockSize), emit: emit}
	head := binary.LittleEndian.AppendUint64([]byte(indexMagic), listed.Keys)
	head = append(binary.LittleEndian.AppendUint64(head, listed.Ends), w.id[:]...)
	if err := errors.Join(w.add(head, blockRoom), w.close()); err != nil {
		return err
	}
	entry := make([]byte, 0, endSize)
	err := merged(keySources, keyEntry.compare, func(e keyEntry) error {
		entry = appendPlace(binary.LittleEndian.AppendUint64(entry[:0], e.hash), e.at)
		return w.add(entry, keysPerBlock*keySize)
	})
	if err = errors.Join(err, w.close()); err != nil {
		return err
	}
	err = merged(endSources, endEntry.listedBefore, func(e endEntry) error {
		entry = binary.LittleEndian.AppendUint64(entry[:0], uint64(e.ended))
		entry = appendPlace(binary.LittleEndian.AppendUint64(entry, e.hash), e.at)
		return w.add(entry, endsPerBlock*endSize)
	})
	return errors.Join(err, w.close())
}

// newListed is how a new index file of that many entries will be listed.
func newListed(number uint32, keys, ends int, old []*indexFile) indexListed {
	var id identity
	rand.Read(id[:]) // never fails: the runtime ends the process instead
	l := indexListed{Name: indexName(number), Keys: uint64(keys), Ends: uint64(ends), ID: hex.EncodeToString(id[:])}
	for _, x := range old {
		l.Keys, l.Ends = l.Keys+x.listed.Keys, l.Ends+x.listed.Ends
	}
	return l
}

// errNotOurs says that a file stands where a new one should, and that whoever met it has not made it.
var errNotOurs = errors.New("it is there already")

// writeIndex makes a new index file of keys, ends and everything in old, and opens it. It counts
// for nothing until a snapshot lists it, so that it may grow in its place, a synced piece at a time.
func writeIndex(disk *durable.Disk, dir string, number uint32, keys []keyEntry, ends []endEntry, old []*indexFile) (*indexFile, error) {
	listed := newListed(number, len(keys), len(ends), old)
	if listed.Keys >= maxIndexCount || listed.Ends >= maxIndexCount {
		return nil, errors.New("too many entries for one index file")
	}
	path := filepath.Join(dir, listed.Name)
	log, err := disk.OpenLog(path, 0o600)
	if err != nil {
		return nil, err
	}
	if log.Size() != 0 {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, errNotOurs), log.Close())
	}
	var chunk []byte
	err = encodeIndex(listed, keys, ends, old, func(block []byte) error {
		chunk = append(chunk, block...)
		if len(chunk) < segmentChunk {
			return nil
		}
		full := chunk
		chunk = chunk[:0]
		return log.Append(full)
	})
	if err == nil && len(chunk) > 0 {
		err = log.Append(chunk)
	}
	if err = errors.Join(err, log.Close()); err != nil {
		return nil, err
	}
	x := openIndex(dir, listed)
	return x, x.err
}
