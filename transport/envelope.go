package transport

import (
	"math"
	"strconv"
)

// maxIDBytes bounds a request id; longer ones are no ids.
const maxIDBytes = 1024

// Bounds of what is kept of an agent's error.
const (
	maxFaultMessage = 1 << 10
	maxFaultData    = 4 << 10
)

// JSON-RPC error codes that the client sends, or finds in place of a broken one.
const (
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeAuthRequired   = -32000
	codeBusy           = -32005
)

// envelope is one JSON-RPC object, its members as raw values.
type envelope struct {
	version, id, method, params, result, fault []byte
	// repeated says that one of these members stands twice.
	repeated bool
}

// readEnvelope reads and validates the object that starts at b[i] and returns the index
// after it, -1 when it is malformed. Member names are matched exactly, not like the SDK
// does, which also takes "ID" and "Result".
func readEnvelope(b []byte, i int) (envelope, int) {
	var env envelope
	m := members{b: b, i: i}
	for m.next() {
		var slot *[]byte
		switch string(m.key) {
		case "jsonrpc":
			slot = &env.version
		case "id":
			slot = &env.id
		case "method":
			slot = &env.method
		case "params":
			slot = &env.params
		case "result":
			slot = &env.result
		case "error":
			slot = &env.fault
		default:
			continue
		}
		if *slot != nil {
			env.repeated = true
		}
		*slot = m.value
	}
	return env, m.end()
}

// class is what an envelope means.
type class int8

const (
	// classNone is no message of the protocol.
	classNone class = iota
	classNotification
	classRequest
	classReply
	// classStray is a reply without an id: the agent could not read something, or is confused.
	classStray
	// classBadRequest has an id to answer to, but no usable method.
	classBadRequest
)

// classify says what env is. An object with a method and an answer is taken for the answer,
// since some agents repeat the method in it, unless it carries parameters.
func (env *envelope) classify() class {
	answer := env.result != nil || !isNull(env.fault)
	switch {
	case env.method != nil && !(answer && env.params == nil):
		switch {
		case isNull(env.id):
			if !isString(env.method) || env.repeated {
				return classNone
			}
			return classNotification
		case !validID(env.id):
			return classNone
		case !isString(env.method) || env.repeated:
			return classBadRequest
		}
		return classRequest
	case validID(env.id):
		return classReply
	case answer:
		return classStray
	}
	return classNone
}

func validID(raw []byte) bool {
	if len(raw) == 0 || len(raw) > maxIDBytes {
		return false
	}
	c := raw[0]
	return c == '"' || c == '-' || c >= '0' && c <= '9'
}

// replyNumber turns a reply's id into the number that we sent: 1, 1.0, 1e0 and "1" are one.
func replyNumber(raw []byte) (uint64, bool) {
	s := string(raw)
	if isString(raw) {
		s = text(raw)
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return n, true
	}
	f, ok := wholeNumber(s)
	if !ok || f < 0 {
		return 0, false
	}
	return uint64(f), true
}

// wholeNumber reads a JSON number with a zero fraction, up to 2^53 either way.
func wholeNumber(s string) (float64, bool) {
	if end := skipNumber([]byte(s), 0); end != len(s) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return f, true
}

// fault is an agent's error answer, put right.
type fault struct {
	code    int
	message string
	// data is the error's data, or the whole error where that was malformed; nil when larger
	// than maxFaultData.
	data []byte
	// repaired says that the error was malformed.
	repaired bool
	// unusable says that the agent sent no error: its answer cannot be taken, and message says why.
	unusable bool
}

// cannotUse is the fault of an answer that is none.
func cannotUse(why string) *fault {
	return &fault{code: codeInternal, message: why, repaired: true, unusable: true}
}

