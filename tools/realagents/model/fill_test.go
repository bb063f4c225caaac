package model

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// schemaOf decodes a schema as it arrives on the wire.
func schemaOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestArgumentsFitTheToolsOwnSchema(t *testing.T) {
	write, shell := action{write: true, path: "/f", content: "hi\n"}, action{command: "go test"}
	const why = "Take the task to its next stage."
	for _, c := range []struct {
		name, schema string
		act          action
		want         map[string]any
	}{
		{"a writing tool", `{"properties":{"filePath":{"type":"string"},"content":{"type":"string"}},"required":["content","filePath"]}`,
			write, map[string]any{"filePath": "/f", "content": "hi\n"}},
		{"a patch as an argument", `{"properties":{"input":{"type":"string"}}}`,
			write, map[string]any{"input": "*** Begin Patch\n*** Add File: /f\n+hi\n*** End Patch\n"}},
		{"a shell tool", `{"properties":{"command":{"type":"string"},"timeout":{"type":"number"},
			"description":{"type":"string"},"background":{"type":"boolean"}},"required":["command"]}`,
			shell, map[string]any{"command": "go test", "timeout": 240_000, "description": why}},
		{"a shell tool that takes argv", `{"properties":{"command":{"type":["null","array"],"items":{"type":"string"}}}}`,
			shell, map[string]any{"command": []any{"bash", "-lc", "go test"}}},
		{"a sandboxed shell tool", `{"properties":{"cmd":{"type":"string"},
			"sandbox_permissions":{"type":"string","enum":["use_default","require_escalated"]},"justification":{"type":"string"},"yield_time_ms":{"type":"number"}}}`,
			shell, map[string]any{"cmd": "go test", "sandbox_permissions": "require_escalated", "justification": why, "yield_time_ms": 240_000}},
		{"an older sandboxed shell tool", `{"properties":{"command":{"type":"string"},"with_escalated_permissions":{"type":"boolean"}}}`,
			shell, map[string]any{"command": "go test", "with_escalated_permissions": true}},
		{"required and unknown", `{"properties":{"command":{},"safe":{"type":"boolean"},"n":{"type":"integer","minimum":3},"mode":{"enum":["fast","slow"]},
			"to":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"]},
			"some":{"type":"array","minItems":2,"items":{"type":"number"}},"any":{"type":"array"}},"required":["command","safe","n","mode","to","some","any"]}`,
			shell, map[string]any{"command": "go test", "safe": false, "n": 3.0, "mode": "fast",
				"to": map[string]any{"a": "sample"}, "some": []any{1.0, 1.0}, "any": []any{}}},
		{"no schema", `{}`, shell, map[string]any{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, arguments(schemaOf(t, c.schema), c.act)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

func TestASampleIsBounded(t *testing.T) {
	got, _ := sampleOf(schemaOf(t, `{"type":"array","minItems":1e12,"items":{"type":"string"}}`)).([]any)
	if len(got) != maxSampleItems {
		t.Errorf("%d items, want %d", len(got), maxSampleItems)
	}
}
