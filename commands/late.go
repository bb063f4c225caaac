package commands

import (
	"context"

	"greatminds/runstore"
)

// late is an outcome that the store has not taken yet. It is known to this process alone: a
// command whose daemon ends with it waits for a person.
type late struct {
	outcome outcome
	more    func(*runstore.Command)
}

// Unsettled tells whether the command has come to an outcome that its receipt does not say yet,
// because the store did not take it. [Service.Execute] then tries again, and executes nothing.
func (s *Service) Unsettled(id runstore.CommandID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.late[id]
	return there
}

// settleLate gives the receipt an outcome that the store did not take before; false where there
// is none.
func (s *Service) settleLate(ctx context.Context, id runstore.CommandID) (bool, error) {
	s.mu.Lock()
	l, there := s.late[id]
	s.mu.Unlock()
	receipt := s.o.Store.View().Command(id)
	if !there || receipt == nil {
		return false, nil
	}
	return true, s.settle(ctx, receipt, l.outcome, l.more)
}

// remember keeps an outcome until the store takes it; taken forgets it.
func (s *Service) remember(id runstore.CommandID, l late) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late[id] = l
}

func (s *Service) taken(id runstore.CommandID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.late, id)
}
