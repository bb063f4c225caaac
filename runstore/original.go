package runstore

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"time"

	"greatminds/internal/durable"
	"greatminds/internal/refusal"
)

// The original keeps its store in a state.json of our shape, but without the member store. This
// file makes such a store ours, once: its state.json is kept aside byte for byte, and a snapshot
// that holds all of it takes its place. Every other file of the original stays where it is.
// Its records of applications, which are files, are read by original_operation.go.

// topTakenOver is the member of the document that tells of a take-over.
const topTakenOver = "taken_over"

// TakenOver tells that a store was made from one of the original.
type TakenOver struct {
	// At is when, in seconds of the Unix epoch.
	At float64 `json:"at"`
	// File is the name, in the store's folder, under which the original's state.json was kept, and
	// SHA256 the hash of its bytes.
	File   string  `json:"file"`
	SHA256 string  `json:"sha256"`
	Extra  Members `json:"-"`
}

// TakenOver tells from what the store was taken over; nil for one that was ours from the start.
func (v *View) TakenOver() *TakenOver {
	raw, ok := v.h.extra[topTakenOver]
	if !ok {
		return nil
	}
	t := new(TakenOver)
	if decode(raw, 0, t) != nil {
		return nil // somebody else's member of this name
	}
	return t
}

// keepOriginal puts the original's state.json aside, and notes that in the state that was read
// from it. It is the first step of a take-over: until the snapshot replaces state.json, the store
// is still the original's, and whoever tries again finds the same file kept.
func keepOriginal(o Options, f *files, r *replayed) error {
	sum := hashText(string(f.snapshot))
	for n := 1; ; n++ {
		name := "original-state-" + sum[:12] + ".json"
		if n > 1 {
			name = fmt.Sprintf("original-state-%s-%d.json", sum[:12], n)
		}
		err := settleKept(o.Disk, f.path(name), f.snapshot)
		if errors.Is(err, fs.ErrExist) {
			continue // somebody has changed what was kept under this name
		}
		if err != nil {
			return notTakenOver(err)
		}
		at := Epoch(o.Now())
		if r.state.extra == nil {
			r.state.extra = Members{}
		}
		r.state.extra[topTakenOver] = encode(&TakenOver{At: at, File: name, SHA256: sum})
		return nil
	}
}

// settleKept writes a file, or makes sure of the same one that an attempt before has written; it
// fails with fs.ErrExist where another stands there.
func settleKept(disk *durable.Disk, path string, data []byte) error {
	found, err := readFile(path)
	switch {
	case err != nil:
		return err
	case found == nil:
		return disk.Create(path, data, 0o600)
	case string(found) != string(data):
		return fs.ErrExist
	}
	return disk.Settle(path)
}

func notTakenOver(err error) error {
	if r, ok := refusal.Find(err); ok {
		return r
	}
	return &refusal.Refusal{Code: refusal.CodeStoreWrite, Err: err, What: "the original's run store was not taken over: " + err.Error(),
		Remedy: "free space or mend the disk, then start again; nothing is lost"}
}

// finishTakeOver is the last step: the snapshot in place of the original's state.json.
func (s *Store) finishTakeOver() error {
	v := s.View()
	// A history may stand there that no snapshot lists any more: its numbers are not used again.
	if err := s.tidyHistory(false); err != nil {
		return notTakenOver(err)
	}
	if err := s.writeSnapshot(s.rollOver()); err != nil {
		return notTakenOver(err)
	}
	s.log.Info("run store of the original taken over", slog.String("kept", s.path(v.TakenOver().File)),
		slog.Int("runs", v.h.runs.len()), slog.Int("results", v.h.results.len()), slog.Int("events", len(v.h.events)),
		slog.Int("unfinished_runs", v.h.activeRuns.len()), slog.Int("unfinished_results", v.h.openResults.len()))
	return nil
}

// translated returns an operation's record of the original in our words: times as seconds of the
// Unix epoch, source and destination as queues. A record that is in our words already comes back
// as it is.
func translated(raw []byte, off int) ([]byte, error) {
	s, theirs := sections{}, false
	for _, m := range split(raw, off) {
		s[m.key] = m.raw
		if m.raw[0] != '"' {
			continue
		}
		switch m.key {
		case "at", "updated_at", "repair_requested_at":
			t, err := time.Parse(time.RFC3339, unquote(m.raw))
			if err != nil {
				return nil, wrongType(m.raw, m.off, m.key+": a time")
			}
			s[m.key], theirs = encode(Epoch(t)), true
		case "source", "destination":
			if queue := path.Dir(unquote(m.raw)); queue != "." {
				s[m.key], theirs = encode(queue), true
			}
		}
	}
	if !theirs {
		return raw, nil
	}
	return s.join(), nil
}

// translating makes a collection of operations read the original's records too.
func translating(c collection) collection {
	put := c.put
	c.put = func(h *hot, key string, raw []byte, off int) error {
		ours, err := translated(raw, off)
		if err != nil {
			return err
		}
		return placed(put(h, key, ours, off), off)
	}
	return c
}

// placed gives a fault the place of the whole record: in a translated one the bytes stand elsewhere.
func placed(err error, off int) error {
	if f, ok := err.(*fault); ok {
		return &fault{off: off, what: f.what}
	}
	return err
}
