package powercut

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Image is one folder that could be found after a power cut.
type Image struct {
	Tree
	// After is how many moves of the recording had been made; see [Recorder.Len].
	After int
	// Lost says what the cut undid or tore; empty in the image that a killed process leaves.
	Lost string
	// Since and Until are how many moves had been made when the earliest and the latest of the lost
	// changes were not made yet; After where nothing is lost.
	Since, Until int
}

// allSubsets is how many changes, not safe yet, are lost in every combination.
const allSubsets = 10

// samples is how many combinations of more changes are drawn.
const samples = 1000

// Images calls visit with every image of the model, moment by moment; the same folder may come
// more than once. It stops at the first error of visit and returns it.
func (r *Recorder) Images(visit func(Image) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	if r.err != nil {
		return r.err
	}
	w := walk{safe: stateOf(r.before), nodes: nodes{}}
	w.seen = w.safe.clone()
	for n := 0; ; n++ {
		if err := w.images(n, visit); err != nil {
			return err
		}
		if n == len(r.moves) {
			return nil
		}
		if err := w.advance(r.moves[n], n); err != nil {
			return err
		}
	}
}

// walk is one moment of a recording.
type walk struct {
	// safe is what every image has, seen what a reader of the folder saw then.
	safe, seen *state
	// open are the changes that are not safe, in order.
	open  []*change
	nodes nodes
}

// advance makes move n.
func (w *walk) advance(m move, n int) error {
	if !m.file {
		w.foreign(m)
		return nil
	}
	in := w.seen.names[m.step.Path]
	c, err := w.seen.play(m)
	switch {
	case err != nil || m.step.Path == "":
		return err
	case c != nil:
		c.move = n
		w.open = append(w.open, c)
	case in != nil && !in.mode.IsDir():
		w.settle(func(c *change) bool { return c.ofBytes() && c.in == in })
	default:
		w.settle(func(c *change) bool {
			delete(c.folders, m.step.Path)
			return !c.ofBytes() && len(c.folders) == 0
		})
	}
	return nil
}

// settle makes changes safe, each with the earlier ones of the same name.
func (w *walk) settle(is func(*change) bool) {
	safe := make([]bool, len(w.open))
	for i := len(w.open) - 1; i >= 0; i-- {
		safe[i] = safe[i] || is(w.open[i])
		for j := 0; j < i && safe[i]; j++ {
			safe[j] = safe[j] || w.open[i].follows(w.open[j])
		}
	}
	var open []*change
	for i, c := range w.open {
		if safe[i] {
			w.safe.make(c)
		} else {
			open = append(open, c)
		}
	}
	w.open = open
}

// follows tells whether two changes of names are about the same name, or one is about a folder
// that moves and the other about what is in it.
func (c *change) follows(earlier *change) bool {
	if c.ofBytes() || earlier.ofBytes() {
		return false
	}
	for _, a := range []string{c.from, c.to} {
		for _, b := range []string{earlier.from, earlier.to} {
			if a == "" || b == "" {
				continue
			}
			if a == b || strings.HasPrefix(a, b+"/") && earlier.movesFolder() || strings.HasPrefix(b, a+"/") && c.movesFolder() {
				return true
			}
		}
	}
	return false
}

func (c *change) movesFolder() bool { return c.in.mode.IsDir() && c.from != "" && c.to != "" }

// foreign takes over a change from outside, which is safe at once.
func (w *walk) foreign(m move) {
	for path, n := range m.changed {
		was := w.seen.names[path]
		w.seen.replace(path, n)
		now := w.seen.names[path]
		if n == nil {
			delete(w.safe.names, path)
		} else if w.safe.bytes[now] = n.data; now != was {
			w.safe.names[path] = now
		}
		w.open = slices.DeleteFunc(w.open, func(c *change) bool {
			return c.in == was && (c.ofBytes() || now != was)
		})
	}
	for path, n := range m.learnt {
		w.seen.names[path].mode, w.seen.names[path].time = n.mode, n.time
	}
}

