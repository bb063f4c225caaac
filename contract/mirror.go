package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
)

// Mirror is the state of a project's copy of the schema. The copy is for people; nothing is
// decided from it.
type Mirror struct {
	Path string
	// Status is MirrorCurrent, MirrorDrifted, MirrorMissing or MirrorUnreadable.
	Status string
	// SHA256 is the copy's digest, empty when there is none to read.
	SHA256 string
	// Error says why the copy cannot be read.
	Error string
}

// States of a mirror.
const (
	MirrorCurrent    = "current"
	MirrorDrifted    = "drifted"
	MirrorMissing    = "missing"
	MirrorUnreadable = "unreadable"
)

// MirrorOf compares the project's copy with the schema in force.
func MirrorOf(p Project, s *Schema) Mirror {
	m := Mirror{Path: p.SchemaMirrorPath()}
	data, err := ReadFile(m.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		m.Status = MirrorMissing
	case err != nil:
		m.Status, m.Error = MirrorUnreadable, err.Error()
	default:
		m.Status, m.SHA256 = MirrorDrifted, digest(data)
		if bytes.Equal(data, s.Text) {
			m.Status = MirrorCurrent
		}
	}
	return m
}

// Document is the answer of `project schema --json`: source, version, sha256, project_copy and,
// unless check is set, schema, as indented JSON with a line end.
func (s *Schema) Document(m Mirror, check bool) []byte {
	copied := object{{"path", m.Path}, {"sha256", nil}, {"status", m.Status}}
	if m.SHA256 != "" {
		copied[1].val = m.SHA256
	}
	if m.Error != "" {
		copied = append(copied, member{"error", m.Error})
	}
	answer := object{{"source", s.Source}, {"version", s.Version}, {"sha256", s.SHA256}, {"project_copy", copied}}
	if !check {
		answer = append(answer, member{"schema", s.JSON()})
	}
	return indented(answer)
}

// JSON is the schema as a JSON document, in the order of the file.
func (s *Schema) JSON() json.RawMessage { return s.document.AppendJSON(nil) }
