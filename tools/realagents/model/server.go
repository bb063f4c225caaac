// Package model is a stand-in for the models behind real ACP agents: a loopback HTTP server
// that speaks the dialects of four model APIs and plays a small part well.
//
// It reads the assignment that the supervisor put into the prompt, and answers with the tool
// calls that a good agent of that role would make: the developer writes a file and mends the
// sample, the tester asks for the configured command, each submits its decision through the
// assigned command line.
//
// The invariants kept: every tool call is one that the agent itself offered, with arguments that
// fit the tool's own schema; an answer follows from the request alone, so that nothing is kept
// between two requests but their counts.
//
// A task may name another part for the model, see [Part]: one that fails, hangs or says nothing.
//
// The log, where one is asked for, has one JSON document a line: see [Entry].
package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxRequest bounds one request body, in bytes.
const maxRequest = 32 << 20

// Options are what the stand-in needs from its caller.
type Options struct {
	// Now is the clock; required.
	Now func() time.Time
	// Log gets one [Entry] a line for each request; nil for none.
	Log io.Writer
}

// Entry is one request and its answer, as the log has it.
type Entry struct {
	// N counts the requests from 1.
	N      int64     `json:"n"`
	At     time.Time `json:"at"`
	Method string    `json:"method"`
	Path   string    `json:"path"`
	// Assigned says that the request carried a supervisor's assignment and offered tools.
	Assigned bool `json:"assigned"`
	// Tool is the tool that the answer calls, empty for an answer in words.
	Tool string `json:"tool,omitempty"`
	// Request is the body as it came, a JSON string where it is not JSON; absent when empty.
	Request json.RawMessage `json:"request,omitempty"`
	// Status is the HTTP status of the answer; 0 for none, since the agent went away or was left waiting.
	Status int `json:"status"`
	// Answer is the body that was sent.
	Answer string `json:"answer"`
}

// Server is a running stand-in.
type Server struct {
	options  Options
	http     *http.Server
	url      string
	requests atomic.Int64
	assigned atomic.Int64
	lines    atomic.Int64
	served   chan error
	closing  chan struct{} // closed when Close begins
	hanging  chan struct{} // closed with the first request that gets no answer

	mu     sync.Mutex // guards what follows
	logErr error
	counts map[Part]int64 // assigned requests of each part
	model  string         // that the last assigned request asked for
}

// Start listens on a free loopback port.
func Start(o Options) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the model stand-in: %w", err)
	}
	s := &Server{options: o, url: "http://" + l.Addr().String(), served: make(chan error, 1),
		closing: make(chan struct{}), hanging: make(chan struct{}), counts: map[Part]int64{}}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { s.served <- s.http.Serve(l) }()
	return s, nil
}

// URL is the base address, without a slash at its end.
func (s *Server) URL() string { return s.url }

// Requests counts the model calls seen. Lists of models and the like are none.
func (s *Server) Requests() int64 { return s.requests.Load() }

// Assigned counts the model calls that carried a supervisor's assignment and offered tools.
func (s *Server) Assigned() int64 { return s.assigned.Load() }

// Hanging is closed when the one request of the part [HangOnce] that gets no answer waits.
func (s *Server) Hanging() <-chan struct{} { return s.hanging }

// Model is the model's name in the last assigned request.
func (s *Server) Model() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model
}

// Close ends the server and returns when it has ended. Requests under way get until ctx ends.
// Its error is also that of a log that could not be written. It must be called once.
func (s *Server) Close(ctx context.Context) error {
	close(s.closing)
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.logErr)
}

// ServeHTTP answers one request of an agent.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := Entry{N: s.lines.Add(1), At: s.options.Now(), Method: r.Method, Path: r.URL.Path}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	out := s.answer(&e, body)
	if out == nil {
		select {
		case <-r.Context().Done():
		case <-s.closing:
		}
		e.Request = loggable(body)
		s.record(e)
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", out.contentType())
	w.WriteHeader(out.status)
	_, _ = w.Write(out.body.Bytes()) // an agent that has gone away needs no answer
	e.Request, e.Status, e.Answer = loggable(body), out.status, out.body.String()
	s.record(e)
}

