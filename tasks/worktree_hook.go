package tasks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"greatminds/internal/refusal"
)

// hookCall is one run of one of the repository's hooks.
type hookCall struct {
	name string
	dir  string // top of the work tree that the hook runs in
	args []string
	env  []string
}

// hook runs a hook of the repository, bounded, wherever core.hooksPath puts it; a hook that does
// not exist succeeds. Hooks are run, never skipped: one that refuses is named.
func (g *Git) hook(ctx context.Context, s sight, h hookCall) error {
	if !s.hasHook(h.name) {
		return nil
	}
	args := append([]string{"hook", "run", "--ignore-missing", h.name, "--"}, h.args...)
	out, err := g.run(ctx, gitCall{step: "git.hook-" + h.name, dir: h.dir, env: h.env, args: args, any: true})
	if r, ok := refusal.Find(err); ok && r.Code == refusal.CodeGitTimeout {
		return &refusal.Refusal{Code: refusal.CodeGitTimeout, Err: err,
			What:   fmt.Sprintf("the git hook %s of %s did not end within %s", h.name, h.dir, g.bound(false)),
			Remedy: "make the hook end by itself, then try again"}
	}
	if err != nil || out.Code == 0 {
		return err
	}
	said := shorten(append(out.Stdout, out.Stderr...))
	return refusal.New(refusal.CodeHookFailed, "put right what the hook asks for, or change the hook; then try again",
		"the git hook %s of %s ended with %d: %s", h.name, h.dir, out.Code, said)
}

// hasHook tells whether a hook would run: git takes only executable files.
func (s sight) hasHook(name string) bool {
	info, err := os.Stat(filepath.Join(s.hooks, name))
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
