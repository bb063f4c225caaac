package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"greatminds/tools/realagents/model"
)

// playing is the developer's first prompt with a task that names the part.
func playing(p model.Part) string {
	return strings.Replace(prompt("DEVELOPER"), `"triage"`, `"triage", "description": "`+p.Marker()+`"`, 1)
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// decision reads the submission of a shell command.
func decision(t *testing.T, command string) object {
	t.Helper()
	_, quoted, _ := strings.Cut(command, "'--json' '")
	return decoded(t, strings.TrimSuffix(quoted, "'"))
}

func TestEachPartActsInEveryDialect(t *testing.T) {
	for _, c := range []struct {
		part  model.Part
		tools []string // called one after the other; empty for none
		has   string   // in the arguments of the first
	}{
		{model.Text, nil, ""},
		{model.SubmitCLI, []string{"shell"}, "'run' 'submit'"},
		{model.Write, []string{"write"}, model.WrittenFile},
		{model.Shell, []string{"shell"}, strings.Join(model.LongCommand, " ")},
		{model.Detached, []string{"shell"}, "setsid " + strings.Join(model.LongCommand, " ")},
	} {
		for _, a := range apis {
			t.Run(string(c.part)+" in "+a.name, func(t *testing.T) {
				s := start(t, nil)
				var results []string
				for i := 0; ; i++ {
					got := a.ask(t, s, true, []string{playing(c.part)}, results)
					if got.tool == "" {
						if i != len(c.tools) || got.text == "" {
							t.Errorf("after %d calls it says %q, want %d calls", i, got.text, len(c.tools))
						}
						return
					}
					if i >= len(c.tools) {
						t.Fatalf("call %d is of %s, want none", i+1, got.tool)
					}
					if said := got.freeform + encoded(t, got.args); i == 0 && !strings.Contains(said, c.has) {
						t.Errorf("%s is called with %s, want %q in it", got.tool, said, c.has)
					}
					results = append(results, "done")
				}
			})
		}
	}
}

// Each agent names a tool of an MCP server in its own way.
func TestTheSupervisorsToolIsFoundByItsName(t *testing.T) {
	schema := object{"type": "object", "required": []any{"decision"}, "properties": object{
		"decision": object{"type": "string"}, "payload": object{"type": "object"}}}
	for offered, called := range map[string]bool{
		"mcp__greatminds__submit": true, "greatminds_submit": true, "greatminds-submit": true, "mcp_greatminds_submit": true, "submit": true,
		"other_submit": false, "greatminds_command": false, "resubmit": false,
	} {
		s := start(t, nil)
		request := chatAPI.request(false, []string{playing(model.SubmitMCP)}, nil)
		request["tools"] = append(request["tools"].([]any), object{"type": "function", "function": object{"name": offered, "parameters": schema}})
		_, _, body := post(t, s.URL()+"/v1/chat/completions", request)
		got := chatAPI.whole(t, decoded(t, body))
		if !called {
			if got.tool != "" || !strings.Contains(got.text, "I miss a tool; offered are") {
				t.Errorf("with %s the answer is %+v, want words", offered, got)
			}
			continue
		}
		payload, _ := got.args["payload"].(object)
		if got.tool != offered || got.args["decision"] != "handoff" || payload["to_queue"] != "feature_test" {
			t.Errorf("with %s the answer is %+v", offered, got)
		}
	}
}

// The responses API has groups of tools: a call names both.
func TestAToolOfAGroupIsCalledByBothNames(t *testing.T) {
	s := start(t, nil)
	request := responsesAPI.request(false, []string{playing(model.SubmitMCP)}, nil)
	request["tools"] = append(request["tools"].([]any), object{"type": "namespace", "name": "mcp__greatminds__", "tools": []any{
		object{"type": "function", "name": "submit", "parameters": object{"properties": object{"decision": object{"type": "string"}}}}}})
	_, _, body := post(t, s.URL()+"/v1/responses", request)
	item := at[object](t, at[[]any](t, decoded(t, body), "output"), 0)
	if item["name"] != "submit" || item["namespace"] != "mcp__greatminds__" {
		t.Errorf("the call is %v", item)
	}
}

// It may also offer tools among the messages.
func TestToolsAmongTheMessagesAreOffered(t *testing.T) {
	s := start(t, nil)
	request := responsesAPI.request(false, []string{playing(model.SubmitCLI)}, nil)
	request["input"] = append(request["input"].([]any), object{"type": "additional_tools", "tools": request["tools"]})
	delete(request, "tools")
	_, _, body := post(t, s.URL()+"/v1/responses", request)
	if got := responsesAPI.whole(t, decoded(t, body)); got.tool != "shell" || s.Assigned() != 1 {
		t.Errorf("the answer is %+v, %d assigned", got, s.Assigned())
	}
}

func TestAFailingModelSaysSoInItsOwnForm(t *testing.T) {
	for _, c := range []struct {
		part     model.Part
		statuses []int
	}{
		{model.Limit, []int{429, 429, 429}}, {model.Fault, []int{500, 500, 500}}, {model.LimitOnce, []int{429, 200, 200}},
	} {
		for _, a := range apis {
			s := start(t, nil)
			for i, want := range c.statuses {
				status, contentType, body := post(t, s.URL()+a.path(true), a.request(true, []string{playing(c.part)}, nil))
				if status != want {
					t.Errorf("%s in %s: answer %d has the status %d, want %d", c.part, a.name, i+1, status, want)
				}
				if status != http.StatusOK && (contentType != "application/json" || decoded(t, body)["error"] == nil) {
					t.Errorf("%s in %s: the error is %s of %s", c.part, a.name, body, contentType)
				}
			}
		}
	}
}

// A request without tools is no turn, and does not use up the one failure.
func TestASideRequestDoesNotCountForAPart(t *testing.T) {
	s := start(t, nil)
	request := chatAPI.request(false, []string{playing(model.LimitOnce)}, nil)
	delete(request, "tools")
	if status, _, _ := post(t, s.URL()+"/v1/chat/completions", request); status != http.StatusOK {
		t.Errorf("a side request has the status %d", status)
	}
	if status, _, _ := post(t, s.URL()+"/v1/chat/completions", chatAPI.request(false, []string{playing(model.LimitOnce)}, nil)); status != 429 {
		t.Errorf("the turn's first request has the status %d", status)
	}
}

func TestAHangingRequestEndsWithItsAgent(t *testing.T) {
	s := start(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body := strings.NewReader(encoded(t, chatAPI.request(true, []string{playing(model.HangOnce)}, []string{"done"})))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/chat/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		res, err := http.DefaultClient.Do(request)
		if err == nil {
			err = errors.Join(errors.New("it was answered"), res.Body.Close())
		}
		answered <- err
	}()
	<-s.Hanging()
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("the request ended with %v", err)
	}
	if got := chatAPI.ask(t, s, true, []string{playing(model.HangOnce)}, []string{"done"}); decision(t, got.args["command"].(string))["decision"] != "handoff" {
		t.Errorf("the second answer is %+v", got)
	}
}

