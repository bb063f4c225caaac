package ops

import (
	"encoding/json"
	"strings"

	"greatminds/internal/refusal"
	"greatminds/supervisor/control"
	"greatminds/tasks"
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

// parseFields reads "key=value" arguments in order.
func parseFields(given []string) (tasks.Fields, error) {
	var fields tasks.Fields
	for _, g := range given {
		key, value, found := strings.Cut(g, "=")
		if !found || key == "" {
			return nil, refusal.New(refusal.CodeUsage, "write `--field key=value`", "field %q has no key or no value", g)
		}
		fields = append(fields, tasks.Field{Key: key, Value: value})
	}
	return fields, nil
}
