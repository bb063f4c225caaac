package tasks

import (
	"gopkg.in/yaml.v3"

	"greatminds/contract"
)

// Task is one task document at one revision. It is not changed once read.
// Spec: reference of the task file format.
type Task struct {
	Ref
	// Stream is product or review_session.
	Stream string
	// Title has at most 200 characters.
	Title string
	// Reporter is the role that filed the task.
	Reporter string
	// OpenedAt is UTC, "YYYY-MM-DDTHH:MM:SSZ".
	OpenedAt string
	// Priority, Kind and Scope are words of the schema's enumerations. A review session has kind
	// "review_session" and no scope.
	Priority, Kind, Scope string
	// Mode is A, B or C, TargetFunctionality and Scenarios say what to look at: review sessions.
	Mode, TargetFunctionality string
	Scenarios                 []string
	// Description is free text, empty where there is none.
	Description string
	// Header holds every header field but blocks in the order of the file, those above included.
	Header Fields
	// Blocks stand in the order in which they were filed.
	Blocks []Block
	// Bytes is the file, byte for byte. Whoever holds a task does not write to it.
	Bytes []byte

	// file is the path used in messages, root and places the positions in it.
	file   string
	root   *yaml.Node
	places map[string]place
}

// Block is one evidence block of a task.
type Block struct {
	Kind contract.BlockKind
	// By is the role that filed it.
	By contract.Role
	// At is UTC, "YYYY-MM-DDTHH:MM:SSZ".
	At string
	// Fields holds all fields but kind, by and at, in the order of the file.
	Fields Fields
	// Line is where the block begins in the file, 1 for the first line; 0 for a block that
	// stands in no file yet.
	Line int
}

// Latest returns the last block of a kind, nil where there is none.
func (t *Task) Latest(kind contract.BlockKind) *Block {
	for i := len(t.Blocks) - 1; i >= 0; i-- {
		if t.Blocks[i].Kind == kind {
			return &t.Blocks[i]
		}
	}
	return nil
}

// Text returns a string field, "" where it is missing or no string. A nil block has no fields.
func (b *Block) Text(key string) string {
	s, _ := b.value(key).(string)
	return s
}

// Is reports whether a field is the boolean true. A nil block has no fields.
func (b *Block) Is(key string) bool {
	v, _ := b.value(key).(bool)
	return v
}

func (b *Block) value(key string) any {
	if b == nil {
		return nil
	}
	return b.Fields.Get(key)
}
