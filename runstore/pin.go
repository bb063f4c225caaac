package runstore

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"unicode/utf16"

	"greatminds/internal/refusal"
)

// Kinds of pinned documents.
const (
	// PinnedExecution is an execution contract in canonical form; its hash is that of its bytes.
	PinnedExecution = "execution"
	// PinnedSchema is a workflow schema as SchemaDocument makes it; its hash is that of its text.
	PinnedSchema = "schema"
)

// pins remembers what this process has seen on the disk, so that each document is written or
// synced once.
type pins struct {
	mu   sync.Mutex
	done map[string]bool
}

// PinDocument keeps data for good as contracts/KIND-SHA.json and returns when it is on the
// disk; only then may a claim refer to it. Sha is the document's hash by the rule of its kind
// and is checked. A document that is there already must have that hash too; the original spells
// the same one otherwise.
// Spec: "Persistence and ownership".
func (s *Store) PinDocument(kind, sha string, data []byte) error {
	if _, err := checkPinned(kind, sha, data); err != nil {
		return refusal.New(refusal.CodePinned, "this is a fault of the program: report it", "%s document %.12s: %v", kind, sha, err)
	}
	path := pinnedPath(s.o.Dir, kind, sha)
	s.pins.mu.Lock()
	defer s.pins.mu.Unlock()
	if s.pins.done[path] {
		return nil
	}
	if err := s.pin(path, kind, sha, data); err != nil {
		return err
	}
	if s.pins.done == nil {
		s.pins.done = map[string]bool{}
	}
	s.pins.done[path] = true
	return nil
}

func (s *Store) pin(path, kind, sha string, data []byte) error {
	found, err := readFile(path)
	if err != nil {
		return err
	}
	if found != nil {
		if _, err := checkPinned(kind, sha, found); err != nil {
			return refusal.New(refusal.CodePinned, "put back a good copy, or remove the file if no run refers to it", "%s holds other bytes than its name says: %v", path, err)
		}
	}
	if err := s.settlePin(path, data, found != nil); err != nil {
		return &refusal.Refusal{Code: refusal.CodeStoreWrite, Err: err, What: "document not pinned: " + err.Error(),
			Remedy: "free space or mend the disk, then repeat the request"}
	}
	return nil
}

// settlePin brings file, folder and the folder's own name to the disk. What is there already
// may be in the page cache alone: whoever made it may have been killed before its syncs.
func (s *Store) settlePin(path string, data []byte, there bool) error {
	if err := s.o.Disk.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if there {
		return s.o.Disk.Settle(path)
	}
	return s.o.Disk.Create(path, data, 0o600)
}

// Pinned returns a pinned document in the form of PinDocument, after checking that its contents are
// those of its name.
func (s *Store) Pinned(kind, sha string) ([]byte, error) { return pinnedIn(s.o.Dir, kind, sha) }

// CheckPinned tells what is wrong with a pinned document of the store in dir; nil where it is
// there and whole. It needs no lease.
func CheckPinned(dir, kind, sha string) error {
	_, err := pinnedIn(dir, kind, sha)
	return err
}

func pinnedIn(dir, kind, sha string) ([]byte, error) {
	path := pinnedPath(dir, kind, sha)
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if data == nil {
		return nil, refusal.New(refusal.CodePinned, "put back a copy of the file; the runs that refer to it cannot be judged without it", "%s is missing", path)
	}
	document, err := checkPinned(kind, sha, data)
	if err != nil {
		return nil, refusal.New(refusal.CodePinned, "put back a good copy of the file", "%s: %v", path, err)
	}
	return document, nil
}

func pinnedPath(dir, kind, sha string) string {
	return filepath.Join(dir, contractsName, kind+"-"+sha+".json")
}

// checkPinned tells whether sha is the hash of data by the rule of its kind, and returns data in
// our spelling: the original writes a contract with white space and without escapes, but hashes it
// in canonical form.
func checkPinned(kind, sha string, data []byte) ([]byte, error) {
	hashed := data
	switch kind {
	case PinnedExecution:
		if hashText(string(data)) != sha && checkJSON(data) == nil {
			data = escaped(canonical(data))
			hashed = data
		}
	case PinnedSchema:
		text, err := SchemaText(data)
		if err != nil {
			return nil, err
		}
		hashed = text
	default:
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
	if got := hashText(string(hashed)); got != sha {
		return nil, fmt.Errorf("its hash is %.12s, not %.12s", got, sha)
	}
	return data, nil
}

// escaped spells every character of a JSON document beyond printable ASCII as an escape. Such
// characters stand in strings alone.
func escaped(document []byte) []byte {
	out := make([]byte, 0, len(document))
	for _, r := range string(document) {
		switch {
		case r < 0x7f:
			out = append(out, byte(r))
		case r < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		}
	}
	return out
}

// SchemaDocument is the pinned form of a workflow schema: its text and version as JSON.
func SchemaDocument(text []byte, version int) ([]byte, error) {
	return toRaw(map[string]any{"text": string(text), "version": version})
}

// SchemaText returns the schema's text from its pinned form.
func SchemaText(document []byte) ([]byte, error) {
	var doc struct {
		Text    *string `json:"text"`
		Version int     `json:"version"`
	}
	if err := checkJSON(document); err != nil {
		return nil, fmt.Errorf("pinned schema: %w", err)
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("pinned schema: %w", err)
	}
	if doc.Text == nil {
		return nil, fmt.Errorf("pinned schema: %w", faultAt(0, "no text"))
	}
	return []byte(*doc.Text), nil
}
