package transport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

const (
	// maxGarbageLines and maxGarbageBytes bound what is skipped on standard output because it
	// is no protocol message.
	maxGarbageLines = 10_000
	maxGarbageBytes = 16 << 20
)

// inbound is the reader that the SDK gets in place of the agent's standard output. It hands
// over one well-formed message at a time, in an envelope that it has written itself, so that
// nothing the SDK decodes can fail, be misread, or be lost without being counted.
type inbound struct {
	c   *conn
	src *source
	// start is closed when the SDK has its logger: setting it later is a race.
	start chan struct{}

	split splitter
	parts [3][]byte
	part  int
	ended bool
	// done is closed when end of file was handed to the SDK.
	done chan struct{}
}

// Read is called by the SDK's one reader goroutine.
func (in *inbound) Read(p []byte) (int, error) {
	<-in.start
	for {
		n := 0
		for in.part < len(in.parts) && n < len(p) {
			k := copy(p[n:], in.parts[in.part])
			n += k
			if in.parts[in.part] = in.parts[in.part][k:]; len(in.parts[in.part]) == 0 {
				in.part++
			}
		}
		if n > 0 || len(p) == 0 {
			return n, nil
		}
		if in.ended {
			return 0, io.EOF
		}
		if err := in.advance(); err != nil {
			in.finish(err)
		}
	}
}

func (in *inbound) emit(head, body, end []byte) {
	in.parts, in.part = [3][]byte{head, body, end}, 0
}

// The fixed parts of what is emitted; written once, since updates are many.
var (
	updateHead = []byte(`{"jsonrpc":"2.0","method":"session/update","params":`)
	cancelHead = []byte(`{"jsonrpc":"2.0","method":"$/cancel_request","params":`)
	messageEnd = []byte("}\n")
	nothing    = []byte("null")
)

// advance reads on until there is a message for the SDK, and emits it.
func (in *inbound) advance() error {
	for {
		env, what := in.split.next()
		switch what {
		case unitMessage:
			if emitted, err := in.message(env); emitted || err != nil {
				return err
			}
			continue
		case unitGarbage:
			if err := in.garbage(int64(in.split.size)); err != nil {
				return err
			}
			continue
		}
		l, err := in.src.next()
		if err != nil {
			return err
		}
		if l.last != nil {
			if emitted, err := in.tooLarge(l); emitted || err != nil {
				return err
			}
			continue
		}
		in.split = splitter{b: l.b}
		if len(l.b) >= len(byteOrderMark) && string(l.b[:len(byteOrderMark)]) == byteOrderMark {
			in.split.i = len(byteOrderMark)
			in.c.stats.add(func(s *Stats) { s.Repaired++ })
		}
	}
}

// message deals with one envelope; true when something was emitted for the SDK.
func (in *inbound) message(env envelope) (bool, error) {
	what := env.classify()
	if what == classNone {
		return false, in.garbage(int64(in.split.size))
	}
	if string(env.version) != `"2.0"` {
		in.c.stats.add(func(s *Stats) { s.Repaired++ })
	}
	switch what {
	case classNotification:
		return in.notification(env)
	case classRequest:
		return in.request(env)
	case classReply:
		return in.reply(env), nil
	case classStray:
		in.c.stats.add(func(s *Stats) { s.StrayReplies++ })
		return false, nil
	}
	in.refuse(env.id, codeInvalidRequest, "Invalid request")
	return false, nil
}

func (in *inbound) notification(env envelope) (bool, error) {
	params := env.params
	if params == nil {
		params = nothing
	}
	switch string(env.method) {
	case `"session/update"`:
		if err := in.c.ledger.pass(in.c.o.SettleTimeout); err != nil {
			return false, in.c.stuck(err)
		}
		in.emit(updateHead, params, messageEnd)
		return true, nil
	case `"$/cancel_request"`:
		in.emit(cancelHead, params, messageEnd)
		return true, nil
	}
	in.c.stats.add(func(s *Stats) { s.Extensions++ })
	in.c.active(in.c.awaitsTurn())
	return false, nil
}

// request lets a permission request through once everything said before it was handled, and
// refuses whatever else the agent may ask of its client, since nothing else is offered.
func (in *inbound) request(env envelope) (bool, error) {
	in.c.active(in.c.awaitsTurn())
	if string(env.method) != `"session/request_permission"` {
		in.refuse(env.id, codeNoMethod, "Method not found")
		return false, nil
	}
	if len(env.params) > MaxPermissionBytes {
		in.refuse(env.id, codeInvalidParams, fmt.Sprintf(
			"permission request of %d bytes is over the limit of %d", len(env.params), MaxPermissionBytes))
		return false, nil
	}
	if err := in.c.ledger.settled(in.c.o.SettleTimeout); err != nil {
		return false, in.c.stuck(err)
	}
	number, code, why := in.c.questions.open(env.id)
	if why != "" {
		in.refuse(env.id, code, why)
		return false, nil
	}
	params := env.params
	if params == nil {
		params = nothing
	}
	// The SDK keeps the id from its handler, so the question's number travels in the params.
	in.emit([]byte(`{"jsonrpc":"2.0","id":`+string(env.id)+`,"method":"session/request_permission","params":{"number":`+
		strconv.FormatInt(number, 10)+`,"params":`), params, []byte("}}\n"))
	return true, nil
}

