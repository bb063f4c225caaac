package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"greatminds/internal/refusal"
)

// Our own identity, for commits where git has none.
const (
	ourName  = "greatminds"
	ourEmail = "greatminds@localhost"
)

// newCommit is one commit to make.
type newCommit struct {
	dir     string
	tree    string
	parents []string
	message string
	when    time.Time
	who     identity
}

// mergeCommit runs the hooks that `git merge` would run and makes the merge commit.
func (g *Git) mergeCommit(ctx context.Context, r MergeRequest, where sight, who identity, m *MergePlan) error {
	message, err := g.hookedMessage(ctx, r, *m, where)
	if err != nil {
		return err
	}
	m.Parents = []string{m.Old, m.Theirs}
	m.Commit, err = g.commitTree(ctx, "git.commit-merge", newCommit{dir: m.dir(), tree: m.Tree,
		parents: m.Parents, message: message, when: r.When, who: who})
	return err
}

// hookedMessage runs pre-merge-commit and commit-msg, and returns the message as the latter
// leaves it. The hooks see the merged contents as the index, the task's worktree as files.
func (g *Git) hookedMessage(ctx context.Context, r MergeRequest, m MergePlan, where sight) (string, error) {
	message, dir := strings.TrimSpace(r.Message), m.dir()
	before, after := where.hasHook("pre-merge-commit"), where.hasHook("commit-msg")
	if !before && !after {
		return message + "\n", nil
	}
	tmp, done, err := g.temporary("merge-*")
	if err != nil {
		return "", err
	}
	defer done()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(tmp, "index")}
	if before {
		if _, err := g.run(ctx, gitCall{dir: dir, env: env, args: []string{"read-tree", m.Tree}}); err != nil {
			return "", err
		}
		if err := g.hook(ctx, where, hookCall{name: "pre-merge-commit", dir: dir, env: env}); err != nil {
			return "", err
		}
	}
	if !after {
		return message + "\n", nil
	}
	file := filepath.Join(tmp, "MERGE_MSG")
	if err := os.WriteFile(file, []byte(message+"\n"), 0o600); err != nil {
		return "", err
	}
	if err := g.hook(ctx, where, hookCall{name: "commit-msg", dir: dir, env: env, args: []string{file}}); err != nil {
		return "", err
	}
	edited, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if message = strings.TrimSpace(string(edited)); message == "" {
		return "", refusal.New(refusal.CodeHookFailed, "correct the hook", "the git hook commit-msg of %s left an empty message", dir)
	}
	return message + "\n", nil
}

// commitTree makes a commit and returns its id. Author, committer and time are given, so that
// the same inputs make the same commit.
func (g *Git) commitTree(ctx context.Context, step string, c newCommit) (string, error) {
	author, committer := c.who.author, c.who.committer
	date := fmt.Sprintf("@%d +0000", c.when.Unix())
	env := []string{
		"GIT_AUTHOR_NAME=" + author.name, "GIT_AUTHOR_EMAIL=" + author.email, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + committer.name, "GIT_COMMITTER_EMAIL=" + committer.email, "GIT_COMMITTER_DATE=" + date,
	}
	args := []string{"commit-tree", c.tree}
	for _, p := range c.parents {
		args = append(args, "-p", p)
	}
	if c.who.sign {
		args = append(args, "-S")
	}
	out, err := g.run(ctx, gitCall{step: step, dir: c.dir, env: env, stdin: []byte(c.message), args: append(args, "-F", "-")})
	if err != nil {
		return "", signingRefusal(c.who.sign, err)
	}
	return strings.TrimSpace(string(out.Stdout)), nil
}

func signingRefusal(sign bool, err error) error {
	var failed *gitError
	if !sign || !errors.As(err, &failed) {
		return err
	}
	return &refusal.Refusal{Code: refusal.CodeSigningFailed, Err: err,
		What: fmt.Sprintf("commit.gpgSign asks for signed commits and signing failed in %s: %s", failed.dir, failed.stderr),
		Remedy: "make the signing program work without a terminal (a running agent, or gpg.format ssh), " +
			"or unset commit.gpgSign for this repository"}
}

type person struct{ name, email string }

// identity is who commits, and whether commits are signed, as git is configured in a folder.
type identity struct {
	author, committer person
	sign              bool
}

// identity reads git's settings. A name or address that git would only guess from the machine
// counts as none, and then both are ours.
func (g *Git) identity(ctx context.Context, dir string) (identity, error) {
	out, err := g.run(ctx, gitCall{dir: dir, codes: []int{1},
		args: []string{"config", "--null", "--get-regexp", `^(user|author|committer)\.(name|email)$|^commit\.gpgsign$`}})
	if err != nil {
		return identity{}, err
	}
	set := map[string]string{}
	for _, f := range splitNUL(out.Stdout) {
		key, value, given := strings.Cut(f, "\n")
		if !given && key == "commit.gpgsign" {
			value = "true" // a key without a value is a true boolean
		}
		set[key] = value
	}
	return identity{author: personOf(set, "author"), committer: personOf(set, "committer"),
		sign: isTrue(set["commit.gpgsign"])}, nil
}

func personOf(set map[string]string, who string) person {
	p := person{set[who+".name"], set[who+".email"]}
	if p.name == "" {
		p.name = set["user.name"]
	}
	if p.email == "" {
		p.email = set["user.email"]
	}
	if p.name == "" || p.email == "" {
		return person{ourName, ourEmail}
	}
	return p
}

// isTrue reads a boolean of git's configuration.
func isTrue(value string) bool {
	switch strings.ToLower(value) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}
