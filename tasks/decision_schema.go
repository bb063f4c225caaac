package tasks

import (
	"slices"
	"strings"

	"greatminds/contract"
)

// DecisionSchema is the JSON Schema of the decisions that a role may make about a task where it
// stands, in the compact form ({decision, payload}). It guides an author: it accepts whatever
// [Effect] accepts, and leaves out the queues, block kinds and words that Effect would refuse.
//
// The alternatives stand inside the payload and not at the root, since providers of models refuse
// tools whose input has alternatives there. It is pure.
func DecisionSchema(s *contract.Schema, t *Task, role contract.Role) map[string]any {
	moves := AllowedTransitions(s, t.Queue, role)
	kinds, payloads := []any{}, []any{}
	add := func(kind string, payload map[string]any) {
		payload["title"], payload["additionalProperties"] = kind, false
		properties := payload["properties"].(map[string]any)
		properties["artifacts"] = described(listOf(anyText()), "Files handed over, by their paths relative to the workspace.")
		properties["command_evidence"] = described(listOf(anyText()), "Request ids of finished commands of this run that the decision relies on.")
		kinds, payloads = append(kinds, kind), append(payloads, payload)
	}
	if len(moves) > 0 {
		add(DecisionHandoff, handoffSchema(s, t, role, moves))
	}
	if slices.ContainsFunc(moves, func(m AllowedMove) bool { return m.To == queueBlocked }) {
		add(DecisionBlocked, blockedSchema(s))
	}
	add(DecisionNeedsInput, object(map[string]any{"question": described(someText(), "The question to a person, whole in itself.")}, "question"))
	add(DecisionNoChange, object(map[string]any{"reason": described(anyText(), "Why nothing is to be done.")}))
	return object(map[string]any{
		"decision": described(oneOf(kinds), "handoff moves the task, blocked parks it behind other tasks, needs_input asks a person, no_change leaves it as it is."),
		"payload": map[string]any{"type": "object", "anyOf": payloads,
			"description": "The decision's own members: the alternative whose title is the decision."},
	}, "decision", "payload")
}

// handoffSchema is a move with the blocks that justify it.
func handoffSchema(s *contract.Schema, t *Task, role contract.Role, moves []AllowedMove) map[string]any {
	var told []string
	queues := []any{}
	for _, m := range moves {
		for _, q := range reached(s, m.To) {
			if !slices.Contains(queues, any(string(q))) {
				queues = append(queues, string(q))
			}
		}
		line := string(m.To)
		if len(m.Requires) > 0 {
			line += " requires " + strings.Join(m.Requires, ", ")
		}
		told = append(told, line)
	}
	blocks := listOf(map[string]any{"type": "object"})
	if kinds := blockSchemas(s, t, role); len(kinds) > 0 {
		blocks = listOf(map[string]any{"type": "object", "anyOf": kinds})
	}
	return object(map[string]any{
		"to_queue": described(oneOf(queues), "Where the task goes: "+strings.Join(told, "; ")+"."),
		"blocks":   described(blocks, "The blocks that justify the move, [] for none. Author and time are set by the service."),
		"reason":   described(anyText(), "Why, in a sentence."),
	}, "to_queue", "blocks")
}

// reached are the queues that a destination of the transition table stands for.
func reached(s *contract.Schema, to contract.Queue) []contract.Queue {
	if to != contract.AnyResumeToQueue {
		return []contract.Queue{to}
	}
	var active []contract.Queue
	for _, q := range s.Queues {
		if q.Kind == contract.QueueActive {
			active = append(active, q.Name)
		}
	}
	return active
}

func blockedSchema(s *contract.Schema) map[string]any {
	queues := []any{}
	for _, q := range reached(s, contract.AnyResumeToQueue) {
		queues = append(queues, string(q))
	}
	return object(map[string]any{
		"reason":       described(someText(), "What stands in the way."),
		"dependencies": described(atLeastOne(), "The tasks to wait for, as QUEUE/ID.yaml, such as verified/0007-add-login.yaml."),
		"resume_to":    described(oneOf(queues), "Where the task goes on once they are done."),
	}, "reason", "dependencies", "resume_to")
}

// blockSchemas are the blocks that a role may file on a task where it stands.
func blockSchemas(s *contract.Schema, t *Task, role contract.Role) []any {
	out := []any{}
	for _, kind := range s.QueueAccepts[t.Queue] {
		if spec, known := s.BlockKind(kind); known && (kind == blockBlocked || slices.Contains(spec.Authors, role)) {
			out = append(out, blockSchema(s, spec))
		}
	}
	return out
}

// blockSchema is one kind of block. Further fields are free, as they are in a task file.
func blockSchema(s *contract.Schema, spec contract.BlockKindSpec) map[string]any {
	properties := map[string]any{"kind": oneOf([]any{string(spec.Kind)})}
	required := []string{"kind"}
	if spec.BodyField != "" {
		properties[spec.BodyField] = described(map[string]any{}, "Free text.")
	}
	for _, rule := range fieldRules[spec.Kind] {
		properties[rule.name] = rule.schema(s)
		byReceipt := spec.Kind == blockTests && (rule.name == "test_command" || rule.name == "test_result")
		if rule.form != formOption && !byReceipt {
			required = append(required, rule.name)
		}
	}
	switch spec.Kind {
	case blockTests:
		properties[requestField] = described(map[string]any{}, "The request id of a finished validation command; it fills in test_command and test_result.")
	case blockReview:
		properties["commit"] = described(map[string]any{}, "The commit that is approved; required with outcome approved.")
	case blockPlan:
		properties["stand_reason"] = described(map[string]any{}, "Why the stand is needed; required with stand_required true.")
	}
	block := object(properties, required...)
	block["title"] = string(spec.Kind)
	return block
}

// schema is what the field has to be.
func (r fieldRule) schema(s *contract.Schema) map[string]any {
	switch r.form {
	case formFlag, formOption:
		return map[string]any{"type": "boolean"}
	case formMoment:
		return described(someText(), "Date and time, such as 2026-01-05T09:00:00Z.")
	case formTexts:
		return listOf(anyText())
	case formSome:
		return atLeastOne()
	case formWord:
		words := []any{}
		for _, w := range r.words(s) {
			words = append(words, w)
		}
		if len(words) > 0 { // no value at all is no schema
			return oneOf(words)
		}
	}
	return someText()
}

func object(properties map[string]any, required ...string) map[string]any {
	o := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

func oneOf(words []any) map[string]any { return map[string]any{"type": "string", "enum": words} }
func anyText() map[string]any          { return map[string]any{"type": "string"} }
func someText() map[string]any         { return map[string]any{"type": "string", "minLength": 1} }
func listOf(item map[string]any) map[string]any {
	return map[string]any{"type": "array", "items": item}
}

func atLeastOne() map[string]any {
	list := listOf(anyText())
	list["minItems"] = 1
	return list
}

func described(schema map[string]any, text string) map[string]any {
	schema["description"] = text
	return schema
}
