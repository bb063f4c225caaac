package runstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
)

// A journal line is
//
//	{"checksum":"SHA256",REST}\n
//
// where SHA256 is the hash of `REST}`: what stands in the line from its 80th byte on, without
// the newline. The first line is the header, every other one a group of transactions.

const (
	lineHead = `{"checksum":"`
	// restAt is where the hashed part of a line begins.
	restAt = len(lineHead) + 64 + len(`",`)
)

// header says which snapshot a journal goes on from.
type header struct {
	Format     string  `json:"format"`
	Generation uint64  `json:"generation"`
	After      uint64  `json:"after"`
	ProjectID  string  `json:"project_id"`
	Extra      Members `json:"-"`
}

// change names one entity that a transaction wrote.
type change struct{ collection, key string }

// group is the transactions that share one line and one fsync.
type group struct {
	first, last uint64
	changed     map[change]struct{}
	// events are those of the group that were not discarded in the same group.
	events []tailEvent
	// discarded is the last discarded event's sequence, where the group discarded any.
	discarded uint64
}

// add takes one more transaction into the group.
func (g *group) add(sequence uint64, changed map[change]struct{}) {
	if g.first == 0 {
		g.first, g.changed = sequence, map[change]struct{}{}
	}
	g.last = sequence
	maps.Copy(g.changed, changed)
}

// seal frames a line around rest, which ends with the closing brace.
func seal(rest []byte) []byte {
	sum := sha256.Sum256(rest)
	line := make([]byte, 0, restAt+len(rest)+1)
	line = append(line, lineHead...)
	line = hex.AppendEncode(line, sum[:])
	line = append(line, `",`...)
	line = append(line, rest...)
	return append(line, '\n')
}

// unseal returns the object that a line without its newline holds, as if it began with the
// brace, and whether its checksum fits.
func unseal(line []byte) ([]byte, bool) {
	if len(line) <= restAt || string(line[:len(lineHead)]) != lineHead || string(line[restAt-2:restAt]) != `",` {
		return nil, false
	}
	sum := sha256.Sum256(line[restAt:])
	var given [sha256.Size]byte
	if _, err := hex.Decode(given[:], line[len(lineHead):len(lineHead)+64]); err != nil || given != sum {
		return nil, false
	}
	return line[restAt:], true
}

func encodeHeader(h header) []byte {
	h.Format = format
	return seal(encode(&h)[1:])
}

// encodeGroup renders a group with the values that its entities have in h.
func encodeGroup(g *group, h *hot) []byte {
	rest := appendChanges(nil, g.changed, h)
	if g.discarded > 0 {
		rest = fmt.Appendf(rest, `,"discarded":%d`, g.discarded)
	}
	rest = append(append(rest, `,"events":`...), eventSection(g.events)...)
	return seal(fmt.Appendf(rest, `,"first":%d,"last":%d}`, g.first, g.last))
}

// appendChanges renders the member changes: the named entities with the values that they have in h.
func appendChanges(rest []byte, changed map[change]struct{}, h *hot) []byte {
	byName := map[string]map[string]bool{}
	for c := range changed {
		if byName[c.collection] == nil {
			byName[c.collection] = map[string]bool{}
		}
		byName[c.collection][c.key] = true
	}
	rest = append(rest, `"changes":{`...)
	for i, name := range sortedKeys(byName) {
		if i > 0 {
			rest = append(rest, ',')
		}
		rest = append(appendText(rest, name), ':', '{')
		for j, key := range sortedKeys(byName[name]) {
			if j > 0 {
				rest = append(rest, ',')
			}
			rest = append(appendText(rest, key), ':')
			if raw, ok := collections[name].get(h, key); ok {
				rest = append(rest, raw...)
			} else {
				rest = append(rest, "null"...)
			}
		}
		rest = append(rest, '}')
	}
	return append(rest, '}')
}

// line is one decoded journal line. Its offsets count from the beginning of the journal.
type line struct {
	off     int
	members []member
	// header is set for the first line, and first and last for every other.
	header      *header
	first, last uint64
}

// decodeLine reads a sealed line that stands at off. What checks but does not parse was not
// written by us, or by a newer version of us: that is a *fault.
func decodeLine(text []byte, off int) (*line, error) {
	root, err := openLine(text, off)
	if err != nil {
		return nil, err
	}
	l := &line{off: off, members: root.kids}
	for _, m := range l.members {
		if m.key == "format" {
			l.header = &header{}
			return l, decode(root.raw, root.off, l.header)
		}
	}
	return l, l.numbers()
}

// openLine checks a sealed line that stands at off, and returns the object that it holds.
func openLine(text []byte, off int) (member, error) {
	rest, ok := unseal(text)
	if !ok {
		return member{}, faultAt(off, "the checksum does not fit")
	}
	base := off + restAt - 1
	root, err := outline(append([]byte{'{'}, rest...), 2)
	if err != nil {
		return member{}, shifted(err, base)
	}
	root.shift(base)
	return root, nil
}

func shifted(err error, by int) error {
	if f, ok := err.(*fault); ok {
		return &fault{off: f.off + by, what: f.what}
	}
	return err
}

func (l *line) numbers() error {
	for _, m := range l.members {
		var err error
		switch m.key {
		case "first":
			err = decode(m.raw, m.off, &l.first)
		case "last":
			err = decode(m.raw, m.off, &l.last)
		case "changes", "events", "discarded":
		default:
			err = faultAt(m.off, "unknown member %q", m.key)
		}
		if err != nil {
			return err
		}
	}
	if l.first == 0 || l.last < l.first {
		return faultAt(l.off, "transactions %d to %d", l.first, l.last)
	}
	return nil
}

// apply plays a group's line into the state.
func (l *line) apply(h *hot) error {
	var discarded uint64
	for _, m := range l.members {
		var err error
		switch m.key {
		case "changes":
			err = applyChanges(h, m)
		case "events":
			err = h.loadEvents(m)
		case "discarded":
			err = decode(m.raw, m.off, &discarded)
		}
		if err != nil {
			return err
		}
	}
	if discarded > 0 {
		h.discard(discarded)
	}
	h.lastEvent = max(h.lastEvent, h.discardedThrough())
	return nil
}

func applyChanges(h *hot, m member) error {
	if m.raw[0] != '{' {
		return wrongType(m.raw, m.off, "changes: an object")
	}
	for _, section := range m.members() {
		c, ok := collections[section.key]
		if !ok {
			return faultAt(section.off, "unknown kind of entity %q", section.key)
		}
		if section.raw[0] != '{' {
			return wrongType(section.raw, section.off, section.key+": an object")
		}
		for _, e := range section.members() {
			if err := applyChange(h, c, e); err != nil {
				return inEntity(c.name, e.key, err)
			}
		}
	}
	return nil
}

func applyChange(h *hot, c collection, e member) error {
	if !isNull(e.raw) {
		return c.put(h, e.key, e.raw, e.off)
	}
	if c.del == nil {
		return faultAt(e.off, "an entity of this kind is never removed")
	}
	c.del(h, e.key)
	return nil
}

// lines cuts a journal into its lines, without their newlines; what stands after the last
// newline is a line too.
func lines(data []byte) []int {
	var starts []int
	for at := 0; at < len(data); {
		starts = append(starts, at)
		n := bytes.IndexByte(data[at:], '\n')
		if n < 0 {
			break
		}
		at += n + 1
	}
	return starts
}
