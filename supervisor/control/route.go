package control

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/internal/refusal"
)

// patience is how long a lease that is held by somebody silent is waited for.
const patience = 10 * time.Second

// retryPause is the pause between two looks at a socket or lease that is not ready. A lease says
// nothing when it becomes free, so this is the one wait that looks again by itself.
const retryPause = 50 * time.Millisecond

// Offline performs one call in this process, under the project's lease. It fails with an error
// that wraps *durable.Held when another process holds the lease, and has then done nothing.
type Offline func(ctx context.Context, c Call) (any, error)

// Route decides where a call runs: in the daemon when one answers, else in process under the
// lease. It never goes around a lease that is held.
// Spec: design "Who writes".
type Route struct {
	Project contract.Project
	// Offline is nil where calls never run in process.
	Offline Offline
	// Patience bounds the wait for a silent lease holder; zero for 10 s.
	Patience time.Duration
}

// NewID returns a fresh request id: 32 random hexadecimal digits.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Do performs the call and returns its result as JSON. An empty id is replaced by a fresh one, so
// that a call whose answer was lost is sent again, or run in process, without a second effect.
//
// A call with a run's credential only ever goes to the daemon. When the lease is held and nobody
// answers, Do waits up to 10 s and then refuses with code daemon_silent and the holder's pid.
func (r Route) Do(ctx context.Context, c Call) (json.RawMessage, error) {
	if c.ID == "" {
		c.ID = NewID()
	}
	c.Version = Version
	limit := r.Patience
	if limit == 0 {
		limit = patience
	}
	waiting, stop := context.WithTimeout(ctx, limit)
	defer stop()
	ticker := time.NewTicker(retryPause)
	defer ticker.Stop()
	var cause error
	for {
		result, again, err := r.attempt(ctx, waiting, c)
		if !again {
			return result, err
		}
		// Who holds the lease says more than that nobody answered.
		if cause == nil || leaseHeld(err) {
			cause = err
		}
		select {
		case <-ticker.C:
		case <-waiting.Done():
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, silent(r.Project, limit, cause)
		}
	}
}

// attempt tries the daemon, then the lease. again means that neither was to be had just now.
func (r Route) attempt(ctx, waiting context.Context, c Call) (result json.RawMessage, again bool, err error) {
	client, err := Dial(waiting, r.Project)
	if err == nil {
		defer client.Close()
		result, err = client.Do(ctx, c)
		return result, tryAgain(err), err
	}
	if !errors.Is(err, ErrNoDaemon) {
		return nil, errors.Is(err, ErrSilent), err
	}
	if r.Offline == nil || c.Assigned() {
		return nil, true, err
	}
	answer, err := r.Offline(ctx, c)
	if leaseHeld(err) {
		return nil, true, err
	}
	if err != nil {
		return nil, false, err
	}
	result, err = Encode(answer)
	return result, false, err
}

// leaseHeld reports whether err says that another process holds the project's lease. A task's lock
// that is held is another matter: its refusal stands.
func leaseHeld(err error) bool {
	var held *durable.Held
	return errors.As(err, &held) && leaseFiles[filepath.Base(held.Path)]
}

var leaseFiles = map[string]bool{"supervisor.lock": true, "store.lock": true}

// tryAgain reports whether the daemon went away or turned the call away before or while serving it.
func tryAgain(err error) bool {
	if errors.Is(err, ErrLost) || errors.Is(err, ErrNoDaemon) {
		return !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
	}
	r, is := refusal.Find(err)
	return is && (r.Code == refusal.CodeDaemonBusy || r.Code == refusal.CodeDaemonStopping)
}

// silent is the refusal after the wait, with the holder as far as it is known.
func silent(p contract.Project, waited time.Duration, cause error) error {
	holder := "its lease is held"
	if pid := holderOf(p, cause); pid > 0 {
		holder = fmt.Sprintf("its lease is held by pid %d", pid)
	} else if errors.Is(cause, ErrNoDaemon) {
		holder = "nothing listens on its control socket"
	}
	r := refusal.New(refusal.CodeDaemonSilent,
		"look at that process; when it hangs, end it and try again (`greatminds run status` reads without it)",
		"project %s: %s, and no daemon answered within %s", p.Root, holder, waited)
	r.Err = cause
	return r
}

// holderOf is the process that holds the lease, 0 where that is not known. A daemon whose socket
// is open but silent has left its pid in the lease's file.
func holderOf(p contract.Project, cause error) int {
	var held *durable.Held
	if errors.As(cause, &held) {
		return held.PID
	}
	if !errors.Is(cause, ErrSilent) {
		return 0
	}
	text, err := os.ReadFile(filepath.Join(p.StoreDir(), "supervisor.lock"))
	if err != nil || len(text) > 256 {
		return 0
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		return 0
	}
	return pid
}
