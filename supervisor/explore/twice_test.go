package explore

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"testing/cryptotest"

	"greatminds/internal/durable"
	"greatminds/internal/durable/faultdisk"
	"greatminds/internal/durable/powercut"
	"greatminds/runstore"
)

// killed plays a scenario in a process that is killed before its n-th sync, and then in another one
// to its end. It returns the recording of both, and how many moves the first one had made;
// over is true where the first one came to the end.
func (s scenario) killed(w *world, a *agents, n int) (m *memory, at int, over bool) {
	w.t.Helper()
	fd := faultdisk.New(faultdisk.On(isSync, faultdisk.CrashAt(n)))
	r, err := powercut.Record(w.top, fd)
	must(w.t, err)
	m = &memory{Recorder: r, views: map[int]*runstore.View{}}
	err = w.live(a, w.options(m), nil, func(l *life) error {
		m.set(l.r.Store)
		return s.goOn(l, nil)
	})
	m.set(nil)
	if !fd.Crashed() {
		must(w.t, err)
		return m, 0, true
	}
	if !errors.Is(err, faultdisk.ErrCrashed) {
		w.t.Fatalf("killed before sync %d: %v\n%s", n, err, w.log.String())
	}
	r.Behind(nil)
	cryptotest.SetGlobalRandom(w.t, 2)
	w.clock.Store(1 << 20)
	at = r.Len()
	err = w.live(a, w.options(m), nil, func(l *life) error {
		m.set(l.r.Store)
		return s.goOn(l, nil)
	})
	m.note()
	if err != nil {
		w.t.Fatalf("after a kill before sync %d: %v\n%s", n, err, w.log.String())
	}
	must(w.t, r.Err())
	return m, at, false
}

// read tells folders apart by what is ever read: not the temporary files of a killed process.
func read(t powercut.Tree) uint64 {
	h := fnv.New64a()
	for _, path := range t.Paths() {
		if strings.HasSuffix(path, ".tmp") {
			continue
		}
		data, _ := t.File(path) // a folder has no bytes
		fmt.Fprintf(h, "%s\x00%d\x00", path, len(data))
		h.Write(data)
	}
	return h.Sum64()
}

func isSync(s durable.Step) bool { return s.Op == durable.OpSync || s.Op == durable.OpSyncDir }

// twice kills a process before every sync, lets another one go on, and cuts the power while what the
// first one wrote may still be in memory alone. What the second one relied on must be safe.
func (s scenario) twice(t *testing.T) (steps, images int) {
	w := s.begin(t)
	begin := w.capture()
	ended, tried := map[uint64]bool{}, map[uint64]bool{}
	for n := 1; ; n += stride {
		// The same ids each time: what one kill leaves, another one may leave too.
		cryptotest.SetGlobalRandom(t, 1)
		w.restore(begin)
		w.clock.Store(0)
		a := w.seed.clone()
		m, at, over := s.killed(w, a, n)
		if over {
			return n - 1, images
		}
		all, _ := m.finds(t, func(i powercut.Image) bool {
			// What the second process may lose itself is tried elsewhere.
			if i.After < at || i.Lost == "" || i.Until >= at || tried[read(i.Tree)] {
				return false
			}
			tried[read(i.Tree)] = true
			return true
		})
		images += len(all)
		if bad := s.tryAll(t, w, a, m, all, ended); bad > 0 {
			t.Fatalf("the first process was killed before sync %d", n)
		}
	}
}
