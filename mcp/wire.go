package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"greatminds/supervisor/control"
)

// maxLine bounds one message of the client, in bytes. What is longer is skipped to its end.
const maxLine = control.MaxBody

// wire reads and writes messages, one a line. Unlike the SDK's own transport it outlives a line that
// is no message: it answers with an error and reads on.
type wire struct {
	in    io.ReadCloser
	lines chan line
	done  chan struct{} // closed by Close
	once  sync.Once

	mu  sync.Mutex // guards out
	out io.Writer

	stop sync.Mutex // guards eof
	eof  bool
}

// line is one line of the client, or why there is none.
type line struct {
	text []byte
	long bool // it was longer than maxLine and is lost
	err  error
}

func newWire(in io.ReadCloser, out io.Writer) *wire {
	return &wire{in: in, out: out, lines: make(chan line), done: make(chan struct{})}
}

// Connect begins to read. It is called once.
func (w *wire) Connect(context.Context) (sdk.Connection, error) {
	go w.read()
	return w, nil
}

// SessionID is empty: one process has one session.
func (w *wire) SessionID() string { return "" }

// Close ends a Read that waits.
func (w *wire) Close() (err error) {
	w.once.Do(func() {
		close(w.done)
		err = w.in.Close()
	})
	return err
}

// ended reports whether the client has closed its side.
func (w *wire) ended() bool {
	w.stop.Lock()
	defer w.stop.Unlock()
	return w.eof
}

func (w *wire) read() {
	in := bufio.NewReaderSize(w.in, 64<<10)
	for {
		l := nextLine(in)
		select {
		case w.lines <- l:
		case <-w.done:
			return
		}
		if l.err != nil {
			return
		}
	}
}

// nextLine reads to the end of a line, keeping no more of it than counts.
func nextLine(in *bufio.Reader) (l line) {
	for {
		part, err := in.ReadSlice('\n')
		if l.long = l.long || len(l.text)+len(part) > maxLine; l.long {
			l.text = nil
		} else {
			l.text = append(l.text, part...)
		}
		switch {
		case err == nil:
			return l
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && (l.long || len(bytes.TrimSpace(l.text)) > 0):
			return l // a last line without its end; the next read meets the end of file again
		default:
			l.err = err
			return l
		}
	}
}

// Read returns the next message. A line that is none is answered and passed over.
func (w *wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		var l line
		select {
		case l = <-w.lines:
		case <-w.done:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if l.err != nil {
			w.stop.Lock()
			w.eof = true
			w.stop.Unlock()
			return nil, io.EOF // whatever broke it, nothing more will come
		}
		m, wrong := message(l)
		if wrong == nil && m != nil {
			return m, nil
		}
		if wrong != nil {
			if err := w.complain(wrong); err != nil {
				return nil, err
			}
		}
	}
}

// message reads one line; neither a message nor an error for an empty one.
func message(l line) (jsonrpc.Message, *jsonrpc.Error) {
	text := bytes.TrimSpace(l.text)
	switch {
	case l.long:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("a message may have %d bytes at most, and this one was skipped", maxLine)}
	case len(text) == 0:
		return nil, nil
	case !json.Valid(text):
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "the line is no JSON"}
	case text[0] != '{':
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a message is one JSON object; batches are not taken"}
	}
	m, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	return m, nil
}

// complain answers what cannot be told to belong to any request.
func (w *wire) complain(wrong *jsonrpc.Error) error {
	text, err := json.Marshal(struct {
		Version string         `json:"jsonrpc"`
		ID      any            `json:"id"`
		Error   *jsonrpc.Error `json:"error"`
	}{"2.0", nil, wrong})
	if err != nil {
		return err
	}
	return w.write(text)
}

// Write sends one message.
func (w *wire) Write(_ context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return w.write(text)
}

func (w *wire) write(text []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(append(text, '\n'))
	return err
}
