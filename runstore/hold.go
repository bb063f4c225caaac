package runstore

import (
	"encoding/json"

	"greatminds/internal/refusal"
)

// holdMember is the member of a result that says why it does not go on.
const holdMember = "hold"

// ResultHold is why a result that could be applied is not applied now. It clears by itself once
// its cause is gone.
type ResultHold struct {
	// Code is the refusal's, such as checkout_overlap.
	Code string `json:"code"`
	// What names the cause with its values, Remedy says what to do.
	What   string `json:"what"`
	Remedy string `json:"remedy"`
	// At is since when, in seconds of the Unix epoch.
	At float64 `json:"at"`
}

// Hold returns why the result does not go on, nil where nothing is known to be in its way.
func (r *Result) Hold() *ResultHold {
	var h ResultHold
	if raw, ok := r.Extra[holdMember]; !ok || json.Unmarshal(raw, &h) != nil {
		return nil
	}
	return &h
}

// HoldResult records why a received or applying result does not go on now and emits
// result_held; a nil hold says that it goes on, and emits result_released. The same hold again
// changes nothing. While it is held, Details.Error says what the hold says.
func (tx *Tx) HoldResult(id ResultID, h *ResultHold) error {
	old, err := tx.needResult(id)
	if err != nil {
		return err
	}
	was := old.Hold()
	if h == nil && was == nil || h != nil && was != nil && h.Code == was.Code && h.What == was.What {
		return nil
	}
	if h != nil && old.Status != resultReceived && old.Status != resultApplying {
		return refusal.New(refusal.CodeTransition, "look at `greatminds run status`", "result %s is %s and cannot be held", id, old.Status)
	}
	next, event := old.clone(), "result_released"
	next.Extra = make(Members, len(old.Extra)+1)
	for name, raw := range old.Extra {
		next.Extra[name] = raw
	}
	delete(next.Extra, holdMember)
	next.Details = nil
	data := map[string]any{"result_id": id}
	if h != nil {
		held := *h
		held.At = tx.at()
		raw, err := json.Marshal(held)
		if err != nil {
			return unstorable("result", string(id), err)
		}
		next.Extra[holdMember], next.Details, event = raw, &ResultDetails{Error: h.What}, "result_held"
		data["code"], data["what"] = h.Code, h.What
	}
	now := tx.at()
	next.UpdatedAt = &now
	if next, err = normal(next); err != nil {
		return unstorable("result", string(id), err)
	}
	tx.putResult(next)
	tx.Emit(event, old.Envelope.RunID, data)
	return nil
}
