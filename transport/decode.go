package transport

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
)

const (
	maxWord = 128
	maxID   = 4 << 10
)

// fields are the members of an update that this client reads, as raw values.
type fields struct {
	kind, content, messageID                           []byte
	toolCallID, title, toolKind, status, locations     []byte
	rawInput                                           []byte
	mode, entries, commands, options, used, size, cost []byte
	twice                                              bool
}

func (f *fields) slot(name []byte) *[]byte {
	switch string(name) {
	case "sessionUpdate":
		return &f.kind
	case "content":
		return &f.content
	case "messageId":
		return &f.messageID
	case "toolCallId":
		return &f.toolCallID
	case "title":
		return &f.title
	case "kind":
		return &f.toolKind
	case "status":
		return &f.status
	case "locations":
		return &f.locations
	case "rawInput":
		return &f.rawInput
	case "currentModeId":
		return &f.mode
	case "entries":
		return &f.entries
	case "availableCommands":
		return &f.commands
	case "configOptions":
		return &f.options
	case "used":
		return &f.used
	case "size":
		return &f.size
	case "cost":
		return &f.cost
	}
	return nil
}

// decodeUpdate reads the params of a session/update. It never fails: what it does not know,
// or what lacks a required field, keeps kind, size and hash, and is never taken for another
// kind.
func decodeUpdate(params []byte) Update {
	var u Update
	var update []byte
	twice := false
	for m := (members{b: params}); m.next(); {
		switch string(m.key) {
		case "sessionId":
			twice = twice || u.SessionID != ""
			u.SessionID = cut(text(m.value), maxID)
		case "update":
			twice = twice || update != nil
			update = m.value
		}
	}
	u.Bytes = len(update)
	var f fields
	walk := members{b: update}
	for walk.next() {
		if slot := f.slot(walk.key); slot != nil {
			f.twice = f.twice || *slot != nil
			*slot = walk.value
		}
	}
	u.Kind = cut(text(f.kind), maxWord)
	if walk.end() > 0 && !twice && !f.twice {
		u.Known = u.fill(&f)
	}
	if u.Known {
		u.Raw = json.RawMessage(update)
		return u
	}
	sum := sha256.Sum256(update)
	u.SHA256 = hex.EncodeToString(sum[:])
	u.Title, u.Text, u.MessageID = "", "", ""
	return u
}

// fill reads what belongs to the kind; false when a required field is missing or wrong.
func (u *Update) fill(f *fields) bool {
	switch u.Kind {
	case "agent_message_chunk", "user_message_chunk", "agent_thought_chunk":
		u.MessageID = cut(text(f.messageID), maxID)
		return u.fillContent(f.content)
	case "tool_call":
		return u.fillTool(f) && isString(f.title)
	case "tool_call_update":
		return u.fillTool(f)
	case "usage_update":
		u.Usage = &UsageReport{Used: counter(f.used), Size: counter(f.size), Cost: cost(f.cost)}
		return true
	case "current_mode_update":
		u.Mode = cut(text(f.mode), maxID)
		return isString(f.mode)
	case "plan":
		return isArray(f.entries)
	case "available_commands_update":
		return isArray(f.commands)
	case "config_option_update":
		return isArray(f.options)
	case "session_info_update":
		return true
	}
	return false
}

// fillContent reads a content block. A type that the protocol does not have makes the update
// unknown: its text, if it had one, could mean anything.
func (u *Update) fillContent(raw []byte) bool {
	var kind, body []byte
	for m := (members{b: raw}); m.next(); {
		switch string(m.key) {
		case "type":
			kind = m.value
		case "text":
			body = m.value
		}
	}
	u.ContentType = cut(text(kind), maxWord)
	switch u.ContentType {
	case "text":
		u.Text = text(body)
		return isString(body)
	case "image", "audio", "resource_link", "resource":
		return true
	}
	return false
}

func (u *Update) fillTool(f *fields) bool {
	u.ToolCallID = cut(text(f.toolCallID), maxID)
	u.Title = text(f.title)
	u.ToolKind = cut(text(f.toolKind), maxWord)
	u.Status = cut(text(f.status), maxWord)
	u.ContentCount, u.LocationCount = count(f.content), count(f.locations)
	return u.ToolCallID != ""
}

// counter reads one reported number. 1.0 is whole, and strings are no numbers.
func counter(raw []byte) Counter {
	if isNull(raw) {
		return Counter{Reading: Missing}
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil && n >= 0 {
		return Counter{Reading: Reported, Value: n}
	}
	if f, ok := wholeNumber(string(raw)); ok && f >= 0 {
		return Counter{Reading: Reported, Value: int64(f)}
	}
	return Counter{Reading: Invalid}
}

func cost(raw []byte) Cost {
	if isNull(raw) {
		return Cost{Reading: Missing}
	}
	amount, currency := member(raw, "amount"), text(member(raw, "currency"))
	f, err := strconv.ParseFloat(string(amount), 64)
	if err != nil || skipNumber(amount, 0) != len(amount) || len(amount) > 64 ||
		f < 0 || math.IsInf(f, 0) || currency == "" || len(currency) > 16 {
		return Cost{Reading: Invalid}
	}
	return Cost{Reading: Reported, Amount: json.Number(amount), Currency: currency}
}

// tokens reads the usage member of a prompt's answer.
func tokens(raw []byte) Tokens {
	if isNull(raw) {
		return Tokens{Reading: Missing}
	}
	t := Tokens{Reading: Invalid}
	if !isObject(raw) {
		return t
	}
	for _, f := range []struct {
		name string
		to   *Counter
	}{
		{"inputTokens", &t.Input}, {"outputTokens", &t.Output}, {"totalTokens", &t.Total},
		{"thoughtTokens", &t.Thought}, {"cachedReadTokens", &t.CachedRead},
		{"cachedWriteTokens", &t.CachedWritten},
	} {
		*f.to = counter(member(raw, f.name))
		if f.to.Reading == Reported {
			t.Reading = Reported
		}
	}
	return t
}
