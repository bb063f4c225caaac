package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"greatminds/internal/execgate"
	"greatminds/internal/termsafe"
)

// Answer is what a program said of its version.
type Answer struct {
	// Version is null where it is not known; Unknown then says why.
	Version *string `json:"version"`
	// From is the question that it answered: --version or initialize.
	From    *string `json:"version_from"`
	Unknown *string `json:"version_unknown"`
}

const (
	fromFlag       = "--version"
	fromInitialize = "initialize"
	// maxAnswer bounds what is read of a program, in bytes. The longest answer to initialize that was
	// seen has 3 KB.
	maxAnswer = 64 << 10
	// initializePatience bounds the second question. The answer comes within a second or so, but some
	// adapters do not end afterwards, so that all of it is always spent on them.
	initializePatience = 5 * time.Second
	// maxSaid bounds the words of a program that are repeated, in bytes.
	maxSaid = 200
)

// question is one way of asking programs.
type question struct {
	dir      string
	env      []string
	patience time.Duration
}

// version asks a program with --version and, where it does not know that, with an ACP initialize:
// some adapters end without a word, others refuse the flag. name is what it calls itself in the
// second case.
func (q question) version(ctx context.Context, path string, acp []string) (said Answer, name string) {
	out, err := q.run(ctx, []string{path, fromFlag}, "", q.patience)
	if err != nil {
		return unknown("%s --version %s", path, trouble(err, q.patience)), ""
	}
	if found := number(out.Stdout); out.Code == 0 && found != "" {
		return answer(found, fromFlag), ""
	}
	wait := min(q.patience, initializePatience)
	told, err := q.run(ctx, append([]string{path}, acp...), initialize, wait)
	if name, found := introduction(told.Stdout); found != "" {
		return answer(found, fromInitialize), name // also of one that did not end then
	}
	why := "ended without an answer"
	if err != nil {
		why = trouble(err, wait)
	}
	return unknown("%s --version ended with status %d%s, and asked with initialize it %s", path, out.Code, words(out), why), ""
}

func (q question) run(ctx context.Context, argv []string, stdin string, wait time.Duration) (execgate.ToolOutput, error) {
	return execgate.RunTool(ctx, execgate.Tool{Argv: argv, Env: q.env, Dir: q.dir, Stdin: []byte(stdin), MaxOutput: maxAnswer, Timeout: wait})
}

// initialize declines everything, like a run does. It is version 1, which is the one we speak.
const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,` +
	`"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false},"clientInfo":{"name":"greatminds","version":"1"}}}` + "\n"

// versionNumber is two numbers or more, and what a release adds to them.
var versionNumber = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)+(?:[-+.][0-9A-Za-z]+)*`)

// number is the first version in an output. A program that does not know the flag may speak its
// protocol, whose version is not its own.
func number(out []byte) string {
	for line := range bytes.Lines(out) {
		found := versionNumber.Find(line)
		if len(found) > 0 && len(found) <= maxVersion && !bytes.ContainsRune(line, '{') {
			return string(found)
		}
	}
	return ""
}

// maxVersion bounds a version, in bytes.
const maxVersion = 64

// introduction reads name and version out of the answer to initialize, which may stand among other
// lines.
func introduction(out []byte) (name, version string) {
	for line := range bytes.Lines(out) {
		var m struct {
			Result struct {
				AgentInfo struct{ Name, Version string }
			}
		}
		// A line that is none of the protocol is skipped like in a run.
		if json.Unmarshal(line, &m) != nil || m.Result.AgentInfo.Version == "" {
			continue
		}
		info := m.Result.AgentInfo
		if len(info.Version) <= maxVersion && termsafe.Line(info.Version) == info.Version {
			return info.Name, info.Version
		}
	}
	return "", ""
}

func answer(version, from string) Answer { return Answer{Version: &version, From: &from} }

func unknown(format string, args ...any) Answer {
	why := termsafe.Line(fmt.Sprintf(format, args...))
	return Answer{Unknown: &why}
}

// trouble says why there was no answer at all.
func trouble(err error, waited time.Duration) string {
	var exec *execgate.ExecError
	switch {
	case errors.Is(err, execgate.ErrToolTimeout):
		return fmt.Sprintf("did not answer within %s", waited)
	case errors.As(err, &exec):
		return "cannot be started: " + exec.Errno.Error()
	}
	return "could not be asked: " + err.Error()
}

// words are the first words of what a program wrote, standard error before standard output.
func words(out execgate.ToolOutput) string {
	text := strings.TrimSpace(string(out.Stderr))
	if text == "" {
		text = strings.TrimSpace(string(out.Stdout))
	}
	if text == "" {
		return ""
	}
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "…"
	}
	return " (" + text + ")"
}
