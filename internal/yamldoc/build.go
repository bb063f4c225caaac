package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// builder turns the parser's tree into ours.
type builder struct {
	source *source
	faults *Faults
	o      Options
	// path leads to the node in hand.
	path []step
}

// step is one key of a mapping, or one entry of a list where key is nil.
type step struct {
	key   *Node
	index int
}

// fault adds a fault that begins with the path of the node in hand.
func (b *builder) fault(at *Node, remedy, format string, args ...any) {
	if b.faults.full() {
		b.faults.more++
		return
	}
	var where strings.Builder
	for i, s := range b.path {
		switch {
		case s.key == nil:
			where.WriteString("[" + strconv.Itoa(s.index) + "]")
		case i > 0:
			where.WriteString("." + s.key.name())
		default:
			where.WriteString(s.key.name())
		}
	}
	if len(b.path) > 0 {
		where.WriteString(": ")
	}
	b.faults.Add(at, remedy, "%s%s", where.String(), fmt.Sprintf(format, args...))
}

// within converts a node below the one in hand.
func (b *builder) within(s step, y *yaml.Node, depth int) *Node {
	b.path = append(b.path, s)
	n := b.node(y, depth)
	b.path = b.path[:len(b.path)-1]
	return n
}

// directives refuses "%" lines before the document; the parser's tree does not show them.
func (b *builder) directives(rootLine int) {
	for n := 1; n < rootLine && n <= len(b.source.starts); n++ {
		if bytes.HasPrefix(b.source.line(n), []byte("%")) {
			b.faults.AddAt(n, 1, "remove the line", "directive %s", Show(string(b.source.line(n))))
		}
	}
}

// further refuses whatever follows the first document.
func (b *builder) further(dec *yaml.Decoder) {
	var second yaml.Node
	err := decode(dec, &second)
	if errors.Is(err, io.EOF) {
		return
	}
	line, column := second.Line, second.Column
	if err != nil || line < 1 {
		line, column = max(1, len(b.source.starts)), 1
	}
	b.faults.AddAt(line, column, "keep one document a file, without further ---", "a further document begins here")
}

// node converts one node and everything below it. What is refused is still looked through, so
// that a file's other faults show at once.
func (b *builder) node(y *yaml.Node, depth int) *Node {
	n := &Node{Line: max(1, y.Line), Column: max(1, y.Column)}
	if y.Kind == yaml.AliasNode {
		b.fault(n, "write the value out", "alias *%s", y.Value)
		return n
	}
	clean := b.undecorated(y, n)
	switch y.Kind {
	case yaml.ScalarNode:
		b.scalar(y, n)
	case yaml.MappingNode, yaml.SequenceNode:
		if depth > b.o.MaxDepth {
			b.fault(n, "nest less deeply", "nested more than %d deep", b.o.MaxDepth)
			return n
		}
		if y.Kind == yaml.MappingNode {
			b.mapping(y, n, depth)
		} else {
			b.sequence(y, n, depth)
		}
	}
	// What is below a refused mapping or list is still worth checking; a refused scalar is not,
	// since its kind is what a tag is about.
	if !clean && y.Kind == yaml.ScalarNode {
		n.Kind = Invalid
	}
	return n
}

// undecorated refuses anchors, tags and tabs in front of a node.
func (b *builder) undecorated(y *yaml.Node, n *Node) bool {
	head, tail := b.source.before(n.Line, n.Column)
	switch {
	case y.Anchor != "":
		b.fault(n, "write the value out where it is needed", "anchor &%s", y.Anchor)
	// The parser drops a lone "!" although it turns a number into text for some readers, so the
	// source is looked at: no untagged node begins with this character.
	case y.Style&yaml.TaggedStyle != 0, bytes.HasPrefix(tail, []byte("!")):
		b.fault(n, "remove the tag", "tag %s", Show(firstWord(tail)))
	case bytes.ContainsRune(head[len(bytes.TrimRight(head, " \t")):], '\t'):
		b.fault(n, "write spaces", "a tab stands before the value")
	default:
		return true
	}
	return false
}

func firstWord(text []byte) string {
	text = text[:min(len(text), 200)]
	if end := bytes.IndexAny(text, " \t,[]{}"); end >= 0 {
		text = text[:end]
	}
	return string(text)
}

// isPlain reports whether a scalar was written without quotes and block indicator.
func isPlain(y *yaml.Node) bool {
	return y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

func (b *builder) scalar(y *yaml.Node, n *Node) {
	n.Text = y.Value
	if !isPlain(y) {
		n.Kind = String
		if strings.ContainsRune(n.Text, 0) {
			b.fault(n, "remove it", "text with a NUL character: %s", Show(n.Text))
			n.Kind = Invalid
		}
		return
	}
	if strings.ContainsRune(n.Text, '\t') {
		b.fault(n, "quote the text, or write spaces", "a tab inside unquoted text: %s", Show(n.Text))
		return
	}
	kind, dispute, remedy := resolve(n.Text)
	switch {
	case dispute != "":
		b.fault(n, remedy, "some readers take %s for %s", n.Text, dispute)
	case kind == Null && !b.o.Null && n.Text == "":
		b.fault(n, "write a value, or leave the field out", "there is no value here")
	case kind == Null && !b.o.Null:
		b.fault(n, "quote it, or leave the field out", "%s is no value here", n.Text)
	default:
		n.Kind = kind
	}
	if kind == Boolean {
		n.Text = strings.ToLower(n.Text)
	}
}

func (b *builder) sequence(y *yaml.Node, n *Node, depth int) {
	n.Kind = Sequence
	n.Items = make([]*Node, 0, len(y.Content))
	for i, item := range y.Content {
		n.Items = append(n.Items, b.within(step{index: i}, item, depth+1))
	}
}

func (b *builder) mapping(y *yaml.Node, n *Node, depth int) {
	n.Kind = Mapping
	n.Fields = make([]Field, 0, len(y.Content)/2)
	first := make(map[string]int, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := b.key(y.Content[i], depth)
		n.Fields = append(n.Fields, Field{Key: key, Value: b.within(step{key: key}, y.Content[i+1], depth+1)})
		if key.Kind != String {
			continue
		}
		if line, again := first[key.Text]; again {
			b.fault(key, "keep one of them", "key %s is repeated, first on line %d", Show(key.Text), line)
			continue
		}
		first[key.Text] = key.Line
	}
}

// key converts a mapping's key, which must be text.
func (b *builder) key(y *yaml.Node, depth int) *Node {
	if y.Kind == yaml.ScalarNode && isPlain(y) && y.Value == "<<" {
		n := &Node{Line: y.Line, Column: y.Column, Text: y.Value}
		b.fault(n, "write the fields out", "merge key <<")
		return n
	}
	n := b.node(y, depth+1)
	if n.Kind != String && n.Kind != Invalid {
		b.fault(n, "quote it", "a key must be text, but %s is %s", keyText(n), n.Kind)
		n.Kind = Invalid
	}
	return n
}

func keyText(n *Node) string {
	if n.Text == "" {
		return "this"
	}
	return n.Text
}

// name is a key as part of a path.
func (n *Node) name() string {
	if simpleName.MatchString(n.Text) {
		return n.Text
	}
	return Show(n.Text)
}

var simpleName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,60}$`)
