package powercut

import "greatminds/internal/durable"

// Done returns the steps of files that took effect, with relative paths.
func (r *Recorder) Done() []durable.Step {
	var steps []durable.Step
	for _, m := range r.moves {
		if m.file {
			steps = append(steps, m.step)
		}
	}
	return steps
}

// MoveOf is the number of moves after which n steps of files had taken effect.
func (r *Recorder) MoveOf(n int) int {
	for i, m := range r.moves {
		if n == 0 {
			return i
		}
		if m.file {
			n--
		}
	}
	return len(r.moves)
}
