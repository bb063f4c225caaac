package runstore

import (
	"fmt"
	"log/slog"
	"strings"

	"greatminds/internal/refusal"
)

// While a daemon of ours lives, its locks keep the original from writing state.json. After a crash
// nothing does: the original takes the snapshot for the whole store, and replaces it, while the
// journal holds what came after. Then there are two histories, and only a person can say which
// one goes on. So that neither is lost, the snapshot that the journal goes on from has a second
// name, which the original does not know.

// baseName is the second name of the snapshot, there as long as the journal.
const baseName = "state-base.json"

// keepBase gives the snapshot its second name. Where the file system has no such thing, the store
// works without: only the way back is missing.
func (s *Store) keepBase() {
	if err := s.o.Disk.Link(s.path(snapshotName), s.path(baseName)); err != nil {
		s.log.Warn("snapshot has no second name", slog.String("file", s.path(baseName)), slog.Any("err", err))
	}
}

// foreign looks at a snapshot that somebody else wrote: whether it is all there is, and which of the
// original's records belong to it.
func (f *files) foreign(snap *snapshot) error {
	if f.journalHolds(snap) {
		return f.twoHistories()
	}
	if snap.original && f.past && !f.beingTakenOver() {
		return f.refuse(snapshotName, 0, "the original's store beside a history of finished work of this program, which it does not list",
			"put back the "+snapshotName+" that belongs to "+f.path(historyName)+"; to go on without that work, move the folder away")
	}
	return f.addOperations(snap.state)
}

// beingTakenOver tells whether a take-over of this very file was begun: what it has moved to the
// history before it was interrupted is in the file still.
func (f *files) beingTakenOver() bool {
	kept, err := readFile(f.path("original-state-" + hashText(string(f.snapshot))[:12] + ".json"))
	return err == nil && string(kept) == string(f.snapshot)
}

// journalHolds tells whether the journal may hold something that a snapshot which somebody else
// wrote does not. A journal of an older generation, or one without a group, holds nothing.
func (f *files) journalHolds(snap *snapshot) bool {
	if len(f.journal) == 0 {
		return false
	}
	head := f.header()
	if head == nil || snap.original {
		return true
	}
	return head.Generation >= snap.meta.Generation && len(lines(f.journal)) > 1
}

// header is the journal's; nil where it has none that can be read.
func (f *files) header() *header {
	first, _, _ := strings.Cut(string(f.journal), "\n")
	l, err := decodeLine([]byte(first), 0)
	if err != nil || l.header == nil {
		return nil
	}
	return l.header
}

// twoHistories is the refusal of a snapshot that somebody else wrote beside a journal of ours, with
// a way to go on with either. Both ways keep the other side's file.
func (f *files) twoHistories() error {
	state, journal := f.path(snapshotName), f.path(journalName)
	remedy := fmt.Sprintf("nothing was changed, and both are kept. Go on with what the other tool wrote: `mv -n %s %s`",
		quoted(journal), quoted(f.path("journal-aside-"+hashText(string(f.journal))[:8]+".jsonl")))
	if f.baseFits() {
		remedy += fmt.Sprintf("; or with the journal: `mv -n %s %s && mv %s %s`; then start again", quoted(state),
			quoted(f.path("state-aside-"+hashText(string(f.snapshot))[:8]+".json")), quoted(f.path(baseName)), quoted(state))
	} else {
		remedy += fmt.Sprintf("; or put back the %s that the journal goes on from; then start again", snapshotName)
	}
	groups := max(len(lines(f.journal))-1, 0)
	return refusal.New(refusal.CodeStoreConflict, remedy,
		"%s was written by the original greatminds or by hand (its checksum does not fit) after this program crashed, while %s holds %d changes of this program that it does not know",
		state, journal, groups)
}

// baseFits tells whether the snapshot that the journal goes on from is there.
func (f *files) baseFits() bool {
	head := f.header()
	data, err := readFile(f.path(baseName))
	if head == nil || data == nil || err != nil {
		return false
	}
	base, err := decodeSnapshot(data)
	return err == nil && base.fits && base.meta.Generation == head.Generation && base.meta.LastSequence == head.After &&
		base.state.projectID == head.ProjectID
}

// quoted is a path as a shell reads it.
func quoted(path string) string {
	if !strings.ContainsFunc(path, func(c rune) bool {
		return !strings.ContainsRune("/._-+:@%", c) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
