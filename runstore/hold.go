package runstore

import "greatminds/internal/refusal"

// ResultHold is why a result that could be applied is not applied now. It clears by itself once
// its cause is gone.
type ResultHold struct {
	// Code is the refusal's, such as checkout_overlap.
	Code string `json:"code"`
	// What names the cause with its values, Remedy says what to do.
	What   string `json:"what"`
	Remedy string `json:"remedy"`
	// At is since when, in seconds of the Unix epoch.
	At    float64 `json:"at"`
	Extra Members `json:"-"`
}

// Hold returns why the result does not go on, nil where nothing is known to be in its way.
func (r *Result) Hold() *ResultHold { return copied(r.Held) }

// HoldResult records why an open result does not go on now and emits result_held; a nil hold says
// that it goes on, and emits result_released. The same hold again changes nothing. While it is
// held, Details.Error says what the hold says.
//
// One in needs_recovery that is held is not uncertain: nothing of it has moved, and it goes on
// once what stands in its way is gone.
func (tx *Tx) HoldResult(id ResultID, h *ResultHold) error {
	old, err := tx.needResult(id)
	if err != nil {
		return err
	}
	was := old.Held
	if h == nil && was == nil || h != nil && was != nil && h.Code == was.Code && h.What == was.What {
		return nil
	}
	if h != nil && !old.Open() {
		return refusal.New(refusal.CodeTransition, "look at `greatminds run status`", "result %s is %s and cannot be held", id, old.Status)
	}
	now := tx.at()
	next, event, data := old.clone(), "result_released", map[string]any{"result_id": id}
	next.Held, next.Details, next.UpdatedAt = nil, nil, &now
	if h != nil {
		next.Held, next.Details, event = copied(h), &ResultDetails{Error: h.What}, "result_held"
		next.Held.At = now
		if old.Status == needsRecovery && old.Details != nil {
			next.Details.Extra = old.Details.Extra // how a person leads it on
		}
		data["code"], data["what"] = h.Code, h.What
	}
	if next, err = normal(next); err != nil {
		return unstorable("result", string(id), err)
	}
	tx.putResult(next)
	tx.Emit(event, old.Envelope.RunID, data)
	return nil
}
