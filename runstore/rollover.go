package runstore

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"

	"greatminds/internal/durable"
)

// rollOver is what one roll-over has done, before the snapshot that makes it valid.
type rollOver struct {
	state   *hot     // without what has left
	runs    []RunID  // the runs that have left
	keys    []change // and what has left beside them
	made    []string // new files
	merged  []string // names of index files that a new one holds
	history *history
}

// bundleOf gathers what leaves under a key that is no run's.
func (h *hot) bundleOf(c change) *hot {
	b := &hot{}
	if o := lookup(h.maintenance, c.key); c.collection == inMaintenance && o != nil {
		b.putOperation(o)
	}
	if r := lookup(h.requests, c.key); c.collection == inRequests && r != nil {
		b.requests = b.requests.set(c.key, r)
	}
	return b
}

// rollOver writes what may leave the durable state to the history, and returns the state without
// it; nil where nothing leaves. What it writes counts for nothing until a snapshot lists it. A
// failure is no more than a roll-over that comes later.
func (s *Store) rollOver() *rollOver {
	h := &s.View().h
	runs, others := h.leaving(s.o.rules)
	if len(runs)+len(others) < s.o.rules.least {
		return nil
	}
	r, err := s.moveOut(h, runs, others)
	if err != nil {
		s.log.Warn("finished work not moved to the history, the next snapshot tries again", slog.Any("err", err))
		s.giveUp(r)
		return nil
	}
	return r
}

// giveUp removes the files of a roll-over that does not count. What stays is removed at the next
// start; until then no number is used twice, and no line is added behind one that may be void.
func (s *Store) giveUp(r *rollOver) {
	s.disk.freshSegment = true
	if r == nil {
		return
	}
	for _, path := range r.made {
		if err := s.o.Disk.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("a file of the history that counts for nothing stays until the next start", slog.Any("err", err))
		}
	}
}

// abandon gives up a roll-over whose snapshot was not written. Where it may have been, its files
// must stay.
func (s *Store) abandon(r *rollOver, err error) {
	if r == nil {
		return
	}
	s.disk.freshSegment = true
	if !errors.Is(err, durable.ErrUncertain) {
		s.giveUp(r)
	}
}

func (s *Store) moveOut(h *hot, runs []RunID, others []change) (*rollOver, error) {
	r := &rollOver{runs: runs, keys: others}
	dir := s.path(historyName)
	if err := s.o.Disk.MkdirAll(dir, 0o700); err != nil {
		return r, err
	}
	w := &segmentWriter{disk: s.o.Disk, dir: dir, project: h.projectID, room: s.o.rules.room, next: s.disk.nextSegment}
	if h.history != nil {
		w.list = slices.Clone(h.history.segments)
		if !s.disk.freshSegment {
			w.goOn()
		}
	}
	keys, ends, err := r.write(w, h)
	err = errors.Join(err, w.finish())
	s.disk.nextSegment, r.made = w.next, w.made
	if err != nil {
		return r, err
	}
	s.disk.freshSegment = false
	next := *h
	next.history = &history{dir: dir, segments: w.list, lengths: map[uint32]int64{}, cache: newHistoryCache(), version: 1}
	if h.history != nil {
		next.history.indexes, next.history.extra = h.history.indexes, h.history.extra
		next.history.cache, next.history.version = h.history.cache, h.history.version+1
	}
	for _, l := range w.list {
		number, _ := segmentNumber(l.Name)
		next.history.lengths[number] = l.Length
	}
	r.history = next.history
	if err := s.addIndex(r, keys, ends); err != nil {
		return r, err
	}
	next.totals = maps.Clone(h.totals)
	r.takeOut(&next)
	r.state = &next
	return r, nil
}

