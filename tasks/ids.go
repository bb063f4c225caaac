package tasks

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"strings"

	"greatminds/contract"
)

// ID names a task: four digits, a hyphen and a slug, such as "0007-add-login". It is the stem
// of the task's file name and the value of its header field id.
type ID string

// Revision is the lowercase hex SHA-256 of a task's queue path and bytes.
type Revision string

// Ref is one task file at one revision.
type Ref struct {
	ID    ID             `json:"id"`
	Queue contract.Queue `json:"queue"`
	// File is "<queue>/<id>.yaml", with slashes, below the runtime folder.
	File     string   `json:"file"`
	Revision Revision `json:"revision"`
}

var idPattern = regexp.MustCompile(`^[0-9]{4}-[a-z0-9][a-z0-9-]*$`)

// Valid reports whether the id has the form of one.
func (id ID) Valid() bool { return len(id) <= maxIDBytes && idPattern.MatchString(string(id)) }

// Sequence is the number in front of the slug, as its four digits.
func (id ID) Sequence() string {
	seq, _, _ := strings.Cut(string(id), "-")
	return seq
}

// FileOf is the path of a task's file below the runtime folder, with slashes.
func FileOf(queue contract.Queue, id ID) string {
	return path.Join(string(queue), string(id)+".yaml")
}

// RevisionOf is the revision of the bytes of a file that stands at "<queue>/<id>.yaml".
// Spec: "Persistence and ownership" (a revision covers queue path and file bytes).
func RevisionOf(file string, data []byte) Revision {
	h := sha256.New()
	h.Write([]byte(file))
	h.Write([]byte{0})
	h.Write(data)
	return Revision(hex.EncodeToString(h.Sum(nil)))
}

// contentSum is the plain content hash that operation records carry.
func contentSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Limits of names. A file name has 255 bytes on every file system we meet; the lock and the
// temporary file of a task add a little to its id.
const (
	maxIDBytes   = 200
	maxSlugBytes = 60
	maxTitle     = 200
)

// slugOf is the slug of a title: lower case, every run of other characters than a-z and 0-9
// one hyphen, at most maxSlugBytes. It is empty where the title holds no such character.
func slugOf(title string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(title) {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('-')
		}
		gap = false
		b.WriteRune(r)
	}
	slug := b.String()
	if len(slug) > maxSlugBytes {
		slug = slug[:maxSlugBytes]
	}
	return strings.Trim(slug, "-")
}
