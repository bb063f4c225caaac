package runstore

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// The document is the whole hot state as one JSON object, in the original's shape: sections
// under sorted keys, each run with its lists nested in it. Snapshot and `run status` differ
// only in what they leave out.

// formatVersion is the version of the document. A change that an older binary must not touch
// raises it.
const formatVersion = 1

// Document returns the whole hot state as one compact JSON object with sorted keys: the snapshot
// without credentials' hashes, request receipts and application records. Sections stay away until
// their first use. What has left for the history is not in it. Spec: reference 6.3.
func (v *View) Document() json.RawMessage {
	s := v.h.sections(false)
	return s.join()
}

type sections map[string]json.RawMessage

func (s sections) join() json.RawMessage {
	keys := sortedKeys(s)
	size := 2
	for _, k := range keys {
		size += len(k) + 4 + len(s[k])
	}
	out := append(make([]byte, 0, size), '{')
	for i, k := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, k), ':')
		out = append(out, s[k]...)
	}
	return append(out, '}')
}

// sections renders the state. Private adds what only the snapshot holds.
func (h *hot) sections(private bool) sections {
	s := sections{}
	maps.Copy(s, h.extra)
	s["version"] = encode(formatVersion)
	s[topProject] = encode(h.projectID)
	s[topPaused] = encode(h.paused)
	s["runs"] = h.runSection(private)
	s["events"] = eventSection(h.events)
	s[inResults] = section(h.results)
	optional := func(name string, raw json.RawMessage, used bool) {
		if used {
			s[name] = raw
		}
	}
	optional(inCommands, section(h.commands), h.commands.len() > 0)
	optional(inPermissions, section(h.permissions), h.permissions.len() > 0)
	optional(inMaintenance, section(h.maintenance), h.maintenance.len() > 0)
	optional(inObservations, section(h.observations), h.observed)
	optional(inAccountHolds, section(h.accountHolds), h.held)
	optional(topFindings, h.findings, h.findings != nil)
	optional(topRetention, encode(h.retention), h.retention != nil)
	if !private && h.projectID == "" {
		s[topProject] = json.RawMessage("null") // there is no store yet
	}
	if private {
		optional(inOperations, section(h.operations), h.operations.len() > 0)
		optional(inRequests, section(h.requests), h.requests.len() > 0)
	}
	return s
}

func section[V any](m pmap[V]) json.RawMessage {
	out := []byte{'{'}
	m.each(func(key string, v V) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(appendText(out, key), ':')
		out = append(out, encode(v)...)
		return true
	})
	return append(out, '}')
}

func (h *hot) runSection(private bool) json.RawMessage {
	out := []byte{'{'}
	h.runs.each(func(id string, r *Run) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(appendText(out, id), ':')
		out = append(out, h.whole(r, private)...)
		return true
	})
	return append(out, '}')
}

// whole renders a run with its lists nested in it.
func (h *hot) whole(r *Run, private bool) json.RawMessage {
	c := *r
	if !private {
		c.TokenSHA256 = ""
	}
	c.Extra = maps.Clone(r.Extra)
	if c.Extra == nil {
		c.Extra = Members{}
	}
	c.Extra[inReceipts] = list(h.receipts, r.ID)
	if reserved := list(h.reservations, r.ID); len(reserved) > len("{}") {
		c.Extra[inReservations] = reserved
	}
	return encode(&c)
}

// list renders a run's own list as an object.
func list[V any](m pmap[V], run RunID) json.RawMessage {
	out := []byte{'{'}
	head := below(run, "")
	m.prefix(head, func(key string, v V) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(appendText(out, strings.TrimPrefix(key, head)), ':')
		out = append(out, encode(v)...)
	})
	return append(out, '}')
}

