// Package model is a stand-in for the models behind real ACP agents: a loopback HTTP server
// that speaks the streaming dialects of four model APIs and plays a small part well.
//
// It reads the assignment that the supervisor put into the prompt, and answers with the tool
// calls that a good agent of that role would make: the developer writes a file and mends the
// sample, the tester asks for the configured command, each submits its decision through the
// assigned command line. Every tool call is one that the agent itself offered. It thinks
// nothing and keeps nothing but a count of requests.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// maxRequest bounds one request body, in bytes.
const maxRequest = 32 << 20

// Server is a running stand-in.
type Server struct {
	listener net.Listener
	http     *http.Server
	requests atomic.Int64
	planned  atomic.Int64
	served   chan error
}

// Start listens on a free loopback port.
func Start() (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{listener: l, served: make(chan error, 1)}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { s.served <- s.http.Serve(l) }()
	return s, nil
}

// URL is the base address, without a slash at its end.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Requests counts the model calls seen; Planned those that carried an assignment.
func (s *Server) Requests() int64 { return s.requests.Load() }

// Planned counts the calls that carried a supervisor's assignment.
func (s *Server) Planned() int64 { return s.planned.Load() }

// Close ends the server and returns when it has ended.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// dialect translates between one model API and the neutral conversation.
type dialect struct {
	read  func(body map[string]any) conversation
	write func(w *stream, a answer)
}

// ServeHTTP routes by the path that each API uses.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d, ok := route(r.URL.Path)
	if !ok {
		// Lists of models and the like: nothing an agent needs here.
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"object":"list","data":[{"id":"mock-model","object":"model"}],"models":[]}`)
		return
	}
	s.requests.Add(1)
	var body map[string]any
	if err := json.NewDecoder(io.LimitReader(r.Body, maxRequest)).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c := d.read(body)
	a := c.next()
	if a.assigned {
		s.planned.Add(1)
	}
	out := &stream{w: w, streaming: body["stream"] == true || strings.Contains(r.URL.Path, "stream")}
	d.write(out, a)
}

func route(path string) (dialect, bool) {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return dialect{readChat, writeChat}, true
	case strings.HasSuffix(path, "/responses"):
		return dialect{readResponses, writeResponses}, true
	case strings.HasSuffix(path, "/messages"):
		return dialect{readMessages, writeMessages}, true
	case strings.Contains(path, "enerateContent"):
		return dialect{readGemini, writeGemini}, true
	}
	return dialect{}, false
}

// stream writes server-sent events, or one JSON document where no stream was asked for.
type stream struct {
	w         http.ResponseWriter
	streaming bool
	begun     bool
}

func (s *stream) event(name string, v any) {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
	}
	if name != "" {
		fmt.Fprintf(s.w, "event: %s\n", name)
	}
	fmt.Fprintf(s.w, "data: %s\n\n", encode(v))
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

func (s *stream) text(line string) { fmt.Fprintf(s.w, "data: %s\n\n", line) }

func (s *stream) document(v any) {
	s.w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(s.w, encode(v))
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("model: a plain value does not encode: " + err.Error())
	}
	return string(b)
}
