package ops

import (
	"bytes"
	"encoding/json"

	"greatminds/runstore"
)

// canonical is an envelope as JSON with sorted keys and numbers as they were typed, so that two
// spellings of one decision are equal.
func canonical(e runstore.Envelope) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(e.Payload))
	dec.UseNumber()
	var payload any
	if err := dec.Decode(&payload); err != nil {
		return nil, err
	}
	var err error
	if e.Payload, err = json.Marshal(payload); err != nil {
		return nil, err
	}
	return json.Marshal(e)
}
