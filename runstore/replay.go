package runstore

import (
	"bytes"
	"errors"
	"fmt"

	"greatminds/internal/refusal"
)

// The files of a store, in its folder.
const (
	snapshotName  = "state.json"
	journalName   = "journal.jsonl"
	contractsName = "contracts"
)

// replayed is what snapshot and journal together say.
type replayed struct {
	state *hot
	meta  meta
	// last is the last transaction in the state.
	last uint64
	// fits is false where the snapshot's checksum does not: it was taken as it stands.
	fits bool
	// original is set where the snapshot is the original's, which has to be taken over.
	original bool
	// groups counts the journal's groups that were played; superseded those that belong to an
	// older generation and whose outcome the snapshot already holds.
	groups, superseded int
	// tailAt is the offset in the journal from which nothing checks; -1 where all does.
	tailAt int
}

// files are the bytes of a store; nil means that there is no such file.
type files struct {
	dir               string
	snapshot, journal []byte
	// past tells that there is a history.
	past bool
}

func (f *files) path(name string) string { return f.dir + "/" + name }

// replay decodes a store. It changes nothing.
func (f *files) replay() (*replayed, error) {
	if f.snapshot == nil {
		if len(f.journal) > 0 {
			return nil, f.refuse(journalName, 0, "a journal without the snapshot it goes on from",
				"put back "+f.path(snapshotName)+"; to start an empty store, move the journal away")
		}
		if f.past {
			return nil, f.refuse(historyName, 0, "a history of finished work without the snapshot that lists it",
				"put back "+f.path(snapshotName)+"; to start an empty store, move the folder away")
		}
		return &replayed{state: &hot{}, fits: true, tailAt: -1}, nil
	}
	snap, err := decodeSnapshot(f.snapshot)
	if err != nil {
		return nil, f.snapshotRefusal(err)
	}
	r := &replayed{state: snap.state, meta: snap.meta, last: snap.meta.LastSequence, fits: snap.fits, original: snap.original, tailAt: -1}
	if !snap.fits {
		if err := f.foreign(snap); err != nil {
			return nil, err
		}
	}
	if l := snap.meta.History; l != nil {
		r.state.history, r.state.totals = openHistory(f.dir, l), l.Totals
	}
	if len(f.journal) == 0 {
		return r, nil
	}
	return r, f.play(r)
}

func (f *files) refuse(name string, off int, what, remedy string) error {
	return refusal.New(refusal.CodeStoreMalformed, remedy, "%s: byte %d: %s", f.path(name), off, what)
}

func (f *files) snapshotRefusal(err error) error {
	var bad *fault
	var newer newerError
	switch {
	case errors.As(err, &bad):
		return f.refuse(snapshotName, bad.off, bad.what, "nothing was changed: put back a good copy of the file, or mend it by hand; to start an empty store, move "+f.dir+" away")
	case errors.As(err, &newer):
		return refusal.New(refusal.CodeStoreNewer, "use the version of greatminds that wrote it, or a newer one",
			"%s has version %s; this program knows version %d", f.path(snapshotName), newer.version, formatVersion)
	}
	return err
}

// play applies the journal to the snapshot's state.
func (f *files) play(r *replayed) error {
	starts := lines(f.journal)
	for i, at := range starts {
		text := f.journal[at:]
		if i+1 < len(starts) {
			text = f.journal[at : starts[i+1]-1]
		} else {
			text = bytes.TrimSuffix(text, []byte("\n"))
		}
		if _, ok := unseal(text); !ok {
			return f.damaged(r, at)
		}
		l, err := decodeLine(text, at)
		if err == nil {
			err = f.playLine(r, l, i == 0)
		}
		if err != nil {
			return f.journalRefusal(at, err)
		}
		if r.superseded > 0 && i == 0 {
			r.superseded = len(starts) - 1
			return nil
		}
	}
	return nil
}

// damaged decides about the first line that does not check. Every group is on the disk before
// the next one is written, so that an unacknowledged one can only be the last: where a later
// one checks, what is broken had been acknowledged.
func (f *files) damaged(r *replayed, at int) error {
	rest := f.journal[at:]
	for from := 1; ; {
		i := bytes.Index(rest[min(from, len(rest)):], []byte(lineHead))
		if i < 0 {
			r.tailAt = at
			return nil
		}
		from += i
		text, _, _ := bytes.Cut(rest[from:], []byte("\n"))
		if _, ok := unseal(text); ok {
			return f.journalRefusal(at, faultAt(at, "the line's checksum does not fit, yet a good line follows at byte %d", at+from))
		}
		from++
	}
}

func (f *files) journalRefusal(lineAt int, err error) error {
	var bad *fault
	if !errors.As(err, &bad) {
		return err
	}
	return f.refuse(journalName, bad.off, bad.what, fmt.Sprintf(
		"nothing was changed: put back good copies of both files; to give up everything from this line on, `truncate -s %d %s`", lineAt, f.path(journalName)))
}

// playLine applies one line: the header first, then groups in sequence.
func (f *files) playLine(r *replayed, l *line, first bool) error {
	switch {
	case first != (l.header != nil):
		return faultAt(l.off, "the header stands where it must not, or is missing")
	case l.header != nil:
		return r.begin(l.header)
	case l.last <= r.last:
		return nil // the snapshot holds it: a crash came between the snapshot and the new journal
	case l.first != r.last+1:
		return faultAt(l.off, "transactions %d to %d follow transaction %d: a gap", l.first, l.last, r.last)
	}
	if err := l.apply(r.state); err != nil {
		return err
	}
	r.last = l.last
	r.groups++
	return nil
}

// begin checks that the journal belongs to the snapshot. One of an older generation is wholly
// in the snapshot already, but for groups that were refused.
func (r *replayed) begin(h *header) error {
	switch {
	case h.Format != format:
		return faultAt(0, "format %q, %q expected", h.Format, format)
	case h.ProjectID != r.state.projectID:
		return faultAt(0, "the journal is of project %q, the snapshot of %q", h.ProjectID, r.state.projectID)
	case h.Generation > r.meta.Generation:
		return faultAt(0, "the journal is of generation %d, the snapshot of the older %d", h.Generation, r.meta.Generation)
	case h.Generation < r.meta.Generation:
		r.superseded = 1
	case h.After != r.meta.LastSequence:
		return faultAt(0, "the journal follows transaction %d, the snapshot ends with %d", h.After, r.meta.LastSequence)
	}
	return nil
}
