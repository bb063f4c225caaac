package runstore

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"greatminds/internal/refusal"
)

// historyName is the folder of the history, in the store's.
const historyName = "history"

// indexListed is an index file as the snapshot lists it.
type indexListed struct {
	Name string `json:"name"`
	// Keys and Ends count its entries; ID is the identity in its header, in hex.
	Keys  uint64  `json:"keys"`
	Ends  uint64  `json:"ends"`
	ID    string  `json:"id"`
	Extra Members `json:"-"`
}

// segmentListed is a segment with its valid length in bytes.
type segmentListed struct {
	Name   string  `json:"name"`
	Length int64   `json:"length"`
	Extra  Members `json:"-"`
}

// historyListed is the snapshot's member store.history: what of the history is valid.
type historyListed struct {
	Indexes  []indexListed   `json:"indexes"`
	Segments []segmentListed `json:"segments"`
	// Totals counts the runs in the history that are not in the snapshot itself, by state.
	Totals map[State]int `json:"totals"`
	Extra  Members       `json:"-"`
}

// check finds what no roll-over could have written.
func (l *historyListed) check() error {
	for _, s := range l.Segments {
		if number, ok := segmentNumber(s.Name); !ok || number == 0 || s.Length < 1 || s.Length > maxSegment {
			return fmt.Errorf("segment %q of %d bytes", s.Name, s.Length)
		}
	}
	for _, x := range l.Indexes {
		id, err := hex.DecodeString(x.ID)
		if _, ok := indexNumber(x.Name); !ok || err != nil || len(id) != identitySize || x.Keys >= maxIndexCount || x.Ends >= maxIndexCount {
			return fmt.Errorf("index %q of %d keys", x.Name, x.Keys)
		}
	}
	return nil
}

// history is the finished work that has left the hot state, as one snapshot lists it. It is
// immutable, but for its cache, and shared by all states that go on from that snapshot.
type history struct {
	dir      string
	lengths  map[uint32]int64 // valid length of each segment
	segments []segmentListed  // in the order in which they were begun
	indexes  []*indexFile     // oldest first
	extra    Members
	cache    *historyCache
	version  int // counts roll-overs of this process
}

// hasHistory tells whether a store's folder holds a segment.
func hasHistory(dir string) bool {
	entries, err := os.ReadDir(filepath.Join(dir, historyName))
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { _, ok := segmentNumber(e.Name()); return ok })
}

// complete tells whether every listed index file could be opened.
func (h *history) complete() bool {
	return h == nil || !slices.ContainsFunc(h.indexes, func(x *indexFile) bool { return x.err != nil })
}

// openHistory opens what a snapshot lists; nil where it lists nothing.
func openHistory(dir string, l *historyListed) *history {
	if l == nil {
		return nil
	}
	h := &history{dir: filepath.Join(dir, historyName), segments: l.Segments, extra: l.Extra, cache: newHistoryCache(), lengths: map[uint32]int64{}}
	for _, s := range l.Segments {
		number, _ := segmentNumber(s.Name)
		h.lengths[number] = s.Length
	}
	for _, x := range l.Indexes {
		h.indexes = append(h.indexes, openIndex(h.dir, x))
	}
	return h
}

// listed is what the next snapshot says of the history.
func (h *history) listed(totals map[State]int) *historyListed {
	if h == nil {
		return nil
	}
	l := &historyListed{Segments: h.segments, Totals: maps.Clone(totals), Extra: h.extra, Indexes: []indexListed{}}
	if l.Totals == nil {
		l.Totals = map[State]int{}
	}
	for _, x := range h.indexes {
		l.Indexes = append(l.Indexes, x.listed)
	}
	return l
}

// find returns the newest bundle with the key of an id that has says it holds, nil where there is
// none.
func (h *history) find(kind, id string, has func(*hot) bool) (*hot, error) {
	places, err := h.places(kind, id, false)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		b, err := h.bundle(p)
		if err != nil {
			return nil, err
		}
		if has(b) {
			return b, nil
		}
	}
	return nil, nil
}

// places returns where the lines with a key are, newest first. Lists says that many are expected
// and the same question again soon: the answer is kept.
func (h *history) places(kind, id string, lists bool) ([]place, error) {
	hash := hashKey(kind, id)
	if lists {
		if known, ok := h.cache.list(hash, h.version); ok {
			return known, nil
		}
	}
	var all []place
	for _, x := range slices.Backward(h.indexes) {
		some, err := x.find(hash)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	if lists {
		h.cache.keepList(hash, h.version, all)
	}
	return all, nil
}

// bundle reads and decodes the line at p.
func (h *history) bundle(p place) (*hot, error) {
	if b := h.cache.bundle(p); b != nil {
		return b, nil
	}
	path := filepath.Join(h.dir, segmentName(p.segment))
	bad := func(format string, args ...any) error {
		return &historyFault{path: path, off: int64(p.offset), what: fmt.Sprintf(format, args...)}
	}
	if length, ok := h.lengths[p.segment]; !ok || int64(p.offset)+int64(p.length) > length {
		return nil, bad("the index names a line that lies beyond the segment's valid length")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bad("%v", err)
	}
	defer f.Close()
	text := make([]byte, p.length)
	if n, err := f.ReadAt(text, int64(p.offset)); n < len(text) {
		return nil, bad("%d of %d bytes could be read: %v", n, len(text), err)
	}
	b, err := decodeBundle(text)
	if err != nil {
		return nil, bad("%v", err)
	}
	h.cache.keepBundle(p, b)
	return b, nil
}

// refusal is the refusal of whatever would have needed what a fault hides.
func (f *historyFault) refusal() error {
	remedy := "put back a good copy of the file; nothing was changed"
	if f.index {
		remedy = "run `greatminds run doctor --rebuild-index`; nothing was changed"
	}
	return &refusal.Refusal{Code: refusal.CodeHistoryUnreadable, Err: f, Remedy: remedy,
		What: "finished work cannot be looked up: " + f.Error()}
}

func historyRefusal(err error) error {
	var f *historyFault
	if errors.As(err, &f) {
		return f.refusal()
	}
	return err
}
