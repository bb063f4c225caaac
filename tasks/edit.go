package tasks

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"gopkg.in/yaml.v3"
)

// render spells a whole new task file.
func render(header Fields, blocks []Block) []byte {
	var b strings.Builder
	emitFields(&b, "", header)
	list := make([]any, 0, len(blocks))
	for _, block := range blocks {
		list = append(list, block.whole())
	}
	emitField(&b, "", Field{"blocks", list})
	return []byte(b.String())
}

// withBlocks returns the task's file with further blocks at its end. Every byte that stands in
// the file now stays, where the file's shape permits; else the values stay and the file is
// spelled anew. Either way the result is read back before it is returned, and holds the same
// header and blocks as before and then the new ones.
func (t *Task) withBlocks(blocks []Block) ([]byte, error) {
	if len(blocks) == 0 {
		return t.Bytes, nil
	}
	want := append(append([]Block(nil), t.Blocks...), blocks...)
	candidates := [][]byte{render(t.Header, want)}
	if spliced := t.splice(blocks); spliced != nil {
		candidates = [][]byte{spliced, candidates[0]}
	}
	for _, data := range candidates {
		got, faults := decode(t.Queue, t.File, data)
		if len(faults) == 0 && sameFields(got.Header, t.Header) && sameBlocks(got.Blocks, want) {
			return data, nil
		}
	}
	return nil, fmt.Errorf("tasks: the new blocks of %s do not read back as they were written", t.File)
}

// splice inserts the blocks into the bytes of the file, nil where its shape has no place for it.
func (t *Task) splice(blocks []Block) []byte {
	key, list := rootEntry(t.root, "blocks")
	if t.root.Style&yaml.FlowStyle != 0 {
		return nil
	}
	newline := "\n"
	if i := bytes.IndexByte(t.Bytes, '\n'); i > 0 && t.Bytes[i-1] == '\r' {
		newline = "\r\n"
	}
	indent := strings.Repeat(" ", max(t.root.Column-1, 0))
	switch {
	case key == nil:
		text := indent + "blocks:\n" + emitBlocks(indent, blocks)
		return insertLines(t.Bytes, len(t.Bytes), text, newline)
	case list.Kind == yaml.SequenceNode && list.Style&yaml.FlowStyle == 0 && len(list.Content) > 0:
		dash := strings.Repeat(" ", list.Column-1)
		return insertLines(t.Bytes, t.offsetAfter(key), emitBlocks(dash, blocks), newline)
	case list.Kind == yaml.SequenceNode && len(list.Content) == 0:
		return t.fillEmpty(list, emitBlocks(indent, blocks), newline)
	}
	return nil
}

func emitBlocks(indent string, blocks []Block) string {
	var b strings.Builder
	for _, block := range blocks {
		emitList(&b, indent, []any{block.whole()})
	}
	return b.String()
}

// rootEntry returns key and value node of an entry of the root mapping, nil where it is missing.
func rootEntry(root *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == name {
			return root.Content[i], root.Content[i+1]
		}
	}
	return nil, nil
}

// offsetAfter is where the line of the root entry behind key begins, or the end of the file.
func (t *Task) offsetAfter(key *yaml.Node) int {
	next := math.MaxInt
	for i := 0; i+1 < len(t.root.Content); i += 2 {
		if line := t.root.Content[i].Line; line > key.Line {
			next = min(next, line)
		}
	}
	return lineOffset(t.Bytes, next)
}

// lineOffset is where a line begins, counted from 1, or the end of the text.
func lineOffset(data []byte, line int) int {
	if starts := lineStarts(data); line <= len(starts) {
		return starts[line-1]
	}
	return len(data)
}

// insertLines puts whole lines at an offset where a line begins or the text ends.
func insertLines(data []byte, at int, text, newline string) []byte {
	var out bytes.Buffer
	out.Write(data[:at])
	if at > 0 && data[at-1] != '\n' {
		out.WriteString(newline)
	}
	out.WriteString(strings.ReplaceAll(text, "\n", newline))
	out.Write(data[at:])
	return out.Bytes()
}

// fillEmpty puts lines in the place of an empty list "[]", keeping a comment behind it.
func (t *Task) fillEmpty(list *yaml.Node, text, newline string) []byte {
	at := lineOffset(t.Bytes, list.Line)
	open := bytes.IndexByte(t.Bytes[at:], '[')
	if open < 0 {
		return nil
	}
	open += at
	closing := bytes.IndexByte(t.Bytes[open:], ']')
	if closing < 0 || len(bytes.TrimSpace(t.Bytes[open+1:open+closing])) > 0 {
		return nil
	}
	rest := open + closing + 1
	end := lineOffset(t.Bytes[rest:], 2) + rest
	comment := bytes.TrimSpace(t.Bytes[rest:end])
	var head bytes.Buffer
	head.Write(bytes.TrimRight(t.Bytes[:open], " \t"))
	if len(comment) > 0 {
		head.WriteByte(' ')
		head.Write(comment)
	}
	head.WriteString(newline)
	at = head.Len()
	head.Write(t.Bytes[end:])
	return insertLines(head.Bytes(), at, text, newline)
}

// sameFields reports whether two mappings hold the same keys and values in the same order.
func sameFields(a, b Fields) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Key != b[i].Key || !sameValue(a[i].Value, b[i].Value) {
			return false
		}
	}
	return true
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case Fields:
		other, ok := b.(Fields)
		return ok && sameFields(a, other)
	case []any:
		other, ok := b.([]any)
		if !ok || len(a) != len(other) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], other[i]) {
				return false
			}
		}
		return true
	case float64:
		other, ok := b.(float64)
		return ok && (a == other || math.IsNaN(a) && math.IsNaN(other))
	}
	return a == b
}

func sameBlocks(a, b []Block) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameFields(a[i].whole(), b[i].whole()) {
			return false
		}
	}
	return true
}

// with is the task with further blocks, for checks that look at what it would become.
func (t *Task) with(blocks []Block) *Task {
	next := *t
	next.Blocks = append(append([]Block(nil), t.Blocks...), blocks...)
	return &next
}
