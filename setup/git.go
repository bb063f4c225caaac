package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
)

// Git runs git in a folder and returns its standard output. An exit status other than 0 is a
// [*GitError].
type Git func(ctx context.Context, dir string, args ...string) (stdout []byte, err error)

// GitError is a git that ended with another status than 0.
type GitError struct {
	Args   []string
	Code   int
	Stderr string
}

func (e *GitError) Error() string {
	return fmt.Sprintf("git %s: exit %d: %s", strings.Join(e.Args, " "), e.Code, strings.TrimSpace(e.Stderr))
}

// GitTool is git as a bounded helper program, found on the PATH of env; no GIT_* variable of env
// reaches it.
func GitTool(env []string) Git {
	return func(ctx context.Context, dir string, args ...string) ([]byte, error) {
		out, err := execgate.RunTool(ctx, execgate.Tool{Argv: append([]string{"git"}, args...), Env: execgate.GitEnv(env),
			Dir: dir, MaxOutput: 1 << 20})
		if err != nil {
			return nil, err
		}
		if out.Code != 0 {
			return out.Stdout, &GitError{Args: args, Code: out.Code, Stderr: string(out.Stderr)}
		}
		return out.Stdout, nil
	}
}

// line is git's answer without its line end.
func (g Git) line(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := g(ctx, dir, args...)
	return strings.TrimRight(string(out), "\r\n"), err
}

// checkGit refuses a missing git, one older than 2.38 (the first that merges without a
// checkout), and a folder outside a work tree.
func checkGit(ctx context.Context, git Git, root string) error {
	text, err := git.line(ctx, root, "version")
	if err != nil {
		return gitRefusal(root, err)
	}
	if !recent(text) {
		return refusal.New(refusal.CodeGitTooOld, "install git 2.38 or newer",
			"%q cannot compute a merge without touching a checkout", text)
	}
	inside, err := git.line(ctx, root, "rev-parse", "--is-inside-work-tree")
	if err != nil {
		return gitRefusal(root, err)
	}
	if inside != "true" {
		return refusal.New(refusal.CodeNotARepository, "run setup in a checkout of the repository",
			"%s is inside a git repository, but not in a work tree", root)
	}
	return nil
}

var gitVersion = regexp.MustCompile(`^git version ([0-9]{1,6})\.([0-9]{1,6})`)

// recent reads "git version 2.39.5 (vendor)".
func recent(text string) bool {
	m := gitVersion.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1]) // few digits by the expression
	minor, _ := strconv.Atoi(m[2])
	return major > 2 || major == 2 && minor >= 38
}

// gitRefusal names what kept git from answering.
func gitRefusal(root string, err error) error {
	var ended *GitError
	switch {
	case errors.As(err, &ended) && strings.Contains(ended.Stderr, "not a git repository"):
		return &refusal.Refusal{Code: refusal.CodeNotARepository, Err: err,
			What:   fmt.Sprintf("%s is in no git repository", root),
			Remedy: "run `git init` there, then `greatminds setup` again"}
	case errors.As(err, &ended):
		return &refusal.Refusal{Code: refusal.CodeGitFailed, Err: err, What: err.Error() + " in " + root,
			Remedy: "put right what git names, then run `greatminds setup` again"}
	case errors.Is(err, fs.ErrNotExist):
		return &refusal.Refusal{Code: refusal.CodeGitMissing, Err: err, What: fmt.Sprintf("git cannot be started: %v", err),
			Remedy: "install git 2.38 or newer"}
	}
	return fmt.Errorf("git in %s: %w", root, err)
}
