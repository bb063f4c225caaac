package runstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"greatminds/internal/durable"
	"greatminds/internal/refusal"
)

// Options says where a store is and what it works with.
type Options struct {
	// Dir is the folder that holds state.json: the runtime folder's .runtime. It is made,
	// with mode 0700, where it is missing.
	Dir  string
	Disk *durable.Disk
	// Now reads the wall clock.
	Now func() time.Time
	// Log receives what recovery did; nil logs nothing.
	Log *slog.Logger
	// MaxEvents installs the event limit, 100 to 1,000,000; 0 leaves the persisted one.
	MaxEvents int
	// MinJournal is the length in bytes below which a journal is not folded into a snapshot;
	// 0 means 1 MiB.
	MinJournal int64
	// EagerHistory lets finished work leave for the history as soon as it may, into small segments,
	// at each snapshot; for tests of what happens then.
	EagerHistory bool
	// foldAlways folds the journal after every group, and rules say what leaves then; for tests.
	foldAlways bool
	rules      rollRules
}

// Store is an open store. Its methods may be called from several goroutines.
//
// There are two states: the durable one, which everybody reads, and the tip, on which the next
// transaction builds. One goroutine, the committer, carries the tip's transactions to the disk
// in groups, and makes a group's state the durable one after its fsync.
type Store struct {
	o       Options
	log     *slog.Logger
	durable atomic.Pointer[View]
	disk    journaled     // the committer's, and Close's after it
	failed  chan struct{} // closed when err is set
	ended   chan struct{} // closed when the committer has ended
	pins    pins
	wake    chan struct{} // tells the committer that something waits

	mu      sync.Mutex
	tip     *hot
	tipSeq  uint64
	waiting *batch // the transactions that the committer has not taken; nil where there are none
	flying  *batch // the batch on its way to the disk
	changed chan struct{}
	closing bool
	err     error
}

// batch is one group on its way, with the state after it.
type batch struct {
	group group
	state *hot
	done  chan struct{}
	err   error
}

// View returns the last durable state. It costs one atomic read.
func (s *Store) View() *View { return s.durable.Load() }

// Changed returns a channel that is closed at the next durable commit. Take it before View, so
// that no commit falls between the two.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Failed returns a channel that is closed when this process can no longer write the store:
// neither the journal nor a new snapshot. Err then says why; the daemon exits with status 4.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// Err returns why the store failed, nil while it works.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Update runs f as one transaction and returns when it is on the disk.
//
// f runs under the store's lock: it must be short, must not block and must not call the store.
// When f returns an error, or panics, nothing has changed. When Update returns an error of code
// store_write_failed nothing has changed either; after store_uncertain or store_failed the
// change may be found in effect after a restart: look before you repeat it, or repeat it under
// the same ids. A transaction that changes nothing returns when everything it has read is
// durable. A ctx that has ended keeps f from running; it does not end the wait for the disk.
// Spec: "Persistence and ownership".
func (s *Store) Update(ctx context.Context, f func(tx *Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := s.run(f)
	if err != nil || b == nil {
		return err
	}
	<-b.done
	return b.err
}

// run performs f on the tip and returns the batch to wait for, nil where there is none.
func (s *Store) run(f func(tx *Tx) error) (*batch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if s.closing {
		return nil, refusal.New(refusal.CodeStoreClosed, "send it again: whoever holds the store by then answers it", "the run store in %s is closed", s.o.Dir)
	}
	// A transaction that fails may have used the spare room behind the tip's events.
	kept := false
	defer func() {
		if !kept {
			s.tip = s.tip.clipped()
		}
	}()
	tx := newTx(s.tip, s.o.Now())
	after, err := tx.finish(f)
	if err != nil {
		return nil, err
	}
	kept = true
	if after == nil {
		if s.waiting != nil {
			return s.waiting, nil
		}
		return s.flying, nil
	}
	s.enqueue(after, tx.changed)
	return s.waiting, nil
}

func (s *Store) enqueue(after *hot, changed map[change]struct{}) {
	s.tip = after
	s.tipSeq++
	if s.waiting == nil {
		s.waiting = &batch{done: make(chan struct{})}
	}
	s.waiting.group.add(s.tipSeq, changed)
	s.waiting.state = after
	s.rouse()
}

// rouse tells the committer to look; one notice is enough for any number.
func (s *Store) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// NewID returns a new identity: 32 random hex digits.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: the runtime ends the process instead
	return hex.EncodeToString(b[:])
}

// Token is a run's credential. It never appears in a log.
type Token string

// LogValue keeps the credential out of logs.
func (Token) LogValue() slog.Value { return slog.StringValue("[credential]") }
