package control_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"greatminds/contract"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/supervisor/control"
)

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

// callAtOnce makes n calls of "wait" beside each other, and tells how each ended.
func callAtOnce(t *testing.T, p contract.Project, n int, ended func(error)) *sync.WaitGroup {
	t.Helper()
	callers := new(sync.WaitGroup)
	for range n {
		callers.Go(func() {
			c, err := control.Dial(context.Background(), p)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, err = c.Do(context.Background(), control.Call{Op: "wait"})
			ended(err)
		})
	}
	return callers
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
	callers := callAtOnce(t, p, 128, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
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
			var refused atomic.Int64
			callers := callAtOnce(t, p, 128, func(err error) {
				if code(err) == refusal.CodeDaemonBusy {
					refused.Add(1)
					inside <- struct{}{}
				} else if err != nil {
					t.Error(err)
				}
			})
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
