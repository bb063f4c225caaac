package model

import "strings"

// The requests come from programs of others: whatever has an unexpected form reads as empty.
func list(v any) []any            { l, _ := v.([]any); return l }
func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func text(v any) string           { s, _ := v.(string); return s }

// content joins the text parts of a message, whichever form it has.
func content(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var parts []string
	for _, part := range list(v) {
		if s := text(object(part)["text"]); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n")
}

func readChat(request map[string]any) conversation {
	c := conversation{tools: map[string]tool{}}
	for _, m := range list(request["messages"]) {
		switch msg := object(m); msg["role"] {
		case "user":
			c.said(content(msg["content"]))
		case "tool":
			c.results = append(c.results, content(msg["content"]))
		}
	}
	for _, t := range list(request["tools"]) {
		f := object(object(t)["function"])
		if name := text(f["name"]); name != "" {
			c.tools[name] = tool{schema: object(f["parameters"])}
		}
	}
	return c
}

func readResponses(request map[string]any) conversation {
	c := conversation{tools: map[string]tool{}}
	if s := text(request["input"]); s != "" {
		c.said(s)
	}
	for _, m := range list(request["input"]) {
		msg := object(m)
		switch {
		case msg["role"] == "user":
			c.said(content(msg["content"]))
		case msg["type"] == "additional_tools":
			c.offeredIn("", list(msg["tools"]))
		case msg["type"] == searchByType+"_output":
			c.searched = true
			c.offeredIn("", list(msg["tools"]))
		case strings.HasSuffix(text(msg["type"]), "_call_output"):
			c.results = append(c.results, content(msg["output"]))
		}
	}
	c.offeredIn("", list(request["tools"]))
	return c
}

// offeredIn reads a list of the responses API, in which groups of tools may stand.
func (c conversation) offeredIn(namespace string, tools []any) {
	for _, t := range tools {
		one := object(t)
		name := text(one["name"])
		switch one["type"] {
		case "function":
			c.tools[namespace+name] = tool{schema: object(one["parameters"]), namespace: namespace}
		case "custom":
			c.tools[namespace+name] = tool{freeform: true, namespace: namespace}
		case searchByType:
			c.tools[searchByType] = tool{schema: object(one["parameters"])}
		case "namespace":
			c.offeredIn(name, list(one["tools"]))
		}
	}
}

func readMessages(request map[string]any) conversation {
	c := conversation{tools: map[string]tool{}}
	searches := map[string]bool{} // ids of calls
	for _, m := range list(request["messages"]) {
		msg := object(m)
		if msg["role"] != "user" {
			for _, p := range list(msg["content"]) {
				if part := object(p); part["name"] == searchByName {
					searches[text(part["id"])] = true
				}
			}
			continue
		}
		if s := text(msg["content"]); s != "" {
			c.said(s)
		}
		for _, p := range list(msg["content"]) {
			switch part := object(p); part["type"] {
			case "text":
				c.said(text(part["text"]))
			case "tool_result":
				if searches[text(part["tool_use_id"])] {
					c.searched = true
				} else {
					c.results = append(c.results, content(part["content"]))
				}
			}
		}
	}
	for _, t := range list(request["tools"]) {
		if one := object(t); text(one["name"]) != "" {
			c.tools[text(one["name"])] = tool{schema: object(one["input_schema"])}
		}
	}
	return c
}

func readGemini(request map[string]any) conversation {
	c := conversation{tools: map[string]tool{}}
	for _, m := range list(request["contents"]) {
		msg := object(m)
		if msg["role"] == "model" {
			continue
		}
		for _, p := range list(msg["parts"]) {
			part := object(p)
			if response, ok := part["functionResponse"]; ok {
				c.results = append(c.results, encode(object(response)["response"]))
			} else {
				c.said(text(part["text"]))
			}
		}
	}
	for _, t := range list(request["tools"]) {
		for _, f := range list(object(t)["functionDeclarations"]) {
			one := object(f)
			schema := object(one["parametersJsonSchema"])
			if schema == nil {
				schema = object(one["parameters"])
			}
			c.tools[text(one["name"])] = tool{schema: schema}
		}
	}
	config := object(request["generationConfig"])
	if c.form = object(config["responseJsonSchema"]); c.form == nil {
		c.form = object(config["responseSchema"])
	}
	return c
}
