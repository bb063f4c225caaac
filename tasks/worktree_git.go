package tasks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"greatminds/internal/durable"
	"greatminds/internal/execgate"
	"greatminds/internal/refusal"
)

// Bounds of git calls.
const (
	gitLimit      = 60 * time.Second // one call, hook or signature
	gitLongLimit  = 10 * time.Minute // a call that writes a whole checkout or runs filters on it
	gitMaxOutput  = 64 << 20
	gitStderrShow = 400
	readTries     = 3 // of a call that only reads
)

// Git runs git for one project: bounded, without a terminal, without any GIT_* variable of
// ours, its whole process tree ended with it. A call that writes is a named durable step, so
// that a test can stop before and after it, and asks git to sync what it wrote (by default it
// syncs neither objects nor refs).
type Git struct {
	// Env is the environment that git, its filters and hooks see, GIT_* dropped.
	Env []string
	// Disk performs the steps.
	Disk *durable.Disk
	// Scratch is a private folder for temporary indexes and messages; made when missing. What a
	// crash leaves in it is of no use to anybody.
	Scratch string
	// Limit bounds one call, hook or signature; 0 is a minute. Long bounds calls that write a
	// whole checkout; 0 is ten minutes.
	Limit, Long time.Duration
	// Run runs one program to its end, as [execgate.RunTool] does, which nil means. Tests that
	// stop an operation at each of its steps take a cheaper one.
	Run func(context.Context, execgate.Tool) (execgate.ToolOutput, error)

	mu          sync.Mutex // guards what is remembered
	versionGood bool
	commons     map[string]string // common git folder by project root
}

// gitCall is one call: where, what, and how it may end.
type gitCall struct {
	step  string // name of the durable step; empty for a call that only reads
	dir   string
	args  []string
	env   []string
	stdin []byte
	long  bool
	// codes are further exit statuses, beside 0, that are an answer and no failure.
	codes []int
	// any takes every exit status as an answer.
	any bool
}

// gitError is a git call that ended with another status than its caller can use.
type gitError struct {
	dir    string
	args   []string
	code   int
	stderr string
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git %s in %s: exit %d: %s", strings.Join(e.args, " "), e.dir, e.code, e.stderr)
}

// run makes one call. A status that the call does not list is a refusal of code git_failed.
func (g *Git) run(ctx context.Context, c gitCall) (execgate.ToolOutput, error) {
	var out execgate.ToolOutput
	start := g.Run
	if start == nil {
		start = execgate.RunTool
	}
	call := func() error {
		var err error
		out, err = start(ctx, g.tool(c))
		// A call that only reads loses nothing by a second try, also where nobody knows how it ended.
		for tries := 1; c.step == "" && tries < readTries && errors.Is(err, execgate.ErrUnknown) && ctx.Err() == nil; tries++ {
			out, err = start(ctx, g.tool(c))
		}
		if err != nil {
			return g.explain(ctx, c, err)
		}
		if out.Truncated {
			return refusal.New(refusal.CodeGitFailed, "look at the size of this repository's listing",
				"git %s in %s wrote more than %d bytes", c.args[0], c.dir, gitMaxOutput)
		}
		return c.verdict(out)
	}
	if c.step == "" {
		return out, call()
	}
	return out, g.Disk.Step(c.step, call)
}

// tool turns the call into the bounded program run.
func (g *Git) tool(c gitCall) execgate.Tool {
	// fsmonitor and automatic maintenance would leave processes behind; quoting would hide names.
	argv := []string{"git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false",
		"-c", "gc.auto=0", "-c", "maintenance.auto=false"}
	if c.step == "" {
		argv = append(argv, "--no-optional-locks")
	} else {
		argv = append(argv, "-c", "core.fsync=all")
	}
	env := slices.Concat(execgate.GitEnv(g.Env), c.env)
	return execgate.Tool{Argv: append(argv, c.args...), Env: env, Dir: c.dir, Stdin: c.stdin,
		MaxOutput: gitMaxOutput, Timeout: g.bound(c.long)}
}

func (g *Git) bound(long bool) time.Duration {
	limit, fallback := g.Limit, gitLimit
	if long {
		limit, fallback = g.Long, gitLongLimit
	}
	if limit <= 0 {
		return fallback
	}
	return limit
}

func (c gitCall) verdict(out execgate.ToolOutput) error {
	if c.any || out.Code == 0 || slices.Contains(c.codes, out.Code) {
		return nil
	}
	failed := &gitError{dir: c.dir, args: c.args, code: out.Code, stderr: shorten(out.Stderr)}
	if lock := lockIn(out.Stderr); lock != "" {
		return locked(c.dir, lock, failed)
	}
	return &refusal.Refusal{Code: refusal.CodeGitFailed, What: failed.Error(), Err: failed,
		Remedy: "put right what git names, then try again"}
}

// takenLock is how git names the lock file that it could not take.
var takenLock = regexp.MustCompile(`Unable to create '([^'\n]+\.lock)': File exists`)

