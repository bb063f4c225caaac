package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
)

// maxCalls bounds the calls in work at a time, waiting ones included. Of these maxAgentCalls may be
// of callers that are, or may be, agents: whatever an agent waits for, an operator is heard.
const (
	maxCalls      = 128
	maxAgentCalls = 96
)

// Limits in time for a peer that is slow or silent: to send a request, to take an answer, and to
// keep an unused connection.
const (
	requestTime = 30 * time.Second
	answerTime  = 30 * time.Second
	idleTime    = 30 * time.Second
)

// Handler performs calls. The peer is the calling process, read from the kernel; the handler
// decides what it may do. An error that is no refusal reaches the caller as code "failed".
//
// ctx ends when the caller hangs up or the server is closed. A call that waits must also end when
// [Draining] does.
type Handler interface {
	Serve(ctx context.Context, peer execgate.Peer, c Call) (any, error)
}

// ServerOptions are what a server needs besides its listener.
type ServerOptions struct {
	Handler Handler
	// Program is the program version told to callers.
	Program string
	Log     *slog.Logger
	// Now reads the clock, for the time limits of answers.
	Now func() time.Time
	// PeerOf reads a caller's identity; nil for execgate.PeerOf.
	PeerOf func(*net.UnixConn) (execgate.Peer, error)
}

// Server serves the control socket until it is closed.
type Server struct {
	o        ServerOptions
	http     *http.Server
	listener *Listener
	base     context.Context
	cancel   context.CancelFunc
	draining chan struct{}
	drain    sync.Once
	calls    chan struct{} // one token per call in work
	agents   chan struct{} // one per call of an agent
	work     sync.WaitGroup
}

type (
	connKey     struct{}
	drainingKey struct{}
)

// Draining is closed when the server that serves this call has begun to stop, so that a call
// that waits for something ends early. It is nil, and so never ready, outside a server.
func Draining(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(drainingKey{}).(<-chan struct{}) // nil where the call runs in process
	return c
}

// Start serves the socket from goroutines of its own until Close.
func Start(l *Listener, o ServerOptions) *Server {
	if o.PeerOf != nil {
		l.peerOf = o.PeerOf
	}
	s := &Server{o: o, listener: l, draining: make(chan struct{}), calls: make(chan struct{}, maxCalls),
		agents: make(chan struct{}, maxAgentCalls)}
	s.base, s.cancel = context.WithCancel(context.WithValue(context.Background(), drainingKey{}, (<-chan struct{})(s.draining)))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1", s.hello)
	mux.HandleFunc("POST /v1/call", s.call)
	mux.HandleFunc("/", s.unknown)
	s.http = &http.Server{
		Handler: mux, ReadTimeout: requestTime, IdleTimeout: idleTime, MaxHeaderBytes: 16 << 10,
		ErrorLog:    slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return s.base },
		ConnContext: s.connected, ConnState: s.counted,
	}
	s.work.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			o.Log.Error("control socket failed", "err", err)
		}
	})
	return s
}

// Close stops taking calls, lets those in work end within ctx, then cancels the rest, and returns
// when no goroutine of the server is left. The socket file is gone afterwards.
func (s *Server) Close(ctx context.Context) error {
	s.drain.Do(func() { close(s.draining) })
	err := s.http.Shutdown(ctx)
	s.cancel()
	if err != nil {
		err = s.http.Close()
	}
	s.work.Wait()
	return errors.Join(err, s.listener.Close())
}

// connected lets the handlers find the connection of their request.
func (s *Server) connected(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

func connOf(r *http.Request) *countedConn { return r.Context().Value(connKey{}).(*countedConn) }

// counted keeps the count of connection goroutines, so that Close can wait for all of them, also
// for one whose handler outlives its closed connection.
func (s *Server) counted(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.work.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.work.Done()
	}
}

func (s *Server) peer(r *http.Request) (execgate.Peer, error) {
	peer, err := connOf(r).peer()
	if err != nil {
		s.o.Log.Warn("caller not identified", "err", err)
		// An unreadable caller is unknown, and the operations decide what the unknown may do.
		return execgate.Peer{PID: peer.PID, UID: peer.UID}, nil
	}
	if uid := os.Geteuid(); int(peer.UID) != uid {
		return peer, refusal.New(refusal.CodeForeignPeer, "run the command as the daemon's user",
			"the caller has uid %d, but the daemon has uid %d", peer.UID, uid)
	}
	return peer, nil
}

