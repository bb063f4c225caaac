package tasks

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"greatminds/internal/refusal"
)

// Checkout is one checkout of the branch merged into, which has to follow the merge.
type Checkout struct {
	// Path is its top folder, GitDir the folder of its own index, Head the commit it is at.
	Path, GitDir, Head string
}

// Overlap is a checkout with files of its own in the merge's way.
type Overlap struct {
	Checkout string
	// Files are paths below Checkout, sorted.
	Files []string
}

// OverlapRefusal is the hold for overlaps: it names the files and clears by itself once they
// are out of the way.
func OverlapRefusal(branch string, overlaps []Overlap) *refusal.Refusal {
	parts := make([]string, len(overlaps))
	for i, o := range overlaps {
		parts[i] = fmt.Sprintf("%s in %s", nameSome(o.Files), o.Checkout)
	}
	return refusal.New(refusal.CodeCheckoutOverlap,
		"commit, stash or move these files away; the merge then goes on by itself",
		"the merge into %s would touch files with contents of their own: %s",
		strings.TrimPrefix(branch, "refs/heads/"), strings.Join(parts, "; "))
}

// Checkouts lists the checkouts that are on the branch now. It refuses where one cannot follow
// for another reason than its files: a rebase or bisect of the branch, a checkout whose disk is
// not there.
func (m MergePlan) Checkouts(ctx context.Context) ([]Checkout, error) {
	all, err := m.git.checkouts(ctx, m.Root)
	if err != nil {
		return nil, err
	}
	var on []Checkout
	for _, c := range all {
		if c.bare || c.prunable {
			continue
		}
		if _, err := os.Stat(c.path); err != nil {
			if c.ref != m.Branch {
				continue
			}
			return nil, refusal.New(refusal.CodeMergeBusy, "bring it back, or run `git worktree prune` once it is gone for good",
				"the checkout %s of %s cannot be reached: %v", c.path, m.Branch, err)
		}
		dir, err := m.git.gitDirOf(ctx, c.path)
		if err != nil {
			return nil, err
		}
		if what := m.claimedBy(dir); what != "" {
			return nil, refusal.New(refusal.CodeMergeBusy, "finish it or abort it there",
				"%s of %s is under way in the checkout %s", what, strings.TrimPrefix(m.Branch, "refs/heads/"), c.path)
		}
		if c.ref == m.Branch {
			on = append(on, Checkout{Path: c.path, GitDir: dir, Head: c.head})
		}
	}
	return on, nil
}

// claimedBy names an operation that has taken the branch off HEAD and will put it back.
func (m MergePlan) claimedBy(gitDir string) string {
	short := strings.TrimPrefix(m.Branch, "refs/heads/")
	for _, mark := range []struct{ name, what string }{
		{"rebase-merge/head-name", "a rebase"}, {"rebase-apply/head-name", "a rebase"}, {"BISECT_START", "a bisect"},
	} {
		data, err := os.ReadFile(filepath.Join(gitDir, filepath.FromSlash(mark.name)))
		if name := strings.TrimSpace(string(data)); err == nil && (name == m.Branch || name == short) {
			return mark.what
		}
	}
	return ""
}

// CheckCheckouts looks whether every checkout of the branch can follow the merge. It returns
// the files in the way, or refuses by name where something else is: a lock, an operation under
// way, a branch that has moved (ErrBranchMoved). Nothing has changed but refreshed stat data.
func (m MergePlan) CheckCheckouts(ctx context.Context) ([]Overlap, error) {
	if m.Nothing {
		return nil, nil
	}
	m, err := m.known(ctx)
	if err != nil {
		return nil, err
	}
	on, err := m.Checkouts(ctx)
	if err != nil {
		return nil, err
	}
	var overlaps []Overlap
	for _, c := range on {
		files, err := m.overlap(ctx, c)
		if err == nil && len(files) == 0 {
			files, err = m.rehearse(ctx, c)
		}
		if err != nil {
			return nil, err
		}
		if len(files) > 0 {
			overlaps = append(overlaps, Overlap{Checkout: c.Path, Files: files})
		}
	}
	return overlaps, nil
}

