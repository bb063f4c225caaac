package powercut

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"greatminds/internal/durable"
)

// Recorder records the durable steps of a scenario, and what else changed in its folder. It
// performs no sync, as nothing can tell. Another seam may stand behind it, to stop or fail
// steps: what that one does not let happen is not recorded as having happened.
type Recorder struct {
	root   string
	behind durable.Seam
	camera camera

	mu     sync.Mutex
	before Tree
	moves  []move
	steps  []durable.Step
	now    *state // what a reader of the folder sees, as far as the steps tell
	// busy are the steps of files under way, by number. Nothing is compared while there are any:
	// how much of them can be seen is not known.
	busy map[int]durable.Step
	err  error
}

// move is one entry of a recording: a step that took effect, or a change from outside.
type move struct {
	step durable.Step
	// changed holds, for a change from outside, the new nodes by path, nil where one went away;
	// learnt those of which only mode and time were not known.
	changed, learnt map[string]*node
	// file marks the step as one of a file that has taken effect.
	file bool
}

// Record begins a recording of the folder root, which must be an absolute path without links.
// behind may be nil.
func Record(root string, behind durable.Seam) (*Recorder, error) {
	r := &Recorder{root: root, behind: behind, camera: camera{root: root}, busy: map[int]durable.Step{}}
	var err error
	if r.before, err = r.camera.capture(); err != nil {
		return nil, err
	}
	r.now = stateOf(r.before)
	return r, nil
}

// Before implements durable.Seam.
func (r *Recorder) Before(s durable.Step) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	s.Data = append([]byte(nil), s.Data...)
	r.steps = append(r.steps, s)
	var err error
	if r.behind != nil {
		err = r.behind.Before(s)
	}
	var part *durable.PartialWrite
	switch {
	case err == nil, errors.Is(err, durable.ErrSkip):
	case s.Op == durable.OpWrite && errors.As(err, &part):
		s.Data = s.Data[:min(part.N, len(s.Data))]
	default:
		return err
	}
	if s.Op != durable.OpStep {
		r.busy[s.Seq] = s
	}
	if err == nil && (s.Op == durable.OpSync || s.Op == durable.OpSyncDir) {
		return durable.ErrSkip
	}
	return err
}

// After implements durable.Seam.
func (r *Recorder) After(s durable.Step, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch done, begun := r.busy[s.Seq]; {
	case s.Op == durable.OpStep:
		r.look()
	case !begun:
		r.fail(fmt.Errorf("step %d ended, but did not begin", s.Seq))
	default:
		delete(r.busy, s.Seq)
		// A short write has taken effect as far as it went, and is the one failure that has.
		if err == nil || s.Op == durable.OpWrite {
			r.add(move{step: done, file: true})
		}
	}
	if r.behind != nil {
		return r.behind.After(s, err)
	}
	return err
}

// add notes a move and brings what is seen up to it.
func (r *Recorder) add(m move) {
	m.step.Path, m.step.To = r.relative(m.step.Path), r.relative(m.step.To)
	r.moves = append(r.moves, m)
	if _, err := r.now.play(m); err != nil {
		r.fail(err)
	}
}

// relative is a path below the root; empty for none, and for one that is elsewhere.
func (r *Recorder) relative(path string) string {
	rel, err := filepath.Rel(r.root, path)
	if path == "" || err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return ""
	}
	return filepath.ToSlash(rel)
}

// look compares the folder with what the steps tell, and notes the difference as a change from
// outside. What the steps do not tell, the mode and time of a file, it takes over.
func (r *Recorder) look() {
	if len(r.busy) > 0 {
		return
	}
	seen, err := r.camera.capture()
	if err != nil {
		r.fail(err)
		return
	}
	changed, learnt := map[string]*node{}, map[string]*node{}
	for path, n := range seen.nodes {
		in := r.now.names[path]
		switch {
		case in == nil || in.mode.Type() != n.mode.Type() || string(r.now.bytes[in]) != string(n.data):
			changed[path] = n
		case in.mode != n.mode || !in.time.Equal(n.time):
			learnt[path] = n
		}
	}
	for path := range r.now.names {
		if seen.nodes[path] == nil {
			changed[path] = nil
		}
	}
	if len(changed)+len(learnt) > 0 {
		r.add(move{changed: changed, learnt: learnt})
	}
}

func (r *Recorder) fail(err error) { r.err = errors.Join(r.err, err) }

// Len is how many moves were recorded so far: what is acknowledged now was so after Len moves.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.moves)
}

// Steps returns every step that was begun, in order.
func (r *Recorder) Steps() []durable.Step {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]durable.Step(nil), r.steps...)
}

// Behind puts another seam behind the recorder, such as that of a new process after a crash.
func (r *Recorder) Behind(seam durable.Seam) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.behind, r.busy = seam, map[int]durable.Step{}
}

// Foreign returns the paths that changed from outside, each once for each time.
func (r *Recorder) Foreign() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var paths []string
	for _, m := range r.moves {
		for path := range m.changed {
			paths = append(paths, path)
		}
	}
	return paths
}

// Err tells why the recording cannot be relied on; nil where it can.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Describe says in words what the n-th move of the recording was.
func (r *Recorder) Describe(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case n < 1 || n > len(r.moves):
		return "the beginning"
	case r.moves[n-1].file:
		s := r.moves[n-1].step
		return fmt.Sprintf("step %d, %s %s %s", s.Seq, s.Op, s.Path, s.To)
	}
	var paths []string
	for path := range r.moves[n-1].changed {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return fmt.Sprintf("a change from outside of %v", paths)
}