// answer plans and renders one answer, and notes in e what it was; nil for a request that gets none.
func (s *Server) answer(e *Entry, body []byte) *reply {
	d, ok := route(e.Path)
	if !ok {
		// Lists of models and the like: nothing an agent needs here.
		return plain(http.StatusOK, map[string]any{"object": "list", "models": []any{},
			"data": []any{map[string]any{"id": modelName, "object": "model"}}})
	}
	s.requests.Add(1)
	var request map[string]any
	if err := json.Unmarshal(body, &request); err != nil {
		return plain(http.StatusBadRequest, map[string]any{"error": map[string]any{"message": err.Error()}})
	}
	c := d.read(request)
	a := c.next(e.At)
	a.number = e.N
	e.Assigned = a.assigned
	if a.assigned {
		n := s.count(a.part, modelOf(e.Path, request))
		if status := a.part.failure(n); status != 0 {
			return plain(status, errorBody(e.Path, status))
		}
		if a.part == HangOnce && len(c.results) > 0 && s.hang() {
			return nil
		}
	}
	e.Tool = a.tool
	out := &reply{status: http.StatusOK, streaming: request["stream"] == true || strings.Contains(e.Path, "stream")}
	d.write(out, a)
	return out
}

// hang says whether a request is the first that gets no answer.
func (s *Server) hang() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.hanging:
		return false
	default:
		close(s.hanging)
		return true
	}
}

// modelOf is the model's name in a request: in its body, or in its path.
func modelOf(path string, request map[string]any) string {
	if name := text(request["model"]); name != "" {
		return name
	}
	_, name, _ := strings.Cut(path, "/models/")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// count notes an assigned request, and returns how many of its part there were.
func (s *Server) count(p Part, model string) int64 {
	s.assigned.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[p]++
	s.model = model
	return s.counts[p]
}

// dialect translates between one model API and the neutral conversation.
type dialect struct {
	read  func(request map[string]any) conversation
	write func(*reply, answer)
}

// route knows each API by the path that it uses.
func route(path string) (dialect, bool) {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return dialect{readChat, writeChat}, true
	case strings.HasSuffix(path, "/responses"):
		return dialect{readResponses, writeResponses}, true
	case strings.HasSuffix(path, "/messages"):
		return dialect{readMessages, writeMessages}, true
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return dialect{readGemini, writeGemini}, true
	}
	return dialect{}, false
}

func loggable(body []byte) json.RawMessage {
	switch {
	case len(body) == 0:
		return nil
	case json.Valid(body):
		return body
	}
	return json.RawMessage(encode(string(body)))
}

// record writes one line of the log. The first error is kept for Close: a lost log is no reason
// to leave the agent without an answer.
func (s *Server) record(e Entry) {
	if s.options.Log == nil {
		return
	}
	line := append([]byte(encode(e)), '\n')
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.options.Log.Write(line); err != nil && s.logErr == nil {
		s.logErr = fmt.Errorf("write the model stand-in's log: %w", err)
	}
}

// reply is the body of one answer: server-sent events, or one JSON document where no stream was
// asked for.
type reply struct {
	status    int
	streaming bool
	body      bytes.Buffer
}

func plain(status int, v any) *reply {
	r := &reply{status: status}
	r.document(v)
	return r
}

func (r *reply) contentType() string {
	if r.streaming {
		return "text/event-stream"
	}
	return "application/json"
}

// event adds one server-sent event; name may be empty.
func (r *reply) event(name string, v any) {
	if name != "" {
		r.body.WriteString("event: " + name + "\n")
	}
	r.data(encode(v))
}

func (r *reply) data(text string) { r.body.WriteString("data: " + text + "\n\n") }

func (r *reply) document(v any) { r.body.WriteString(encode(v)) }

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("model: a plain value does not encode: " + err.Error())
	}
	return string(b)
}
