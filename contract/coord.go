package contract

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"greatminds/internal/refusal"
	"greatminds/internal/yamldoc"
)

// WorktreePolicy is the schema's policy with the project's own fields laid over it, from the
// file that CoordFile finds. Faults are refused as coord_invalid, with their lines.
func WorktreePolicy(p Project, s *Schema) (Worktrees, error) {
	path, data, err := CoordFile(p)
	if err != nil || data == nil {
		return s.Worktrees, err
	}
	return ParseCoord(path, data, s)
}

// CoordFile returns the project's overrides: coordination/coord.yaml or, where that is absent,
// coord.yaml at the project's root. Without either data is nil and path is the first.
func CoordFile(p Project) (path string, data []byte, err error) {
	for _, path := range []string{p.CoordPath(), filepath.Join(p.Root, "coord.yaml")} {
		data, err := ReadFile(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return path, data, err
		}
	}
	return p.CoordPath(), nil, nil
}

// ParseCoord reads `worktrees:` of a coord.yaml over the schema's policy. Other members of the
// file belong to other tools and are only checked for their form.
func ParseCoord(file string, data []byte, s *Schema) (Worktrees, error) {
	policy := s.Worktrees
	// Null is allowed because the rest of the file is not ours.
	root, faults := yamldoc.Read(file, data, yamldoc.Options{MaxBytes: maxFileBytes, Null: true})
	if root != nil {
		(&coordReader{reader{faults}, s}).root(root, &policy)
	}
	if r := faults.Refusal(refusal.CodeCoordInvalid, "the project's overrides are not valid", "mend what is named"); r != nil {
		return s.Worktrees, r
	}
	return policy, nil
}

type coordReader struct {
	reader
	s *Schema
}

func (r *coordReader) root(n *yamldoc.Node, policy *Worktrees) {
	if n.Kind == yamldoc.Null || !r.is(n, "the file", yamldoc.Mapping, "write `worktrees:` with fields below it") {
		return
	}
	w := n.Get("worktrees")
	if w == nil || w.Kind == yamldoc.Null {
		return
	}
	r.object(w, "worktrees", worktreeFields(&r.reader, policy, false)...)
	if to := w.Get("conflict_handback_to"); to != nil && to.Kind == yamldoc.String {
		if q, known := r.s.Queue(policy.ConflictHandbackTo); !known || q.Kind != QueueActive {
			r.faults.Add(to, "name a queue of kind active", "worktrees.conflict_handback_to %s is no queue that works on tasks", yamldoc.Show(to.Text))
		}
	}
	if kinds := w.Get("required_for_task_kinds"); kinds != nil {
		for _, k := range kinds.Items {
			if k.Kind == yamldoc.String && !slices.Contains(r.s.Enums.Kinds, k.Text) {
				r.faults.Add(k, "name a kind of the schema", "worktrees.required_for_task_kinds names %s, which is no kind of task", yamldoc.Show(k.Text))
			}
		}
	}
}

// DefaultBranch is the branch that verified work is merged into: the policy's, which setup has
// recorded in coordination/coord.yaml.
func DefaultBranch(p Project, s *Schema) (string, error) {
	policy, err := WorktreePolicy(p, s)
	return policy.DefaultBranch, err
}
