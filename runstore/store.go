package runstore

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"greatminds/internal/durable"
)

// Options says where a store is and what it works with.
type Options struct {
	// Dir is the runtime folder's .runtime, which holds state.json.
	Dir  string
	Disk *durable.Disk
	// Now reads the wall clock.
	Now func() time.Time
	// Log receives what recovery did; nil logs nothing.
	Log *slog.Logger
	// MaxEvents installs the event limit, 100 to 1,000,000; 0 leaves the persisted one.
	MaxEvents int
}

var errUnbuilt = errors.New("runstore: not built yet")

// Store is an open store. Its methods may be called from several goroutines.
type Store struct{}

// Open opens the store in o.Dir, for the holder of the project's lease.
func Open(ctx context.Context, o Options) (*Store, error) { return nil, errUnbuilt }

// Read returns the durable state in dir without the lease.
func Read(dir string) (*View, error) { return nil, errUnbuilt }

// Update runs f as one transaction and returns when it is durable.
func (s *Store) Update(ctx context.Context, f func(tx *Tx) error) error { return errUnbuilt }

// View returns the last durable state, immutable.
func (s *Store) View() *View { return nil }

// Changed returns a channel that is closed at the next durable commit. Take it before View.
func (s *Store) Changed() <-chan struct{} { return nil }

// Failed returns a channel that is closed when the store can no longer keep its promises;
// Err then says why. The daemon exits with status 4.
func (s *Store) Failed() <-chan struct{} { return nil }

// Err returns why the store failed, nil while it works.
func (s *Store) Err() error { return nil }

// Close writes the snapshot and ends the store.
func (s *Store) Close(ctx context.Context) error { return errUnbuilt }

// PinDocument keeps data for good under contracts/<kind>-<sha>.json, on the disk when it
// returns. Kind is execution or schema; sha is the document's hash as runs name it.
func (s *Store) PinDocument(kind, sha string, data []byte) error { return errUnbuilt }

// Pinned returns a pinned document.
func (s *Store) Pinned(kind, sha string) ([]byte, error) { return nil, errUnbuilt }

// NewID returns a new identity: 32 hex digits.
func NewID() string { return "" }

// Token is a run's credential. It never appears in a log.
type Token string

// Request is the receipt of one changing request.
type Request struct {
	ID      string          `json:"id"`
	At      float64         `json:"at"`
	Receipt json.RawMessage `json:"receipt"`
	Extra   Members         `json:"-"`
}
