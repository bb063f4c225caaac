package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"greatminds/tools/realagents/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// prompt is the first prompt of a run, in the form of the supervisor's: words, then the document.
func prompt(role string) string {
	doc, err := json.MarshalIndent(struct {
		RunID     string   `json:"run_id"`
		Role      string   `json:"role"`
		Workspace string   `json:"workspace"`
		CLI       []string `json:"cli_argv"`
		Task      object   `json:"task"`
	}{"run7", role, "/work/it's here", []string{"/bin/great minds"}, object{"blocks": []any{
		object{"kind": "triage"}, object{"kind": "plan", "base_commit": "c0ffee"}}}}, "", "  ")
	if err != nil {
		panic(err)
	}
	return "You are the " + role + ". Submit {\"decision\": ...}.\n\n" + string(doc)
}

// start runs a server that ends with the test.
func start(t testing.TB, log io.Writer) *model.Server {
	t.Helper()
	s, err := model.Start(model.Options{Now: func() time.Time { return noon }, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// post sends one request over the wire and reads the whole answer.
func post(t *testing.T, url string, body any) (status int, contentType, answer string) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(url, "application/json", bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Content-Type"), string(got)
}

// ask makes one request in the API's form and reads the answer in the same.
func (a api) ask(t *testing.T, s *model.Server, streaming bool, prompts, results []string) said {
	t.Helper()
	status, contentType, body := post(t, s.URL()+a.path(streaming), a.request(streaming, prompts, results))
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	if streaming {
		if contentType != "text/event-stream" {
			t.Errorf("a stream has the content type %q", contentType)
		}
		return a.stream(t, events(t, body))
	}
	if contentType != "application/json" {
		t.Errorf("a document has the content type %q", contentType)
	}
	return a.whole(t, decoded(t, body))
}

func TestEachDialectPlaysTheDevelopersWholePart(t *testing.T) {
	for _, a := range apis {
		for _, streaming := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, streaming %v", a.name, streaming), func(t *testing.T) {
				s := start(t, nil)
				prompts, results := []string{"Hello.", prompt("DEVELOPER")}, []string(nil)

				write := a.ask(t, s, streaming, prompts, results)
				if write.finish != a.ends[1] {
					t.Errorf("the first answer ends with %q, want %q", write.finish, a.ends[1])
				}
				checkWrite(t, write)

				results = append(results, "written")
				shell := a.ask(t, s, streaming, prompts, results)
				command, _ := shell.args["command"].(string)
				if shell.tool == write.tool || !strings.Contains(command, "'run' 'submit'") || !strings.Contains(command, `"to_queue":"feature_test"`) {
					t.Errorf("the second answer calls %s with %v", shell.tool, shell.args)
				}
				if a.name != "gemini" && (shell.id == "" || shell.id == write.id) {
					t.Errorf("two calls have the ids %q and %q", write.id, shell.id)
				}

				results = append(results, "submitted")
				last := a.ask(t, s, streaming, prompts, results)
				if last.tool != "" || last.text == "" || last.finish != a.ends[0] {
					t.Errorf("the last answer is %+v, want words that end with %q", last, a.ends[0])
				}
				if s.Requests() != 3 || s.Assigned() != 3 {
					t.Errorf("counted %d requests, %d with the assignment; want 3 and 3", s.Requests(), s.Assigned())
				}
			})
		}
	}
}

// checkWrite wants the agent's file at its place, by arguments or by a patch.
func checkWrite(t *testing.T, got said) {
	t.Helper()
	path := "/work/it's here/" + model.WrittenFile
	if got.freeform != "" {
		if want := "*** Begin Patch\n*** Add File: " + path + "\n+" + model.WrittenText + "*** End Patch\n"; got.freeform != want {
			t.Errorf("the patch is %q, want %q", got.freeform, want)
		}
		return
	}
	if len(got.args) != 2 || got.args["file_path"] != path || got.args["content"] != model.WrittenText {
		t.Errorf("%s is called with %v", got.tool, got.args)
	}
}

func TestASecondAssignmentBeginsAnew(t *testing.T) {
	s := start(t, nil)
	request := chatAPI.request(false, []string{prompt("DEVELOPER")}, []string{"written", "submitted"})
	request["messages"] = append(request["messages"].([]any), object{"role": "user", "content": prompt("DEVELOPER")})
	_, _, body := post(t, s.URL()+"/v1/chat/completions", request)
	if got := chatAPI.whole(t, decoded(t, body)); got.tool != "write" {
		t.Errorf("after a new assignment the answer is %+v, want the first action", got)
	}
}

func TestASideRequestIsAnsweredInWordsAndNotCountedAsAssigned(t *testing.T) {
	for _, a := range apis {
		t.Run(a.name, func(t *testing.T) {
			s := start(t, nil)
			request := a.request(false, []string{"Make a title for this: " + prompt("DEVELOPER")}, nil)
			delete(request, "tools")
			_, _, body := post(t, s.URL()+a.path(false), request)
			if got := a.whole(t, decoded(t, body)); got.tool != "" || got.text == "" {
				t.Errorf("the answer is %+v, want words", got)
			}
			if got := a.ask(t, s, true, []string{"What is a greeter?"}, nil); got.tool != "" || got.text == "" {
				t.Errorf("without an assignment the answer is %+v, want words", got)
			}
			if s.Requests() != 2 || s.Assigned() != 0 {
				t.Errorf("counted %d requests, %d with the assignment; want 2 and 0", s.Requests(), s.Assigned())
			}
		})
	}
}

