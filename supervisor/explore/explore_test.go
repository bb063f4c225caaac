package explore

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"

	"greatminds/internal/durable"
	"greatminds/internal/durable/powercut"
	"greatminds/runstore"
)

// scenario is one story of a project, from any state of it to its end.
type scenario struct {
	name string
	// set makes the project as it is before the story.
	set func(w *world)
	// play goes on to the story's end from whatever state it finds.
	play func(l *life) error
	// check looks whether the story has come to its one end.
	check func(l *life) error
	// steps is how many durable steps it must have at least, must those that it must contain: an
	// operation and the end of a path, or a step's name.
	steps int
	must  []string
	// minJournal is when the journal is folded, 0 for as a daemon does it.
	minJournal int64
	// liveAgent says that the recorded process of a run must live in its turn.
	liveAgent bool
}

// errAgain says that the story goes on after another start.
var errAgain = errors.New("the story goes on after another start")

// explored is what was tried of one scenario.
type explored struct {
	steps, stops, images, ends int
}

// memory is what could be told of the past at each moment of a recording.
type memory struct {
	*powercut.Recorder
	mu    sync.Mutex
	store *runstore.Store
	views map[int]*runstore.View
}

// Before implements durable.Seam: what is durable when a step begins was acknowledged by then.
func (m *memory) Before(s durable.Step) error {
	m.note()
	return m.Recorder.Before(s)
}

func (m *memory) note() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.store != nil {
		m.views[m.Len()] = m.store.View()
	}
}

// acknowledged is the last view that was seen before a moment.
func (m *memory) acknowledged(after int) *runstore.View {
	for ; after >= 0; after-- {
		if v := m.views[after]; v != nil {
			return v
		}
	}
	return nil
}

// begin makes the project of a scenario.
func (s scenario) begin(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.minJournal, w.liveAgent = s.minJournal, s.liveAgent
	s.set(w)
	return w
}

// recording plays a scenario once, without a fault, and keeps everything.
func (s scenario) recording(w *world, a *agents) *memory {
	w.t.Helper()
	r, err := powercut.Record(w.top, nil)
	must(w.t, err)
	m := &memory{Recorder: r, views: map[int]*runstore.View{}}
	err = errAgain
	for errors.Is(err, errAgain) {
		err = w.live(a, w.options(m), nil, func(l *life) error {
			m.set(l.r.Store)
			if err := l.promised(true, nil); err != nil {
				return err
			}
			return s.goOn(l, nil)
		})
		m.note()
		m.set(nil)
	}
	if err != nil {
		w.t.Fatalf("without a fault: %v\n%s", err, w.log.String())
	}
	must(w.t, r.Err())
	return m
}

// goOn takes the story to its end, and holds end and promises against what is on record.
func (s scenario) goOn(l *life, acknowledged *runstore.View) error {
	if err := s.play(l); err != nil {
		return err
	}
	return errors.Join(s.check(l), l.promised(false, acknowledged))
}

func (m *memory) set(s *runstore.Store) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store = s
}

// contains checks that a scenario has the steps that it is for.
func (s scenario) contains(t *testing.T, steps []durable.Step) {
	t.Helper()
	if len(steps) < s.steps {
		t.Errorf("%d durable steps, want at least %d", len(steps), s.steps)
	}
	for _, want := range s.must {
		op, path, ofFile := strings.Cut(want, ":")
		if !slices.ContainsFunc(steps, func(st durable.Step) bool {
			if !ofFile {
				return st.Name == want
			}
			return string(st.Op) == op && (strings.HasSuffix(st.Path, path) || strings.HasSuffix(st.To, path))
		}) {
			t.Errorf("the step %s is missing", want)
		}
	}
}

// find is one folder that a stop or a power cut leaves, with what must be in it.
type find struct {
	powercut.Image
	// acknowledged is the most that was told by when the folder could still be found so.
	acknowledged *runstore.View
}

