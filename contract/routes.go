package contract

import "slices"

// Routes lists the rows that allow a role to move a task from one queue to another, in the order
// of the file; none means that it may not. any_active_queue matches queues of kind active and no
// other: a terminal queue is left only by its own rows. current_owner matches the owner and the
// writers of from.
func (s *Schema) Routes(from, to Queue, role Role) []Transition {
	var rows []Transition
	for _, t := range s.Transitions {
		if s.leaves(t, from) && s.reaches(t, to) && from != to && s.authorizes(t, from, role) {
			rows = append(rows, t)
		}
	}
	return rows
}

// RoutesFrom lists the rows by which a role may move a task out of a queue. A row to
// any_resume_to_queue stands as it is, since only the task knows its destination.
func (s *Schema) RoutesFrom(from Queue, role Role) []Transition {
	var rows []Transition
	for _, t := range s.Transitions {
		if s.leaves(t, from) && t.To != from && s.authorizes(t, from, role) {
			rows = append(rows, t)
		}
	}
	return rows
}

// Required is what a list of rows requires, each name once, in the order of the rows.
func Required(rows []Transition) []string {
	names := []string{}
	for _, t := range rows {
		for _, name := range t.Requires {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (s *Schema) leaves(t Transition, from Queue) bool {
	if t.From != AnyActiveQueue {
		return t.From == from
	}
	q, known := s.Queue(from)
	return known && q.Kind == QueueActive
}

func (s *Schema) reaches(t Transition, to Queue) bool {
	if t.To != AnyResumeToQueue {
		return t.To == to
	}
	q, known := s.Queue(to)
	return known && q.Kind == QueueActive
}

func (s *Schema) authorizes(t Transition, from Queue, role Role) bool {
	if t.By != CurrentOwner {
		return t.By == role
	}
	q, known := s.Queue(from)
	return known && role != "" && (q.Owner == role || slices.Contains(q.Writers, role))
}
