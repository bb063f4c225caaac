package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"greatminds/internal/refusal"
	"greatminds/internal/termsafe"
	"greatminds/supervisor/control"
)

// problem is a refusal as one line of JSON on standard error.
type problem struct {
	Version int           `json:"version"`
	Error   *refusal.Wire `json:"error"`
}

// explain tells why a command failed and returns its exit status.
func (a *app) explain(cmd *cobra.Command, err error) int {
	r, isUsage := asRefusal(cmd, err)
	if a.asJSON() {
		a.complain(string(mustCompact(problem{Version: 1, Error: refusal.ToWire(r)})))
		return int(r.Status())
	}
	if isUsage != nil {
		a.complain(fmt.Sprintf("Usage: %s\nTry '%s --help' for help.\n", isUsage.UseLine(), isUsage.CommandPath()))
	}
	a.complain("Error: " + termsafe.Text(r.Error()))
	if r.Remedy != "" && isUsage == nil {
		a.complain(termsafe.Text(r.Remedy))
	}
	return int(r.Status())
}

// asRefusal gives every error its code and its exit status. The command is that of a usage error.
func asRefusal(cmd *cobra.Command, err error) (*refusal.Refusal, *cobra.Command) {
	if r, is := refusal.Find(err); is {
		return r, nil
	}
	wrong, is := err.(*usageError)
	if is {
		cmd = wrong.cmd
	} else if !isCobra(err) {
		return &refusal.Refusal{Code: refusal.CodeFailed, What: err.Error(), Err: err}, nil
	}
	return &refusal.Refusal{Code: refusal.CodeUsage, What: err.Error(), Err: err,
		Remedy: fmt.Sprintf("read `%s --help`", cmd.CommandPath())}, cmd
}

// isCobra recognizes the few errors that cobra makes before a command is known.
func isCobra(err error) bool {
	for _, start := range []string{"unknown command", "unknown flag", "unknown shorthand"} {
		if strings.HasPrefix(err.Error(), start) {
			return true
		}
	}
	return false
}

// asJSON reports whether a refusal is to be JSON: asked for, or read by an agent. The flag is
// looked for in the arguments too, since a wrong flag ends parsing before it is reached.
func (a *app) asJSON() bool {
	if a.json || a.Getenv("GREATMINDS_RUN_ID") != "" || a.Getenv("GREATMINDS_RUN_TOKEN") != "" {
		return true
	}
	end := slices.Index(a.Args, "--")
	if end < 0 {
		end = len(a.Args)
	}
	// `run submit --json TEXT` is input.
	return slices.Contains(a.Args[:end], "--json") && !slices.Contains(a.Args[:end], "submit")
}

// complain writes one message to standard error.
func (a *app) complain(text string) {
	_, _ = fmt.Fprintln(a.Stderr, text) // there is nobody left to tell that it failed
}

// say writes one line to standard output.
func (a *app) say(text string) error {
	_, err := fmt.Fprintln(a.Stdout, text)
	return err
}

// saySafe writes one line of text that agents may have written.
func (a *app) saySafe(text string) error { return a.say(termsafe.Text(text)) }

// print writes an answer as indented JSON, the form of most of the reference's documents.
func (a *app) print(answer any) error {
	data, err := control.Encode(answer)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return fmt.Errorf("the answer is no JSON: %w", err)
	}
	return a.sayJSON(b.String())
}

// printLine writes an answer as one line of JSON.
func (a *app) printLine(answer any) error {
	data, err := control.Encode(answer)
	if err != nil {
		return err
	}
	return a.sayJSON(string(data))
}

// sayJSON writes JSON. Its strings may hold agents' text, which a terminal gets in JSON's own escapes.
func (a *app) sayJSON(text string) error {
	if a.Terminal {
		text = termsafe.JSON(text)
	}
	return a.say(text)
}

// printOr prints the answer as JSON when that was asked for, else the text.
func (a *app) printOr(answer any, text string) error {
	if a.json {
		return a.print(answer)
	}
	return a.saySafe(text)
}

func mustCompact(v any) []byte {
	data, err := control.Encode(v)
	if err != nil {
		panic(fmt.Sprintf("cli: %#v has no JSON form: %v", v, err))
	}
	return data
}