func (s *Server) hello(w http.ResponseWriter, r *http.Request) {
	connOf(r).work(false)
	s.answer(w, http.StatusOK, Hello{Version: Version, Program: s.o.Program, PID: os.Getpid()})
}

func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	s.answer(w, http.StatusNotFound, Reply{Version: Version, Refusal: refusal.ToWire(refusal.New(
		refusal.CodeUnknownOperation, "use `POST /v1/call`", "%s %q is no part of this API", r.Method, r.URL.Path))})
}

func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	reply := Reply{Version: Version}
	result, err := s.perform(w, r)
	if err == nil {
		reply.Result, err = Encode(result)
	}
	if err != nil {
		reply.Result, reply.Refusal = nil, refusal.ToWire(err)
	}
	s.answer(w, http.StatusOK, reply)
}

func (s *Server) perform(w http.ResponseWriter, r *http.Request) (any, error) {
	select {
	case <-s.draining:
		return nil, refusal.New(refusal.CodeDaemonStopping, "try again in a moment", "the daemon is stopping")
	default:
	}
	peer, err := s.peer(r)
	if err != nil {
		return nil, err
	}
	if peer.Descends || !peer.Known {
		leave, err := enter(s.agents)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	leave, err := enter(s.calls)
	if err != nil {
		return nil, err
	}
	defer leave()
	c, err := readCall(w, r)
	if err != nil {
		return nil, err
	}
	connOf(r).work(true)
	defer connOf(r).work(false)
	return s.guarded(r.Context(), peer, c)
}

// enter takes a place among the calls in work, and refuses where all are taken.
func enter(places chan struct{}) (leave func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	default:
		return nil, refusal.New(refusal.CodeDaemonBusy, "try again in a moment", "%d calls are open already", cap(places))
	}
}

// guarded turns a panic of the handler into a refusal: one broken operation must not take the
// daemon's runs down with it.
func (s *Server) guarded(ctx context.Context, peer execgate.Peer, c Call) (result any, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			s.o.Log.Error("operation broke an invariant", "call", c, "err", fmt.Sprint(broken), "stack", string(debug.Stack()))
			err = refusal.New(refusal.CodeInternal, "read the daemon's log", "operation %s failed inside the daemon", c.Op)
		}
	}()
	return s.o.Handler.Serve(ctx, peer, c)
}

func readCall(w http.ResponseWriter, r *http.Request) (Call, error) {
	var c Call
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	// The limit was for sending the request. Left in place it would end a call that waits longer.
	if clearErr := http.NewResponseController(w).SetReadDeadline(time.Time{}); err == nil {
		err = clearErr
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return c, refusal.New(refusal.CodeRequestTooLarge, "send less at a time",
			"the request is larger than %d bytes", MaxBody)
	}
	if err != nil {
		return c, fmt.Errorf("read the request: %w", err)
	}
	if err := Strict(data, &c); err != nil {
		return c, refusal.New(refusal.CodeRequestMalformed, "send one JSON object of the documented shape",
			"the request is no valid call: %v", err)
	}
	return c, checkVersion(c.Version)
}

// checkVersion refuses a caller that speaks another version than this daemon.
func checkVersion(caller int) error {
	switch {
	case caller > Version:
		return refusal.New(refusal.CodeAPIVersion, "restart the daemon, so that it runs the newer program",
			"the command speaks version %d of the API, the running daemon version %d", caller, Version)
	case caller < Version:
		return refusal.New(refusal.CodeAPIVersion, "use the `greatminds` that the daemon was started from",
			"the command speaks version %d of the API, the running daemon version %d", caller, Version)
	}
	return nil
}

func (s *Server) answer(w http.ResponseWriter, status int, body any) {
	data, err := Encode(body)
	if err != nil {
		s.o.Log.Error("answer not encoded", "err", err)
		status, data = http.StatusInternalServerError, []byte("{}")
	}
	// Each answer has its own time: a call may have waited for minutes before it.
	if err := http.NewResponseController(w).SetWriteDeadline(s.o.Now().Add(answerTime)); err != nil {
		s.o.Log.Warn("answer without a time limit", "err", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(data); err != nil {
		s.o.Log.Debug("caller did not take the answer", "err", err)
	}
}
