package model_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// object is one JSON object as the tests build and read it.
type object = map[string]any

// said is what a model answered, in no dialect.
type said struct {
	text, tool, id, freeform string
	args                     object
	// finish is the dialect's own word for why the answer ended.
	finish string
}

// api is the client's side of one model API, written from the API's own description.
type api struct {
	name string
	path func(streaming bool) string
	// request builds one request: prompts, then for each result a call and its output.
	request func(streaming bool, prompts, results []string) object
	whole   func(t *testing.T, body object) said
	stream  func(t *testing.T, events []event) said
	// ends are the finish words of an answer in text and of a call.
	ends [2]string
}

// event is one server-sent event.
type event struct {
	name string
	data object
}

var (
	writeSchema = object{"type": "object", "required": []any{"file_path", "content"}, "properties": object{
		"file_path": object{"type": "string"}, "content": object{"type": "string"}}}
	shellSchema = object{"type": "object", "required": []any{"command"}, "properties": object{"command": object{"type": "string"}}}
)

// apis has every dialect once. Each offers a tool that writes and one that runs commands.
var apis = []api{chatAPI, responsesAPI, messagesAPI, geminiAPI}

func fixed(path string) func(bool) string { return func(bool) string { return path } }

var chatAPI = api{
	name: "chat completions", path: fixed("/v1/chat/completions"), ends: [2]string{"stop", "tool_calls"},
	request: func(streaming bool, prompts, results []string) object {
		messages := []any{object{"role": "system", "content": "You help."}}
		for _, p := range prompts {
			messages = append(messages, object{"role": "user", "content": []any{object{"type": "text", "text": p}}})
		}
		for _, r := range results {
			messages = append(messages, object{"role": "assistant", "tool_calls": []any{object{"id": "c"}}}, object{"role": "tool", "tool_call_id": "c", "content": r})
		}
		function := func(name string, schema object) object {
			return object{"type": "function", "function": object{"name": name, "parameters": schema}}
		}
		return object{"model": "m", "stream": streaming, "messages": messages,
			"tools": []any{function("write", writeSchema), function("bash", shellSchema)}}
	},
	whole: func(t *testing.T, body object) said {
		choice := at[object](t, at[[]any](t, body, "choices"), 0)
		return chatMessage(t, at[object](t, choice, "message"), choice["finish_reason"])
	},
	stream: func(t *testing.T, events []event) said {
		var out said
		for _, e := range events {
			for _, c := range at[[]any](t, e.data, "choices") {
				choice := c.(object)
				one := chatMessage(t, at[object](t, choice, "delta"), choice["finish_reason"])
				out.text, out.finish = out.text+one.text, out.finish+one.finish
				if one.tool != "" {
					out.tool, out.id, out.args = one.tool, one.id, one.args
				}
			}
		}
		return out
	},
}

func chatMessage(t *testing.T, message object, finish any) said {
	var out said
	out.text, _ = message["content"].(string)
	out.finish, _ = finish.(string)
	if calls, _ := message["tool_calls"].([]any); len(calls) > 0 {
		call := at[object](t, calls, 0)
		function := at[object](t, call, "function")
		out.tool, out.id, out.args = at[string](t, function, "name"), at[string](t, call, "id"), decoded(t, at[string](t, function, "arguments"))
	}
	return out
}

var responsesAPI = api{
	name: "responses", path: fixed("/v1/responses"), ends: [2]string{"completed", "completed"},
	request: func(streaming bool, prompts, results []string) object {
		var input []any
		for _, p := range prompts {
			input = append(input, object{"type": "message", "role": "user", "content": []any{object{"type": "input_text", "text": p}}})
		}
		for _, r := range results {
			input = append(input, object{"type": "function_call", "call_id": "c", "name": "shell"}, object{"type": "function_call_output", "call_id": "c", "output": r})
		}
		return object{"model": "m", "stream": streaming, "input": input, "tools": []any{
			object{"type": "function", "name": "shell", "parameters": shellSchema},
			object{"type": "custom", "name": "apply_patch"}, object{"type": "web_search"}}}
	},
	whole: func(t *testing.T, body object) said {
		out := responsesItem(t, at[object](t, at[[]any](t, body, "output"), 0))
		out.finish = at[string](t, body, "status")
		return out
	},
	stream: func(t *testing.T, events []event) said {
		var out said
		text := ""
		for _, e := range events {
			if e.name != e.data["type"] {
				t.Errorf("event %s has the type %v", e.name, e.data["type"])
			}
			switch e.name {
			case "response.output_text.delta":
				text += at[string](t, e.data, "delta")
			case "response.output_item.done":
				out = responsesItem(t, at[object](t, e.data, "item"))
			case "response.completed":
				out.finish = at[string](t, at[object](t, e.data, "response"), "status")
			}
		}
		if text != out.text {
			t.Errorf("the pieces say %q, the item %q", text, out.text)
		}
		return out
	},
}