// known is the plan with its path changes, which a plan from a record has to look up.
func (m MergePlan) known(ctx context.Context) (MergePlan, error) {
	if m.changes != nil {
		return m, nil
	}
	changes, err := m.git.treeChanges(ctx, m.Root, m.Old, m.Commit)
	m.changes = changes
	return m, err
}

// overlap lists the files of one checkout that are in the merge's way, as far as index and
// folders tell.
func (m MergePlan) overlap(ctx context.Context, c Checkout) ([]string, error) {
	if err := checkIdle(c.Path, c.GitDir); err != nil {
		return nil, err
	}
	if c.Head != m.Old {
		return nil, ErrBranchMoved
	}
	// This also refreshes the index: a touched file is no changed one, but read-tree takes it
	// for one until the index knows.
	out, err := m.git.run(ctx, gitCall{step: "git.refresh", dir: c.Path, long: true,
		args: []string{"status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules=all"}})
	if err != nil {
		return nil, err
	}
	touched := map[string]bool{}
	for _, change := range m.changes {
		touched[change.path] = true
	}
	var files []string
	for _, line := range splitNUL(out.Stdout) {
		if name, ok := strings.CutPrefix(line, "u "); ok {
			files = append(files, afterSpaces(name, 9)) // git moves no index with unmerged paths
		} else if name := afterSpaces(line, 8); touched[name] {
			files = append(files, name)
		}
	}
	files = append(files, inTheWay(c.Path, m.changes)...)
	sort.Strings(files)
	return slices.Compact(files), nil
}

// rehearse asks git itself whether the checkout can follow. It names what the index does not
// tell, such as a file that somebody hid from its comparison.
func (m MergePlan) rehearse(ctx context.Context, c Checkout) ([]string, error) {
	out, err := m.git.run(ctx, gitCall{dir: c.Path, long: true, any: true,
		args: []string{"read-tree", "-n", "-m", "-u", m.Old, m.Commit}})
	if err != nil || out.Code == 0 {
		return nil, err
	}
	states, err := m.git.classify(ctx, c.Path, m.changes)
	if err != nil {
		return nil, err
	}
	var files []string
	for name, state := range states {
		if state != holdsOld {
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		return nil, refusal.New(refusal.CodeGitFailed, "put right what git names, then try again",
			"git would not update the checkout %s: %s", c.Path, shorten(out.Stderr))
	}
	sort.Strings(files)
	return files, nil
}

// inTheWay lists what stands where the merge adds a path, ignored or not: git would take an
// ignored file for one that nobody needs.
func inTheWay(top string, changes []pathChange) []string {
	leaving := map[string]bool{} // paths whose file the merge itself takes away
	for _, c := range changes {
		if c.deleted() {
			leaving[c.path] = true
		}
	}
	var files []string
	for _, c := range changes {
		if c.added() {
			files = append(files, standingAt(top, c.path, leaving)...)
		}
	}
	return files
}

func standingAt(top, name string, leaving map[string]bool) []string {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		info, err := os.Lstat(filepath.Join(top, filepath.FromSlash(dir)))
		if err == nil && !info.IsDir() {
			if leaving[dir] {
				return nil
			}
			return []string{dir}
		}
	}
	full := filepath.Join(top, filepath.FromSlash(name))
	info, err := os.Lstat(full)
	switch {
	case err != nil && os.IsNotExist(err):
		return nil
	case err != nil || !info.IsDir():
		return []string{name}
	}
	return strayFiles(top, full, leaving)
}

// strayFiles lists the files of a folder, which the merge replaces by a file, that the merge
// does not take away itself.
func strayFiles(top, folder string, leaving map[string]bool) []string {
	var files []string
	err := filepath.WalkDir(folder, func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, full)
		if err == nil && !d.IsDir() && !leaving[filepath.ToSlash(rel)] {
			files = append(files, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		rel, _ := filepath.Rel(top, folder) // both are absolute, so this cannot fail
		return []string{filepath.ToSlash(rel)}
	}
	return files
}
