package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	acp "github.com/coder/acp-go-sdk"
)

// ErrObservation is in the chain of a failure to record an update.
// Spec: "Managed protocol diagnostics".
var ErrObservation = errors.New("an observation could not be recorded")

var errWithheld = errors.New("cancelled before it was sent")

// ErrBusy is in the chain when a turn is asked for while the answer to another is awaited.
var ErrBusy = errors.New("another request is open")

// conn is the guarded connection: the SDK between our reader and our writer.
type conn struct {
	o         Options
	sdk       *acp.Connection
	in        *inbound
	out       *outbound
	stdout    *drainer
	stderr    *drainer
	errTail   tail
	ledger    *ledger
	stats     recorder
	questions *questions
	tools     *toolbook
	// dead is closed when cause is set, closed by Close.
	dead, closed chan struct{}
	pumps        sync.WaitGroup

	mu    sync.Mutex
	cause *Error
	phase Phase
	// call is the one request of ours that has no answer yet, or whose answer is on its way.
	call *call
	// replyAt is how many updates had come when the answer to call did.
	replyAt   int64
	sessionID string
	turn      *turn
	// prompted: a prompt was begun; seen, seenInPrompt: the agent said something, in a turn.
	prompted, seen, seenInPrompt bool
	negotiated                   Negotiated
	closing                      bool
	// unrecorded is the first failure to record an update.
	unrecorded error
	writeErr   error
	options    []configOption
	mode       string
}

// call is one request to the agent. The SDK correlates; what the guard knows of the answer
// decides, since the SDK's own errors look like the agent's.
type call struct {
	phase  Phase
	method string
	id     uint64
	sent   bool
	// answered is closed when the answer was seen, done when it was delivered, after every
	// update before it.
	answered, done chan struct{}
	// abandoned says that nobody waits any more.
	isAnswered, isDone, abandoned bool
	// withheld: cancelled before it was sent, so it never is.
	withheld bool
	fault    *fault
	result   json.RawMessage
	err      error
}

func newConn(o Options) *conn {
	c := &conn{
		o: o, ledger: newLedger(), tools: newToolbook(), phase: PhasePreflight,
		dead: make(chan struct{}), closed: make(chan struct{}),
		questions: newQuestions(),
		out:       newOutbound(o.Stdin, o.WriteTimeout),
		stdout:    &drainer{f: o.Stdout, span: o.DrainTimeout},
	}
	if o.Stderr != nil {
		c.stderr = &drainer{f: o.Stderr, span: o.DrainTimeout}
	}
	c.in = &inbound{
		c: c, src: newSource(c.stdout, o.MaxLine), part: 3,
		start: make(chan struct{}), done: make(chan struct{}),
	}
	return c
}

// start starts the pumps.
func (c *conn) start() {
	c.sdk = acp.NewConnection(c.handle, writer{c}, c.in)
	// Never the default logger: the SDK logs whole lines. The reader waits for this.
	c.sdk.SetLogger(slog.New(slog.DiscardHandler))
	close(c.in.start)
	c.spawn(func() { c.written(c.out.run()) })
	c.spawn(c.watch)
	if c.stderr != nil {
		c.spawn(func() {
			defer c.o.Stderr.Close()
			c.errTail.drain(c.stderr)
		})
	}
}

func (c *conn) spawn(f func()) {
	c.pumps.Add(1)
	go func() {
		defer c.pumps.Done()
		f()
	}()
}

// watch waits for the process to end: end of file may never come, since a descendant may
// hold the far ends of the pipes.
func (c *conn) watch() {
	select {
	case <-c.o.Ended:
		c.stdout.end()
		c.out.abort()
		if c.stderr != nil {
			c.stderr.end()
		}
	case <-c.closed:
	}
}

// written deals with the end of the writer. A broken pipe leaves the agent's last words to
// be read; a stall does not.
func (c *conn) written(err error) {
	var stall *stallError
	switch {
	case errors.As(err, &stall):
		c.fail(&Error{Kind: Timeout, What: stall.Error()})
	case err != nil:
		c.mu.Lock()
		c.writeErr = err
		c.mu.Unlock()
		c.stdout.end()
	}
}

// lost says why standard output has ended.
func (c *conn) lost() *Error {
	select {
	case <-c.o.Ended:
		return &Error{Kind: Transport, What: "the agent process ended"}
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writeErr != nil {
		return &Error{Kind: Transport, What: "the agent closed its standard input", Err: c.writeErr}
	}
	return &Error{Kind: Transport, What: "the agent closed its standard output"}
}

// fail ends the connection; the first cause stays.
func (c *conn) fail(e *Error) {
	c.mu.Lock()
	if c.cause != nil {
		c.mu.Unlock()
		return
	}
	if e.Phase == "" {
		e.Phase = c.phase
	}
	c.cause = e
	close(c.dead)
	c.mu.Unlock()
	c.ledger.close()
	c.out.abort()
	// The file may be closed already; then nothing is left to do.
	_ = c.o.Stdout.Close()
}

// failed returns the cause as seen from phase.
func (c *conn) failed(phase Phase) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := *c.cause
	e.Phase = phase
	return &e
}

