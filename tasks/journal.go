package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"greatminds/internal/refusal"
)

// JournalLine is one line of the task journal. Its keys are written in this order; empty ones
// are left out, but for intent_id, which stands on every line.
// Spec: reference of the journal line.
type JournalLine struct {
	// T is UTC, "YYYY-MM-DDTHH:MM:SSZ".
	T string `json:"t"`
	// Actor is the role that acted, SYSTEM for the daemon.
	Actor string `json:"actor"`
	// ActorKind is "system" for the daemon.
	ActorKind string `json:"actor_kind,omitempty"`
	// DecisionBy is the role whose decision was applied.
	DecisionBy string `json:"decision_by,omitempty"`
	// Task is the full id. Lines that others wrote may hold what a person typed.
	Task string `json:"task"`
	// From is a queue, or "_new" for a new task. To equals From where nothing moved.
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason"`
	// IntentID names the recorded intent of an operator's change, or the operation.
	IntentID string `json:"intent_id"`
	// OperationID makes the line unique: it is written once.
	OperationID  string `json:"operation_id,omitempty"`
	RunID        string `json:"run_id,omitempty"`
	SchemaSHA256 string `json:"schema_sha256,omitempty"`
	// BlockedBy and DependencyEvidence stand on lines of mechanical resumes.
	BlockedBy          string          `json:"blocked_by,omitempty"`
	DependencyEvidence json.RawMessage `json:"dependency_evidence,omitempty"`
}

// MaxReason is how many characters of a reason the journal keeps.
const MaxReason = 200

// maxJournalLine bounds one line; what is longer was written by nobody.
const maxJournalLine = 1 << 20

// journalIndex is what a tree has read of the journal: the ids in the first size bytes of the
// file with this inode.
type journalIndex struct {
	device, inode uint64
	size          int64
	lines         int
	operations    map[string]bool
	intents       map[string]bool
}

func (t *Tree) journalPath() string {
	name := t.schema.Layout.Journal
	if name == "" {
		name = "journal.ndjson"
	}
	return filepath.Join(t.project.Runtime, name)
}

// AppendJournal appends one line durably under the journal's lock. A line whose operation id is
// in the journal already is not written again. A torn last line, left by a write that was cut
// short and never acknowledged, is cut off first. An unreadable line before the end is refused
// with [refusal.CodeJournalCorrupt] and its number, and nothing is written.
// Spec: "Lifecycle and result receipts" (the journal entry is deduplicated).
func (t *Tree) AppendJournal(e JournalLine) error {
	return t.appendJournal(e, func(x *journalIndex) bool { return e.OperationID != "" && x.operations[e.OperationID] })
}

func (t *Tree) appendJournal(e JournalLine, written func(*journalIndex) bool) error {
	text, err := spellLine(e)
	if err != nil {
		return err
	}
	l, err := t.lockFile(context.Background(), "journal")
	if err != nil {
		return err
	}
	defer func() { _ = l.Unlock() }() // only a closed descriptor can fail, and then the lock is gone too
	t.mu.Lock()
	defer t.mu.Unlock()
	good, tail, err := t.catchUp()
	if err != nil {
		return err
	}
	if written(&t.index) {
		// The line may stand there since an append whose sync failed.
		if err := t.disk.Settle(t.journalPath()); err != nil {
			return storage(err, "the journal cannot be synced")
		}
		return nil
	}
	return t.appendLine(text, good, tail)
}

// spellLine spells a line with its line end, in UTF-8 without the escapes that HTML would need.
func spellLine(e JournalLine) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return nil, fmt.Errorf("tasks: a journal line cannot be spelled: %w", err)
	}
	return b.Bytes(), nil
}

