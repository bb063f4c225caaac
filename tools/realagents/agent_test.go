package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
)

// sampleAgent is a small ACP agent over a chat model: it does what its model says, and asks
// before each tool call unless it is bold. The model's address comes as SAMPLE_MODEL.
func sampleAgent(manners string) {
	a := &agent{bold: manners == "bold", in: json.NewDecoder(os.Stdin), out: json.NewEncoder(os.Stdout), model: os.Getenv("SAMPLE_MODEL")}
	for {
		m, err := a.next()
		if err != nil {
			return // the client has closed the connection
		}
		if m.ID != nil {
			a.serve(m)
		}
	}
}

type agent struct {
	bold  bool
	in    *json.Decoder
	out   *json.Encoder
	model string
	asked int
	cwd   string
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Cwd    string                  `json:"cwd"`
		Prompt []struct{ Text string } `json:"prompt"`
	} `json:"params"`
	Result struct {
		Outcome struct{ OptionID string } `json:"outcome"`
	} `json:"result"`
}

type object = map[string]any

func (a *agent) next() (message, error) {
	var m message
	err := a.in.Decode(&m)
	return m, err
}

func (a *agent) send(m object) {
	m["jsonrpc"] = "2.0"
	must(a.out.Encode(m))
}

// must ends this process, which is no test, with its reason on standard error.
func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "sample agent:", err)
		os.Exit(1)
	}
}

func (a *agent) serve(m message) {
	switch m.Method {
	case "initialize":
		a.send(object{"id": m.ID, "result": object{"protocolVersion": 1, "agentCapabilities": object{}, "authMethods": []any{},
			"agentInfo": object{"name": "sample-agent", "version": "1.2.3"}}})
	case "session/new":
		a.cwd = m.Params.Cwd
		a.send(object{"id": m.ID, "result": object{"sessionId": "s1"}})
	case "session/prompt":
		a.turn(m.Params.Prompt[0].Text)
		a.send(object{"id": m.ID, "result": object{"stopReason": "end_turn"}})
	default:
		a.send(object{"id": m.ID, "error": object{"code": -32601, "message": "no method " + m.Method}})
	}
}

type reply struct {
	Content   string `json:"content"`
	ToolCalls []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// turn asks the model until it calls no more tool.
func (a *agent) turn(prompt string) {
	messages := []any{object{"role": "user", "content": prompt}}
	for {
		said := a.ask(messages)
		if len(said.ToolCalls) == 0 {
			return
		}
		call := said.ToolCalls[0]
		messages = append(messages, object{"role": "assistant", "tool_calls": []any{}},
			object{"role": "tool", "tool_call_id": call.ID, "content": a.use(call.Function.Name, call.Function.Arguments)})
	}
}

func (a *agent) ask(messages []any) reply {
	function := func(name string, required ...string) object {
		properties := object{}
		for _, r := range required {
			properties[r] = object{"type": "string"}
		}
		return object{"type": "function", "function": object{"name": name,
			"parameters": object{"type": "object", "properties": properties, "required": required}}}
	}
	body, err := json.Marshal(object{"messages": messages, "tools": []any{function("write", "path", "content"), function("bash", "command")}})
	must(err)
	res, err := http.Post(a.model+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	must(err)
	answer, err := io.ReadAll(res.Body)
	must(err)
	must(res.Body.Close())
	var doc struct{ Choices []struct{ Message reply } }
	must(json.Unmarshal(answer, &doc))
	return doc.Choices[0].Message
}

// use asks for the permission and then does what the tool does.
func (a *agent) use(tool, arguments string) string {
	kind := map[string]string{"write": "edit", "bash": "execute"}[tool]
	if !a.bold && !a.allowed(kind) {
		return "rejected"
	}
	var args struct{ Path, Content, Command string }
	must(json.Unmarshal([]byte(arguments), &args))
	if tool == "write" {
		must(os.WriteFile(args.Path, []byte(args.Content), 0o644))
		return "written"
	}
	cmd := exec.Command("sh", "-c", args.Command)
	cmd.Dir = a.cwd
	out, err := cmd.CombinedOutput()
	return fmt.Sprintf("%s%v", out, err)
}

func (a *agent) allowed(kind string) bool {
	a.asked++
	id := fmt.Sprintf("question-%d", a.asked)
	a.send(object{"id": id, "method": "session/request_permission", "params": object{"sessionId": "s1",
		"toolCall": object{"toolCallId": fmt.Sprintf("call-%d", a.asked), "kind": kind, "title": "use a tool"},
		"options": []any{object{"optionId": "ever", "name": "Always", "kind": "allow_always"},
			object{"optionId": "now", "name": "Once", "kind": "allow_once"}, object{"optionId": "no", "name": "No", "kind": "reject_once"}}}})
	for {
		m, err := a.next()
		must(err)
		if string(m.ID) == `"`+id+`"` {
			return m.Result.Outcome.OptionID == "now"
		}
	}
}
