package model

import "strings"

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

// said adds a user's text. An assignment begins the count of tool results anew.
func (c *conversation) said(s string) {
	c.texts = append(c.texts, s)
	if strings.Contains(s, "{\n  \"run_id\"") {
		c.results = 0
	}
}

func readChat(body map[string]any) conversation {
	c := conversation{tools: map[string]schema{}}
	for _, m := range list(body["messages"]) {
		switch msg := object(m); msg["role"] {
		case "user":
			c.said(content(msg["content"]))
		case "tool":
			c.results++
		}
	}
	for _, t := range list(body["tools"]) {
		f := object(object(t)["function"])
		if name := text(f["name"]); name != "" {
			c.tools[name] = object(f["parameters"])
		}
	}
	return c
}

func readResponses(body map[string]any) conversation {
	c := conversation{tools: map[string]schema{}}
	for _, m := range list(body["input"]) {
		msg := object(m)
		switch kind := text(msg["type"]); {
		case msg["role"] == "user":
			c.said(content(msg["content"]))
		case strings.HasSuffix(kind, "_output"):
			c.results++
		}
	}
	for _, t := range list(body["tools"]) {
		tool := object(t)
		switch tool["type"] {
		case "function":
			c.tools[text(tool["name"])] = object(tool["parameters"])
		case "custom":
			c.tools[text(tool["name"])] = schema{"custom": true}
		}
	}
	return c
}

func readMessages(body map[string]any) conversation {
	c := conversation{tools: map[string]schema{}}
	for _, m := range list(body["messages"]) {
		msg := object(m)
		if msg["role"] != "user" {
			continue
		}
		if s, ok := msg["content"].(string); ok {
			c.said(s)
			continue
		}
		for _, p := range list(msg["content"]) {
			switch part := object(p); part["type"] {
			case "text":
				c.said(text(part["text"]))
			case "tool_result":
				c.results++
			}
		}
	}
	for _, t := range list(body["tools"]) {
		tool := object(t)
		c.tools[text(tool["name"])] = object(tool["input_schema"])
	}
	return c
}

func readGemini(body map[string]any) conversation {
	c := conversation{tools: map[string]schema{}}
	for _, m := range list(body["contents"]) {
		msg := object(m)
		if msg["role"] == "model" {
			continue
		}
		for _, p := range list(msg["parts"]) {
			part := object(p)
			if _, ok := part["functionResponse"]; ok {
				c.results++
			} else {
				c.said(text(part["text"]))
			}
		}
	}
	for _, t := range list(body["tools"]) {
		for _, f := range list(object(t)["functionDeclarations"]) {
			fn := object(f)
			params := object(fn["parametersJsonSchema"])
			if params == nil {
				params = object(fn["parameters"])
			}
			c.tools[text(fn["name"])] = params
		}
	}
	config := object(body["generationConfig"])
	if c.wanted = object(config["responseJsonSchema"]); c.wanted == nil {
		c.wanted = object(config["responseSchema"])
	}
	return c
}