// readFault reads a raw error member. A code that is a string or has a zero fraction is
// taken; anything else becomes an internal error that keeps the original as data.
func readFault(raw []byte) fault {
	f := fault{code: codeInternal, message: "malformed error", repaired: true}
	if !isObject(raw) {
		f.data = keep(raw)
		if isString(raw) {
			f.message = cut(text(raw), maxFaultMessage)
		}
		return f
	}
	var code, message []byte
	for m := (members{b: raw}); m.next(); {
		switch string(m.key) {
		case "code":
			code = m.value
		case "message":
			message = m.value
		case "data":
			f.data = keep(m.value)
		}
	}
	if isString(message) {
		f.message = cut(text(message), maxFaultMessage)
	}
	if n, err := strconv.ParseInt(string(code), 10, 32); err == nil {
		f.code, f.repaired = int(n), !isString(message)
		return f
	}
	s := string(code)
	if isString(code) {
		s = text(code)
	}
	if n, ok := wholeNumber(s); ok && math.Abs(n) <= math.MaxInt32 {
		f.code = int(n)
		return f
	}
	f.data = keep(raw)
	return f
}

func keep(raw []byte) []byte {
	if len(raw) > maxFaultData {
		return nil
	}
	return append([]byte(nil), raw...)
}

// unit is one step of a splitter.
type unit int8

const (
	unitEnd unit = iota
	unitMessage
	unitGarbage
)

// splitter takes one line apart: a message, several behind one another, or batch arrays.
// What follows the first fault is garbage up to the line's end.
type splitter struct {
	b     []byte
	i     int
	batch *elements
	// size is the length of the unit that next returned.
	size int
}

// next returns the next message of the line.
func (s *splitter) next() (envelope, unit) {
	for {
		if s.batch != nil {
			if s.batch.next() {
				s.size = len(s.batch.value)
				env, end := readEnvelope(s.batch.value, 0)
				if end < 0 {
					return envelope{}, unitGarbage
				}
				return env, unitMessage
			}
			s.i, s.batch = s.batch.end(), nil
		}
		s.i = skipSpace(s.b, s.i)
		if s.i >= len(s.b) {
			return envelope{}, unitEnd
		}
		from := s.i
		switch s.b[from] {
		case '{':
			env, end := readEnvelope(s.b, from)
			if end < 0 {
				break
			}
			s.i, s.size = end, end-from
			return env, unitMessage
		case '[':
			// Checked whole before the first element is acted on.
			if skipValue(s.b, from, 0) > 0 {
				s.batch = &elements{b: s.b, i: from}
				continue
			}
		}
		s.i, s.size = len(s.b), len(s.b)-from
		return envelope{}, unitGarbage
	}
}

// byteOrderMark may stand at the start of a line.
const byteOrderMark = "\xef\xbb\xbf"

// headOf recovers what it can from the first bytes of a message that was too large to keep:
// the members that stand before the one that did not fit, and the id where that stands at
// the very end, as some agents write it.
func headOf(first, last []byte) envelope {
	var env envelope
	m := members{b: first, i: skipSpace(first, 0)}
	for m.next() {
		switch string(m.key) {
		case "id":
			env.id = m.value
		case "method":
			env.method = m.value
		}
	}
	if env.id == nil {
		env.id = idAtEnd(last)
	}
	return env
}

// idAtEnd returns the id in `,"id":ID}` at the end of a line. One brace after it means that
// it is a member of the outermost object.
func idAtEnd(b []byte) []byte {
	end := len(b)
	for end > 0 && (b[end-1] == ' ' || b[end-1] == '\r' || b[end-1] == '\t') {
		end--
	}
	if end == 0 || b[end-1] != '}' {
		return nil
	}
	const name = `"id"`
	for i := end - len(name); i >= 0; i-- {
		if string(b[i:i+len(name)]) != name {
			continue
		}
		v := skipSpace(b, i+len(name))
		if v >= end || b[v] != ':' {
			return nil
		}
		v = skipSpace(b, v+1)
		stop := skipValue(b, v, 0)
		if stop < 0 || skipSpace(b, stop) != end-1 || !validID(b[v:stop]) {
			return nil
		}
		return b[v:stop]
	}
	return nil
}
