package ops

import (
	"encoding/json"

	"greatminds/internal/refusal"
	"greatminds/supervisor/control"
)

// decodeArgs reads an operation's arguments into v. No arguments are an empty object.
func decodeArgs(op string, args json.RawMessage, v any) error {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if err := control.StrictFields(args, v); err != nil {
		return refusal.New(refusal.CodeRequestMalformed, "give the operation its documented arguments",
			"the arguments of %s are not valid: %v", op, err)
	}
	return nil
}
