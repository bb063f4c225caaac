package contract

import (
	"errors"
	"io/fs"
	"path/filepath"

	"greatminds/internal/refusal"
	"greatminds/internal/yamldoc"
)

// WorktreePolicy is the schema's policy with the project's own fields laid over it, from
// `worktrees:` in coordination/coord.yaml or, where that file is absent, in coord.yaml at the
// project's root. Other members of the file belong to other tools and are left alone. Faults are
// refused as coord_invalid, with their lines.
func WorktreePolicy(p Project, s *Schema) (Worktrees, error) {
	policy := s.Worktrees
	path, data, err := readCoord(p)
	if err != nil || data == nil {
		return policy, err
	}
	// Null is allowed because the rest of the file is not ours.
	root, faults := yamldoc.Read(path, data, yamldoc.Options{MaxBytes: maxFileBytes, Null: true})
	if root != nil {
		(&coordReader{reader{faults}, s}).root(root, &policy)
	}
	if r := faults.Refusal(refusal.CodeCoordInvalid, "the project's overrides are not valid", "mend what is named"); r != nil {
		return s.Worktrees, r
	}
	return policy, nil
}

// readCoord returns no data where the project has no coord.yaml.
func readCoord(p Project) (path string, data []byte, err error) {
	for _, path := range []string{p.CoordPath(), filepath.Join(p.Root, "coord.yaml")} {
		data, err := ReadFile(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return path, data, err
		}
	}
	return "", nil, nil
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
			if k.Kind == yamldoc.String && !contains(r.s.Enums.Kinds, k.Text) {
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
