package durable

import (
	"errors"
	"fmt"
	"sync"
)

// Op names the kind of one durable step.
type Op string

// The kinds of steps.
const (
	OpCreate   Op = "create"   // a new, empty file appears under Path
	OpWrite    Op = "write"    // Data goes to Path at Offset
	OpSync     Op = "sync"     // fsync or fdatasync of the file Path
	OpRename   Op = "rename"   // Path becomes To, replacing it
	OpMove     Op = "move"     // Path becomes To, which must not exist (RENAME_NOREPLACE)
	OpLink     Op = "link"     // To becomes another name of Path
	OpUnlink   Op = "unlink"   // the name Path goes away
	OpTruncate Op = "truncate" // the file Path is cut to Offset bytes
	OpMkdir    Op = "mkdir"    // the folder Path appears
	OpSyncDir  Op = "syncdir"  // fsync of the folder Path
	OpStep     Op = "step"     // a named step that is no file operation
)

// Step is one durable step.
type Step struct {
	// Seq counts the steps of one Disk from 1.
	Seq int
	Op  Op
	// Path is the file or folder acted on; To the second name of a rename, move or link.
	Path, To string
	// Name is the name given to Disk.Step, and for a file operation empty.
	Name string
	// Offset is where a write begins, or the length that a truncate leaves.
	Offset int64
	// Data is what a write was asked to write. It must not be changed or kept without a copy.
	Data []byte
}

// Seam watches and disturbs steps. Its methods are called by one step at a time.
type Seam interface {
	// Before runs before the step. An error replaces the operation, which then does not
	// happen, except that a *PartialWrite lets the first N bytes of a write through, and that
	// ErrSkip makes a sync count as done.
	Before(Step) error
	// After runs after the step with its outcome; what it returns becomes the outcome.
	After(Step, error) error
}

// PartialWrite, returned by Seam.Before, lets N bytes of a write happen and then fails with Err.
type PartialWrite struct {
	N   int
	Err error
}

// Error returns the text of the fault behind the short write.
func (p *PartialWrite) Error() string { return fmt.Sprintf("short write of %d bytes: %v", p.N, p.Err) }

// Unwrap returns the fault behind the short write.
func (p *PartialWrite) Unwrap() error { return p.Err }

// ErrSkip, returned by Seam.Before for a sync, makes it count as done without being done. A
// test whose faults are those of the process, not of the power, needs no real sync.
var ErrSkip = errors.New("the sync is skipped")

// ErrUncertain marks a failure after which the change may or may not be in effect: look
// before you repeat it. Spec: "Persistence and ownership".
var ErrUncertain = errors.New("the outcome is uncertain")

// ErrPoisoned marks a log that must not be written again: what its file holds is unknown.
var ErrPoisoned = errors.New("the log is poisoned")

// Disk performs durable operations. Its methods may be called from several goroutines.
type Disk struct {
	seam Seam

	mu    sync.Mutex // one step at a time where there is a seam; guards named
	seq   int
	named map[string]bool // names that are known to be on the disk
}

// NewDisk returns a Disk over seam; with a nil seam every step goes straight to the system.
func NewDisk(seam Seam) *Disk { return &Disk{seam: seam} }

// Step runs f as one named durable step that is no file operation, such as a git call that
// writes or the opening of a launch gate.
func (d *Disk) Step(name string, f func() error) error {
	return d.do(Step{Op: OpStep, Name: name}, func(Step) error { return f() })
}

// do shows one step to the seam and performs it. The operation runs without the lock, so
// that a slow fsync of one file does not hold up another goroutine's file.
func (d *Disk) do(s Step, op func(Step) error) error {
	if d.seam == nil {
		return op(s)
	}
	if err := d.before(&s); err != nil {
		if errors.Is(err, ErrSkip) && (s.Op == OpSync || s.Op == OpSyncDir) {
			return d.after(s, nil)
		}
		var part *PartialWrite
		if s.Op != OpWrite || !errors.As(err, &part) {
			return err
		}
		short := s
		short.Data = s.Data[:min(part.N, len(s.Data))]
		return d.after(s, errors.Join(op(short), err))
	}
	return d.after(s, op(s))
}

func (d *Disk) before(s *Step) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq++
	s.Seq = d.seq
	return d.seam.Before(*s)
}

func (d *Disk) after(s Step, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seam.After(s, err)
}
