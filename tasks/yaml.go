package tasks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"greatminds/internal/refusal"
)

const (
	// MaxTaskBytes is the size from which a task file is refused unread.
	MaxTaskBytes = 2 << 20
	// maxDepth bounds the nesting of a document, ours and that of a decision.
	maxDepth = 64
	// maxKeyBytes bounds a key, well below YAML's own limit for one-line keys.
	maxKeyBytes = 200
	// maxFaults bounds how many faults of one file are told.
	maxFaults = 50
)

// place is a position in a file, both counted from 1.
type place struct{ line, column int }

// reader turns a YAML node tree into values and collects every fault on the way.
type reader struct {
	file   string
	data   []byte
	starts []int // where each line begins
	faults []refusal.Reason
	// places holds where each value begins, by its path such as "blocks[0].by".
	places map[string]place
}

func (r *reader) fault(at place, code refusal.Code, remedy, format string, args ...any) {
	if len(r.faults) >= maxFaults {
		return
	}
	r.faults = append(r.faults, refusal.Reason{Code: code, Place: r.spell(at), Remedy: remedy,
		What: fmt.Sprintf(format, args...)})
}

func (r *reader) spell(at place) string {
	switch {
	case at.line == 0:
		return r.file
	case at.column == 0:
		return fmt.Sprintf("%s:%d", r.file, at.line)
	}
	return fmt.Sprintf("%s:%d:%d", r.file, at.line, at.column)
}

// document reads one YAML document whose root is a mapping. The root node is nil where the
// text could not be parsed at all.
func (r *reader) document(data []byte) (*yaml.Node, Fields) {
	if !r.readable(data) {
		return nil, nil
	}
	r.data, r.starts = data, lineStarts(data)
	root := r.parse(data)
	if root == nil {
		return nil, nil
	}
	at := place{root.Line, root.Column}
	if root.Kind != yaml.MappingNode {
		r.fault(at, refusal.CodeTaskYAML, "begin with header fields such as `id: 0001-title`",
			"the document is a %s, not a mapping", kindName(root))
		return nil, nil
	}
	value := r.value(root, "", 0)
	fields, _ := value.(Fields)
	return root, fields
}

// readable refuses bytes that are no text before a YAML reader sees them.
func (r *reader) readable(data []byte) bool {
	if len(data) > MaxTaskBytes {
		r.fault(place{}, refusal.CodeTaskYAML, "move bulky text to a file of the repository",
			"the file has %d bytes, more than %d", len(data), MaxTaskBytes)
		return false
	}
	line, start := 1, 0
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		if c == utf8.RuneError && size == 1 || c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f {
			r.fault(place{line, utf8.RuneCount(data[start:i]) + 1}, refusal.CodeTaskYAML,
				"save the file as UTF-8 text", "the byte 0x%02x is no text", data[i])
			return false
		}
		i += size
		if c == '\n' {
			line, start = line+1, i
		}
	}
	return true
}

