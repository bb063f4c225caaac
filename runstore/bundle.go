package runstore

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// A bundle is what leaves the hot state together, and comes back together: a finished run with
// its lists, result, commands, permission requests and the application of its result; or one
// finished maintenance operation; or the receipts of some requests. It is a small state of its own, so
// that all look-ups work in it.

// The kinds of keys under which the index finds a bundle.
const (
	keyRun        = "run"
	keyResult     = "result"
	keyCommand    = "command"
	keyPermission = "permission"
	keyOperation  = "operation"
	keyTask       = "task"
	keySession    = "session"
	keyRequest    = "request"
)

// leaves are the kinds of entities that a bundle can hold.
var leaves = map[string]bool{inRuns: true, inReceipts: true, inReservations: true, inResults: true, inCommands: true,
	inPermissions: true, inOperations: true, inMaintenance: true, inRequests: true}

// hashKey is what the index knows of a key.
func hashKey(kind, id string) uint64 {
	sum := sha256.Sum256([]byte(kind + "\x00" + id))
	return binary.LittleEndian.Uint64(sum[:])
}

// bundleOfRun gathers what belongs to a run of h, nil where the run is not there.
func (h *hot) bundleOfRun(id RunID) *hot {
	r := lookup(h.runs, string(id))
	if r == nil {
		return nil
	}
	b := &hot{}
	b.putRun(r)
	h.receipts.prefix(below(id, ""), func(key string, sha string) { b.receipts = b.receipts.set(key, sha) })
	h.reservations.prefix(below(id, ""), func(key string, r *Reservation) { b.reservations = b.reservations.set(key, r) })
	if res := lookup(h.resultOfRun, string(id)); res != nil {
		b.putResult(res)
		if o := lookup(h.operations, string(res.ID())); o != nil {
			b.putOperation(o)
		}
	}
	for _, c := range children(h.commandsByRun, string(id)) {
		b.putCommand(c)
	}
	for _, p := range children(h.permissionsByRun, string(id)) {
		b.putPermission(p)
	}
	return b
}

// settled tells whether a run has ended and nothing of its bundle can move by itself any more.
func (h *hot) settled(r *Run) bool {
	if !r.State.Terminal() || r.Control != nil && r.Control.Status != controlCompleted {
		return false
	}
	if res := lookup(h.resultOfRun, string(r.ID)); res != nil {
		o := lookup(h.operations, string(res.ID()))
		if res.Open() || o != nil && o.Open() {
			return false
		}
	}
	for _, c := range children(h.commandsByRun, string(r.ID)) {
		if c.Open() {
			return false
		}
	}
	for _, p := range children(h.permissionsByRun, string(r.ID)) {
		if p.Open() {
			return false
		}
	}
	return true
}

// entities names everything that a bundle holds.
func (b *hot) entities() map[change]struct{} {
	all := map[change]struct{}{}
	name(all, inRuns, b.runs)
	name(all, inReceipts, b.receipts)
	name(all, inReservations, b.reservations)
	name(all, inResults, b.results)
	name(all, inCommands, b.commands)
	name(all, inPermissions, b.permissions)
	name(all, inOperations, b.operations)
	name(all, inMaintenance, b.maintenance)
	name(all, inRequests, b.requests)
	return all
}

func name[V any](all map[change]struct{}, collection string, m pmap[V]) {
	m.each(func(key string, _ V) bool { all[change{collection, key}] = struct{}{}; return true })
}

// take puts a bundle into h.
func (h *hot) take(b *hot) {
	putAll(b.runs, h.putRun)
	putAll(b.results, h.putResult)
	putAll(b.commands, h.putCommand)
	putAll(b.permissions, h.putPermission)
	putAll(b.operations, h.putOperation)
	putAll(b.maintenance, h.putOperation)
	b.receipts.each(func(key, sha string) bool { h.receipts = h.receipts.set(key, sha); return true })
	b.reservations.each(func(key string, r *Reservation) bool { h.reservations = h.reservations.set(key, r); return true })
	b.requests.each(func(key string, r *Request) bool { h.requests = h.requests.set(key, r); return true })
}

func putAll[V any](m pmap[V], into func(V)) {
	m.each(func(_ string, v V) bool { into(v); return true })
}

