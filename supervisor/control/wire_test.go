package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
	"greatminds/supervisor/control"
)

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
