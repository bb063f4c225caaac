package model

import (
	"fmt"
	"maps"
	"strings"
)

// modelName is what the stand-in calls itself where an API wants a name.
const modelName = "mock-model"

// fields is one JSON object.
type fields = map[string]any

func (a answer) callID() string { return fmt.Sprintf("call_%d", a.number) }

func writeChat(w *reply, a answer) {
	message, finish := fields{"role": "assistant", "content": a.text}, "stop"
	if a.tool != "" {
		finish = "tool_calls"
		message = fields{"role": "assistant", "content": nil, "tool_calls": []any{fields{"index": 0, "id": a.callID(), "type": "function",
			"function": fields{"name": a.tool, "arguments": encode(a.args)}}}}
	}
	head := fields{"id": fmt.Sprintf("chatcmpl-%d", a.number), "created": 1, "model": modelName}
	usage := fields{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	if !w.streaming {
		w.document(merge(head, fields{"object": "chat.completion", "usage": usage,
			"choices": []any{fields{"index": 0, "message": message, "finish_reason": finish}}}))
		return
	}
	head["object"] = "chat.completion.chunk"
	w.event("", merge(head, fields{"choices": []any{fields{"index": 0, "delta": message, "finish_reason": nil}}}))
	w.event("", merge(head, fields{"choices": []any{fields{"index": 0, "delta": fields{}, "finish_reason": finish}}}))
	w.event("", merge(head, fields{"choices": []any{}, "usage": usage}))
	w.data("[DONE]")
}

func writeResponses(w *reply, a answer) {
	item := responsesItem(a)
	response := func(status string, output ...any) fields {
		return fields{"id": fmt.Sprintf("resp_%d", a.number), "object": "response", "created_at": 1, "status": status, "model": modelName,
			"output": append([]any{}, output...), "usage": fields{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
				"input_tokens_details": fields{"cached_tokens": 0}, "output_tokens_details": fields{"reasoning_tokens": 0}}}
	}
	if !w.streaming {
		w.document(response("completed", item))
		return
	}
	n := 0
	send := func(kind string, more fields) {
		w.event(kind, merge(more, fields{"type": kind, "sequence_number": n}))
		n++
	}
	send("response.created", fields{"response": response("in_progress")})
	send("response.output_item.added", fields{"output_index": 0, "item": item})
	if a.tool == "" {
		send("response.output_text.delta", fields{"output_index": 0, "content_index": 0, "item_id": item["id"], "delta": a.text})
	}
	send("response.output_item.done", fields{"output_index": 0, "item": item})
	send("response.completed", fields{"response": response("completed", item)})
}

func responsesItem(a answer) fields {
	switch {
	case a.tool == searchByType:
		return fields{"type": searchByType + "_call", "id": fmt.Sprintf("tsc_%d", a.number), "call_id": a.callID(),
			"execution": "client", "arguments": a.args, "status": "completed"}
	case a.freeform != "":
		return a.inGroup(fields{"type": "custom_tool_call", "id": fmt.Sprintf("ctc_%d", a.number), "call_id": a.callID(),
			"input": a.freeform, "status": "completed"})
	case a.tool != "":
		return a.inGroup(fields{"type": "function_call", "id": fmt.Sprintf("fc_%d", a.number), "call_id": a.callID(),
			"arguments": encode(a.args), "status": "completed"})
	}
	return fields{"type": "message", "id": fmt.Sprintf("msg_%d", a.number), "role": "assistant", "status": "completed",
		"content": []any{fields{"type": "output_text", "text": a.text, "annotations": []any{}}}}
}

// inGroup names the tool, and the group that it stands in.
func (a answer) inGroup(item fields) fields {
	item["name"] = strings.TrimPrefix(a.tool, a.namespace)
	if a.namespace != "" {
		item["namespace"] = a.namespace
	}
	return item
}

func writeMessages(w *reply, a answer) {
	whole := fields{"type": "text", "text": a.text}
	begun, delta, stop := fields{"type": "text", "text": ""}, fields{"type": "text_delta", "text": a.text}, "end_turn"
	if a.tool != "" {
		whole = fields{"type": "tool_use", "id": a.callID(), "name": a.tool, "input": a.args}
		begun, stop = merge(whole, fields{"input": fields{}}), "tool_use"
		delta = fields{"type": "input_json_delta", "partial_json": encode(a.args)}
	}
	message := fields{"id": fmt.Sprintf("msg_%d", a.number), "type": "message", "role": "assistant", "model": modelName,
		"usage": fields{"input_tokens": 10, "output_tokens": 5}, "stop_sequence": nil}
	if !w.streaming {
		w.document(merge(message, fields{"content": []any{whole}, "stop_reason": stop}))
		return
	}
	send := func(kind string, more fields) { w.event(kind, merge(more, fields{"type": kind})) }
	send("message_start", fields{"message": merge(message, fields{"content": []any{}, "stop_reason": nil})})
	send("content_block_start", fields{"index": 0, "content_block": begun})
	send("content_block_delta", fields{"index": 0, "delta": delta})
	send("content_block_stop", fields{"index": 0})
	send("message_delta", fields{"delta": fields{"stop_reason": stop, "stop_sequence": nil}, "usage": fields{"output_tokens": 5}})
	send("message_stop", nil)
}

func writeGemini(w *reply, a answer) {
	part := fields{"text": a.text}
	if a.tool != "" {
		part = fields{"functionCall": fields{"name": a.tool, "args": a.args}}
	}
	doc := fields{"candidates": []any{fields{"index": 0, "finishReason": "STOP",
		"content": fields{"role": "model", "parts": []any{part}}}},
		"usageMetadata": fields{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}, "modelVersion": modelName}
	if w.streaming {
		w.event("", doc)
		return
	}
	w.document(doc)
}

// merge gives a new object with the members of all, the last one's first.
func merge(all ...fields) fields {
	out := fields{}
	for _, one := range all {
		maps.Copy(out, one)
	}
	return out
}