// appendLine writes one line behind the good ones. tail is what stands behind them: a torn line
// to cut off, or a whole one that lacks its line end.
func (t *Tree) appendLine(line []byte, good int64, tail journalTail) (err error) {
	log, err := t.disk.OpenLog(t.journalPath(), taskPerm)
	if err != nil {
		return storage(err, "the journal cannot be opened")
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if tail == tailTorn && log.Size() > good {
		if err := log.Truncate(good); err != nil {
			return storage(err, "the torn last line of the journal cannot be cut off")
		}
	}
	if tail == tailOpen {
		line = append([]byte{'\n'}, line...)
	}
	if err := log.Append(line); err != nil {
		return storage(err, "the journal cannot be written")
	}
	return nil
}

// journalTail says what stands behind the last complete line.
type journalTail int

const (
	tailNone journalTail = iota
	tailOpen             // a whole line without its line end
	tailTorn             // the beginning of a line, or pages that never reached the disk
)

// catchUp reads what the journal has gained since the last look, and returns the length of its
// good lines. The caller holds t.mu.
func (t *Tree) catchUp() (good int64, tail journalTail, err error) {
	f, err := openJournal(t.journalPath())
	if errors.Is(err, fs.ErrNotExist) {
		t.index = journalIndex{}
		return 0, tailNone, nil
	}
	if err != nil {
		return 0, tailNone, err
	}
	defer f.Close() // read only: closing loses nothing
	info, err := f.Stat()
	if err != nil {
		return 0, tailNone, storage(err, "the journal cannot be looked at")
	}
	st, _ := info.Sys().(*syscall.Stat_t) // always so on Linux
	x := &t.index
	if x.operations == nil || x.device != uint64(st.Dev) || x.inode != st.Ino || info.Size() < x.size {
		*x = journalIndex{device: uint64(st.Dev), inode: st.Ino, operations: map[string]bool{}, intents: map[string]bool{}}
	}
	data, err := io.ReadAll(io.NewSectionReader(f, x.size, info.Size()-x.size))
	if err != nil {
		return 0, tailNone, storage(err, "the journal cannot be read")
	}
	return t.takeIn(data)
}

// takeIn adds complete lines to the index. Behind the last of them may stand a tail.
func (t *Tree) takeIn(data []byte) (int64, journalTail, error) {
	x := &t.index
	for len(data) > 0 {
		line, rest, ended := bytes.Cut(data, []byte("\n"))
		e, err := parseLine(line)
		switch {
		case err == nil && ended:
		case err == nil:
			x.note(e) // it counts, but stays outside the good length until its line end stands
			return x.size, tailOpen, nil
		case !ended || len(rest) == 0 && bytes.IndexByte(line, 0) >= 0:
			return x.size, tailTorn, nil
		default:
			return 0, tailNone, corrupt(t.journalPath(), x.lines+1, err)
		}
		x.note(e)
		x.size += int64(len(line)) + 1
		x.lines++
		data = rest
	}
	return x.size, tailNone, nil
}

func (x *journalIndex) note(e JournalLine) {
	if e.OperationID != "" {
		x.operations[e.OperationID] = true
	}
	if e.IntentID != "" {
		x.intents[e.IntentID] = true
	}
}

func corrupt(path string, line int, cause error) *refusal.Refusal {
	r := refusal.New(refusal.CodeJournalCorrupt, "look at the line, mend or remove it, then try again",
		"%s:%d: the line cannot be read: %v", path, line, cause)
	r.Err = cause
	return r
}

var errBlankLine = errors.New("it is empty")

// parseLine reads one journal line. Lines of other writers may hold null or other types where
// we write texts; only the form of an object is insisted on.
func parseLine(line []byte) (JournalLine, error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return JournalLine{}, errBlankLine
	}
	if len(line) > maxJournalLine {
		return JournalLine{}, fmt.Errorf("it is longer than %d bytes", maxJournalLine)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(line, &raw); err != nil {
		return JournalLine{}, err
	}
	text := func(key string) string {
		var s string
		if json.Unmarshal(raw[key], &s) != nil {
			return "" // no text: another writer's business
		}
		return s
	}
	return JournalLine{T: text("t"), Actor: text("actor"), ActorKind: text("actor_kind"), DecisionBy: text("decision_by"),
		Task: text("task"), From: text("from"), To: text("to"), Reason: text("reason"), IntentID: text("intent_id"),
		OperationID: text("operation_id"), RunID: text("run_id"), SchemaSHA256: text("schema_sha256"),
		BlockedBy: text("blocked_by"), DependencyEvidence: raw["dependency_evidence"]}, nil
}

func openJournal(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, storage(err, "the journal %s cannot be opened", path)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Journal reads the whole journal without a lock. A torn last line is left out; an unreadable
// line before it is refused like in AppendJournal. A missing journal is empty.
func (t *Tree) Journal() ([]JournalLine, error) {
	f, err := openJournal(t.journalPath())
	if errors.Is(err, fs.ErrNotExist) {
		return []JournalLine{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: closing loses nothing
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, storage(err, "the journal cannot be read")
	}
	lines := []JournalLine{}
	for len(data) > 0 {
		line, rest, ended := bytes.Cut(data, []byte("\n"))
		e, err := parseLine(line)
		if err != nil {
			if !ended || len(rest) == 0 && bytes.IndexByte(line, 0) >= 0 {
				break
			}
			return nil, corrupt(t.journalPath(), len(lines)+1, err)
		}
		lines, data = append(lines, e), rest
	}
	return lines, nil
}

// HasOperation reports whether a line with this operation id is in the journal.
func (t *Tree) HasOperation(id string) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, _, err := t.catchUp(); err != nil {
		return false, err
	}
	return t.index.operations[id], nil
}

// hasIntent reports whether a line with this intent id is in the journal.
func (t *Tree) hasIntent(id string) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, _, err := t.catchUp(); err != nil {
		return false, err
	}
	return t.index.intents[id], nil
}
