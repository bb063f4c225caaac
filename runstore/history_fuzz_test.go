package runstore

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

// anIndex is an index file that was never written, over its bytes.
func anIndex(data []byte, listed indexListed) *indexFile {
	x := &indexFile{listed: listed, path: "index-000001.idx", f: bytes.NewReader(data)}
	if int64(len(data)) != listed.size() {
		x.err = x.fault(0, "length")
		return x
	}
	x.err = x.checkHeader()
	return x
}

func blocksOf(t failer, listed indexListed, keys []keyEntry, ends []endEntry, old []*indexFile) (data []byte) {
	t.Helper()
	err := encodeIndex(listed, keys, ends, old, func(block []byte) error { data = append(data, block...); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func inMemory(t failer, keys []keyEntry, ends []endEntry, old []*indexFile) *indexFile {
	t.Helper()
	listed := newListed(1, len(keys), len(ends), old)
	x := anIndex(blocksOf(t, listed, keys, ends, old), listed)
	if x.err != nil {
		t.Fatal(x.err)
	}
	return x
}

// An index finds exactly what was put into it, whatever the hashes are, and lists it in order.
func FuzzIndexFindsWhatWasPut(f *testing.F) {
	f.Add([]byte("12345678abcdefgh12345678"), uint16(1))
	f.Add(bytes.Repeat([]byte{0xff}, 80), uint16(300))
	f.Add([]byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, hashes []byte, copies uint16) {
		var keys []keyEntry
		var ends []endEntry
		want := map[uint64][]place{}
		for i := 0; i+8 <= len(hashes) && i < 8*64; i += 8 {
			hash := binary.LittleEndian.Uint64(hashes[i:])
			for n := range 1 + int(copies)%700 {
				p := place{uint32(i), uint32(n), 1}
				keys, want[hash] = append(keys, keyEntry{hash, p}), append(want[hash], p)
				ends = append(ends, endEntry{int64(hash >> 1), hash, p})
			}
		}
		// In two files, and then merged with a third.
		half := len(keys) / 2
		one, two := inMemory(t, keys[:half], ends[:half], nil), inMemory(t, keys[half:], ends[half:], nil)
		x := inMemory(t, nil, nil, []*indexFile{one, two})
		for hash, places := range want {
			slices.SortFunc(places, func(a, b place) int { return b.compare(a) })
			if got, err := x.find(hash); err != nil || !slices.Equal(got, places) {
				t.Fatalf("%x: got %d places, %v, want %d", hash, len(got), err, len(places))
			}
			for _, near := range []uint64{hash - 1, hash + 1} {
				if got, err := x.find(near); err != nil || len(got) != len(want[near]) {
					t.Fatalf("%x: got %d places, %v, want %d", near, len(got), err, len(want[near]))
				}
			}
		}
		c, seen := x.from(0), 0
		for last := (endEntry{}); c.next(); last = c.entry {
			if seen > 0 && last.newestFirst(c.entry) > 0 {
				t.Fatalf("%v before %v", last, c.entry)
			}
			if at := x.seekEnd(c.entry); at.next() && c.entry.newestFirst(at.entry) >= 0 {
				t.Fatalf("%v is listed after %v", at.entry, c.entry)
			}
			seen++
		}
		if c.err != nil || seen != len(ends) {
			t.Fatalf("%d of %d ends, %v", seen, len(ends), c.err)
		}
	})
}

// Whatever stands in an index file, a look-up in it answers or says why not.
func FuzzReadIndex(f *testing.F) {
	data := blocksOf(f, newListed(1, 2, 1, nil), []keyEntry{{1, place{1, 2, 3}}, {1, place{2, 3, 4}}}, []endEntry{{5, 6, place{7, 8, 9}}}, nil)
	f.Add(data, uint64(1), uint64(2), uint64(1))
	f.Add(data[:blockSize], uint64(1), uint64(0), uint64(0))
	f.Add([]byte{}, uint64(1), uint64(1<<40), uint64(1<<40))
	f.Fuzz(func(t *testing.T, data []byte, hash, keys, ends uint64) {
		listed := indexListed{Name: "index-000001.idx", Keys: keys, Ends: ends, ID: strings.Repeat("00", identitySize)}
		if len(data) >= blockSize {
			listed.ID = hex.EncodeToString(data[identityAt : identityAt+identitySize])
		}
		if (&historyListed{Indexes: []indexListed{listed}}).check() != nil {
			return
		}
		// Checksums that fit, so that what stands behind them is read.
		for n := int64(0); int(n+1)*blockSize <= len(data) && hash%2 == 0; n++ {
			sealBlock(data[n*blockSize:(n+1)*blockSize], listed.identity(), n)
		}
		x := anIndex(data, listed)
		_, _ = x.find(hash)
		if x.check() == nil {
			if err := encodeIndex(listed, nil, nil, []*indexFile{x}, func([]byte) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		x.seekEnd(endEntry{ended: int64(hash), hash: hash}).next()
	})
}

// A segment's line is read without loss, or refused.
func FuzzDecodeBundle(f *testing.F) {
	h := workday(f, 1, 20)
	h.runs.each(func(id string, _ *Run) bool {
		line := encodeBundle(h.bundleOfRun(RunID(id)))
		f.Add(line[restAt : len(line)-1])
		return true
	})
	f.Add([]byte(`"changes":{"requests":{"q":{"id":"q","at":1.0,"receipt":null}}}}`))
	f.Add([]byte(`"changes":{"top":{"paused":true}},"x":1}`))
	f.Add([]byte(`"changes":[]}`))
	f.Fuzz(func(t *testing.T, rest []byte) {
		_, _ = decodeBundle(rest)
		b, err := decodeBundle(seal(rest))
		if err != nil {
			return
		}
		k, e := b.entries(place{1, 2, 3})
		if b.runs.len() != len(e) || len(k) < len(e) {
			t.Fatalf("%d runs, %d keys, %d ends", b.runs.len(), len(k), len(e))
		}
		again, err := decodeBundle(encodeBundle(b))
		if err != nil || string(again.sections(true).join()) != string(b.sections(true).join()) {
			t.Fatalf("read again: %v", err)
		}
	})
}
