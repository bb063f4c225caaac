package powercut_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"greatminds/internal/durable"
)

// naive says the same as the package from the words of its documentation alone, slowly: for each
// moment it decides anew which steps are safe, and replays the whole history for each image.
type naive struct{ steps []durable.Step }

// disk is a file system of numbered files.
type disk struct {
	names map[string]int
	data  map[int]string
	dirs  map[int]bool
}

// replay performs steps[i] for each i that is kept; ids are the files that each step is about.
func (n naive) replay(upTo int, keep func(i int) bool, torn func(i int) (string, bool)) (disk, []int) {
	d := disk{map[string]int{}, map[int]string{}, map[int]bool{}}
	ids := make([]int, len(n.steps))
	if keep != nil {
		_, ids = n.replay(len(n.steps), nil, nil)
	}
	for i, s := range n.steps[:upTo] {
		if keep == nil {
			ids[i] = d.names[s.Path]
			if s.Op == durable.OpCreate || s.Op == durable.OpMkdir {
				ids[i] = i + 1
			}
		} else if !keep(i) {
			continue
		}
		data := string(s.Data)
		if torn != nil {
			if t, is := torn(i); is {
				data = t
			}
		}
		// What a lost mkdir made is a folder all the same, wherever it is moved to.
		d.dirs[ids[i]] = ids[i] > 0 && n.steps[ids[i]-1].Op == durable.OpMkdir
		d.perform(s, ids[i], data)
	}
	return d, ids
}

func (d disk) perform(s durable.Step, id int, data string) {
	switch s.Op {
	case durable.OpCreate:
		d.names[s.Path] = id
	case durable.OpMkdir:
		d.names[s.Path], d.dirs[id] = id, true
	case durable.OpWrite:
		old := d.data[id]
		end := int(s.Offset) + len(data)
		now := []byte(old + strings.Repeat("\x00", max(0, end-len(old))))
		copy(now[s.Offset:], data)
		d.data[id] = string(now)
	case durable.OpTruncate:
		old := d.data[id] + strings.Repeat("\x00", max(0, int(s.Offset)-len(d.data[id])))
		d.data[id] = old[:s.Offset]
	case durable.OpRename, durable.OpMove:
		if d.names[s.Path] == id {
			delete(d.names, s.Path)
			for name, other := range maps.Clone(d.names) {
				if rest, in := strings.CutPrefix(name, s.Path+"/"); in && d.dirs[id] {
					delete(d.names, name)
					d.names[s.To+"/"+rest] = other
				}
			}
		}
		d.names[s.To] = id
	case durable.OpLink:
		d.names[s.To] = id
	case durable.OpUnlink:
		if d.names[s.Path] == id {
			delete(d.names, s.Path)
		}
	}
}

func isBytes(s durable.Step) bool { return s.Op == durable.OpWrite || s.Op == durable.OpTruncate }

func isSync(s durable.Step) bool { return s.Op == durable.OpSync || s.Op == durable.OpSyncDir }

// namesOf are the names that a step changes.
func namesOf(s durable.Step) []string {
	switch s.Op {
	case durable.OpRename, durable.OpMove:
		return []string{s.Path, s.To}
	case durable.OpLink:
		return []string{s.To}
	}
	return []string{s.Path}
}

// open are the steps before upTo that are not safe there.
func (n naive) open(upTo int) []int {
	_, ids := n.replay(len(n.steps), nil, nil)
	safe := make([]bool, upTo)
	for i, s := range n.steps[:upTo] {
		if isSync(s) {
			safe[i] = true
			continue
		}
		missing := map[string]bool{}
		if !isBytes(s) {
			for _, name := range namesOf(s) {
				missing[path.Dir(name)] = true
			}
		}
		for j, later := range n.steps[i+1 : upTo] {
			if isBytes(s) && later.Op == durable.OpSync && ids[i+1+j] == ids[i] {
				safe[i] = true
			}
			if later.Op == durable.OpSyncDir {
				delete(missing, later.Path)
			}
		}
		safe[i] = safe[i] || !isBytes(s) && len(missing) == 0
	}
	for again := true; again; {
		again = false
		for i := range safe {
			for j := i + 1; j < upTo; j++ {
				if !safe[i] && safe[j] && !isSync(n.steps[j]) && n.sameName(i, j, ids) {
					safe[i], again = true, true
				}
			}
		}
	}
	var open []int
	for i := range safe {
		if !safe[i] {
			open = append(open, i)
		}
	}
	return open
}

func (n naive) sameName(i, j int, ids []int) bool {
	a, b := n.steps[i], n.steps[j]
	if isBytes(a) || isBytes(b) {
		return false
	}
	moves := func(k int) bool {
		s := n.steps[k]
		made := n.steps[ids[k]-1].Op
		return (s.Op == durable.OpMove || s.Op == durable.OpRename) && made == durable.OpMkdir
	}
	for _, x := range namesOf(a) {
		for _, y := range namesOf(b) {
			if x == y || moves(j) && strings.HasPrefix(x, y+"/") || moves(i) && strings.HasPrefix(y, x+"/") {
				return true
			}
		}
	}
	return false
}

// images are all images after the first upTo steps.
func (n naive) images(upTo int) map[string]bool {
	open := n.open(upTo)
	all := map[string]bool{}
	for mask := range 1 << len(open) {
		d, _ := n.replay(upTo, func(i int) bool {
			at := slices.Index(open, i)
			return at < 0 || mask&(1<<at) == 0
		}, nil)
		all[d.String()] = true
	}
	for _, i := range open {
		s := n.steps[i]
		size := len(s.Data)
		if s.Op != durable.OpWrite || size == 0 {
			continue
		}
		for _, cut := range []int{0, 1, size / 2, (int(s.Offset)+size-1)/4096*4096 - int(s.Offset)} {
			if cut < 0 || cut >= size {
				continue
			}
			for _, tail := range []string{"", strings.Repeat("\x00", size-cut)} {
				if cut == 0 && tail == "" {
					continue // the write is lost, which is among the subsets
				}
				d, _ := n.replay(upTo, func(int) bool { return true }, func(k int) (string, bool) {
					return string(s.Data[:cut]) + tail, k == i
				})
				all[d.String()] = true
			}
		}
	}
	return all
}

// String is the disk as it is found.
func (d disk) String() string {
	var lines []string
	for name, id := range d.names {
		found := true
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			found = found && d.dirs[d.names[dir]]
		}
		if found {
			lines = append(lines, fmt.Sprintf("%s dir=%v %q", name, d.dirs[id], d.data[id]))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
