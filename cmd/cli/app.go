// Package cli is the command line of greatminds and of coordd: flags, output and exit statuses.
// It decides nothing: every answer is another room's.
//
// The invariant kept: standard output carries the answer and nothing else, everything else goes to
// standard error, and the exit status is 0 exactly when the answer was given in full. After a
// refusal standard output is empty.
// Spec: reference of the command line, sections 1.1 to 1.4.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"greatminds/internal/refusal"
)

// World is everything that a command takes from outside the program. Only main fills it.
type World struct {
	// Args are the arguments without the program's name.
	Args   []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Terminal says that standard output is a terminal.
	Terminal bool
	// Input says that standard input is a terminal.
	Input   bool
	Getenv  func(string) string
	Environ []string
	// Cwd is the working folder, absolute.
	Cwd string
	// Exe is the absolute path of this program.
	Exe string
	// Version is the program's version.
	Version string
	Now     func() time.Time
}

// app is one invocation.
type app struct {
	World
	// json is the persistent flag --json.
	json bool
	// projectDir is the flag --project-dir where a command has it.
	projectDir string
	// noted says that the user was told that the daemon does not answer.
	noted bool
}

// Command is a command that another package adds to the tree, such as the demo.
type Command func(w World) *cobra.Command

// Greatminds runs the greatminds command line and returns its exit status.
func Greatminds(ctx context.Context, w World, more ...Command) int {
	a := &app{World: w}
	root := a.root()
	for _, add := range more {
		root.AddCommand(add(w))
	}
	return a.run(ctx, root)
}

// Coordd runs the coordd command line, which is `greatminds coordd` under its own name.
//
// With "greatminds" as its first argument it is the whole command line: agents of a coordd that
// has no greatminds beside it reach it so.
func Coordd(ctx context.Context, w World) int {
	if len(w.Args) > 0 && w.Args[0] == CommandLine {
		w.Args = w.Args[1:]
		return Greatminds(ctx, w)
	}
	a := &app{World: w}
	cmd := a.coordd()
	cmd.Version = w.Version
	a.prepare(cmd)
	return a.run(ctx, cmd)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:     "greatminds",
		Short:   "Supervise local ACP coding agents through a task workflow.",
		Version: a.Version,
		Example: "  greatminds setup\n  greatminds run status",
	}
	group(root)
	root.AddCommand(a.setup(), a.projectGroup(), a.coordd(), a.runGroup(), a.taskGroup(), a.plan(), a.journalGroup(), a.agentGroup(), a.mcp())
	a.prepare(root)
	return root
}

// prepare sets what holds for every command of a tree.
func (a *app) prepare(root *cobra.Command) {
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print the answer, and a refusal, as JSON")
	root.SetVersionTemplate("{{.Name}}, version {{.Version}}\n")
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpTemplate(helpTemplate)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &usageError{cmd: cmd, err: readable(err)} })
}

// readable is the error of a flag's value without the names of Go's functions.
func readable(err error) error {
	what, cause, is := strings.Cut(err.Error(), ": strconv.")
	switch {
	case !is:
		return err
	case strings.HasSuffix(cause, "out of range"):
		return fmt.Errorf("%s: out of range", what)
	case strings.HasPrefix(cause, "ParseBool"):
		return fmt.Errorf("%s: neither true nor false", what)
	}
	return fmt.Errorf("%s: not a number", what)
}

func (a *app) run(ctx context.Context, root *cobra.Command) int {
	root.SetArgs(a.Args)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errHelpShown):
		return int(refusal.Invalid)
	case errors.Is(err, errFindings):
		return int(refusal.Failed)
	case isAnswered(err):
		return int(err.(answered).status)
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return 130 // ended by the user's own signal; there is nothing to explain
	}
	return a.explain(cmd, err)
}

// group makes a command that only holds others: bare, it prints its help and exits 2.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage(cmd, "no such command %q", args[0])
		}
		return errors.Join(cmd.Help(), errHelpShown)
	}
	return cmd
}

// errHelpShown ends a bare group, whose help was the answer.
var errHelpShown = errors.New("help was shown")

// usageError is a wrong flag, argument or combination of them.
type usageError struct {
	cmd *cobra.Command
	err error
}

// Error says what is wrong.
func (u *usageError) Error() string { return u.err.Error() }

// Unwrap returns the cause.
func (u *usageError) Unwrap() error { return u.err }

// Usage is the error of a wrong command line, for commands that another package adds.
func Usage(cmd *cobra.Command, format string, args ...any) error { return usage(cmd, format, args...) }

func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{cmd: cmd, err: fmt.Errorf(format, args...)}
}

// mostSeconds is the longest time that a flag may name: some thirty years.
const mostSeconds = 1e9

// seconds is the number that a flag gives as a time, from least seconds to mostSeconds. It refuses
// what is no number too: NaN is neither below nor above.
func seconds(cmd *cobra.Command, flag string, value, least float64) (time.Duration, error) {
	if math.IsNaN(value) || value < least || value > mostSeconds {
		return 0, usage(cmd, "invalid value for --%s: %g is not in the range %g to %g", flag, value, least, mostSeconds)
	}
	return time.Duration(value * float64(time.Second)), nil
}

// exactly and upTo check the number of arguments, and name them in the refusal.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usage(cmd, "missing argument %s", names[len(args)])
		}
		if len(args) > len(names) {
			return usage(cmd, "unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

func upTo(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usage(cmd, "unexpected argument %q", args[n])
		}
		return nil
	}
}

// required refuses a command line without these flags.
func required(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if !cmd.Flags().Changed(name) {
			return usage(cmd, "missing option --%s", name)
		}
	}
	return nil
}

// oneOf refuses a flag's value that is none of the choices.
func oneOf(cmd *cobra.Command, flag, value string, choices ...string) error {
	return among("--"+flag, cmd, value, choices...)
}

// among refuses a value that is none of the choices; what names where it was given.
func among(what string, cmd *cobra.Command, value string, choices ...string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	return usage(cmd, "invalid value for %s: %q is none of %s", what, value, strings.Join(choices, ", "))
}

// readText is the text of an argument that may be literal, @FILE, or - for standard input.
func (a *app) readText(value string) (string, error) {
	switch {
	case value == "-":
		return readAll(a.Stdin, "standard input")
	case len(value) > 1 && value[0] == '@':
		return a.readFile(value[1:])
	}
	return value, nil
}

// maxText bounds a text that is read for a command, in bytes; a call takes 8 MiB in all.
const maxText = 3 << 20

func (a *app) readFile(path string) (string, error) {
	f, err := os.Open(a.absolute(path))
	if err != nil {
		return "", refusal.New(refusal.CodeUsage, "name a readable file", "%v", err)
	}
	text, err := readAll(f, path)
	return text, errors.Join(err, f.Close())
}

func readAll(r io.Reader, name string) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > maxText {
		return "", refusal.New(refusal.CodeRequestTooLarge, "shorten it", "%s holds more than %d bytes", name, maxText)
	}
	return string(data), nil
}