// fromDocument builds the state from a checked document's members. What it does not know it
// keeps. The store member is the caller's.
func fromDocument(members []member) (*hot, error) {
	h := &hot{}
	missing := map[string]bool{"version": true, topProject: true, topPaused: true, "runs": true, "events": true, inResults: true}
	// Runs' lists are made of runs' members, and events decide the last sequence: any order of
	// sections gives the same state.
	for _, m := range members {
		delete(missing, m.key)
		if err := h.load(m); err != nil {
			return nil, err
		}
	}
	if len(missing) > 0 {
		names := sortedKeys(missing)
		return nil, faultAt(0, "without the required member %s", strings.Join(names, ", "))
	}
	h.lastEvent = max(h.lastEvent, h.discardedThrough())
	return h, nil
}

func (h *hot) load(m member) error {
	switch m.key {
	case "version", "store":
		return nil
	case topProject, topPaused, topRetention, topFindings:
		return putTop(h, m.key, m.raw, m.off)
	case "events":
		return h.loadEvents(m)
	case "runs":
		return h.loadRuns(m)
	case inObservations:
		h.observed = true
	case inAccountHolds:
		h.held = true
	case inResults, inCommands, inPermissions, inMaintenance, inOperations, inRequests:
	default:
		if h.extra == nil {
			h.extra = Members{}
		}
		h.extra[m.key] = canonical(m.raw)
		return nil
	}
	return h.loadSection(collections[m.key], m)
}

func (h *hot) loadSection(c collection, m member) error {
	if m.raw[0] != '{' {
		return wrongType(m.raw, m.off, c.name+": an object")
	}
	for _, e := range m.members() {
		if err := c.put(h, e.key, e.raw, e.off); err != nil {
			return inEntity(c.name, e.key, err)
		}
	}
	return nil
}

// inEntity says in which entity a fault is.
func inEntity(section, key string, err error) error {
	if f, ok := err.(*fault); ok {
		return &fault{off: f.off, what: section + "." + key + ": " + f.what}
	}
	return err
}

func (h *hot) loadEvents(m member) error {
	if m.raw[0] != '[' {
		return wrongType(m.raw, m.off, "events: an array")
	}
	all := m.members()
	h.events = slices.Grow(h.events, len(all))
	for _, e := range all {
		if err := h.loadEvent(e.raw, e.off); err != nil {
			return err
		}
	}
	return nil
}

func (h *hot) loadEvent(raw []byte, off int) error {
	e, err := readEvent(raw, off)
	if err != nil {
		return err
	}
	if e.sequence <= h.lastEvent {
		return faultAt(off, "event %d after event %d", e.sequence, h.lastEvent)
	}
	h.addEvent(e)
	return nil
}

// loadRuns takes the runs and, out of each, its lists.
func (h *hot) loadRuns(m member) error {
	if m.raw[0] != '{' {
		return wrongType(m.raw, m.off, "runs: an object")
	}
	for _, e := range m.members() {
		if err := collections[inRuns].put(h, e.key, e.raw, e.off); err != nil {
			return inEntity("runs", e.key, err)
		}
		run := lookup(h.runs, e.key)
		for _, name := range []string{inReceipts, inReservations} {
			delete(run.Extra, name)
		}
		if err := h.loadLists(run.ID, e); err != nil {
			return inEntity("runs", e.key, err)
		}
	}
	return nil
}

func (h *hot) loadLists(run RunID, m member) error {
	for _, l := range m.members() {
		if l.key != inReceipts && l.key != inReservations {
			continue
		}
		if l.raw[0] != '{' {
			return wrongType(l.raw, l.off, l.key+": an object")
		}
		for _, e := range l.members() {
			if err := collections[l.key].put(h, below(run, e.key), e.raw, e.off); err != nil {
				return inEntity(l.key, e.key, err)
			}
		}
	}
	return nil
}

// validName is the form of every id: a letter or digit, then up to 199 of those, - and _.
// Spec: reference 1, identities.
func validName(s string) bool {
	if len(s) < 1 || len(s) > 200 {
		return false
	}
	for i, c := range []byte(s) {
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && (i == 0 || c != '-' && c != '_') {
			return false
		}
	}
	return true
}
