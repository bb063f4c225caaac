package control_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"greatminds/contract"
	"greatminds/internal/execgate"
	"greatminds/supervisor/control"
)

// connect opens a connection that says nothing. A caller with a name is an agent to the server of serveNamed.
func connect(t *testing.T, p contract.Project, name string) *net.UnixConn {
	t.Helper()
	var local *net.UnixAddr
	if name != "" {
		local = &net.UnixAddr{Name: fmt.Sprintf("@greatminds-test-%d-%s", os.Getpid(), name), Net: "unix"}
	}
	c, err := net.DialUnix("unix", local, &net.UnixAddr{Name: p.SocketPath(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

// request writes a call to a connection and does not wait for its answer.
func request(t *testing.T, c net.Conn, op string) {
	t.Helper()
	body := fmt.Sprintf(`{"version":%d,"op":%q}`, control.Version, op)
	if _, err := fmt.Fprintf(c, "POST /v1/call HTTP/1.1\r\nHost: coordd\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		t.Fatal(err)
	}
}

// answer reads the answer of a call.
func answer(t *testing.T, c net.Conn) string {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// serveNamed takes every caller with a name for an agent, as agent says, and all others for the
// operator. The call "wait" waits until release is closed.
func serveNamed(t *testing.T, p contract.Project, agent execgate.Peer) (inside, release chan struct{}) {
	t.Helper()
	l, err := control.Listen(p.StoreDir())
	if err != nil {
		t.Fatal(err)
	}
	inside, release = make(chan struct{}), make(chan struct{})
	agent.PID, agent.UID = os.Getpid(), uint32(os.Geteuid())
	s := control.Start(l, control.ServerOptions{Program: "1.2.3", Log: slog.New(slog.DiscardHandler), Now: time.Now,
		PeerOf: func(c *net.UnixConn) (execgate.Peer, error) {
			if strings.HasPrefix(c.RemoteAddr().String(), "@greatminds-test") {
				return agent, nil
			}
			return us(c)
		},
		Handler: handler(func(ctx context.Context, _ execgate.Peer, c control.Call) (any, error) {
			if c.Op == "wait" {
				close(inside)
				select {
				case <-release:
				case <-ctx.Done(): // the test has failed
				}
			}
			return c.Op, nil
		})})
	t.Cleanup(func() { closeServer(t, s) })
	return inside, release
}

// However many silent connections an agent opens, a call is taken at once: an operator's, who keeps
// every connection, and another agent's. A call in work is not ended for it.
func TestSilentConnectionsOfAgentsShutNobodyOut(t *testing.T) {
	for name, agent := range map[string]execgate.Peer{"agents": {Known: true, Descends: true}, "unknown": {}} {
		t.Run(name, func(t *testing.T) {
			p := project(t, t.TempDir())
			inside, release := serveNamed(t, p, agent)
			idle := connect(t, p, "")
			working := connect(t, p, "working")
			request(t, working, "wait")
			<-inside
			var silent []*net.UnixConn
			for i := range 400 {
				silent = append(silent, connect(t, p, fmt.Sprint(i)))
			}
			bounded, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			c, err := control.Dial(bounded, p)
			if err != nil {
				t.Fatalf("the operator is not heard: %v", err)
			}
			defer c.Close()
			if _, err := c.Do(bounded, control.Call{Op: "x"}); err != nil {
				t.Fatalf("the operator's call: %v", err)
			}
			other := connect(t, p, "other")
			request(t, other, "y")
			if got := answer(t, other); !strings.Contains(got, `"result":"y"`) {
				t.Errorf("another agent got %s", got)
			}
			request(t, idle, "z")
			if got := answer(t, idle); !strings.Contains(got, `"result":"z"`) {
				t.Errorf("on the connection that stood idle the operator got %s", got)
			}
			if n, err := silent[0].Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("the oldest silent connection: %d bytes, %v; want it closed", n, err)
			}
			close(release)
			if got := answer(t, working); !strings.Contains(got, `"result":"wait"`) {
				t.Errorf("the call in work got %s", got)
			}
		})
	}
}

// A queue of connections that is full for a while is waited for: it is no sign that the daemon is dead.
func TestAFullQueueOfConnectionsIsWaitedFor(t *testing.T) {
	p := project(t, t.TempDir())
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "socket")
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: p.SocketPath()}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	l, err := net.FileListener(file)
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	connect(t, p, "") // takes the only place of the queue
	bounded, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := control.Dial(bounded, p); !errors.Is(err, control.ErrSilent) || bounded.Err() == nil {
		t.Fatalf("got %v before the time was over, want ErrSilent after it", err)
	}
	var served sync.WaitGroup
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"version":%d,"program":"1","pid":1}`, control.Version)
	})}
	t.Cleanup(func() { _ = s.Close(); served.Wait() })
	later, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	served.Add(1)
	context.AfterFunc(later, func() { defer served.Done(); _ = s.Serve(l) })
	patient, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := control.Dial(patient, p)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