func TestAnAnswerHasTheFormThatWasAskedFor(t *testing.T) {
	for _, member := range []string{"responseJsonSchema", "responseSchema"} {
		s := start(t, nil)
		request := geminiAPI.request(false, []string{prompt("DEVELOPER")}, nil)
		request["generationConfig"] = object{member: object{"type": "OBJECT", "required": []any{"why", "score"},
			"properties": object{"why": object{"type": "STRING"}, "score": object{"type": "INTEGER"}, "rest": object{"type": "STRING"}}}}
		_, _, body := post(t, s.URL()+geminiAPI.path(false), request)
		got := decoded(t, geminiAPI.whole(t, decoded(t, body)).text)
		if len(got) != 2 || got["why"] != "sample" || got["score"] != 1.0 {
			t.Errorf("%s: the answer is %v", member, got)
		}
	}
}

// Codex gives a long command back while it still runs; ending the turn then would kill it.
func TestACommandThatStillRunsIsPolled(t *testing.T) {
	s := start(t, nil)
	const running = "Chunk ID: 1\nWall time: 30 seconds\nProcess running with session ID 4711\nOutput:\n"
	ask := func(polls bool, results ...string) said {
		request := responsesAPI.request(false, []string{prompt("TESTER")}, results)
		if polls {
			request["tools"] = append(request["tools"].([]any), object{"type": "function", "name": "write_stdin", "parameters": object{}})
		}
		_, _, body := post(t, s.URL()+"/v1/responses", request)
		return responsesAPI.whole(t, decoded(t, body))
	}
	for n := 1; n <= 2; n++ {
		got := ask(true, []string{running, running}[:n]...)
		if got.tool != "write_stdin" || got.args["session_id"] != 4711.0 {
			t.Fatalf("after %d looks the answer is %+v, want another look", n, got)
		}
	}
	if got := ask(true, running, "Process exited with code 0"); got.tool != "" || got.text == "" {
		t.Errorf("after its end the answer is %+v, want words", got)
	}
	if got := ask(false, running); got.tool != "shell" {
		t.Errorf("without a tool to look the answer is %+v, want the command again", got)
	}
}

func TestListsAndFaultyRequestsAreNoModelRequests(t *testing.T) {
	s := start(t, nil)
	status, _, body := post(t, s.URL()+"/v1/models", nil)
	if status != http.StatusOK || !strings.Contains(body, `"mock-model"`) || s.Requests() != 0 {
		t.Errorf("a list of models: status %d, %s, counted %d", status, body, s.Requests())
	}
	if status, _, _ := post(t, s.URL()+"/v1/messages", "a string"); status != http.StatusBadRequest {
		t.Errorf("a request that is no object: status %d, want 400", status)
	}
	answer := httptest.NewRecorder()
	endless := io.LimitReader(zeros{}, 40<<20)
	s.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/v1/messages", endless))
	if answer.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a request of 40 MiB: status %d, want 413", answer.Code)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestTheLogHasEveryRequestWithItsAnswer(t *testing.T) {
	var log bytes.Buffer
	s := start(t, &log)
	chatAPI.ask(t, s, true, []string{prompt("DEVELOPER")}, nil)
	post(t, s.URL()+"/v1/models", nil)
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/v1/responses", strings.NewReader("{no JSON")))

	var got []model.Entry
	for line := range strings.Lines(log.String()) {
		var e model.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		got = append(got, e)
	}
	if len(got) != 3 {
		t.Fatalf("%d lines, want 3:\n%s", len(got), log.String())
	}
	first, list, faulty := got[0], got[1], got[2]
	if first.N != 1 || !first.At.Equal(noon) || first.Method != "POST" || first.Path != "/v1/chat/completions" || !first.Assigned || first.Tool != "write" {
		t.Errorf("the first entry is %+v", first)
	}
	if !strings.Contains(string(first.Request), "cli_argv") || !strings.HasSuffix(first.Answer, "data: [DONE]\n\n") {
		t.Errorf("the first entry lacks the request %s or the answer %q", first.Request, first.Answer)
	}
	if list.N != 2 || list.Path != "/v1/models" || list.Assigned || list.Tool != "" {
		t.Errorf("the second entry is %+v", list)
	}
	if string(faulty.Request) != `"{no JSON"` {
		t.Errorf("a faulty request is logged as %s", faulty.Request)
	}
}

func TestALogThatCannotBeWrittenFailsTheCloseAndNoAnswer(t *testing.T) {
	full := errors.New("disk full")
	s, err := model.Start(model.Options{Now: time.Now, Log: failing{full}})
	if err != nil {
		t.Fatal(err)
	}
	if got := messagesAPI.ask(t, s, false, []string{prompt("DEVELOPER")}, nil); got.tool != "Write" {
		t.Errorf("the answer is %+v", got)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := s.Close(context.Background()); !errors.Is(err, full) {
		t.Errorf("close says %v, want %v", err, full)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// FuzzAnswer holds that whatever an agent sends gets an answer in JSON or in events, and no panic.
func FuzzAnswer(f *testing.F) {
	for i, a := range apis {
		b, err := json.Marshal(a.request(true, []string{prompt("TESTER")}, []string{"Process running with session ID 99999999999999999999"}))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, string(b))
	}
	f.Add(3, `{"generationConfig":{"responseJsonSchema":{"type":["null","ARRAY"],"minItems":1e300,"items":{"enum":[]}}}}`)
	f.Add(0, `{"messages":[{"role":"user","content":"{\"run_id\":{\"run_id\""}],"tools":[{"function":{"name":"bash","parameters":[]}}]}`)
	s := start(f, nil)
	f.Fuzz(func(t *testing.T, which int, body string) {
		a := apis[uint(which)%uint(len(apis))]
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, a.path(which%2 == 0), strings.NewReader(body)))
		if answer.Header().Get("Content-Type") == "text/event-stream" {
			events(t, answer.Body.String())
		} else {
			decoded(t, answer.Body.String())
		}
	})
}
