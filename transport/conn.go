package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// ErrObservation is in the chain of a failure to record an update.
// Spec: "Managed protocol diagnostics".
var ErrObservation = errors.New("an observation could not be recorded")

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
	// callAt is how many updates had come when the last call was begun, replyAt when its answer
	// came; more than can come before that.
	callAt, replyAt int64
	sessionID       string
	turn            *turn
	// prompted: a prompt was begun; seen, seenInPrompt: the agent said something, in a turn.
	prompted, seen, seenInPrompt bool
	// spoke is when it last did, by the monotonic clock.
	spoke      time.Time
	negotiated Negotiated
	offer      Offer
	// parted: session/close was sent or found impossible. closing: Close was called.
	parted, closing bool
	// unrecorded is the first failure to record an update.
	unrecorded error
	writeErr   error
	options    []configOption
	mode       string
}

func newConn(o Options) *conn {
	c := &conn{
		o: o, ledger: newLedger(), tools: newToolbook(), phase: PhasePreflight, replyAt: math.MaxInt64,
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