var yamlErrorLine = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?(?s:(.*))$`)

// parse returns the root node of the only document, nil after a fault.
func (r *reader) parse(data []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	first, err := decodeNode(decoder)
	switch {
	case errors.Is(err, io.EOF) || err == nil && isNothing(first):
		r.fault(place{1, 1}, refusal.CodeTaskYAML, "write a task into it, or remove it", "the file holds no document")
		return nil
	case err != nil:
		r.syntax(err)
		return nil
	}
	second, err := decodeNode(decoder)
	switch {
	case errors.Is(err, io.EOF):
		return first.Content[0]
	case err != nil:
		r.syntax(err)
	default:
		r.fault(place{second.Line, second.Column}, refusal.CodeTaskYAML, "keep one document in a file",
			"a further document begins here")
	}
	return nil
}

func isNothing(n *yaml.Node) bool {
	return len(n.Content) != 1 || n.Content[0].Kind == yaml.ScalarNode && n.Content[0].Value == "" &&
		n.Content[0].Style&^yaml.TaggedStyle == 0 && n.Content[0].Tag == "!!null"
}

func (r *reader) syntax(err error) {
	what, line := err.Error(), 0
	if m := yamlErrorLine.FindStringSubmatch(what); m != nil {
		line, _ = strconv.Atoi(m[1]) // no number: the file as a whole
		what = m[2]
	}
	r.fault(place{line: line}, refusal.CodeTaskYAML, "mend the YAML", "not readable as YAML: %s", what)
}

// decodeNode reads the next document's node tree. A panic of the YAML reader is a broken file,
// not a broken program.
func decodeNode(d *yaml.Decoder) (n *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			n, err = nil, fmt.Errorf("yaml: the reader gave up: %v", p)
		}
	}()
	n = new(yaml.Node)
	return n, d.Decode(n)
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "mapping"
	case yaml.SequenceNode:
		return "list"
	case yaml.AliasNode:
		return "alias"
	}
	return "single value"
}

// value converts a node, recording where it and its parts begin.
func (r *reader) value(n *yaml.Node, path string, depth int) any {
	at := place{n.Line, n.Column}
	r.places[path] = at
	if depth > maxDepth {
		r.fault(at, refusal.CodeTaskYAML, "nest less deeply", "values are nested more than %d deep", maxDepth)
		return nil
	}
	if !r.bare(n, at) {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		return r.mapping(n, path, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for i, item := range n.Content {
			list = append(list, r.value(item, path+"["+strconv.Itoa(i)+"]", depth+1))
		}
		return list
	}
	return r.scalar(n, at)
}

// bare refuses what a node may carry besides its value.
func (r *reader) bare(n *yaml.Node, at place) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		r.fault(at, refusal.CodeTaskYAML, "write the value itself", "the alias *%s is not accepted", n.Value)
	case n.Anchor != "":
		r.fault(at, refusal.CodeTaskYAML, "remove it", "the anchor &%s is not accepted", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0 || r.runeAt(at) == '!':
		// The reader drops the lone tag "!", which makes text of a number for other readers, so
		// the source is looked at too.
		r.fault(at, refusal.CodeTaskYAML, "remove it, and quote the value if it is text", "the tag %s is not accepted", n.Tag)
	default:
		return true
	}
	return false
}

// runeAt returns the character at a place of the source, or utf8.RuneError.
func (r *reader) runeAt(at place) rune {
	if at.line < 1 || at.line > len(r.starts) {
		return utf8.RuneError
	}
	rest := r.data[r.starts[at.line-1]:]
	for i := 1; i < at.column && len(rest) > 0; i++ {
		_, size := utf8.DecodeRune(rest)
		rest = rest[size:]
	}
	c, _ := utf8.DecodeRune(rest)
	return c
}

// lineStarts returns where each line of a text begins. Lines end where YAML 1.1 ends them: at
// line feed, carriage return, both together, and three characters of Unicode.
func lineStarts(data []byte) []int {
	starts := []int{0}
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		i += size
		switch c {
		case '\r':
			if i < len(data) && data[i] == '\n' {
				i++
			}
		case '\n', 0x85, 0x2028, 0x2029:
		default:
			continue
		}
		starts = append(starts, i)
	}
	return starts
}

func (r *reader) scalar(n *yaml.Node, at place) any {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Value
	}
	value, remedy := resolvePlain(n.Value)
	if remedy != "" {
		r.fault(at, refusal.CodeTaskYAML, remedy, "the plain value %s means different things to different readers", n.Value)
	}
	return value
}

func (r *reader) mapping(n *yaml.Node, path string, depth int) Fields {
	fields := make(Fields, 0, len(n.Content)/2)
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, ok := r.key(n.Content[i])
		if !ok {
			continue
		}
		if line, twice := seen[key]; twice {
			r.fault(place{n.Content[i].Line, n.Content[i].Column}, refusal.CodeTaskYAML, "keep one of the two",
				"the key %s stands here again, first on line %d", strconv.Quote(key), line)
			continue
		}
		seen[key] = n.Content[i].Line
		fields = append(fields, Field{key, r.value(n.Content[i+1], join(path, key), depth+1)})
	}
	return fields
}

func (r *reader) key(n *yaml.Node) (string, bool) {
	at := place{n.Line, n.Column}
	if n.Kind != yaml.ScalarNode {
		r.fault(at, refusal.CodeTaskYAML, "use a word as key", "a key is a %s", kindName(n))
		return "", false
	}
	if !r.bare(n, at) {
		return "", false
	}
	before := len(r.faults)
	text, ok := r.scalar(n, at).(string)
	switch {
	case len(r.faults) > before:
		return "", false
	case !ok:
		r.fault(at, refusal.CodeTaskYAML, "quote the key", "the key %s is no text", strconv.Quote(n.Value))
		return "", false
	case len(text) > maxKeyBytes:
		r.fault(at, refusal.CodeTaskYAML, "use a short key", "the key %s… has %d bytes, more than %d",
			strconv.Quote(strings.ToValidUTF8(text[:40], "")), len(text), maxKeyBytes)
		return "", false
	}
	return text, true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