// images visits every image of this moment.
func (w *walk) images(after int, visit func(Image) error) error {
	show := func(keep []bool, t *tear) error {
		s := w.safe.clone()
		for i, c := range w.open {
			if t != nil && t.at == i {
				s.make(t.torn(c))
			} else if keep[i] {
				s.make(c)
			}
		}
		i := Image{Tree: s.tree(w.nodes), After: after, Since: after, Until: after}
		w.lost(keep, t, &i)
		return visit(i)
	}
	if err := subsets(len(w.open), uint64(after), func(keep []bool) error { return show(keep, nil) }); err != nil {
		return err
	}
	all := slices.Repeat([]bool{true}, len(w.open))
	for i, c := range w.open {
		for _, t := range c.tears(i) {
			if err := show(all, &t); err != nil {
				return err
			}
		}
	}
	return nil
}

// lost notes in an image what it has lost.
func (w *walk) lost(keep []bool, t *tear, image *Image) {
	var parts []string
	for i, c := range w.open {
		torn := t != nil && t.at == i
		if keep[i] && !torn {
			continue
		}
		what := "without " + c.String()
		if torn {
			what = fmt.Sprintf("%s only up to byte %d, then %s", c, t.n, map[bool]string{false: "nothing", true: "zeros"}[t.zeros])
		}
		parts = append(parts, what)
		image.Since, image.Until = min(image.Since, c.move), c.move
	}
	image.Lost = strings.Join(parts, ", ")
}

// String names the change.
func (c *change) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.op, c.from, c.to))
}

// subsets calls use with each choice of n changes that is to be tried; keep is not to be kept.
func subsets(n int, seed uint64, use func(keep []bool) error) error {
	keep := make([]bool, n)
	set := func(is func(i int) bool) error {
		for i := range keep {
			keep[i] = is(i)
		}
		return use(keep)
	}
	if n <= allSubsets {
		for mask := range 1 << n {
			if err := set(func(i int) bool { return mask&(1<<i) == 0 }); err != nil {
				return err
			}
		}
		return nil
	}
	for some := range n + 1 { // every prefix: nothing and everything are two of them
		if err := set(func(i int) bool { return i < some }); err != nil {
			return err
		}
	}
	for a := range n {
		for b := range a + 1 { // a and b lost; a alone where they are the same
			if err := set(func(i int) bool { return i != a && i != b }); err != nil {
				return err
			}
		}
	}
	random := rand.New(rand.NewPCG(seed, 1))
	for range samples {
		if err := set(func(int) bool { return random.IntN(2) == 0 }); err != nil {
			return err
		}
	}
	return nil
}

// block is the size of what a file system writes at once.
const block = 4096

// tear is a write that reached the disk in part: n bytes, and then nothing or zeros.
type tear struct {
	at    int
	n     int64
	zeros bool
}

// tears are the ways in which the open change i can be torn; none where it is no write.
func (c *change) tears(i int) []tear {
	size := int64(len(c.data))
	if size == 0 {
		return nil
	}
	var all []tear
	points := []int64{1, size / 2, (c.offset+size-1)/block*block - c.offset}
	slices.Sort(points)
	for _, n := range slices.Compact(points) {
		if 0 < n && n < size {
			all = append(all, tear{i, n, false}, tear{i, n, true})
		}
	}
	return append(all, tear{i, 0, true})
}

// torn is what is left of the write.
func (t *tear) torn(c *change) *change {
	part := *c
	part.data = slices.Clone(c.data[:t.n])
	if t.zeros {
		part.data = append(part.data, make([]byte, int64(len(c.data))-t.n)...)
	}
	return &part
}

// nodes are the nodes that trees are made of, by what they are made from.
type nodes map[nodeKey]*node

type nodeKey struct {
	in   *inode
	data *byte
	size int
}

// of returns the node of an inode with these bytes.
func (m nodes) of(in *inode, data []byte) *node {
	key := nodeKey{in: in, size: len(data)}
	if len(data) > 0 {
		key.data = &data[0]
	}
	n := m[key]
	if n == nil || n.mode != in.mode {
		n = newNode(in.mode, data, in.time)
		m[key] = n
	}
	return n
}
