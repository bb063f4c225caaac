package tasks_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"greatminds/tasks"
)

// against says what a value lacks by a schema, "" for nothing. It knows the words that
// DecisionSchema uses, and panics at any other.
func against(schema map[string]any, v any) string {
	for word, rule := range schema {
		wrong := ""
		switch word {
		case "title", "description":
		case "type":
			wrong = ofType(rule.(string), v)
		case "enum":
			if !slices.Contains(rule.([]any), v) {
				wrong = fmt.Sprintf("%v is none of %v", v, rule)
			}
		case "minLength":
			if text, ok := v.(string); ok && len(text) < rule.(int) {
				wrong = "it is empty"
			}
		case "minItems":
			if list, ok := v.([]any); ok && len(list) < rule.(int) {
				wrong = "too few items"
			}
		case "items":
			list, _ := v.([]any)
			for i, item := range list {
				if w := against(rule.(map[string]any), item); w != "" {
					wrong = fmt.Sprintf("[%d]: %s", i, w)
				}
			}
		case "required":
			for _, name := range rule.([]string) {
				if _, there := v.(map[string]any)[name]; !there {
					wrong = name + " is missing"
				}
			}
		case "properties":
			wrong = members(rule.(map[string]any), v)
		case "additionalProperties":
			for name := range v.(map[string]any) {
				if _, known := schema["properties"].(map[string]any)[name]; !known {
					wrong = "unknown " + name
				}
			}
		case "anyOf":
			var each []string
			for _, one := range rule.([]any) {
				w := against(one.(map[string]any), v)
				if w == "" {
					each = nil
					break
				}
				each = append(each, w)
			}
			wrong = strings.Join(each, "; ")
		default:
			panic("an unknown word of JSON Schema: " + word)
		}
		if wrong != "" {
			return wrong
		}
	}
	return ""
}

func members(properties map[string]any, v any) string {
	object, _ := v.(map[string]any)
	for name, value := range object {
		if rule, known := properties[name]; known {
			if w := against(rule.(map[string]any), value); w != "" {
				return name + ": " + w
			}
		}
	}
	return ""
}

func ofType(name string, v any) string {
	ok := false
	switch name {
	case "object":
		_, ok = v.(map[string]any)
	case "array":
		_, ok = v.([]any)
	case "string":
		_, ok = v.(string)
	case "boolean":
		_, ok = v.(bool)
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("%v is no %s", v, name)
}

// checkEffect holds the schema against everything that is accepted in these tests; this is what it
// keeps an author from.
func TestTheDecisionSchemaGuides(t *testing.T) {
	task := sampleFor(t)
	schema := tasks.DecisionSchema(testSchema, task, "DEVELOPER")
	if schema["type"] != "object" || schema["anyOf"] != nil || schema["oneOf"] != nil || schema["allOf"] != nil {
		t.Errorf("the root must be a plain object: %v", schema)
	}
	for _, c := range []struct{ text, wrong string }{
		{`{"decision":"handoff","payload":{"to_queue":"feature_test","blocks":[` + implPayload + `]}}`, ""},
		{`{"decision":"no_change","payload":{}}`, ""},
		{`{"decision":"blocked","payload":{"reason":"x","dependencies":["verified/0002-x.yaml"],"resume_to":"feature_dev"}}`, ""},
		{`{"decision":"done","payload":{}}`, "done is none of"},
		{`{"payload":{}}`, "decision is missing"},
		{`{"decision":"handoff"}`, "payload is missing"},
		{`{"decision":"handoff","payload":{"to_queue":"verified","blocks":[]}}`, "verified is none of"},
		{`{"decision":"handoff","payload":{"to_queue":"feature_test","blocks":[{"kind":"review","outcome":"approved"}]}}`, "review is none of"},
		{`{"decision":"handoff","payload":{"to_queue":"feature_test","blocks":[{"kind":"implementation","base_commit":"a","files":"a.go","ready_for_test":true}]}}`, "a.go is no array"},
		{`{"decision":"handoff","payload":{"to_queue":"feature_test","blocks":[{"kind":"implementation","base_commit":"a","files":[]}]}}`, "ready_for_test is missing"},
		{`{"decision":"needs_input","payload":{"question":""}}`, "it is empty"},
		{`{"decision":"blocked","payload":{"reason":"x","dependencies":[],"resume_to":"feature_dev"}}`, "too few items"},
		{`{"decision":"blocked","payload":{"reason":"x","dependencies":["a"],"resume_to":"verified"}}`, "verified is none of"},
		{`{"decision":"no_change","payload":{"why":"x"}}`, "unknown why"},
	} {
		var v map[string]any
		if err := json.Unmarshal([]byte(c.text), &v); err != nil {
			t.Fatal(err)
		}
		if got := against(schema, v); (got == "") != (c.wrong == "") || !strings.Contains(got, c.wrong) {
			t.Errorf("%s: got %q, want %q", c.text, got, c.wrong)
		}
	}
	tester := tasks.DecisionSchema(testSchema, stage{queue: "feature_test", kind: "feature", scope: "backend", blocks: []string{plannedBlock, implBlock}}.task(t), "TESTER")
	text, err := json.Marshal(tester)
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{`"enum":["pass","fail","partial"]`, `"command_request_id"`, `"feature_review"`} {
		if !strings.Contains(string(text), words) {
			t.Errorf("the tester's schema lacks %s: %s", words, text)
		}
	}
	// A role that may move nothing is offered no move, and no empty list of them.
	stranger, err := json.Marshal(tasks.DecisionSchema(testSchema, task, "READER"))
	if err != nil || strings.Contains(string(stranger), "to_queue") || strings.Contains(string(stranger), `"enum":[]`) {
		t.Errorf("got %s, %v", stranger, err)
	}
}
