package transport_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"greatminds/transport"
)

// Tests that run beside each other mostly wait, so that more of them may than there are processors.
func TestMain(m *testing.M) {
	flag.Parse()
	beside := flag.Lookup("test.parallel").Value
	if n, err := strconv.Atoi(beside.String()); err == nil && n < 8 {
		_ = beside.Set("8") // a number, which it takes
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait of the tests; none is expected to last.
const patience = time.Minute

// message is one line that the client wrote.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	raw string
}

// peer is the agent's side, written against the protocol's text and not the SDK: it owns the
// far ends of three pipes and writes bytes.
type peer struct {
	t       testing.TB
	stdin   *os.File
	lines   *bufio.Reader
	stdout  *os.File
	stderr  *os.File
	ended   chan struct{}
	endOnce sync.Once
	options transport.Options
}

func newPeer(t testing.TB) *peer {
	t.Helper()
	pipe := func() (*os.File, *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	p := &peer{t: t, ended: make(chan struct{})}
	o := transport.Options{
		ClientName: "greatminds", ClientVersion: "test", Cwd: "/work/space", Ended: p.ended,
		Now: func() time.Time { return time.Unix(1700000000, 0) },
	}
	p.stdin, o.Stdin = pipe()
	o.Stdout, p.stdout = pipe()
	o.Stderr, p.stderr = pipe()
	p.lines, p.options = bufio.NewReaderSize(p.stdin, 64<<10), o
	p.stdin.SetReadDeadline(time.Now().Add(patience))
	p.stdout.SetWriteDeadline(time.Now().Add(patience))
	return p
}

// opened is what Open returned.
type opened struct {
	s   *transport.Session
	err error
}

// open calls Open beside the test; the session is closed at its end.
func (p *peer) open(ctx context.Context) <-chan opened {
	done := make(chan opened, 1)
	go func() {
		s, err := transport.Open(ctx, p.options)
		if s != nil {
			p.t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				if err := s.Close(ctx); err != nil {
					p.t.Errorf("close: %v", err)
				}
			})
		}
		done <- opened{s, err}
	}()
	return done
}

// next reads the client's next message.
func (p *peer) next() message {
	p.t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		p.t.Fatalf("reading the client: %v (got %q)", err, line)
	}
	m := message{raw: line}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		p.t.Fatalf("the client wrote %q: %v", line, err)
	}
	return m
}

func (p *peer) expect(method string) message {
	p.t.Helper()
	m := p.next()
	if m.Method != method {
		p.t.Fatalf("got %s, want a call of %s", m.raw, method)
	}
	return m
}

// write writes bytes as they are.
func (p *peer) write(text string) {
	p.t.Helper()
	if _, err := p.stdout.WriteString(text); err != nil {
		p.t.Fatalf("writing to the client: %v", err)
	}
}

func (p *peer) send(format string, args ...any) {
	p.t.Helper()
	p.write(fmt.Sprintf(format, args...) + "\n")
}

func (p *peer) reply(m message, result string) {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func (p *peer) refuse(m message, code int, text string) {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, text)
}

func (p *peer) update(update string) {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%s}}`, update)
}

func (p *peer) say(text string) {
	p.t.Helper()
	p.update(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}`, text))
}

// end ends the agent process as its pidfd would show it.
func (p *peer) end() { p.endOnce.Do(func() { close(p.ended) }) }

const plainAgent = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"audio":false}},` +
	`"authMethods":[{"id":"key","name":"Key"}],"agentInfo":{"name":"fixture","version":"1.2"}}`

// session makes the handshake with an agent that offers nothing special.
func (p *peer) session() *transport.Session {
	p.t.Helper()
	done := p.open(context.Background())
	p.reply(p.expect("initialize"), plainAgent)
	p.reply(p.expect("session/new"), `{"sessionId":"s1"}`)
	got := p.wait(done)
	if got.err != nil {
		p.t.Fatalf("open: %v", got.err)
	}
	return got.s
}

func (p *peer) wait(done <-chan opened) opened {
	p.t.Helper()
	return receive(p.t, done)
}

// turned is what Prompt returned.
type turned struct {
	transport.Turn
	err error
}

func prompt(ctx context.Context, s *transport.Session, text string) <-chan turned {
	done := make(chan turned, 1)
	go func() {
		t, err := s.Prompt(ctx, text)
		done <- turned{t, err}
	}()
	return done
}

// budget is a context whose deadline passes when the test says so.
type budget struct {
	context.Context
	over chan struct{}
}

func newBudget() *budget { return &budget{context.Background(), make(chan struct{})} }

func (b *budget) pass() { close(b.over) }

func (b *budget) Done() <-chan struct{} { return b.over }

func (b *budget) Err() error {
	select {
	case <-b.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// receive takes one value within the tests' patience.
func receive[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-c:
		return v
	case <-timer.C:
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// recorder is a handler that keeps what it is told.
type recorder struct {
	// forget says that updates are not kept.
	forget bool

	mu      sync.Mutex
	updates []transport.Update
	// each, when set, is called for every update.
	each func(transport.Update) error
	// answer, when set, answers permission requests.
	answer func(context.Context, transport.PermissionRequest) transport.PermissionAnswer
}

func (r *recorder) Update(u transport.Update) error {
	if !r.forget {
		r.mu.Lock()
		r.updates = append(r.updates, u)
		r.mu.Unlock()
	}
	if r.each != nil {
		return r.each(u)
	}
	return nil
}

func (r *recorder) Permission(ctx context.Context, q transport.PermissionRequest) transport.PermissionAnswer {
	if r.answer == nil {
		return transport.PermissionAnswer{}
	}
	return r.answer(ctx, q)
}

func (r *recorder) all() []transport.Update {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]transport.Update(nil), r.updates...)
}

// texts returns the text of the chunks that were seen.
func (r *recorder) texts() string {
	var b strings.Builder
	for _, u := range r.all() {
		b.WriteString(u.Text)
	}
	return b.String()
}

// kindOf returns the kind of a transport error, "" for another or none.
func kindOf(err error) transport.Kind {
	var e *transport.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func wantKind(t testing.TB, err error, kind transport.Kind, phase transport.Phase) *transport.Error {
	t.Helper()
	var e *transport.Error
	if !errors.As(err, &e) || e.Kind != kind || e.Phase != phase {
		t.Fatalf("got error %v (kind %q), want kind %q in phase %q", err, kindOf(err), kind, phase)
	}
	return e
}
