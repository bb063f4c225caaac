package setup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"greatminds/contract"
	"greatminds/internal/refusal"
	"greatminds/internal/yamldoc"
)

// defaultBranch settles the branch that verified work is merged into: the one that is recorded
// already, else the repository's own (origin/HEAD, else the branch HEAD is on, which may have no
// commit yet), which is then recorded where older versions read it too. It is settled here, once,
// and not before each merge: a person who switches branches must not move the target.
func (p *plan) defaultBranch(ctx context.Context, git Git) error {
	path, data, err := contract.CoordFile(p.project)
	if err != nil {
		return err
	}
	policy, err := contract.ParseCoord(path, data, p.schema)
	if err != nil {
		return err
	}
	if recorded(path, data) {
		p.branch = policy.DefaultBranch
		return nil
	}
	if p.branch, err = repositoryBranch(ctx, git, p.project.Root); err != nil {
		return err
	}
	p.coordPath = path
	p.coord, err = withBranch(path, data, p.branch, p.schema)
	return err
}

// recorded reports whether the file names a default branch.
func recorded(path string, data []byte) bool {
	root, faults := yamldoc.Read(path, data, yamldoc.Options{Null: true})
	return faults.Len() == 0 && root.Get("worktrees").Get("default_branch") != nil
}

func repositoryBranch(ctx context.Context, git Git, root string) (string, error) {
	name, err := symbolic(ctx, git, root, "refs/remotes/origin/HEAD", "refs/remotes/origin/")
	if err != nil || name != "" {
		return name, err
	}
	name, err = symbolic(ctx, git, root, "HEAD", "refs/heads/")
	if err == nil && name == "" {
		err = refusal.New(refusal.CodeSetupDetached,
			"check the default branch out (`git switch BRANCH`), or write `worktrees: {default_branch: BRANCH}` into coordination/coord.yaml",
			"HEAD of %s is detached and there is no origin/HEAD, so the default branch is unknown", root)
	}
	return name, err
}

// symbolic is what a symbolic ref points to below prefix, empty where it is none.
func symbolic(ctx context.Context, git Git, root, ref, prefix string) (string, error) {
	target, err := git.line(ctx, root, "symbolic-ref", "--quiet", ref)
	var ended *GitError
	if errors.As(err, &ended) && ended.Code == 1 {
		return "", nil
	}
	if err != nil {
		return "", gitRefusal(root, err)
	}
	name, ok := strings.CutPrefix(target, prefix)
	if !ok {
		return "", nil
	}
	return name, nil
}

// withBranch is the file of overrides with the branch in it and everything else as it was. What
// is made is read back: a file that is written in an unusual way is refused, not damaged.
func withBranch(path string, data []byte, branch string, s *contract.Schema) ([]byte, error) {
	cannot := refusal.New(refusal.CodeSetupEdit, "add `worktrees: {default_branch: "+branch+"}` to it yourself",
		"cannot record the default branch %s in %s", branch, path)
	edited, ok := insertBranch(path, data, branch)
	if !ok {
		return nil, cannot
	}
	after, err := contract.ParseCoord(path, edited, s)
	if err != nil {
		cannot.Err = err
		return nil, cannot
	}
	before, err := contract.ParseCoord(path, data, s)
	if err != nil {
		return nil, err
	}
	before.DefaultBranch = branch
	if !sameValue(before, after) || !keepsOthers(path, data, edited) {
		return nil, cannot
	}
	return edited, nil
}

func insertBranch(path string, data []byte, branch string) ([]byte, bool) {
	entry := "default_branch: " + scalar(branch)
	if len(data) == 0 {
		return []byte("# What this project does differently from the workflow schema.\nworktrees:\n  " + entry + "\n"), true
	}
	root, faults := yamldoc.Read(path, data, yamldoc.Options{Null: true})
	if faults.Len() > 0 {
		return nil, false
	}
	lines := lineStarts(data)
	section := root.Get("worktrees")
	switch {
	case section == nil:
		return append(endLine(data), "worktrees:\n  "+entry+"\n"...), true
	case len(section.Fields) > 0 && !opens(data, lines, section, '{'):
		first := section.Fields[0].Key
		at := lines[first.Line-1]
		return splice(data, at, strings.Repeat(" ", first.Column-1)+entry+"\n"), true
	case opens(data, lines, section, '{'):
		if len(section.Fields) > 0 {
			entry += ", "
		}
		return splice(data, offset(data, lines, section)+1, entry), true
	}
	return nil, false
}

// keepsOthers reports whether all members but worktrees are the same in both texts.
func keepsOthers(path string, before, after []byte) bool {
	a, _ := yamldoc.Read(path, before, yamldoc.Options{Null: true})
	b, faults := yamldoc.Read(path, after, yamldoc.Options{Null: true})
	if faults.Len() > 0 {
		return false
	}
	return others(a) == others(b)
}

func others(n *yamldoc.Node) string {
	if n == nil || n.Kind != yamldoc.Mapping {
		return "{}"
	}
	rest := yamldoc.Node{Kind: yamldoc.Mapping}
	for _, f := range n.Fields {
		if f.Key.Text != "worktrees" {
			rest.Fields = append(rest.Fields, f)
		}
	}
	return string(rest.AppendJSON(nil))
}

// gitignore settles the entries of .gitignore: each a line of its own, the other lines kept.
func (p *plan) gitignore() error {
	path := filepath.Join(p.project.Root, ".gitignore")
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return ignoreRefusal(path, err.Error())
	}
	have := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		have[strings.TrimRight(line, "\r\n")] = true
	}
	out := data
	for _, entry := range []string{"/.greatminds/", "/.worktrees/"} {
		if !have[entry] {
			out = append(endLine(out), entry+"\n"...)
			p.ignore = out
		}
	}
	info, err := os.Lstat(path)
	if p.ignore != nil && err == nil && !info.Mode().IsRegular() {
		return ignoreRefusal(path, "it is no regular file")
	}
	return nil
}

func ignoreRefusal(path, why string) error {
	return refusal.New(refusal.CodeSetupEdit, "add the lines /.greatminds/ and /.worktrees/ to it yourself, or make it a regular file",
		"cannot add entries to %s: %s", path, why)
}
