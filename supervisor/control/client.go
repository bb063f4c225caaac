package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"greatminds/contract"
	"greatminds/internal/refusal"
)

// maxReply bounds an answer, in bytes. `run status` of a long life is the largest.
const maxReply = 256 << 20

// callTime bounds a call that waits for nothing: locks are waited for 30 s, and checking a
// decision hashes a source tree.
const callTime = 3 * time.Minute

// Errors of the client that its caller decides by.
var (
	// ErrNoDaemon: nothing listens on the control socket.
	ErrNoDaemon = errors.New("no daemon listens on the control socket")
	// ErrSilent: something holds the socket open but does not answer.
	ErrSilent = errors.New("the daemon does not answer")
	// ErrLost: the call was sent, but its answer did not come. A changing call may have been
	// done; sent again with the same id it is not done twice.
	ErrLost = errors.New("the daemon's answer was lost")
)

// Client is one caller's way to a running daemon. It keeps at most one idle connection and is
// safe for concurrent use.
type Client struct {
	http  *http.Client
	hello Hello
}

// Dial connects to the daemon of a project and asks who it is, within ctx. It fails with
// [ErrNoDaemon] or [ErrSilent], or with a refusal when the daemon speaks another API version.
func Dial(ctx context.Context, p contract.Project) (*Client, error) {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialWhenRoom(ctx, p.StoreDir())
		},
		MaxIdleConnsPerHost: 1, DisableCompression: true,
	}
	c := &Client{http: &http.Client{Transport: transport}}
	if err := c.greet(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) greet(ctx context.Context) error {
	data, err := c.send(ctx, http.MethodGet, "http://coordd/v1", nil)
	switch {
	case err == nil:
	case nobodyListens(err):
		return fmt.Errorf("%w: %w", ErrNoDaemon, err)
	case isRefusal(err):
		return err
	default:
		return fmt.Errorf("%w: %w", ErrSilent, err)
	}
	if err := json.Unmarshal(data, &c.hello); err != nil || c.hello.Version == 0 {
		return fmt.Errorf("%w: it answered something that is no greeting", ErrSilent)
	}
	return checkDaemon(c.hello)
}

// checkDaemon refuses a daemon of another API version before anything is asked of it.
func checkDaemon(h Hello) error {
	switch {
	case h.Version < Version:
		return refusal.New(refusal.CodeAPIVersion, "restart the daemon, so that it runs this program",
			"the running daemon (pid %d, version %s) speaks version %d of the API, this program version %d",
			h.PID, h.Program, h.Version, Version)
	case h.Version > Version:
		return refusal.New(refusal.CodeAPIVersion, "use the newer `greatminds` that the daemon was started from",
			"the running daemon (pid %d, version %s) speaks version %d of the API, this program only version %d",
			h.PID, h.Program, h.Version, Version)
	}
	return nil
}

// Hello is what the daemon said of itself.
func (c *Client) Hello() Hello { return c.hello }

// Do sends one call and returns its result. A refusal of the daemon is returned as a
// *refusal.Refusal; [ErrLost] means that the outcome is unknown. Without a deadline of its own,
// ctx is bounded to three minutes.
func (c *Client) Do(ctx context.Context, call Call) (json.RawMessage, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTime)
		defer cancel()
	}
	call.Version = Version
	body, err := Encode(call)
	if err != nil {
		return nil, err
	}
	if len(body) > MaxBody {
		return nil, refusal.New(refusal.CodeRequestTooLarge, "send less at a time",
			"the request is %d bytes long, the daemon reads %d", len(body), MaxBody)
	}
	data, err := c.send(ctx, http.MethodPost, "http://coordd/v1/call", body)
	switch {
	case isRefusal(err):
		return nil, err
	case err != nil && nobodyListens(err):
		return nil, fmt.Errorf("%w: %w", ErrNoDaemon, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	var reply Reply
	if err := json.Unmarshal(data, &reply); err != nil {
		return nil, fmt.Errorf("%w: it is no valid reply: %w", ErrLost, err)
	}
	if reply.Refusal != nil {
		return nil, refusal.FromWire(reply.Refusal)
	}
	return reply.Result, nil
}

// Close ends the client's idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) send(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if len(data) > maxReply {
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxReply)
	}
	return data, nil
}

func isRefusal(err error) bool {
	_, is := refusal.Find(err)
	return is
}
