package explore

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"greatminds/internal/durable"
	"greatminds/internal/durable/powercut"
	"greatminds/internal/refusal"
	"greatminds/runstore"
)

// fault is one way in which a disk fails.
type fault struct {
	name string
	err  error
	// fits says which steps can fail so.
	fits func(durable.Step) bool
	// lasts: every further step that fits fails too, until the fault is taken away.
	lasts bool
	// short lets the first half of a write through.
	short bool
}

// canFail leaves out the named steps that only hold others.
func canFail(s durable.Step) bool {
	return !strings.HasPrefix(s.Name, "apply.") && s.Name != "result.receive"
}

func file(s durable.Step) bool { return s.Op != durable.OpStep }

// takesSpace tells steps that need room on the disk.
func takesSpace(s durable.Step) bool {
	return s.Op == durable.OpWrite || s.Op == durable.OpCreate || s.Op == durable.OpMkdir || s.Op == durable.OpSync
}

// faultsOf are the kinds of faults. What is no file operation (git, a gate) fails in one way only:
// how its error is called makes no difference there.
var faultsOf = []fault{
	{name: "EIO", err: syscall.EIO, fits: canFail},
	{name: "ENOSPC", err: syscall.ENOSPC, fits: takesSpace, lasts: true},
	{name: "EROFS", err: syscall.EROFS, fits: file, lasts: true},
	{name: "short write", err: syscall.ENOSPC, fits: func(s durable.Step) bool { return s.Op == durable.OpWrite && len(s.Data) > 1 }, short: true},
}

// faults is a disk on which each step of each stage of a scenario fails once, one in each call of
// a stage.
type faults struct {
	fault
	mu    sync.Mutex
	stage string         // the stage under way, empty where nothing is to fail
	hit   string         // the step that failed in it
	seen  map[string]int // how often each step came in this call
	done  map[string]bool
	total int
}

func newFaults(f fault) *faults { return &faults{fault: f, done: map[string]bool{}} }

// arm lets the next step that has not failed yet in this stage fail.
func (f *faults) arm(stage string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stage, f.hit, f.seen = stage, "", map[string]int{}
}

// heal takes the fault away, and returns the step that failed; empty for none.
func (f *faults) heal() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	hit := f.hit
	f.stage, f.hit = "", ""
	return hit
}

var drawn = regexp.MustCompile(`[0-9a-f]{16,}`)

// Before implements durable.Seam.
func (f *faults) Before(s durable.Step) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stage != "" && f.fits(s) && f.strikes(s) {
		err := fmt.Errorf("%s: %w", f.hit, f.err)
		if f.short {
			return &durable.PartialWrite{N: len(s.Data) / 2, Err: err}
		}
		return err
	}
	if s.Op == durable.OpSync || s.Op == durable.OpSyncDir {
		return durable.ErrSkip
	}
	return nil
}

func (f *faults) strikes(s durable.Step) bool {
	if f.hit != "" {
		return f.lasts
	}
	what := fmt.Sprintf("%s: %s %s%s", f.stage, s.Op, drawn.ReplaceAllString(filepath.Base(s.Path), "*"), s.Name)
	f.seen[what]++
	what = fmt.Sprintf("%s #%d", what, f.seen[what])
	if f.done[what] {
		return false
	}
	f.done[what], f.hit = true, what
	f.total++
	return true
}

// After implements durable.Seam.
func (f *faults) After(_ durable.Step, err error) error { return err }

// do performs one stage of a scenario. Where steps fail, it does so again and again until each
// has failed: every time the stage must say clearly what is wrong and leave nothing half done,
// and with the fault gone it must come to its end.
func (l *life) do(stage string, f func() error) error {
	if l.faults == nil {
		return f()
	}
	for {
		l.faults.arm(stage)
		err := f()
		hit := l.faults.heal()
		l.seen = l.view()
		switch {
		case err == nil, hit == "" && l.r.Store.Err() == nil:
			return err // a store may have failed behind the stage before, when it folded its journal
		case clear(err) != nil:
			return fmt.Errorf("after %s: %w", hit, clear(err))
		case l.r.Store.Err() != nil:
			if err := l.stopped(); err != nil {
				return fmt.Errorf("after %s: %w", hit, err)
			}
			return errRestart
		}
		if err := l.promised(false, l.seen); err != nil {
			return fmt.Errorf("after %s: %w", hit, err)
		}
		if stage == "apply" || stage == "repair" {
			l.moves++ // what comes next is for the result's state to say
			return nil
		}
	}
}

// clear tells why an error is no clear refusal; nil where it is one.
func clear(err error) error {
	r, is := refusal.Find(err)
	if !is || r.What == "" || r.Remedy == "" {
		return fmt.Errorf("the error is no clear refusal: %w", err)
	}
	return nil
}

// stopped wants a store that can no longer be written to take no claim, and to say so.
func (l *life) stopped() error {
	err := l.update(func(tx *runstore.Tx) error {
		_, _, err := tx.Claim(runstore.Claim{TaskID: "0009-other", TaskPath: "feature_dev/0009-other.yaml"}, nil)
		return err
	})
	if r, is := refusal.Find(err); !is || r.Code != refusal.CodeStoreFailed {
		return fmt.Errorf("a claim after the store has failed: got %w, want it refused", err)
	}
	return clear(err)
}

// sweep lets every step of a scenario fail in one way, and returns how many did.
func (s scenario) sweep(t *testing.T, w *world, from powercut.Tree, kind fault) int {
	t.Helper()
	w.restore(from)
	f, a := newFaults(kind), w.seed.clone()
	var acknowledged *runstore.View
	for range 1000 {
		f.arm("open")
		var mine *life
		err := w.live(a, w.options(f), f, func(l *life) error {
			f.heal()
			mine, l.seen = l, l.view()
			if err := l.promised(true, acknowledged); err != nil {
				return violation{fmt.Errorf("after the restart: %w", err)}
			}
			if err := s.play(l); err != nil {
				return err
			}
			if err := errors.Join(s.check(l), l.promised(false, acknowledged)); err != nil && !errors.Is(err, errAgain) {
				return violation{err}
			} else if err != nil {
				return err
			}
			l.seen = l.view()
			f.arm("close")
			return nil
		})
		hit := f.heal()
		if mine != nil {
			acknowledged = mine.seen
		}
		var broken violation
		switch {
		case err == nil && hit == "":
			return f.total
		case err == nil, (errors.Is(err, errRestart) || errors.Is(err, errAgain)) && !errors.As(err, &broken):
			continue
		case (hit != "" || storeFailed(err)) && !errors.As(err, &broken) && clear(err) == nil:
			continue
		}
		t.Errorf("%s, %s: %v\n%s", kind.name, hit, err, w.log.String())
		return f.total
	}
	t.Errorf("%s: no end after %d faults", kind.name, f.total)
	return f.total
}

// storeFailed tells that a store ended behind the stages: it folds its journal after the change that
// made it long was acknowledged.
func storeFailed(err error) bool {
	r, is := refusal.Find(err)
	return is && r.Code == refusal.CodeStoreFailed
}

// violation is an error that no fault excuses.
type violation struct{ error }
