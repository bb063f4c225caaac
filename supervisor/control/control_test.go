package control_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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

func TestAProjectPathOf180BytesWorks(t *testing.T) {
	root := t.TempDir()
	for len(root) < 180 {
		root = filepath.Join(root, strings.Repeat("d", min(50, max(1, 180-len(root)-1))))
	}
	p := project(t, root)
	if len(p.SocketPath()) <= 108 {
		t.Fatalf("the socket's path has only %d bytes", len(p.SocketPath()))
	}
	serve(t, p, echo)
	c := dial(t, p)
	data, err := c.Do(t.Context(), control.Call{ID: "1", Op: "x", Args: json.RawMessage(`{"a":"<&>é"}`), Role: "R", Cwd: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"version":1,"id":"1","op":"x","args":{"a":"<&>é"},"role":"R","cwd":"/w"}`; string(data) != want {
		t.Fatalf("got %s, want %s", data, want)
	}
	if h := c.Hello(); h.Program != "1.2.3" || h.PID != os.Getpid() || h.Version != control.Version {
		t.Fatalf("got the greeting %+v", h)
	}
}

func TestTheSocketIsPrivate(t *testing.T) {
	p := project(t, t.TempDir())
	if err := os.Chmod(p.StoreDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	serve(t, p, echo)
	for path, want := range map[string]os.FileMode{p.StoreDir(): 0o700, p.SocketPath(): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got %v %v, want %o", path, info.Mode().Perm(), err, want)
		}
	}
}

func TestOnlyADeadSocketIsReplaced(t *testing.T) {
	p := project(t, t.TempDir())
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.SocketPath(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Dial(t.Context(), p); !errors.Is(err, control.ErrNoDaemon) {
		t.Fatalf("a stale socket: got %v, want ErrNoDaemon", err)
	}
	closeServer(t, serve(t, p, echo))
	if _, err := os.Lstat(p.SocketPath()); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the socket is left after Close: %v", err)
	}
	for name, put := range map[string]func() error{
		"file": func() error { return os.WriteFile(p.SocketPath(), []byte("mine"), 0o600) },
		"link": func() error { return os.Symlink("/nowhere", p.SocketPath()) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := put(); err != nil {
				t.Fatal(err)
			}
			if _, err := control.Listen(p.StoreDir()); code(err) != refusal.CodeSocketTaken {
				t.Fatalf("got %v, want socket_taken", err)
			}
			if err := os.Remove(p.SocketPath()); err != nil {
				t.Fatalf("what stood there is gone: %v", err)
			}
		})
	}
}

func TestARuntimeFolderOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	p := project(t, t.TempDir())
	if err := os.Chown(p.StoreDir(), 4242, 4242); err != nil {
		t.Fatal(err)
	}
	_, listenErr := control.Listen(p.StoreDir())
	_, dialErr := control.Dial(t.Context(), p)
	for what, err := range map[string]error{"listen": listenErr, "dial": dialErr} {
		if code(err) != refusal.CodeForeignRuntime || !strings.Contains(err.Error(), "4242") {
			t.Errorf("%s: got %v, want a refusal that names uid 4242", what, err)
		}
	}
}

func TestAnotherUsersCallIsRefused(t *testing.T) {
	p := project(t, t.TempDir())
	l, err := control.Listen(p.StoreDir())
	if err != nil {
		t.Fatal(err)
	}
	s := control.Start(l, control.ServerOptions{Handler: handler(echo), Log: slog.New(slog.DiscardHandler), Now: time.Now,
		PeerOf: func(*net.UnixConn) (execgate.Peer, error) {
			return execgate.Peer{PID: 1, UID: uint32(os.Geteuid() + 1), Known: true}, nil
		}})
	defer closeServer(t, s)
	if _, err := dial(t, p).Do(t.Context(), control.Call{Op: "x"}); code(err) != refusal.CodeForeignPeer {
		t.Fatalf("got %v, want foreign_peer", err)
	}
}

func TestACallerThatCannotBeReadIsUnknownToTheHandler(t *testing.T) {
	p := project(t, t.TempDir())
	l, err := control.Listen(p.StoreDir())
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan execgate.Peer, 1)
	s := control.Start(l, control.ServerOptions{Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Handler: handler(func(_ context.Context, peer execgate.Peer, _ control.Call) (any, error) { seen <- peer; return 1, nil }),
		PeerOf: func(*net.UnixConn) (execgate.Peer, error) {
			return execgate.Peer{PID: 7, Known: true}, errors.New("no /proc")
		}})
	defer closeServer(t, s)
	if _, err := dial(t, p).Do(t.Context(), control.Call{Op: "x"}); err != nil {
		t.Fatal(err)
	}
	if peer := <-seen; peer.Known || peer.Descends {
		t.Fatalf("got %+v, want an unknown peer", peer)
	}
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

func TestAnotherAPIVersionIsToldBeforeAnythingIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		daemon int
		remedy string
	}{
		"older daemon": {control.Version - 1 - 1, "restart the daemon"},
		"newer daemon": {control.Version + 1, "newer"},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, t.TempDir())
			calls := make(chan string, 8)
			raw(t, p, func(_ int, r *http.Request, _ net.Conn) string {
				calls <- r.URL.Path
				return fmt.Sprintf(`{"version":%d,"program":"0.9","pid":77}`, c.daemon)
			})
			_, err := control.Route{Project: p}.Do(t.Context(), control.Call{Op: "run.pause"})
			r, _ := refusal.Find(err)
			if r == nil || r.Code != refusal.CodeAPIVersion || !strings.Contains(r.Remedy, c.remedy) || !strings.Contains(r.What, "pid 77") {
				t.Fatalf("got %v (%+v), want api_version with %q", err, r, c.remedy)
			}
			if path := <-calls; path != "/v1" || len(calls) > 0 {
				t.Fatalf("it was asked %s and %d more times", path, len(calls))
			}
		})
	}
}

func TestTheServerRefusesACallOfAnotherVersion(t *testing.T) {
	p := project(t, t.TempDir())
	serve(t, p, echo)
	for version, want := range map[int]string{2: "restart the daemon", 0: "started from"} {
		reply := post(t, p, strings.NewReader(fmt.Sprintf(`{"version":%d,"op":"x"}`, version)))
		if reply.Refusal == nil || reply.Refusal.Code != refusal.CodeAPIVersion || !strings.Contains(reply.Refusal.Remedy, want) {
			t.Errorf("version %d: got %+v, want api_version with %q", version, reply.Refusal, want)
		}
	}
}

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

func TestABodyIsBounded(t *testing.T) {
	p := project(t, t.TempDir())
	serve(t, p, func(_ context.Context, _ execgate.Peer, c control.Call) (any, error) { return len(c.Args), nil })
	big := bytes.Repeat([]byte("x"), control.MaxBody)
	if reply := post(t, p, io.MultiReader(strings.NewReader(`{"version":1,"op":"`), bytes.NewReader(big))); reply.Refusal == nil || reply.Refusal.Code != refusal.CodeRequestTooLarge {
		t.Fatalf("the server took it: %+v", reply.Refusal)
	}
	args := json.RawMessage(`"` + string(big[:control.MaxBody-1000]) + `"`)
	c := dial(t, p)
	if data, err := c.Do(t.Context(), control.Call{Op: "x", Args: args}); err != nil || string(data) != fmt.Sprint(len(args)) {
		t.Fatalf("a body just below the limit: got %s %v", data, err)
	}
	if _, err := c.Do(t.Context(), control.Call{Op: "x", Args: json.RawMessage(`"` + string(big) + `"`)}); code(err) != refusal.CodeRequestTooLarge {
		t.Fatalf("the client sent it: %v", err)
	}
}

func TestAMalformedCallIsRefused(t *testing.T) {
	p := project(t, t.TempDir())
	serve(t, p, echo)
	for name, body := range map[string]string{
		"empty": "", "no object": "[]", "cut": `{"version":1`, "twice": `{"version":1,"op":"a","op":"b"}`,
		"more after": `{"version":1,"op":"a"}{}`, "twice below": `{"version":1,"op":"a","args":{"x":[{"y":1,"y":2}]}}`,
		"deep": `{"version":1,"op":"a","args":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
	} {
		if reply := post(t, p, strings.NewReader(body)); reply.Refusal == nil || reply.Refusal.Code != refusal.CodeRequestMalformed {
			t.Errorf("%s: got %+v, want request_malformed", name, reply.Refusal)
		}
	}
}

func TestARefusalCrossesTheSocketWhole(t *testing.T) {
	p := project(t, t.TempDir())
	want := &refusal.Refusal{Code: refusal.CodeOperatorOnly, What: "w <x>", Remedy: "r", Reasons: []refusal.Reason{{Place: "a:1:2", What: "z"}}}
	serve(t, p, func(_ context.Context, _ execgate.Peer, c control.Call) (any, error) {
		if c.Op == "panic" {
			panic("broken")
		}
		return nil, fmt.Errorf("op: %w", want)
	})
	c := dial(t, p)
	_, err := c.Do(t.Context(), control.Call{Op: "x"})
	if got, is := refusal.Find(err); !is || got.Error() != want.Error() || got.Remedy != want.Remedy || got.Status() != refusal.Forbidden {
		t.Fatalf("got %v, want %v", err, want)
	}
	if _, err := c.Do(t.Context(), control.Call{Op: "panic"}); code(err) != refusal.CodeInternal {
		t.Fatalf("a panic: got %v, want internal", err)
	}
	if _, err := c.Do(t.Context(), control.Call{Op: "x"}); code(err) != refusal.CodeOperatorOnly {
		t.Fatalf("after a panic the server is gone: %v", err)
	}
}

func TestConcurrentCallersEachGetTheirOwnAnswer(t *testing.T) {
	p := project(t, t.TempDir())
	serve(t, p, echo)
	shared := dial(t, p)
	var callers sync.WaitGroup
	for i := range 60 {
		callers.Go(func() {
			c := shared
			if i%2 == 0 {
				var err error
				if c, err = control.Dial(context.Background(), p); err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
			}
			for j := range 5 {
				id := fmt.Sprintf("%d-%d", i, j)
				data, err := c.Do(context.Background(), control.Call{ID: id, Op: "x"})
				if err != nil || !strings.Contains(string(data), `"`+id+`"`) {
					t.Errorf("caller %s got %s %v", id, data, err)
				}
			}
		})
	}
	callers.Wait()
}

func TestTooManyOpenCallsAreTurnedAway(t *testing.T) {
	p := project(t, t.TempDir())
	inside, release := make(chan struct{}, 200), make(chan struct{})
	serve(t, p, func(ctx context.Context, _ execgate.Peer, c control.Call) (any, error) {
		if c.Op == "wait" {
			inside <- struct{}{}
			<-release
		}
		return 1, nil
	})
	var callers sync.WaitGroup
	for range 128 {
		callers.Go(func() {
			c, err := control.Dial(context.Background(), p)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if _, err := c.Do(context.Background(), control.Call{Op: "wait"}); err != nil {
				t.Error(err)
			}
		})
	}
	for range 128 {
		<-inside
	}
	_, err := dial(t, p).Do(t.Context(), control.Call{Op: "x"})
	close(release)
	callers.Wait()
	if code(err) != refusal.CodeDaemonBusy {
		t.Fatalf("got %v, want daemon_busy", err)
	}
	if _, err := dial(t, p).Do(t.Context(), control.Call{Op: "x"}); err != nil {
		t.Fatalf("after the others ended: %v", err)
	}
}

// However many calls agents leave open, an operator's is taken: to answer a question, or to cancel.
func TestAgentsDoNotShutAnOperatorOut(t *testing.T) {
	for name, agent := range map[string]execgate.Peer{"agents": {Known: true, Descends: true}, "unknown callers": {}} {
		t.Run(name, func(t *testing.T) {
			p := project(t, t.TempDir())
			l, err := control.Listen(p.StoreDir())
			if err != nil {
				t.Fatal(err)
			}
			agent.PID, agent.UID = os.Getpid(), uint32(os.Geteuid())
			var operator atomic.Bool
			inside, release := make(chan struct{}, 200), make(chan struct{})
			s := control.Start(l, control.ServerOptions{Program: "1.2.3", Log: slog.New(slog.DiscardHandler), Now: time.Now,
				PeerOf: func(c *net.UnixConn) (execgate.Peer, error) {
					if operator.Load() {
						return us(c)
					}
					return agent, nil
				},
				Handler: handler(func(_ context.Context, _ execgate.Peer, c control.Call) (any, error) {
					if c.Op == "wait" {
						inside <- struct{}{}
						<-release
					}
					return 1, nil
				})})
			t.Cleanup(func() { closeServer(t, s) })
			var callers sync.WaitGroup
			var refused atomic.Int64
			for range 128 {
				callers.Go(func() {
					c, err := control.Dial(context.Background(), p)
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Close()
					_, err = c.Do(context.Background(), control.Call{Op: "wait"})
					if code(err) == refusal.CodeDaemonBusy {
						refused.Add(1)
						inside <- struct{}{}
					} else if err != nil {
						t.Error(err)
					}
				})
			}
			for range 128 {
				<-inside
			}
			operator.Store(true)
			_, err = dial(t, p).Do(t.Context(), control.Call{Op: "x"})
			close(release)
			callers.Wait()
			if err != nil || refused.Load() != 32 {
				t.Errorf("the operator got %v, and %d calls of agents were refused", err, refused.Load())
			}
		})
	}
}

func TestCloseEndsWaitingCallsAndThenNobodyListens(t *testing.T) {
	p := project(t, t.TempDir())
	inside := make(chan struct{})
	s := serve(t, p, func(ctx context.Context, _ execgate.Peer, c control.Call) (any, error) {
		close(inside)
		select {
		case <-control.Draining(ctx):
			return "drained", nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	answer := make(chan string, 1)
	c := dial(t, p)
	go func() {
		data, err := c.Do(context.Background(), control.Call{Op: "wait"})
		answer <- fmt.Sprint(string(data), err)
	}()
	<-inside
	closeServer(t, s)
	if got := <-answer; got != `"drained"<nil>` {
		t.Fatalf("the waiting call got %s", got)
	}
	if _, err := control.Dial(t.Context(), p); !errors.Is(err, control.ErrNoDaemon) {
		t.Fatalf("got %v, want ErrNoDaemon", err)
	}
	if control.Draining(context.Background()) != nil {
		t.Fatal("outside a server something is draining")
	}
}

func TestCloseCancelsACallThatDoesNotDrain(t *testing.T) {
	p := project(t, t.TempDir())
	inside := make(chan struct{})
	s := serve(t, p, func(ctx context.Context, _ execgate.Peer, c control.Call) (any, error) {
		close(inside)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	lost := make(chan error, 1)
	c := dial(t, p)
	go func() {
		_, err := c.Do(context.Background(), control.Call{Op: "wait"})
		lost <- err
	}()
	<-inside
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Close(ended); err != nil {
		t.Fatal(err)
	}
	if err := <-lost; err == nil {
		t.Fatal("the call succeeded")
	}
}

func TestACallEndsWhenItsCallerHangsUp(t *testing.T) {
	p := project(t, t.TempDir())
	inside, ended := make(chan struct{}), make(chan struct{})
	serve(t, p, func(ctx context.Context, _ execgate.Peer, c control.Call) (any, error) {
		close(inside)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	})
	ctx, hangUp := context.WithCancel(t.Context())
	go func() { <-inside; hangUp() }()
	if _, err := dial(t, p).Do(ctx, control.Call{Op: "wait"}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	<-ended
}
