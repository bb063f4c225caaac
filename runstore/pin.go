package runstore

import (
	"encoding/json"
	"fmt"
)

// SchemaDocument is the pinned form of a workflow schema: its text and version as JSON.
func SchemaDocument(text []byte, version int) ([]byte, error) {
	return toRaw(map[string]any{"text": string(text), "version": version})
}

// SchemaText returns the schema's text from its pinned form.
func SchemaText(document []byte) ([]byte, error) {
	var doc struct {
		Text    *string `json:"text"`
		Version int     `json:"version"`
	}
	if err := checkJSON(document); err != nil {
		return nil, fmt.Errorf("pinned schema: %w", err)
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("pinned schema: %w", err)
	}
	if doc.Text == nil {
		return nil, fmt.Errorf("pinned schema: %w", faultAt(0, "no text"))
	}
	return []byte(*doc.Text), nil
}
