package transport

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
	"time"
)

const (
	// maxToolCalls is how many tool calls are remembered, maxToolBytes how much of each.
	maxToolCalls = 64
	maxToolBytes = MaxPermissionBytes
)

// toolMembers are the members of a tool call that a permission request may leave out because
// the updates before it have given them.
var toolMembers = []string{"title", "kind", "status", "content", "locations", "rawInput"}

// toolbook remembers the tool calls that updates have described: some agents ask permission
// for a tool call by its id alone.
type toolbook struct {
	key [16]byte

	mu    sync.Mutex
	calls map[string]*toolCall
	order []string
}

// toolCall holds members as raw values.
type toolCall struct {
	members map[string][]byte
	size    int
	// overflown says that members were too large to remember.
	overflown bool
}

func newToolbook() *toolbook {
	b := &toolbook{calls: map[string]*toolCall{}}
	// Never fails on the supported systems; it ends the program where it does.
	_, _ = rand.Read(b.key[:])
	return b
}

// reference names a tool call without telling its id.
func (b *toolbook) reference(id string) string {
	mac := hmac.New(sha256.New, b.key[:])
	mac.Write([]byte(id))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// note remembers what a tool_call or tool_call_update says. begins says that it is a tool_call: what
// was said under its id before was another call, such as one of a turn that was replayed.
func (b *toolbook) note(id string, begins bool, update []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if begins {
		b.forget(id)
	}
	call := b.calls[id]
	if call == nil {
		if len(b.order) == maxToolCalls {
			delete(b.calls, b.order[0])
			b.order = b.order[1:]
		}
		call = &toolCall{members: map[string][]byte{}}
		b.calls[id] = call
		b.order = append(b.order, id)
	}
	for m := (members{b: update}); m.next(); {
		name := string(m.key)
		if isNull(m.value) || !slices.Contains(toolMembers, name) {
			continue
		}
		call.size += len(m.value) - len(call.members[name])
		if call.size > maxToolBytes {
			call.size -= len(m.value)
			call.overflown = true
			delete(call.members, name)
			continue
		}
		call.members[name] = bytes.Clone(m.value)
	}
	switch string(call.members["status"]) {
	case `"completed"`, `"failed"`:
		b.forget(id)
	}
}

// forget drops a tool call; the book's lock is held.
func (b *toolbook) forget(id string) {
	if b.calls[id] == nil {
		return
	}
	delete(b.calls, id)
	b.order = slices.DeleteFunc(b.order, func(o string) bool { return o == id })
}

// complete returns the tool call of a permission request with the members that it leaves out
// added from earlier updates; false when they were too large to remember.
func (b *toolbook) complete(id string, request []byte) ([]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	call := b.calls[id]
	if call == nil {
		return request, true
	}
	out := []byte{'{'}
	given := map[string]bool{}
	for m := (members{b: request}); m.next(); {
		if isNull(m.value) {
			continue
		}
		given[string(m.key)] = true
		out = appendMember(out, m.key, m.value)
	}
	for _, name := range toolMembers {
		if raw := call.members[name]; raw != nil && !given[name] {
			out = appendMember(out, []byte(name), raw)
		}
	}
	out = append(out, '}')
	return out, !call.overflown && len(out) <= MaxPermissionBytes
}

func appendMember(out, key, value []byte) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = append(out, '"')
	out = append(out, key...)
	out = append(out, '"', ':')
	return append(out, value...)
}

// observe turns a tool update into what may be kept of it.
func observe(u *Update, at time.Time) ToolObservation {
	return ToolObservation{
		At: at, Phase: u.Phase, Update: u.Kind, Reference: u.ToolReference,
		ToolKind: known(u.ToolKind, "read", "edit", "delete", "move", "search", "execute", "think",
			"fetch", "switch_mode", "other"),
		Status:       known(u.Status, "pending", "in_progress", "completed", "failed"),
		ContentCount: u.ContentCount, LocationCount: u.LocationCount,
	}
}

// known keeps agent text out: a word that the protocol does not have becomes "other".
func known(word string, words ...string) string {
	if word == "" || slices.Contains(words, word) {
		return word
	}
	return "other"
}
