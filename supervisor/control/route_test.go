package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"greatminds/internal/durable"
	"greatminds/internal/refusal"
	"greatminds/supervisor/control"
)

func TestWithoutADaemonTheCallRunsInProcess(t *testing.T) {
	p := project(t, t.TempDir())
	var got control.Call
	route := control.Route{Project: p, Offline: func(_ context.Context, c control.Call) (any, error) {
		got = c
		return map[string]bool{"paused": true}, nil
	}}
	data, err := route.Do(t.Context(), control.Call{Op: "run.pause"})
	if err != nil || string(data) != `{"paused":true}` {
		t.Fatalf("got %s %v", data, err)
	}
	if got.Op != "run.pause" || len(got.ID) != 32 || got.Version != control.Version {
		t.Fatalf("the call in process was %+v", got)
	}
}

func TestARefusalInProcessStands(t *testing.T) {
	p := project(t, t.TempDir())
	tries := 0
	want := refusal.New(refusal.CodeRunUnknown, "r", "unknown run")
	taskLock := &refusal.Refusal{Code: refusal.CodeTaskBusy, What: "task is busy",
		Err: &durable.Held{Path: "/p/.greatminds/.locks/0001-a.lock", PID: 3}}
	for _, refused := range []*refusal.Refusal{want, taskLock} {
		tries = 0
		_, err := control.Route{Project: p, Offline: func(context.Context, control.Call) (any, error) { tries++; return nil, refused }}.
			Do(t.Context(), control.Call{Op: "x"})
		if !errors.Is(err, refused) || tries != 1 {
			t.Fatalf("got %v after %d tries, want %v after one", err, tries, refused)
		}
	}
}

func heldBy(p string, pid int) error {
	return fmt.Errorf("take the lease: %w", &durable.Held{Path: filepath.Join(p, "supervisor.lock"), Holder: fmt.Sprint(pid), PID: pid})
}

func TestALeaseThatIsHeldInSilenceIsRefusedWithItsHolder(t *testing.T) {
	p := project(t, t.TempDir())
	route := control.Route{Project: p, Patience: 200 * time.Millisecond,
		Offline: func(context.Context, control.Call) (any, error) { return nil, heldBy(p.StoreDir(), 4711) }}
	_, err := route.Do(t.Context(), control.Call{Op: "x"})
	r, _ := refusal.Find(err)
	if r == nil || r.Code != refusal.CodeDaemonSilent || r.Status() != refusal.Storage || !strings.Contains(r.What, "4711") {
		t.Fatalf("got %v, want daemon_silent (4) that names pid 4711", err)
	}
}

func TestADaemonThatComesUpInTimeServesTheCall(t *testing.T) {
	p := project(t, t.TempDir())
	up := false
	route := control.Route{Project: p, Offline: func(context.Context, control.Call) (any, error) {
		if !up { // the lease is taken; the socket follows
			up = true
			serve(t, p, echo)
		}
		return nil, heldBy(p.StoreDir(), os.Getpid())
	}}
	data, err := route.Do(t.Context(), control.Call{ID: "same", Op: "x"})
	if err != nil || !strings.Contains(string(data), `"same"`) {
		t.Fatalf("got %s %v", data, err)
	}
}

func TestADaemonThatGoesAwayLeavesTheCallToThisProcess(t *testing.T) {
	p := project(t, t.TempDir())
	tries := 0
	route := control.Route{Project: p, Offline: func(context.Context, control.Call) (any, error) {
		if tries++; tries < 3 {
			return nil, heldBy(p.StoreDir(), 9)
		}
		return "done", nil
	}}
	if data, err := route.Do(t.Context(), control.Call{Op: "x"}); err != nil || string(data) != `"done"` {
		t.Fatalf("got %s %v", data, err)
	}
}

func TestARunsCallNeverRunsInProcess(t *testing.T) {
	p := project(t, t.TempDir())
	for _, c := range []control.Call{{Op: "x", RunID: "r", Token: "t"}, {Op: "x", RunID: "r"}, {Op: "x", Token: "t"}} {
		route := control.Route{Project: p, Patience: 100 * time.Millisecond, Offline: func(context.Context, control.Call) (any, error) {
			t.Error("it ran in process")
			return nil, nil
		}}
		if _, err := route.Do(t.Context(), c); code(err) != refusal.CodeDaemonSilent {
			t.Errorf("%+v: got %v, want daemon_silent", c, err)
		}
	}
}

func TestACallWhoseAnswerWasLostIsSentAgainWithItsID(t *testing.T) {
	p := project(t, t.TempDir())
	calls := make(chan string, 8)
	raw(t, p, func(n int, r *http.Request, _ net.Conn) string {
		switch {
		case r.Method == http.MethodGet:
			return `{"version":1,"program":"x","pid":1}`
		case len(calls) == 0:
			calls <- "lost"
			return "" // the connection ends without an answer
		}
		calls <- "answered"
		return `{"version":1,"result":"done"}`
	})
	data, err := control.Route{Project: p}.Do(t.Context(), control.Call{Op: "run.pause"})
	if err != nil || string(data) != `"done"` || len(calls) != 2 {
		t.Fatalf("got %s %v after %d calls", data, err, len(calls))
	}
}

func TestTheIDStaysTheSameAcrossTries(t *testing.T) {
	p := project(t, t.TempDir())
	var ids []string
	route := control.Route{Project: p, Offline: func(_ context.Context, c control.Call) (any, error) {
		if ids = append(ids, c.ID); len(ids) < 3 {
			return nil, heldBy(p.StoreDir(), 9)
		}
		return json.RawMessage(`1`), nil
	}}
	if _, err := route.Do(t.Context(), control.Call{Op: "x"}); err != nil {
		t.Fatal(err)
	}
	if len(ids) != 3 || ids[0] != ids[1] || ids[1] != ids[2] || ids[0] == "" {
		t.Fatalf("got ids %q", ids)
	}
}

func TestASocketThatNeverAnswersIsNotWaitedForForever(t *testing.T) {
	p := project(t, t.TempDir())
	never := make(chan struct{})
	raw(t, p, func(int, *http.Request, net.Conn) string { <-never; return "" })
	t.Cleanup(func() { close(never) }) // runs before the listener's clean-up
	route := control.Route{Project: p, Patience: 200 * time.Millisecond, Offline: func(context.Context, control.Call) (any, error) {
		t.Error("the lease was gone around")
		return nil, nil
	}}
	if _, err := route.Do(t.Context(), control.Call{Op: "x"}); code(err) != refusal.CodeDaemonSilent {
		t.Fatalf("got %v, want daemon_silent", err)
	}
}