// stuck turns a ledger's error into the connection's.
func (c *conn) stuck(err error) error {
	if errors.Is(err, errClosed) {
		return err
	}
	return &Error{Kind: Protocol, What: fmt.Sprintf(
		"an update was not handled within %s", c.o.SettleTimeout), Err: errors.Join(ErrObservation, err)}
}

// begin sends one request. The SDK is never given a context that ends: it would forget the
// answer and tell the agent so.
func (c *conn) begin(phase Phase, method string, params any) (*call, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		e := *c.cause
		e.Phase = phase
		return nil, &e
	}
	if c.call != nil {
		return nil, &Error{Kind: Protocol, Phase: phase, Err: ErrBusy,
			What: fmt.Sprintf("%s is not sent while %s has no answer", method, c.call.method)}
	}
	k := &call{phase: phase, method: method, answered: make(chan struct{}), done: make(chan struct{})}
	c.call, c.phase = k, phase
	c.spawn(func() {
		result, err := acp.SendRequest[json.RawMessage](c.sdk, context.Background(), method, params)
		c.mu.Lock()
		k.result, k.err = result, err
		if c.call == k {
			c.call = nil
		}
		k.isDone = true
		answered, abandoned := k.isAnswered, k.abandoned
		c.mu.Unlock()
		close(k.done)
		if answered && abandoned {
			c.late(k)
		}
		if answered {
			c.ledger.step(&c.ledger.returned)
		}
	})
	return k, nil
}

// answered marks the open call as answered; false when number is not its id, or it has an
// answer already. Called before the SDK sees the answer.
func (c *conn) answered(number uint64, wrong *fault) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.call
	if k == nil || !k.sent || k.id != number || k.isAnswered {
		return false
	}
	k.isAnswered, k.fault = true, wrong
	c.replyAt = c.ledger.passed.Load()
	c.ledger.answered.Add(1)
	close(k.answered)
	if k.phase == PhasePrompt && c.turn != nil {
		c.turn.end()
	}
	return true
}

func (c *conn) isAnswered(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return k.isAnswered
}

// outcome returns the answer of a call that is done.
func (c *conn) outcome(k *call) (json.RawMessage, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case k.isAnswered && k.fault != nil:
		return nil, rpcError(k)
	case k.isAnswered && k.err == nil:
		return k.result, nil
	case c.cause != nil:
		e := *c.cause
		e.Phase = k.phase
		return nil, &e
	}
	kind := Transport
	if c.out.stalled() {
		kind = Timeout
	}
	return nil, &Error{Kind: kind, Phase: k.phase, What: k.method + " could not be sent", Err: c.out.failure()}
}

func rpcError(k *call) *Error {
	code := k.fault.code
	e := &Error{
		Kind: Protocol, Phase: k.phase, Code: &code, What: "the agent answered " + k.method + " with an error",
		Message: k.fault.message, Data: json.RawMessage(k.fault.data),
	}
	switch {
	case code == codeAuthRequired:
		e.Kind = AuthRequired
	case k.phase == PhaseLoad:
		e.Kind = SessionUnavailable
	}
	return e
}

// writer is what the SDK writes to: one whole line a call.
type writer struct{ c *conn }

func (w writer) Write(p []byte) (int, error) {
	// Our request's id and method stand before its parameters, which need not be read again.
	var id, method []byte
	for m := (members{b: p}); method == nil && m.next(); {
		switch string(m.key) {
		case "id":
			id = m.value
		case "method":
			method = m.value
		}
	}
	if id != nil && method != nil && !w.c.sending(id) {
		return 0, errWithheld
	}
	err := w.c.out.put(append([]byte(nil), p...))
	if id != nil && method == nil {
		// Also where it could not be queued: nobody will answer it again.
		w.c.questions.answered(id)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// sending notes the id that the SDK gave to the open call; false when it is not to be sent.
func (c *conn) sending(raw []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := replyNumber(raw)
	if !ok || c.call == nil || c.call.sent || c.call.withheld {
		return false
	}
	c.call.id, c.call.sent = n, true
	return true
}

// close ends everything and waits for it, at most until ctx ends.
func (c *conn) close(ctx context.Context) error {
	c.mu.Lock()
	first := !c.closing
	c.closing = true
	t := c.turn
	c.mu.Unlock()
	if t != nil {
		t.endLocked(c)
	}
	// What is queued still goes out if the agent reads: an answer "cancelled", for one.
	brief, cancel := context.WithTimeout(ctx, c.o.DrainTimeout)
	defer cancel()
	c.questions.wait(brief)
	_ = c.out.flush(brief) // it is closed below, whatever happened
	c.out.shut()
	select {
	case <-c.o.Ended:
		select {
		case <-c.in.done:
		case <-ctx.Done():
		}
	default:
	}
	c.fail(&Error{Kind: Cancelled, What: "the session was closed"})
	if c.stderr != nil {
		c.stderr.endNow()
	}
	if first {
		close(c.closed)
	}
	return c.await(ctx)
}

// await waits for every goroutine of the connection.
func (c *conn) await(ctx context.Context) error {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		<-c.in.done
		c.questions.wait(context.Background()) // they end with the connection
		c.ledger.emptied()
		c.pumps.Wait()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return &Error{Kind: Transport, Phase: PhaseIdle, What: "the handler did not return", Err: ctx.Err()}
	}
}