// reply lets the answer to the open call through, put right; all others are counted.
func (in *inbound) reply(env envelope) bool {
	number, ok := replyNumber(env.id)
	if !ok {
		in.c.stats.add(func(s *Stats) { s.StrayReplies++ })
		return false
	}
	var wrong *fault
	switch {
	case env.repeated:
		wrong = cannotUse("it is ambiguous, since a member stands twice")
	case !isNull(env.fault):
		f := readFault(env.fault)
		f.repaired = f.repaired || env.result != nil
		wrong = &f
	case env.result == nil:
		wrong = cannotUse("it has neither a result nor an error")
	}
	return in.answer(number, env.id, env.result, wrong)
}

func (in *inbound) answer(number uint64, rawID, result []byte, wrong *fault) bool {
	id := strconv.FormatUint(number, 10)
	if !in.c.answered(number, wrong) {
		in.c.stats.add(func(s *Stats) { s.StrayReplies++ })
		return false
	}
	if id != string(rawID) || wrong != nil && wrong.repaired {
		in.c.stats.add(func(s *Stats) { s.Repaired++ })
	}
	head := `{"jsonrpc":"2.0","id":` + id
	if wrong == nil {
		in.emit([]byte(head+`,"result":`), result, messageEnd)
		return true
	}
	// The caller takes message and data from the call, not from the SDK.
	in.emit([]byte(head+`,"error":{"code":`+strconv.Itoa(wrong.code)+`,"message":""}`), nil, messageEnd)
	return true
}

// tooLarge deals with a line over the limit: an answer becomes an error for its call, a
// request is refused, anything else is a gap.
func (in *inbound) tooLarge(l line) (bool, error) {
	env := headOf(l.b, l.last)
	why := fmt.Sprintf("message of %d bytes is over the limit of %d", l.size, in.src.max)
	switch {
	case env.method != nil && validID(env.id):
		in.refuse(env.id, codeInvalidRequest, why)
		return false, nil
	case env.method == nil && validID(env.id):
		if number, ok := replyNumber(env.id); ok {
			return in.answer(number, env.id, nil, cannotUse(why)), nil
		}
	}
	if i := skipSpace(l.b, 0); i >= len(l.b) || l.b[i] != '{' && l.b[i] != '[' {
		return false, in.garbage(l.size)
	}
	in.c.gap()
	return false, nil
}

func (in *inbound) garbage(size int64) error {
	var lines, bytes int64
	in.c.stats.add(func(s *Stats) {
		s.GarbageLines++
		s.GarbageBytes += size
		lines, bytes = s.GarbageLines, s.GarbageBytes
	})
	if lines > maxGarbageLines || bytes > maxGarbageBytes {
		return &Error{Kind: Protocol, What: fmt.Sprintf(
			"the agent wrote %d lines, %d bytes, that are no protocol messages", lines, bytes)}
	}
	return nil
}

// refuse answers a request of the agent with an error.
func (in *inbound) refuse(id []byte, code int, why string) {
	in.c.stats.add(func(s *Stats) { s.Rejected++ })
	message, err := json.Marshal(why)
	if err != nil {
		panic(err) // a string always encodes
	}
	in.c.out.putWhenRoom([]byte(`{"jsonrpc":"2.0","id":`+string(id)+`,"error":{"code":`+strconv.Itoa(code)+
		`,"message":`+string(message)+"}}\n"), in.c.dead)
}

// finish ends the stream: what was said is delivered first, then the connection is dead, and
// only then does the SDK see end of file, on which it forgets what it still holds.
func (in *inbound) finish(err error) {
	in.ended = true
	defer close(in.done)
	if !errors.Is(err, errStuck) {
		if stuck := in.c.ledger.delivered(in.c.o.SettleTimeout); errors.Is(stuck, errStuck) {
			err = in.c.stuck(stuck)
		}
	}
	var e *Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, errEndless):
		e = &Error{Kind: Transport, What: fmt.Sprintf(
			"the agent wrote a line of more than %d bytes without an end", in.src.max+maxOverrun)}
	case errors.Is(err, io.EOF):
		e = in.c.lost()
	default:
		e = &Error{Kind: Transport, What: "reading the agent's standard output failed", Err: err}
	}
	in.c.fail(e)
}
