// Package yamldoc reads one YAML document strictly into a tree of nodes that know their place.
//
// The invariant kept: a tree without faults means the same to every YAML reader. Refused, each
// with line and column, are: repeated keys at any depth, anchors, aliases, merge keys, tags,
// directives, further documents, keys that are no text, tabs as separation, NUL and other
// control characters, encodings other than UTF-8, input past the limits, and plain scalars that
// readers disagree about (see scalar.go). A byte order mark and CRLF are fine.
//
// Reading is linear in the input and never expands an alias, so no input makes it slow or large.
package yamldoc

// Kind is what a node is.
type Kind uint8

// The kinds of nodes. The kind of a scalar is settled here, once; users never look at how it
// was written.
const (
	// Invalid is a node with a fault that has been reported; users pass over it in silence.
	Invalid Kind = iota
	Mapping
	Sequence
	String
	Integer
	Float
	Boolean
	// Null appears only where Options.Null allows it.
	Null
)

// String names the kind as a person would.
func (k Kind) String() string {
	switch k {
	case Mapping:
		return "a mapping"
	case Sequence:
		return "a list"
	case String:
		return "text"
	case Integer:
		return "an integer"
	case Float:
		return "a number with a decimal point"
	case Boolean:
		return "true or false"
	case Null:
		return "null"
	}
	return "invalid"
}

// Node is one node of a document.
type Node struct {
	Kind Kind
	// Line and Column are where the node begins, from 1; columns count characters.
	Line, Column int
	// Text is the contents of a scalar: a string's value, a number as typed, "true" or "false".
	Text string
	// Fields are a mapping's entries in the order of the file.
	Fields []Field
	// Items are a sequence's entries.
	Items []*Node
}

// Field is one entry of a mapping. The key's kind is String, or Invalid when it was refused.
type Field struct {
	Key   *Node
	Value *Node
}

// Get returns the value of a mapping's field, nil when there is none.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for _, f := range n.Fields {
		if f.Key.Kind == String && f.Key.Text == key {
			return f.Value
		}
	}
	return nil
}

// Options bound and tune a reading. The zero value is the strictest one.
type Options struct {
	// MaxBytes bounds the input; 0 means 1 MiB.
	MaxBytes int
	// MaxDepth bounds the nesting of mappings and sequences; 0 means 32.
	MaxDepth int
	// MaxFaults bounds the faults that are listed one by one; 0 means 50.
	MaxFaults int
	// Null allows null and empty values, and a file without a document, which then is one null.
	Null bool
}

func (o Options) withDefaults() Options {
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 20
	}
	if o.MaxDepth == 0 {
		o.MaxDepth = 32
	}
	if o.MaxFaults == 0 {
		o.MaxFaults = 50
	}
	return o
}