// lockIn is the lock file that was in git's way, "" where none was.
func lockIn(stderr []byte) string {
	if m := takenLock.FindSubmatch(stderr); m != nil {
		return string(m[1])
	}
	return ""
}

// locked refuses for a lock file of git's, with the one remedy there is. A git that was killed leaves it, and
// nobody but a person can tell that from one that is at work. It is never removed by us.
func locked(dir, lock string, cause error) *refusal.Refusal {
	code := refusal.CodeGitLocked
	if filepath.Base(lock) == "index.lock" {
		code = refusal.CodeGitIndexLocked
	}
	return &refusal.Refusal{Code: code, Err: cause, What: fmt.Sprintf("the checkout %s cannot be written: %s exists", dir, lock),
		Remedy: fmt.Sprintf("let the git that holds it end; if none runs in %s, remove %s", dir, lock)}
}

// explain names what kept git from running or ending.
func (g *Git) explain(ctx context.Context, c gitCall, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("git %s: %w", c.args[0], ctx.Err())
	case errors.Is(err, execgate.ErrToolTimeout):
		return &refusal.Refusal{Code: refusal.CodeGitTimeout, Err: err,
			What: fmt.Sprintf("git %s in %s did not end within %s (a hook, a filter or a signing "+
				"program may be waiting)", c.args[0], c.dir, g.bound(c.long)),
			Remedy: "make the hook, filter or signing program end by itself, then try again"}
	case errors.Is(err, os.ErrNotExist) && gone(c.dir):
		return &refusal.Refusal{Code: refusal.CodeGitFailed, Err: err,
			What:   fmt.Sprintf("git %s cannot be started in %s: there is no such folder", c.args[0], c.dir),
			Remedy: "bring the folder back, then try again; for a task's worktree see `git worktree list` and `git worktree add`"}
	case errors.Is(err, os.ErrNotExist):
		return &refusal.Refusal{Code: refusal.CodeGitMissing, Err: err,
			What:   fmt.Sprintf("git cannot be started in %s: %v", c.dir, err),
			Remedy: "install git 2.38 or newer on the daemon's PATH"}
	}
	return fmt.Errorf("git %s in %s: %w", c.args[0], c.dir, err)
}

// gone tells whether there is no such folder.
func gone(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, os.ErrNotExist)
}

// shorten bounds what a program wrote to the part that a person reads.
func shorten(text []byte) string {
	text = bytes.TrimSpace(text)
	if len(text) > gitStderrShow {
		text = append([]byte("…"), text[len(text)-gitStderrShow:]...)
	}
	return strings.ToValidUTF8(string(text), "�")
}

// text makes a reading call in dir and returns its standard output without the last newline.
func (g *Git) text(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := g.run(ctx, gitCall{dir: dir, args: args})
	return strings.TrimRight(string(out.Stdout), "\n"), err
}

// fields makes a reading call whose answer is a list of strings, each ended by NUL.
func (g *Git) fields(ctx context.Context, dir string, args ...string) ([]string, error) {
	out, err := g.run(ctx, gitCall{dir: dir, args: args})
	return splitNUL(out.Stdout), err
}

func splitNUL(data []byte) []string {
	text := strings.TrimSuffix(string(data), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}

// commit resolves a name to a commit id; empty where there is none of that name.
func (g *Git) commit(ctx context.Context, dir, name string) (string, error) {
	out, err := g.run(ctx, gitCall{dir: dir, codes: []int{1, 128},
		args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}"}})
	if err != nil || out.Code != 0 {
		return "", err
	}
	return strings.TrimSpace(string(out.Stdout)), nil
}

// CheckVersion refuses a git that is missing or older than 2.38 (the first one with
// merge-tree --write-tree). The answer is remembered once it was good.
func (g *Git) CheckVersion(ctx context.Context, dir string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.versionGood {
		return nil
	}
	text, err := g.text(ctx, dir, "version")
	if err != nil {
		return err
	}
	if !versionAtLeast(text, 2, 38) {
		return refusal.New(refusal.CodeGitTooOld, "install git 2.38 or newer",
			"%q is too old to compute a merge without touching a checkout", text)
	}
	g.versionGood = true
	return nil
}

// versionAtLeast reads "git version 2.39.5 (vendor)".
func versionAtLeast(text string, major, minor int) bool {
	words := strings.Fields(text)
	if len(words) < 3 {
		return false
	}
	parts := strings.SplitN(words[2], ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1])
	if errA != nil || errB != nil {
		return false
	}
	return a > major || a == major && b >= minor
}

// temporary makes a private folder below Scratch, or in the system's place for such where none
// was given, and returns it with its clean-up.
func (g *Git) temporary(pattern string) (string, func(), error) {
	if g.Scratch != "" {
		if err := g.Disk.MkdirAll(g.Scratch, 0o700); err != nil {
			return "", nil, err
		}
	}
	dir, err := os.MkdirTemp(g.Scratch, pattern)
	if err != nil {
		return "", nil, err
	}
	// What cannot be removed here is cleared with the folder at the next start.
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}
