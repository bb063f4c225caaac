package powercut

import (
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"time"

	"greatminds/internal/durable"
)

// inode is a file, folder or link, whatever its names. Its mode and time are learnt from the
// folder; they do not take part in what can be lost.
type inode struct {
	mode fs.FileMode
	time time.Time
}

// state is names and bytes as they are at some moment.
type state struct {
	names map[string]*inode
	bytes map[*inode][]byte // never changed in place
}

func stateOf(t Tree) *state {
	s := &state{names: map[string]*inode{}, bytes: map[*inode][]byte{}}
	for path, n := range t.nodes {
		s.put(path, n)
	}
	return s
}

func (s *state) clone() *state { return &state{maps.Clone(s.names), maps.Clone(s.bytes)} }

// put gives a path a new inode.
func (s *state) put(path string, n *node) *inode {
	in := &inode{mode: n.mode, time: n.time}
	s.names[path], s.bytes[in] = in, n.data
	return in
}

// change is one change that a power cut can undo: of bytes, or of a name.
type change struct {
	op   durable.Op
	in   *inode
	from string // the name that goes away, empty where none does
	to   string // the name that in gets, empty where it gets none
	// offset and data are a write's, and offset is the length that a truncate leaves.
	offset int64
	data   []byte
	// folders are those whose sync is still missing; nil for a change of bytes.
	folders map[string]bool
	move    int // its number in the recording
}

func (c *change) ofBytes() bool { return c.folders == nil }

// changeOf is what a step changes in a state that is as before it; nil for a sync.
func (s *state) changeOf(step durable.Step) (*change, error) {
	c := &change{op: step.Op, in: s.names[step.Path], offset: step.Offset, data: step.Data}
	switch step.Op {
	case durable.OpWrite, durable.OpTruncate:
	case durable.OpCreate, durable.OpMkdir:
		c.in, c.to = &inode{mode: 0o600}, step.Path
		if step.Op == durable.OpMkdir {
			c.in.mode = fs.ModeDir | 0o700
		}
	case durable.OpRename, durable.OpMove:
		c.from, c.to = step.Path, step.To
	case durable.OpLink:
		c.to = step.To
	case durable.OpUnlink:
		c.from = step.Path
	case durable.OpSync, durable.OpSyncDir:
		return nil, nil
	default:
		return nil, fmt.Errorf("step %d is %q, which the model does not have", step.Seq, step.Op)
	}
	if c.in == nil {
		return nil, fmt.Errorf("step %d, %s of %s: there is no such file", step.Seq, step.Op, step.Path)
	}
	for _, name := range []string{c.from, c.to} {
		if name != "" {
			if c.folders == nil {
				c.folders = map[string]bool{}
			}
			c.folders[parent(name)] = true
		}
	}
	return c, nil
}

// make puts a change into effect. What it relies on may have been lost.
func (s *state) make(c *change) {
	switch {
	case c.op == durable.OpWrite:
		old, end := s.bytes[c.in], c.offset+int64(len(c.data))
		now := make([]byte, max(int64(len(old)), end))
		copy(now, old)
		copy(now[c.offset:], c.data)
		s.bytes[c.in] = now
	case c.op == durable.OpTruncate:
		now := make([]byte, c.offset)
		copy(now, s.bytes[c.in])
		s.bytes[c.in] = now
	default:
		s.rename(c)
	}
}

func (s *state) rename(c *change) {
	if c.from != "" && s.names[c.from] == c.in {
		delete(s.names, c.from)
		if c.in.mode.IsDir() && c.to != "" {
			s.carry(c.from, c.to)
		}
	}
	if c.to == "" {
		return
	}
	s.names[c.to] = c.in
	if _, known := s.bytes[c.in]; !known {
		s.bytes[c.in] = nil
	}
}

// carry gives everything below a folder its new place.
func (s *state) carry(from, to string) {
	for path, in := range maps.Clone(s.names) {
		if rest, below := strings.CutPrefix(path, from+"/"); below {
			delete(s.names, path)
			s.names[to+"/"+rest] = in
		}
	}
}

// play puts a whole move into effect, and returns the change that a step made; nil for a sync and
// for a change from outside.
func (s *state) play(m move) (*change, error) {
	if !m.file {
		for path, n := range m.changed {
			s.replace(path, n)
		}
		for path, n := range m.learnt {
			s.names[path].mode, s.names[path].time = n.mode, n.time
		}
		return nil, nil
	}
	if m.step.Path == "" {
		return nil, nil // elsewhere
	}
	c, err := s.changeOf(m.step)
	if err == nil && c != nil {
		s.make(c)
	}
	return c, err
}

// replace takes over what another program made of a path. A file whose bytes alone changed
// stays the inode that it is.
func (s *state) replace(path string, n *node) {
	in := s.names[path]
	switch {
	case n == nil:
		delete(s.names, path)
	case in != nil && in.mode.Type() == n.mode.Type():
		s.bytes[in], in.mode, in.time = n.data, n.mode, n.time
	default:
		s.put(path, n)
	}
}

// tree is the folder as it is found: what has no folder to be in cannot be found.
func (s *state) tree(nodes nodes) Tree {
	found := make(map[string]*node, len(s.names))
	for path, in := range s.names {
		if s.reachable(path) {
			found[path] = nodes.of(in, s.bytes[in])
		}
	}
	return newTree(found)
}

func (s *state) reachable(path string) bool {
	for dir := parent(path); dir != "."; dir = parent(dir) {
		if in := s.names[dir]; in == nil || !in.mode.IsDir() {
			return false
		}
	}
	return true
}