func responsesItem(t *testing.T, item object) said {
	switch item["type"] {
	case "function_call":
		return said{tool: at[string](t, item, "name"), id: at[string](t, item, "call_id"), args: decoded(t, at[string](t, item, "arguments"))}
	case "custom_tool_call":
		return said{tool: at[string](t, item, "name"), id: at[string](t, item, "call_id"), freeform: at[string](t, item, "input")}
	}
	return said{text: at[string](t, at[object](t, at[[]any](t, item, "content"), 0), "text")}
}

var messagesAPI = api{
	name: "messages", path: fixed("/v1/messages"), ends: [2]string{"end_turn", "tool_use"},
	request: func(streaming bool, prompts, results []string) object {
		var messages []any
		for _, p := range prompts {
			messages = append(messages, object{"role": "user", "content": p})
		}
		for _, r := range results {
			messages = append(messages, object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": "c"}}},
				object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": "c", "content": []any{object{"type": "text", "text": r}}}}})
		}
		return object{"model": "m", "stream": streaming, "messages": messages, "tools": []any{
			object{"name": "Write", "input_schema": writeSchema}, object{"name": "Bash", "input_schema": shellSchema}}}
	},
	whole: func(t *testing.T, body object) said {
		block := at[object](t, at[[]any](t, body, "content"), 0)
		out := said{finish: at[string](t, body, "stop_reason")}
		if block["type"] == "tool_use" {
			out.tool, out.id, out.args = at[string](t, block, "name"), at[string](t, block, "id"), at[object](t, block, "input")
			return out
		}
		out.text = at[string](t, block, "text")
		return out
	},
	stream: func(t *testing.T, events []event) said {
		var out said
		input, order := "", []string{}
		for _, e := range events {
			order = append(order, e.name)
			switch e.name {
			case "content_block_start":
				block := at[object](t, e.data, "content_block")
				out.tool, _ = block["name"].(string)
				out.id, _ = block["id"].(string)
			case "content_block_delta":
				delta := at[object](t, e.data, "delta")
				piece, _ := delta["partial_json"].(string)
				words, _ := delta["text"].(string)
				input, out.text = input+piece, out.text+words
			case "message_delta":
				out.finish = at[string](t, at[object](t, e.data, "delta"), "stop_reason")
			}
		}
		want := []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}
		if !slices.Equal(order, want) {
			t.Errorf("the events are %v, want %v", order, want)
		}
		if out.tool != "" {
			out.args = decoded(t, input)
		}
		return out
	},
}

var geminiAPI = api{
	name: "gemini", ends: [2]string{"STOP", "STOP"},
	path: func(streaming bool) string {
		if streaming {
			return "/v1beta/models/gemini-x:streamGenerateContent"
		}
		return "/v1beta/models/gemini-x:generateContent"
	},
	request: func(_ bool, prompts, results []string) object {
		var contents []any
		for _, p := range prompts {
			contents = append(contents, object{"role": "user", "parts": []any{object{"text": p}}})
		}
		for _, r := range results {
			contents = append(contents, object{"role": "model", "parts": []any{object{"functionCall": object{"name": "f"}}}},
				object{"role": "user", "parts": []any{object{"functionResponse": object{"name": "f", "response": object{"output": r}}}}})
		}
		return object{"contents": contents, "tools": []any{object{"functionDeclarations": []any{
			object{"name": "write_file", "parametersJsonSchema": writeSchema},
			object{"name": "run_shell_command", "parameters": shellSchema}}}}}
	},
	whole: geminiAnswer,
	stream: func(t *testing.T, events []event) said {
		if len(events) != 1 {
			t.Fatalf("%d events, want 1", len(events))
		}
		return geminiAnswer(t, events[0].data)
	},
}

func geminiAnswer(t *testing.T, body object) said {
	candidate := at[object](t, at[[]any](t, body, "candidates"), 0)
	part := at[object](t, at[[]any](t, at[object](t, candidate, "content"), "parts"), 0)
	out := said{finish: at[string](t, candidate, "finishReason")}
	if call, ok := part["functionCall"].(object); ok {
		out.tool, out.args = at[string](t, call, "name"), at[object](t, call, "args")
		return out
	}
	out.text = at[string](t, part, "text")
	return out
}

// at reads one member of an object, or one element of a list, that must be there with its type.
func at[T any](t *testing.T, from any, where any) T {
	t.Helper()
	var got any
	switch key := where.(type) {
	case string:
		got = from.(object)[key]
	case int:
		if all := from.([]any); key < len(all) {
			got = all[key]
		}
	}
	v, ok := got.(T)
	if !ok {
		t.Fatalf("%v is %#v (%T) in %v", where, got, got, from)
	}
	return v
}

func decoded(t *testing.T, text string) object {
	t.Helper()
	var out object
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return out
}

// events takes a stream of server-sent events apart.
func events(t *testing.T, body string) []event {
	t.Helper()
	var out []event
	for _, block := range strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		var e event
		for _, line := range strings.Split(block, "\n") {
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				e.name = name
			} else if data, ok := strings.CutPrefix(line, "data: "); !ok {
				t.Fatalf("not a line of an event: %q", line)
			} else if data != "[DONE]" {
				e.data = decoded(t, data)
			}
		}
		if e.data != nil {
			out = append(out, e)
		}
	}
	return out
}
