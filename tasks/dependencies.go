package tasks

import (
	"greatminds/contract"
)

// Location is one place where a task of some id stands.
type Location struct {
	Queue contract.Queue
	// Legacy says that it is a file in the old format.
	Legacy bool
	// Valid says that the file reads as a valid task of that id; Revision is then its revision.
	Valid    bool
	Revision Revision
}

// JudgeDependency gives the verdict over one declared dependency ("<queue>/<id>.yaml"), where at
// lists the places in which a task of that id stands. Only one task in its declared queue, and
// that queue a terminal one, satisfies: an active task does not, an archived one does not where
// verified was asked for, and an ambiguous one never does.
// Spec: "Dependency maintenance".
func JudgeDependency(s *contract.Schema, declared string, at []Location) DependencyFact {
	queue, id, ok := DependencyTarget(declared)
	spec, known := s.Queue(queue)
	switch {
	case !ok || !known || spec.Kind == contract.QueueState:
		return DependencyFact{Status: DependencyMalformed}
	case len(at) == 0:
		return DependencyFact{Status: DependencyMissing}
	case len(at) > 1:
		return DependencyFact{Status: DependencyAmbiguous}
	case at[0].Legacy:
		return DependencyFact{Status: DependencyMigration}
	case spec.Kind != contract.QueueTerminal:
		return DependencyFact{Status: DependencyActive}
	}
	here := at[0]
	if here.Queue != queue {
		if found, _ := s.Queue(here.Queue); found.Kind == contract.QueueTerminal {
			return DependencyFact{Status: DependencyWrongTerminal}
		}
		return DependencyFact{Status: DependencyWaiting}
	}
	if !here.Valid {
		return DependencyFact{Status: DependencyMalformed}
	}
	return DependencyFact{Status: DependencySatisfied, Path: FileOf(queue, id), Revision: here.Revision}
}

// DependencyTarget takes a declared dependency apart; false where it has not the form of one.
func DependencyTarget(declared string) (contract.Queue, ID, bool) {
	m := dependencyPattern.FindStringSubmatch(declared)
	if m == nil {
		return "", "", false
	}
	return contract.Queue(m[1]), ID(m[2]), true
}

// Dependencies looks declared dependencies up in the queues and judges each.
func (t *Tree) Dependencies(declared []string) (map[string]DependencyFact, error) {
	facts := make(map[string]DependencyFact, len(declared))
	for _, dep := range declared {
		_, id, ok := DependencyTarget(dep)
		if !ok {
			facts[dep] = DependencyFact{Status: DependencyMalformed}
			continue
		}
		found, err := t.places(id)
		if err != nil {
			return nil, err
		}
		var at []Location
		for _, e := range found {
			at = append(at, t.location(e))
		}
		facts[dep] = JudgeDependency(t.schema, dep, at)
	}
	return facts, nil
}

func (t *Tree) location(e entry) Location {
	l := Location{Queue: e.queue, Legacy: e.legacy}
	if !e.legacy {
		task, err := t.Read(Ref{ID: e.id, Queue: e.queue, File: e.file()})
		if err == nil {
			l.Valid, l.Revision = true, task.Revision
		}
	}
	return l
}
