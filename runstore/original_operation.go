package runstore

import (
	"errors"

	"greatminds/internal/refusal"
)

// originalOperations is the folder in which the original keeps the record of each application of a
// result, RESULT.json. We read the records of open results alone: a settled result needs none,
// and the files stay.
const originalOperations = "operations"

// addOperations adds to a state that the original has written the records of its open results
// that the state does not hold itself.
func (f *files) addOperations(h *hot) error {
	for _, res := range h.openResults.values() {
		// The original writes the record first and then the receipt: behind one that is only
		// received nothing has begun, and the decision is judged anew.
		if _, ours := h.operations.get(string(res.ID())); ours || res.Status == resultReceived || !validName(string(res.ID())) {
			continue
		}
		if err := f.addOperation(h, res); err != nil {
			return err
		}
	}
	return nil
}

func (f *files) addOperation(h *hot, res *Result) error {
	name := originalOperations + "/" + string(res.ID()) + ".json"
	data, err := readFile(f.path(name))
	if data == nil || err != nil {
		return err // without a record the application waits for a person
	}
	o, err := originalOperation(data, res)
	var bad *fault
	if errors.As(err, &bad) {
		return refusal.New(refusal.CodeStoreMalformed,
			"nothing was changed: put back a good copy of the file; where there is none, move it away, and the result then waits for you in `greatminds run status`",
			"%s: byte %d: %s", f.path(name), bad.off, bad.what)
	}
	if err != nil {
		return err
	}
	h.putOperation(o)
	return nil
}

// originalOperation reads the original's record of the application of res.
func originalOperation(data []byte, res *Result) (*Operation, error) {
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	s := scanner{data: data}
	if s.peek() != '{' {
		return nil, faultAt(s.pos, "an object expected")
	}
	from := s.pos
	raw, err := translated(data[from:], from)
	if err != nil {
		return nil, err
	}
	o := &Operation{}
	if err := decode(raw, from, o); err != nil {
		return nil, placed(err, from)
	}
	o.ID, o.Kind, o.TaskRevision = OperationID(res.ID()), ResultOperation, res.Envelope.TaskRevision
	if o.ResultID != res.ID() || o.RunID != res.Envelope.RunID || o.TaskID != res.Envelope.TaskID {
		return nil, faultAt(from, "the record is of result %q, run %q, task %q, but its result is of run %q, task %q",
			o.ResultID, o.RunID, o.TaskID, res.Envelope.RunID, res.Envelope.TaskID)
	}
	if what := check(o, raw); what != "" {
		return nil, faultAt(from, "%s", what)
	}
	return o, nil
}