// drop removes a settled bundle from h.
func (h *hot) drop(b *hot) {
	putAll(b.runs, h.dropRun)
	putAll(b.results, func(r *Result) {
		h.results, h.resultOfRun = h.results.del(string(r.ID())), h.resultOfRun.del(string(r.Envelope.RunID))
	})
	putAll(b.commands, func(c *Command) {
		h.commands, h.commandsByRun = h.commands.del(string(c.ID)), h.commandsByRun.del(within(c.RunID, c.ID))
	})
	putAll(b.permissions, func(p *Permission) {
		h.permissions, h.permissionsByRun = h.permissions.del(string(p.ID)), h.permissionsByRun.del(within(p.RunID, p.ID))
	})
	putAll(b.operations, h.dropOperation)
	putAll(b.maintenance, h.dropOperation)
	b.receipts.each(func(key, _ string) bool { h.receipts = h.receipts.del(key); return true })
	b.reservations.each(func(key string, _ *Reservation) bool { h.reservations = h.reservations.del(key); return true })
	b.requests.each(func(key string, _ *Request) bool { h.requests = h.requests.del(key); return true })
}

// keys returns the hashes of all keys of a bundle, each once.
func (b *hot) keys() []uint64 {
	seen := map[uint64]struct{}{}
	var all []uint64
	add := func(kind, id string) {
		hash := hashKey(kind, id)
		if _, twice := seen[hash]; !twice {
			seen[hash] = struct{}{}
			all = append(all, hash)
		}
	}
	putAll(b.runs, func(r *Run) {
		add(keyRun, string(r.ID))
		add(keyTask, string(r.TaskID))
		if r.SessionID != nil {
			add(keySession, *r.SessionID)
		}
	})
	putAll(b.results, func(r *Result) { add(keyResult, string(r.ID())) })
	putAll(b.commands, func(c *Command) { add(keyCommand, string(c.ID)) })
	putAll(b.permissions, func(p *Permission) { add(keyPermission, string(p.ID)) })
	operation := func(o *Operation) { add(keyOperation, string(o.ID)); add(keyTask, string(o.TaskID)) }
	putAll(b.operations, operation)
	putAll(b.maintenance, operation)
	putAll(b.requests, func(r *Request) { add(keyRequest, r.ID) })
	return all
}

// endedAt is when a run ended, in microseconds of the Unix epoch. A run of an older store has only
// the time of its last change.
func endedAt(r *Run) int64 {
	at := r.UpdatedAt
	if r.EndedAt != nil {
		at = *r.EndedAt
	}
	return int64(math.Round(min(max(at*1e6, math.MinInt64), math.MaxInt64/2)))
}

// endOf is where a finished run stands in the list of all of them.
func endOf(r *Run) endEntry {
	return endEntry{ended: endedAt(r), hash: hashKey(keyRun, string(r.ID))}
}

// dated gives the run of a bundle that leaves its end, where it is of an older store that did not
// record it: in the list of finished runs it stays where it is, whatever becomes of it later.
func (b *hot) dated() *hot {
	putAll(b.runs, func(r *Run) {
		if r.EndedAt == nil {
			c := r.clone()
			c.EndedAt = copied(&r.UpdatedAt)
			b.putRun(c)
		}
	})
	return b
}

// entries is what an index says of a bundle whose line stands at p.
func (b *hot) entries(p place) (keys []keyEntry, ends []endEntry) {
	for _, hash := range b.keys() {
		keys = append(keys, keyEntry{hash, p})
	}
	putAll(b.runs, func(r *Run) {
		e := endOf(r)
		e.at = p
		ends = append(ends, e)
	})
	return keys, ends
}

// encodeBundle renders a bundle as one line of a segment.
func encodeBundle(b *hot) []byte {
	return seal(append(appendChanges(nil, b.entities(), b), '}'))
}

// decodeBundle reads one line of a segment, with its newline.
func decodeBundle(text []byte) (*hot, error) {
	if len(text) == 0 || text[len(text)-1] != '\n' {
		return nil, faultAt(len(text), "no end of line")
	}
	object, err := openLine(text[:len(text)-1], 0)
	if err != nil {
		return nil, err
	}
	b := &hot{}
	for _, m := range object.members() {
		if m.key != "changes" {
			return nil, faultAt(m.off, "unknown member %q", m.key)
		}
		for _, section := range m.members() {
			if !leaves[section.key] {
				return nil, faultAt(section.off, "%q never leaves the hot state", section.key)
			}
		}
		if err := applyChanges(b, m); err != nil {
			return nil, err
		}
	}
	return b, nil
}
