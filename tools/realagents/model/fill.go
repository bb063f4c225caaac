package model

import (
	"slices"
	"strings"
)

// shellLimit is what a command may take, in milliseconds: a cold build cache has to be filled.
const shellLimit = 240_000

// maxSampleItems bounds a sample list, whatever the schema asks for.
const maxSampleItems = 8

// arguments fit the tool's own schema: what the action knows, and a sample of whatever else is
// required.
func arguments(schema map[string]any, act action) map[string]any {
	out := map[string]any{}
	for name, raw := range object(schema["properties"]) {
		prop := object(raw)
		if v, ok := known(strings.ToLower(name), prop, act); ok {
			out[name] = v
		} else if requires(schema, name) {
			out[name] = sampleOf(prop)
		}
	}
	return out
}

func requires(schema map[string]any, name string) bool {
	return slices.Contains(list(schema["required"]), any(name))
}

// known gives the value of an argument by its name in lower case.
func known(name string, prop map[string]any, act action) (any, bool) {
	switch {
	case act.mcp != "":
		v, ok := act.decision[name]
		return v, ok
	case act.write:
		return knownOfWrite(name, act)
	}
	switch name {
	case "command", "cmd":
		if kindOf(prop) == "array" {
			return []any{"bash", "-lc", act.command}, true
		}
		return act.command, true
	case "with_escalated_permissions":
		return true, true
	case "sandbox_permissions":
		return "require_escalated", true
	case "timeout", "timeout_ms", "yield_time_ms":
		// Most count in milliseconds; one that takes no day of them counts in seconds.
		if most, ok := prop["maximum"].(float64); ok && most < shellLimit {
			return min(most, shellLimit/1000), true
		}
		return shellLimit, true
	case "justification", "description":
		return "Take the task to its next stage.", true
	}
	return nil, false
}

func knownOfWrite(name string, act action) (any, bool) {
	switch name {
	case "file_path", "filepath", "absolute_path", "path":
		return act.path, true
	case "content", "contents", "text":
		return act.content, true
	case "input", "patch":
		return patch(act), true
	}
	return nil, false
}

// kindOf is the type that a schema asks for, in lower case; of several the first that is not null.
func kindOf(schema map[string]any) string {
	for _, one := range append(list(schema["type"]), schema["type"]) {
		if kind := strings.ToLower(text(one)); kind != "" && kind != "null" {
			return kind
		}
	}
	if schema["properties"] != nil {
		return "object"
	}
	return "string"
}

// sampleOf makes a smallest value that fits the schema.
func sampleOf(schema map[string]any) any {
	if choices := list(schema["enum"]); len(choices) > 0 {
		return choices[0]
	}
	switch kindOf(schema) {
	case "boolean":
		return false
	case "number", "integer":
		least, _ := schema["minimum"].(float64)
		return max(1, least)
	case "array":
		least, _ := schema["minItems"].(float64)
		return slices.Repeat([]any{sampleOf(object(schema["items"]))}, int(min(max(0, least), maxSampleItems)))
	case "object":
		out := map[string]any{}
		for name, prop := range object(schema["properties"]) {
			if requires(schema, name) {
				out[name] = sampleOf(object(prop))
			}
		}
		return out
	}
	return "sample"
}
