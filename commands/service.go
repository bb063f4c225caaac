// Package commands runs configured commands for assigned agents and keeps their receipts.
package commands

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"greatminds/contract"
	"greatminds/internal/durable"
	"greatminds/runstore"
)

var errUnbuilt = errors.New("commands: not built yet")

// Options is what a Service works on.
type Options struct {
	Store *runstore.Store
	Disk  *durable.Disk
	// Dir is the runtime folder's .runtime.
	Dir     string
	Now     func() time.Time
	Log     *slog.Logger
	Environ []string
	// Owner is the supervisor's identity.
	Owner string
	// Contract returns the document that a run pinned, by hash.
	Contract func(sha string) (*contract.Contract, error)
}

// Service is the service of configured commands.
type Service struct{ o Options }

// New returns a service.
func New(o Options) (*Service, error) { return &Service{o}, nil }

// Admit checks a request and stores its receipt, or returns the one it already has.
func (s *Service) Admit(ctx context.Context, run *runstore.Run, c contract.Command, id runstore.CommandID) (*runstore.Command, error) {
	return nil, errUnbuilt
}

// Execute carries a queued command out.
func (s *Service) Execute(ctx context.Context, id runstore.CommandID) error { return errUnbuilt }

// CancelRun ends the run's command and returns when it has ended.
func (s *Service) CancelRun(ctx context.Context, run runstore.RunID) error { return nil }

// Recover brings the commands of an earlier supervisor to a known state.
func (s *Service) Recover(ctx context.Context) error { return nil }

// Stale says why a finished command no longer counts as evidence.
func (s *Service) Stale(ctx context.Context, run *runstore.Run, c *runstore.Command) (string, error) {
	return "", errUnbuilt
}

// Preview returns the bounded text of a receipt's output.
func (s *Service) Preview(c *runstore.Command, limit int) (any, error) { return nil, errUnbuilt }