// An agent that never gives up does not keep the stand-in from ending.
func TestAHangingRequestEndsWithTheServer(t *testing.T) {
	s, err := model.Start(model.Options{Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	body := encoded(t, chatAPI.request(true, []string{playing(model.HangOnce)}, []string{"done"}))
	go func() {
		res, err := http.Post(s.URL()+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err == nil {
			err = errors.Join(errors.New("it was answered"), res.Body.Close())
		}
		answered <- err
	}()
	<-s.Hanging()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-answered; err == nil || err.Error() == "it was answered" {
		t.Errorf("the request ended with %v", err)
	}
}

func TestTheModelThatWasAskedForIsTold(t *testing.T) {
	for _, a := range apis {
		s := start(t, nil)
		a.ask(t, s, true, []string{prompt("DEVELOPER")}, nil)
		if got := s.Model(); got == "" {
			t.Errorf("%s: no model is told", a.name)
		}
	}
}

// Where MCP tools are kept back, the model looks for them, calls what it found, and is done.
func TestAToolThatIsKeptBackIsLookedFor(t *testing.T) {
	schema := object{"type": "object", "required": []any{"query", "max_results"}, "properties": object{
		"query": object{"type": "string"}, "max_results": object{"type": "number"}}}
	submit := object{"type": "object", "properties": object{"decision": object{"type": "string"}}}
	t.Run("messages", func(t *testing.T) {
		s := start(t, nil)
		request := messagesAPI.request(false, []string{playing(model.SubmitMCP)}, nil)
		request["tools"] = append(request["tools"].([]any), object{"name": "ToolSearch", "input_schema": schema})
		ask := func() said {
			_, _, body := post(t, s.URL()+"/v1/messages", request)
			return messagesAPI.whole(t, decoded(t, body))
		}
		got := ask()
		if got.tool != "ToolSearch" || got.args["query"] != "select:mcp__greatminds__submit" || got.args["max_results"] != 1.0 {
			t.Fatalf("the first answer is %+v", got)
		}
		request["messages"] = append(request["messages"].([]any),
			object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": "s1", "name": "ToolSearch", "input": got.args}}},
			object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": "s1", "content": "found"}}})
		if got := ask(); got.tool != "" || !strings.HasPrefix(got.text, "I miss a tool") {
			t.Errorf("with nothing found the answer is %+v", got)
		}
		request["tools"] = append(request["tools"].([]any), object{"name": "mcp__greatminds__submit", "input_schema": submit})
		if got := ask(); got.tool != "mcp__greatminds__submit" || got.args["decision"] != "handoff" {
			t.Errorf("the second answer is %+v", got)
		}
	})
	t.Run("responses", func(t *testing.T) {
		s := start(t, nil)
		request := responsesAPI.request(false, []string{playing(model.SubmitMCP)}, nil)
		request["tools"] = append(request["tools"].([]any), object{"type": "tool_search", "execution": "client", "parameters": schema})
		ask := func() object {
			_, _, body := post(t, s.URL()+"/v1/responses", request)
			return at[object](t, at[[]any](t, decoded(t, body), "output"), 0)
		}
		got := ask()
		if got["type"] != "tool_search_call" || at[object](t, got, "arguments")["query"] != "greatminds submit" {
			t.Fatalf("the first answer is %v", got)
		}
		request["input"] = append(request["input"].([]any), got, object{"type": "tool_search_output", "call_id": got["call_id"], "tools": []any{
			object{"type": "namespace", "name": "mcp__greatminds", "tools": []any{object{"type": "function", "name": "submit", "parameters": submit}}}}})
		if got := ask(); got["type"] != "function_call" || got["name"] != "submit" || got["namespace"] != "mcp__greatminds" {
			t.Errorf("the second answer is %v", got)
		}
	})
}

// Two agents have one tool through which those of MCP servers are called.
func TestAToolIsCalledThroughAnother(t *testing.T) {
	text, anything := object{"type": "string"}, object{"type": "object"}
	for offered, c := range map[string]struct {
		properties object
		check      func(args object) bool
	}{
		"tool_call": {object{"name": text, "arguments": anything}, func(args object) bool {
			arguments, _ := args["arguments"].(object)
			return args["name"] == "mcp__greatminds__submit" && arguments["decision"] == "handoff"
		}},
		"run_typescript": {object{"code": text}, func(args object) bool {
			code, _ := args["code"].(string)
			return strings.HasPrefix(code, `async function main() { return await tools.mcp_greatminds.submit({"decision":"handoff"`)
		}},
	} {
		s := start(t, nil)
		request := chatAPI.request(false, []string{playing(model.SubmitMCP)}, nil)
		var required []any
		for name := range c.properties {
			required = append(required, name)
		}
		request["tools"] = append(request["tools"].([]any), object{"type": "function", "function": object{"name": offered,
			"parameters": object{"type": "object", "required": required, "properties": c.properties}}})
		_, _, body := post(t, s.URL()+"/v1/chat/completions", request)
		if got := chatAPI.whole(t, decoded(t, body)); got.tool != offered || !c.check(got.args) {
			t.Errorf("with %s the answer is %+v", offered, got)
		}
	}
}
