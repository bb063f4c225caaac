package runstore

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
)

// tailEvent is one event of the tail: its canonical JSON, which is decoded when somebody asks for
// it. A tail of thousands costs a start and a snapshot no more than its bytes.
type tailEvent struct {
	sequence uint64
	raw      json.RawMessage
}

func storedEvent(e *Event) tailEvent { return tailEvent{e.Sequence, encode(e)} }

// event decodes the event.
func (s tailEvent) event() *Event {
	e := new(Event)
	if err := decode(s.raw, 0, e); err != nil {
		panic("runstore: a checked event does not decode: " + err.Error())
	}
	return e
}

func decodeEvents(tail []tailEvent) []*Event {
	all := make([]*Event, len(tail))
	for i, s := range tail {
		all[i] = s.event()
	}
	return all
}

// eventsAfter returns the events of a tail that come after a sequence.
func eventsAfter(tail []tailEvent, sequence uint64) []tailEvent {
	i, _ := slices.BinarySearchFunc(tail, sequence+1, func(s tailEvent, n uint64) int { return cmp.Compare(s.sequence, n) })
	return tail[i:]
}

// readEvent checks an event that stands at off in its document, and returns it in canonical form.
func readEvent(raw []byte, off int) (tailEvent, error) {
	if raw[0] != '{' {
		return tailEvent{}, wrongType(raw, off, "an object")
	}
	e := tailEvent{raw: canonical(raw)}
	err := e.check(e.raw, off)
	if err == nil {
		return e, nil
	}
	// The same again as it is written says the place.
	if exact := e.check(raw, off); exact != nil {
		err = exact
	}
	return tailEvent{}, err
}

// check finds what would keep the event from being decoded, and takes its sequence.
func (s *tailEvent) check(raw []byte, off int) error {
	var at float64
	for w := walk(raw, off); w.next(); {
		var err error
		switch string(w.key) {
		case `"sequence"`:
			if s.sequence, err = strconv.ParseUint(string(w.raw), 10, 64); err != nil {
				return wrongType(w.raw, w.off, "an integer from 0")
			}
		case `"at"`:
			err = decode(w.raw, w.off, &at)
		case `"kind"`, `"run_id"`:
			if w.raw[0] != '"' && !(isNull(w.raw) && string(w.key) == `"run_id"`) {
				err = wrongType(w.raw, w.off, "a string")
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func eventSection(events []tailEvent) json.RawMessage {
	size := 2
	for _, e := range events {
		size += len(e.raw) + 1
	}
	out := append(make([]byte, 0, size), '[')
	for i, e := range events {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e.raw...)
	}
	return append(out, ']')
}
