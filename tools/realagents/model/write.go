package model

const callID = "call_sample_1"

func writeChat(w *stream, a answer) {
	delta, finish := map[string]any{"role": "assistant"}, "stop"
	if a.tool != "" {
		finish = "tool_calls"
		delta["tool_calls"] = []any{map[string]any{"index": 0, "id": callID, "type": "function",
			"function": map[string]any{"name": a.tool, "arguments": encode(a.args)}}}
	} else {
		delta["content"] = a.text
	}
	head := map[string]any{"id": "chatcmpl-1", "created": 1, "model": "mock-model"}
	usage := map[string]any{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	if !w.streaming {
		w.document(merge(head, map[string]any{"object": "chat.completion", "usage": usage,
			"choices": []any{map[string]any{"index": 0, "message": delta, "finish_reason": finish}}}))
		return
	}
	chunk := func(choice map[string]any) map[string]any {
		return merge(head, map[string]any{"object": "chat.completion.chunk", "choices": []any{merge(map[string]any{"index": 0}, choice)}})
	}
	w.event("", chunk(map[string]any{"delta": delta, "finish_reason": nil}))
	w.event("", chunk(map[string]any{"delta": map[string]any{}, "finish_reason": finish}))
	w.event("", merge(head, map[string]any{"object": "chat.completion.chunk", "choices": []any{}, "usage": usage}))
	w.text("[DONE]")
}

func writeResponses(w *stream, a answer) {
	var item map[string]any
	switch {
	case a.custom != "":
		item = map[string]any{"type": "custom_tool_call", "id": "ctc_1", "call_id": callID, "name": a.tool, "input": a.custom, "status": "completed"}
	case a.tool != "":
		item = map[string]any{"type": "function_call", "id": "fc_1", "call_id": callID, "name": a.tool, "arguments": encode(a.args), "status": "completed"}
	default:
		item = map[string]any{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": a.text, "annotations": []any{}}}}
	}
	response := func(status string, output []any) map[string]any {
		return map[string]any{"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "mock-model", "output": output,
			"usage": map[string]any{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
				"input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens_details": map[string]any{"reasoning_tokens": 0}}}
	}
	if !w.streaming {
		w.document(response("completed", []any{item}))
		return
	}
	n := 0
	send := func(kind string, more map[string]any) {
		w.event(kind, merge(map[string]any{"type": kind, "sequence_number": n}, more))
		n++
	}
	send("response.created", map[string]any{"response": response("in_progress", []any{})})
	send("response.output_item.added", map[string]any{"output_index": 0, "item": item})
	if a.tool == "" {
		send("response.output_text.delta", map[string]any{"output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": a.text})
	}
	send("response.output_item.done", map[string]any{"output_index": 0, "item": item})
	send("response.completed", map[string]any{"response": response("completed", []any{item})})
}

func writeMessages(w *stream, a answer) {
	block, delta, stop := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": a.text}, "end_turn"
	whole := map[string]any{"type": "text", "text": a.text}
	if a.tool != "" {
		stop = "tool_use"
		block = map[string]any{"type": "tool_use", "id": "toolu_1", "name": a.tool, "input": map[string]any{}}
		delta = map[string]any{"type": "input_json_delta", "partial_json": encode(a.args)}
		whole = merge(block, map[string]any{"input": a.args})
	}
	message := map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": "mock-model",
		"usage": map[string]any{"input_tokens": 10, "output_tokens": 5}}
	if !w.streaming {
		w.document(merge(message, map[string]any{"content": []any{whole}, "stop_reason": stop, "stop_sequence": nil}))
		return
	}
	w.event("message_start", map[string]any{"type": "message_start", "message": merge(message, map[string]any{"content": []any{}, "stop_reason": nil, "stop_sequence": nil})})
	w.event("content_block_start", map[string]any{"type": "content_block_start", "index": 0, "content_block": block})
	w.event("content_block_delta", map[string]any{"type": "content_block_delta", "index": 0, "delta": delta})
	w.event("content_block_stop", map[string]any{"type": "content_block_stop", "index": 0})
	w.event("message_delta", map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 5}})
	w.event("message_stop", map[string]any{"type": "message_stop"})
}

func writeGemini(w *stream, a answer) {
	part := map[string]any{"text": a.text}
	if a.tool != "" {
		part = map[string]any{"functionCall": map[string]any{"name": a.tool, "args": a.args}}
	}
	doc := map[string]any{"candidates": []any{map[string]any{"index": 0, "finishReason": "STOP",
		"content": map[string]any{"role": "model", "parts": []any{part}}}},
		"usageMetadata": map[string]any{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}, "modelVersion": "mock-model"}
	if w.streaming {
		w.event("", doc)
		return
	}
	w.document(doc)
}

func merge(maps ...map[string]any) map[string]any {
	out := map[string]any{}
	for _, m := range maps {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}