// write appends all bundles.
func (r *rollOver) write(w *segmentWriter, h *hot) (keys []keyEntry, ends []endEntry, err error) {
	one := func(b *hot) error {
		p, err := w.add(encodeBundle(b))
		if err != nil {
			return err
		}
		k, e := b.entries(p)
		keys, ends = append(keys, k...), append(ends, e...)
		return nil
	}
	for _, id := range r.runs {
		if err := one(h.bundleOfRun(id).dated()); err != nil {
			return nil, nil, err
		}
	}
	for _, c := range r.keys {
		if err := one(h.bundleOf(c)); err != nil {
			return nil, nil, err
		}
	}
	return keys, ends, nil
}

// addIndex writes an index of the new lines. It takes in those before it that are not twice as
// large, so that their number stays logarithmic; one that cannot be read is left alone.
func (s *Store) addIndex(r *rollOver, keys []keyEntry, ends []endEntry) error {
	all := r.history.indexes
	from, count := len(all), uint64(len(keys))
	for from > 0 && all[from-1].listed.Keys < min(2*count, s.disk.mergeLimit) && all[from-1].err == nil {
		from--
		count += all[from].listed.Keys
	}
	x, err := s.newIndex(r, keys, ends, all[from:])
	var damaged *historyFault
	if errors.As(err, &damaged) && from < len(all) {
		s.log.Error("an index of the history is damaged", slog.Any("err", err))
		from = len(all)
		x, err = s.newIndex(r, keys, ends, nil)
	}
	if err != nil {
		return err
	}
	for _, old := range all[from:] {
		r.merged = append(r.merged, old.listed.Name)
	}
	r.history.indexes = append(slices.Clone(all[:from]), x)
	return nil
}

// newIndex writes an index file under the next number.
func (s *Store) newIndex(r *rollOver, keys []keyEntry, ends []endEntry, old []*indexFile) (*indexFile, error) {
	number := s.disk.nextIndex
	s.disk.nextIndex++
	x, err := writeIndex(s.o.Disk, r.history.dir, number, keys, ends, old)
	if !errors.Is(err, errNotOurs) {
		r.made = append(r.made, filepath.Join(r.history.dir, indexName(number)))
	}
	return x, err
}

// takeOut removes from a state what has left, and counts it.
func (r *rollOver) takeOut(h *hot) {
	if h.totals == nil {
		h.totals = map[State]int{}
	}
	for _, id := range r.runs {
		b := h.bundleOfRun(id)
		h.totals[lookup(b.runs, string(id)).State]++
		h.drop(b)
	}
	for _, c := range r.keys {
		h.drop(h.bundleOf(c))
	}
}

// adopt makes the state after a roll-over the durable one and the base of the tip, once the
// snapshot that lists it is on the disk.
func (s *Store) adopt(r *rollOver) {
	s.mu.Lock()
	if s.waiting == nil {
		s.tip = r.state.clipped()
	} else {
		s.tip = r.rebase(s.tip, &s.waiting.group)
		s.waiting.state = s.tip
	}
	s.durable.Store(newView(r.state))
	s.mu.Unlock()
	for _, name := range r.merged {
		if err := s.o.Disk.Remove(filepath.Join(r.history.dir, name)); err != nil {
			s.log.Warn("a merged index file stays until the next start", slog.Any("err", err))
		}
	}
}

// rebase carries a roll-over into a state with transactions that are not on the disk yet. A bundle
// that one of them has changed stays hot: the group then holds all of it, for the snapshot does not.
func (r *rollOver) rebase(tip *hot, g *group) *hot {
	next := *tip
	next.history, next.totals = r.history, maps.Clone(tip.totals)
	if next.totals == nil {
		next.totals = map[State]int{}
	}
	one := func(b *hot) (left bool) {
		all := b.entities()
		for c := range all {
			if _, changed := g.changed[c]; changed {
				maps.Copy(g.changed, all)
				g.changed[change{inTop, topHistory}] = struct{}{}
				return false
			}
		}
		next.drop(b)
		return true
	}
	for _, id := range r.runs {
		b := next.bundleOfRun(id)
		if state := lookup(b.runs, string(id)).State; one(b) {
			next.totals[state]++
		}
	}
	for _, c := range r.keys {
		one(next.bundleOf(c))
	}
	return &next
}
