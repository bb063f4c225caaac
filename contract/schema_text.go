package contract

import (
	_ "embed"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"

	"greatminds/internal/refusal"
	"greatminds/internal/yamldoc"
)

//go:embed schema.yaml
var embeddedText []byte

// EmbeddedSource is the Source of the schema that the program carries.
const EmbeddedSource = "embedded"

var embedded = sync.OnceValue(func() *Schema {
	s, err := ParseSchema(EmbeddedSource, embeddedText)
	if err != nil {
		panic("contract: the embedded schema is not valid: " + err.Error()) // ours, and a test reads it
	}
	return s
})

// EmbeddedSchema is the workflow schema that the program carries.
func EmbeddedSchema() *Schema { return embedded() }

// LoadSchema returns the embedded schema, or that of the folder which the variable
// GREATMINDS_CANON_DIR names. A folder without schema.yaml is refused as schema_missing.
func LoadSchema(getenv func(string) string) (*Schema, error) {
	dir := getenv("GREATMINDS_CANON_DIR")
	if dir == "" {
		return EmbeddedSchema(), nil
	}
	path := filepath.Join(dir, "schema.yaml")
	data, err := ReadFile(path)
	if err != nil {
		why := "cannot be read"
		if errors.Is(err, fs.ErrNotExist) {
			why = "does not exist"
		}
		r := refusal.New(refusal.CodeSchemaMissing, "unset GREATMINDS_CANON_DIR, or name a folder with a schema.yaml",
			"GREATMINDS_CANON_DIR is %s, but %s %s", dir, path, why)
		r.Err = err
		return nil, r
	}
	return ParseSchema(path, data)
}

// ParseSchema reads a workflow schema as strictly as Parse reads a contract: all faults at once,
// each with "file:line:column", under the code schema_invalid. Names that one table uses must be
// defined by the table that owns them.
func ParseSchema(file string, data []byte) (*Schema, error) {
	root, faults := yamldoc.Read(file, data, yamldoc.Options{MaxBytes: maxFileBytes})
	s := &Schema{Source: file, Text: data, SHA256: digest(data), document: root}
	if root != nil {
		(&schemaReader{reader: reader{faults}, s: s}).root(root)
	}
	if r := faults.Refusal(refusal.CodeSchemaInvalid, "the workflow schema is not valid",
		"mend what is named, or unset GREATMINDS_CANON_DIR to use the schema of this program"); r != nil {
		return nil, r
	}
	return s, nil
}
