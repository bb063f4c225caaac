package runstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// format is the value by which we know our own snapshot.
const format = "greatminds-go"

// meta is the snapshot's member `store`, which the original's file does not have.
type meta struct {
	Format string `json:"format"`
	// Generation counts snapshots; a journal belongs to the snapshot of its generation.
	Generation uint64 `json:"generation"`
	// LastSequence is the last transaction that the snapshot holds.
	LastSequence uint64 `json:"last_sequence"`
	// Checksum is the SHA-256 of the file with these 64 digits replaced by zeros.
	Checksum string `json:"checksum"`
	// History says what of the history belongs to this snapshot; nil before anything has left.
	History *historyListed `json:"history,omitempty"`
	Extra   Members        `json:"-"`
}

var (
	zeros       = strings.Repeat("0", 64)
	checksumKey = `"checksum": "`
)

// encodeSnapshot renders state.json: sorted keys, two blanks a level, a newline at the end.
func encodeSnapshot(h *hot, m meta) []byte {
	s := h.sections(true)
	m.Format, m.Checksum = format, zeros
	s["store"] = encode(&m)
	var b bytes.Buffer
	if err := json.Indent(&b, s.join(), "", "  "); err != nil {
		panic("runstore: our own document does not parse: " + err.Error())
	}
	b.WriteByte('\n')
	data := b.Bytes()
	at := bytes.LastIndex(data, []byte(checksumKey+zeros))
	sum := sha256.Sum256(data)
	hex.Encode(data[at+len(checksumKey):], sum[:])
	return data
}

// checksumFits tells whether sum is the checksum of data, which holds it.
func checksumFits(data []byte, sum string) bool {
	if len(sum) != len(zeros) {
		return false
	}
	at := bytes.LastIndex(data, []byte(checksumKey+sum))
	if at < 0 {
		return false
	}
	at += len(checksumKey)
	h := sha256.New()
	h.Write(data[:at])
	h.Write([]byte(zeros))
	h.Write(data[at+len(sum):])
	return hex.EncodeToString(h.Sum(nil)) == sum
}

// snapshot is a decoded state.json.
type snapshot struct {
	state *hot
	meta  meta
	// fits is false where another tool, or a hand, wrote the file.
	fits bool
	// original is set where it has no member store: the original wrote it, and never we.
	original bool
}

// newerError says that a newer version wrote the document.
type newerError struct{ version string }

func (e newerError) Error() string { return "version " + e.version }

// decodeSnapshot reads state.json, the original's too. It fails with a *fault or a newerError.
func decodeSnapshot(data []byte) (*snapshot, error) {
	root, err := outline(data, 2)
	if err != nil {
		return nil, err
	}
	if root.raw[0] != '{' {
		return nil, faultAt(root.off, "an object expected")
	}
	members := root.members()
	snap := &snapshot{}
	ours := false
	for _, m := range members {
		switch m.key {
		case "version":
			if err := checkVersion(m); err != nil {
				return nil, err
			}
		case "store":
			ours = true
			if err := snap.decodeMeta(m); err != nil {
				return nil, err
			}
		}
	}
	state, err := fromDocument(members)
	if err != nil {
		return nil, err
	}
	snap.state, snap.original = state, !ours
	snap.fits = ours && checksumFits(data, snap.meta.Checksum)
	return snap, nil
}

// checkVersion comes before everything else is looked at: a newer document may hold anything.
func checkVersion(m member) error {
	if string(m.raw) == "1" {
		return nil
	}
	var n uint64
	if err := decode(m.raw, m.off, &n); err != nil || n == 0 {
		return wrongType(m.raw, m.off, "version: the number 1")
	}
	return newerError{string(m.raw)}
}

func (s *snapshot) decodeMeta(m member) error {
	if err := decode(m.raw, m.off, &s.meta); err != nil {
		return inEntity("store", "", err)
	}
	if s.meta.Format != format {
		return faultAt(m.off, "store.format %q, %q expected", s.meta.Format, format)
	}
	if s.meta.Generation == 0 {
		return faultAt(m.off, "store.generation 0")
	}
	if s.meta.History != nil {
		if err := s.meta.History.check(); err != nil {
			return faultAt(m.off, "store.history: %v", err)
		}
	}
	return nil
}