// finds are all different folders among those that are wanted, in the order in which they come to
// be, and how many of them a killed process leaves.
func (m *memory) finds(t *testing.T, want func(powercut.Image) bool) (all []*find, stops int) {
	t.Helper()
	bySum, stopped := map[uint64]*find{}, map[uint64]bool{}
	must(t, m.Images(func(i powercut.Image) error {
		if !want(i) {
			return nil
		}
		sum := i.Sum()
		f := bySum[sum]
		if f == nil {
			f = &find{Image: i}
			bySum[sum] = f
			all = append(all, f)
		}
		if i.Lost == "" {
			f.Lost = "" // some killed process leaves it
			stopped[sum] = true
		}
		f.After = i.After
		f.acknowledged = m.acknowledged(i.After)
		return nil
	}))
	return all, len(stopped)
}

// explore stops a scenario everywhere, and cuts the power everywhere.
func (s scenario) explore(t *testing.T) explored {
	w := s.begin(t)
	a := w.seed.clone()
	m := s.recording(w, a)
	s.contains(t, m.Steps())
	all, stops := m.finds(t, func(powercut.Image) bool { return true })
	ended := map[uint64]bool{}
	s.tryAll(t, w, a, m, all, ended)
	return explored{steps: len(m.Steps()), stops: stops, images: len(all), ends: len(ended)}
}

// tryAll starts again from each folder and goes on to the end, and returns how many were bad; a
// few are enough. ended are the recovered states from which the end was reached already: what goes
// on from the same state comes to the same end.
func (s scenario) tryAll(t *testing.T, w *world, a *agents, m *memory, all []*find, ended map[uint64]bool) (bad int) {
	t.Helper()
	for n, f := range all {
		if n%stride != 0 {
			continue
		}
		err := s.try(w, a, f, ended)
		if err == nil {
			continue
		}
		t.Errorf("image %d of %d, after move %d (%s), %s:\n%v\n%s", n, len(all), f.After, m.Describe(f.After), orStopped(f.Lost), err, w.log.String())
		if bad++; bad == 3 {
			break
		}
	}
	return bad
}

func (s scenario) try(w *world, a *agents, f *find, ended map[uint64]bool) error {
	w.restore(f.Tree)
	w.clock.Store(1 << 30)
	known := &agents{a.tokens, a.texts, map[string]int{}}
	err := errAgain
	for errors.Is(err, errAgain) {
		err = w.live(known, w.options(nil), nil, func(l *life) error {
			if err := l.promised(true, f.acknowledged); err != nil {
				return fmt.Errorf("after the restart: %w", err)
			}
			state := l.state()
			if ended[state] {
				return nil
			}
			ended[state] = true
			if err := s.goOn(l, f.acknowledged); err != nil {
				return fmt.Errorf("on the way to the end: %w", err)
			}
			return nil
		})
	}
	return err
}

// sweeps lets every step fail in every way.
func (s scenario) sweeps(t *testing.T) int {
	w := s.begin(t)
	begin, n := w.capture(), 0
	for i, kind := range faultsOf {
		if stride == 1 || len(s.name)%len(faultsOf) == i { // one kind a story under the race detector
			n += s.sweep(t, w, begin, kind)
		}
	}
	return n
}

// state tells recovered projects apart: by what the store says, and by every file that is not the
// store's own. This process's identity, which is drawn anew each time, does not count.
func (l *life) state() uint64 {
	t := l.w.capture()
	h := fnv.New64a()
	h.Write(bytes.ReplaceAll(l.view().Document(), []byte(l.r.Owner), []byte("owner")))
	own := l.w.rel(l.w.project.StoreDir()) + "/"
	for _, path := range t.Paths() {
		if rest, in := strings.CutPrefix(path, own); in && !strings.HasPrefix(rest, "contracts") && !strings.HasPrefix(rest, "command-output") {
			continue
		}
		data, _ := t.File(path) // a folder has no bytes
		fmt.Fprintf(h, "%s\x00%x\n", path, sha256.Sum256(data))
	}
	return h.Sum64()
}

func orStopped(lost string) string {
	if lost == "" {
		return "stopped"
	}
	return "power cut " + lost
}
