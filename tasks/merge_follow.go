package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"greatminds/internal/refusal"
)

// errHalf marks a checkout step of git's that failed on its way.
var errHalf = errors.New("the checkout step did not end well")

// follow brings one checkout to the merge, from whatever state it is in.
func (m MergePlan) follow(ctx context.Context, c Checkout, resumed bool) error {
	if resumed {
		if done, err := m.finish(ctx, c); done || err != nil {
			return err
		}
	}
	err := m.advance(ctx, c)
	if !errors.Is(err, errHalf) || ctx.Err() != nil {
		return err
	}
	if done, finishErr := m.finish(ctx, c); done || finishErr != nil {
		return finishErr
	}
	// Nothing has moved: git itself refused, for a reason that it can name again.
	files, rehearseErr := m.rehearse(ctx, c)
	if rehearseErr == nil && len(files) > 0 {
		return OverlapRefusal(m.Branch, []Overlap{{Checkout: c.Path, Files: files}})
	}
	return err
}

// advance brings one checkout from the old commit to the merge, index and files. It is refused,
// with nothing changed, where anything of the checkout's own is in the way.
func (m MergePlan) advance(ctx context.Context, c Checkout) error {
	files, err := m.overlap(ctx, c)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		return OverlapRefusal(m.Branch, []Overlap{{Checkout: c.Path, Files: files}})
	}
	if _, err := m.git.run(ctx, gitCall{step: "git.read-tree", dir: c.Path, long: true,
		args: []string{"read-tree", "-m", "-u", m.Old, m.Commit}}); err != nil {
		return fmt.Errorf("checkout %s: %w: %w", c.Path, errHalf, err)
	}
	return m.syncFiles(c)
}

// finish completes a checkout step that was cut short: read-tree refuses its own half, so this
// does not repeat it. It reports false, with nothing changed, where no path shows a trace of the
// merge. Where some do and another holds neither its old content, its new one nor nothing it
// refuses with code checkout_uncertain.
func (m MergePlan) finish(ctx context.Context, c Checkout) (bool, error) {
	if err := checkIdle(c.Path, c.GitDir); err != nil {
		return false, err
	}
	index, err := m.indexSide(ctx, c)
	if err != nil {
		return false, err
	}
	if index == holdsNew {
		return true, m.syncFiles(c) // git writes the index last: what differs now came later
	}
	states, err := m.git.classify(ctx, c.Path, m.changes)
	switch {
	case err != nil:
		return false, err
	case unstarted(states):
		return false, nil
	case index == holdsOther || len(states.others()) > 0:
		return false, m.uncertain(c, states)
	}
	if err := m.restore(ctx, c, m.Commit); err != nil {
		return false, err
	}
	return true, m.syncFiles(c)
}

// unstarted tells whether no path shows a trace of the merge: then what differs is the
// checkout's own. A path with nothing is a trace, since git removes a file before it writes it.
func unstarted(states contents) bool { return states.all(holdsOld, holdsOther) }

func (m MergePlan) uncertain(c Checkout, states contents) error {
	others := states.others()
	if len(others) == 0 {
		for name := range states {
			others = append(others, name)
		}
	}
	return refusal.New(refusal.CodeCheckoutUncertain,
		fmt.Sprintf("in %s keep your own contents of these files aside, put them back to %.12s or %.12s, then repair the operation",
			c.Path, m.Old, m.Commit),
		"the checkout %s was cut short between %.12s and the merge %.12s, and holds neither's contents in %s",
		c.Path, m.Old, m.Commit, nameSome(others))
}

// indexSide tells which commit the index of a checkout is at, on the merge's paths.
func (m MergePlan) indexSide(ctx context.Context, c Checkout) (content, error) {
	for _, side := range []struct {
		commit string
		what   content
	}{{m.Old, holdsOld}, {m.Commit, holdsNew}} {
		differ, err := m.git.fields(ctx, c.Path, "diff-index", "--cached", "--name-only", "-z", "--no-renames", side.commit, "--")
		if err != nil {
			return holdsOther, err
		}
		if !anyOf(differ, m.changes) {
			return side.what, nil
		}
	}
	return holdsOther, nil
}

func anyOf(names []string, changes []pathChange) bool {
	listed := map[string]bool{}
	for _, n := range names {
		listed[n] = true
	}
	for _, c := range changes {
		if listed[c.path] {
			return true
		}
	}
	return false
}

// restore brings the merge's paths of a checkout to a commit, index and files. The caller has
// made sure that nobody's own bytes stand there.
func (m MergePlan) restore(ctx context.Context, c Checkout, commit string) error {
	tracked, err := m.git.fields(ctx, c.Path, "ls-files", "-z")
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, name := range tracked {
		known[name] = true
	}
	entries, err := m.git.treeEntries(ctx, c.Path, commit)
	if err != nil {
		return err
	}
	for _, e := range entries {
		known[e.path] = true
	}
	var list strings.Builder
	for _, change := range m.changes {
		// A path that neither the index nor the commit knows is gone already, and git would
		// refuse the whole list for it.
		if known[change.path] {
			list.WriteString(change.path + "\x00")
		}
	}
	_, err = m.git.run(ctx, gitCall{step: "git.restore", dir: c.Path, long: true, stdin: []byte(list.String()),
		env: []string{"GIT_LITERAL_PATHSPECS=1"},
		args: []string{"restore", "--source=" + commit, "--staged", "--worktree",
			"--pathspec-from-file=-", "--pathspec-file-nul"}})
	return err
}

// syncFiles makes the files that the merge wrote durable: git syncs its objects, refs and
// index, and leaves the files to the next power cut.
func (m MergePlan) syncFiles(c Checkout) error {
	return m.git.Disk.Step("merge.sync-files", func() error {
		for _, change := range m.changes {
			if err := syncFile(filepath.Join(c.Path, filepath.FromSlash(change.path))); err != nil {
				return err
			}
		}
		return nil
	})
}

func syncFile(name string) error {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil // deleted by the merge, or a link, whose folder entry git's own syncs carry
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
