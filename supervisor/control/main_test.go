package control_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"greatminds/contract"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/supervisor/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handler serves with a function.
type handler func(ctx context.Context, peer execgate.Peer, c control.Call) (any, error)

func (h handler) Serve(ctx context.Context, peer execgate.Peer, c control.Call) (any, error) {
	return h(ctx, peer, c)
}

func project(t *testing.T, root string) contract.Project {
	t.Helper()
	p := contract.Project{Root: root, Runtime: filepath.Join(root, ".greatminds")}
	if err := os.MkdirAll(p.StoreDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

// us is the peer of a test: this very process.
func us(*net.UnixConn) (execgate.Peer, error) {
	return execgate.Peer{PID: os.Getpid(), UID: uint32(os.Geteuid()), Known: true}, nil
}

func serve(t *testing.T, p contract.Project, h handler) *control.Server {
	t.Helper()
	l, err := control.Listen(p.StoreDir())
	if err != nil {
		t.Fatal(err)
	}
	s := control.Start(l, control.ServerOptions{Handler: h, Program: "1.2.3", Log: slog.New(slog.DiscardHandler), Now: time.Now, PeerOf: us})
	t.Cleanup(func() { closeServer(t, s) })
	return s
}

func closeServer(t *testing.T, s *control.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close the server: %v", err)
	}
}

func dial(t *testing.T, p contract.Project) *control.Client {
	t.Helper()
	c, err := control.Dial(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func code(err error) refusal.Code {
	if r, is := refusal.Find(err); is {
		return r.Code
	}
	return ""
}

func echo(_ context.Context, _ execgate.Peer, c control.Call) (any, error) { return c, nil }

// post sends a body past the client's own checks.
func post(t *testing.T, p contract.Project, body io.Reader) control.Reply {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", p.SocketPath())
	}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Post("http://coordd/v1/call", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var reply control.Reply
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil {
		t.Fatal(err)
	}
	return reply
}

// raw answers every request on the project's socket with a function, as a foreign daemon would.
func raw(t *testing.T, p contract.Project, answer func(n int, r *http.Request, conn net.Conn) string) {
	t.Helper()
	dir, err := os.Open(p.StoreDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), control.SocketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	var work sync.WaitGroup
	var mu sync.Mutex
	n := 0
	open := map[net.Conn]bool{}
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			work.Go(func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						return
					}
					mu.Lock()
					n++
					this := n
					mu.Unlock()
					body := answer(this, r, conn)
					if body == "" {
						return
					}
					fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for conn := range open {
			conn.Close()
		}
		mu.Unlock()
		work.Wait()
	})
}
