package setup

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"greatminds/internal/knownagents"
)

// Manifest is what setup wrote for one agent.
type Manifest struct {
	Agent string   `json:"agent"`
	Argv  []string `json:"argv"`
	// ArgvReason says why argv names its program as it does.
	ArgvReason     string `json:"argv_reason"`
	AdapterVersion string `json:"adapter_version"`
	HarnessVersion string `json:"harness_version"`
	// Environment are the variables that the agent is given: those of its own that are set now.
	Environment []string `json:"environment"`
	AuthMethod  *string  `json:"auth_method"`
	// Mode is what `project preset` writes into its bindings, null for none.
	Mode *string `json:"mode"`
	// LeftOut says what was not written, and why.
	LeftOut []LeftOut `json:"left_out"`
	Notes   []string  `json:"notes"`
	// Next are the commands that come next.
	Next []string `json:"next"`
}

// LeftOut is something that a manifest could have and has not.
type LeftOut struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// servicePath is the PATH of a program that systemd starts, when nobody sets another: it has no
// folder below a user's home.
const servicePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// manifest composes what is written for an agent that was found.
func (l Look) manifest(f finding) Manifest {
	m := Manifest{Agent: f.ID, Environment: []string{}, Mode: orNull(f.Mode), LeftOut: []LeftOut{}, Notes: append(f.warnings(), f.Notes...),
		Next: []string{"greatminds project preset local --agent " + f.ID + " --apply", "greatminds agent probe " + f.ID + " --session"}}
	if f.Mode != "" {
		m.Next[1] += " --mode " + f.Mode
	}
	m.Argv, m.ArgvReason = l.argv(f)
	m.AdapterVersion = m.versionOf("adapter_version", f.said)
	switch {
	case f.Harness != "":
		m.HarnessVersion = m.versionOf("harness_version", f.harnessSaid)
	case f.Bundled:
		m.HarnessVersion = "bundled with " + m.AdapterVersion
	default:
		m.HarnessVersion = m.AdapterVersion
	}
	m.login(f.Login, l.Getenv)
	if f.harness != "" && !inService(path.Base(f.harness), f.harness) {
		m.Notes = append(m.Notes, fmt.Sprintf("%s starts %s by its name: a daemon whose PATH lacks %s does not find it", f.Program, f.Harness, path.Dir(f.harness)))
	}
	return m
}

// versionOf is the version that a program told, or a word for none.
func (m *Manifest) versionOf(what string, said Answer) string {
	if said.Version != nil {
		return *said.Version
	}
	m.LeftOut = append(m.LeftOut, LeftOut{what, *said.Unknown})
	return "unknown"
}

// login puts in what is set, by its name, and says what is not.
func (m *Manifest) login(login knownagents.Login, getenv func(string) string) {
	var unset []string
	for _, name := range append(list(login.Credentials), login.Settings...) {
		if getenv(name) != "" {
			m.Environment = append(m.Environment, name)
		} else {
			unset = append(unset, name)
		}
	}
	if len(unset) > 0 {
		m.LeftOut = append(m.LeftOut, LeftOut{"environment " + strings.Join(unset, ", "), "not set now; where the daemon has one, add it to the manifest's environment"})
	}
	if login.NoMethod != "" && len(m.Environment) > 0 && slices.Contains(login.Credentials, m.Environment[0]) {
		m.LeftOut = append(m.LeftOut, LeftOut{"auth_method", login.NoMethod})
	}
	if login.Method == "" {
		return
	}
	if key := login.Credentials[0]; getenv(key) == "" {
		m.LeftOut = append(m.LeftOut, LeftOut{"auth_method " + login.Method, key + " is not set"})
		return
	}
	m.AuthMethod = &login.Method
}

// argv names the program so that it is found again: by its name where every service finds it, which
// holds on another machine too, else by the path that PATH leads to, and not by what that links to,
// so that it stays when the package is updated. Where the program is a script whose interpreter is
// looked up in PATH, that one stands first by its own path, since a daemon's PATH need not have it.
// Case C112.
func (l Look) argv(f finding) (argv []string, why string) {
	interpreter := l.interpreter(f.path)
	name := f.path
	switch {
	case len(interpreter) > 0:
		why = fmt.Sprintf("by their paths: a service's PATH does not lead to %s", interpreter[0])
	case inService(f.Program, f.path):
		name, why = f.Program, "by its name: every service's PATH leads to it"
	default:
		why = "by its path: a service's PATH does not lead to it"
	}
	return append(append(interpreter, name), f.Args...), why
}

// inService reports whether a service's PATH leads a program's name to this very file.
func inService(program, file string) bool {
	found := Look{Getenv: func(string) string { return servicePath }}.which(program)
	if found == "" {
		return false
	}
	a, err := os.Stat(found)
	b, other := os.Stat(file)
	return err == nil && other == nil && os.SameFile(a, b)
}

// interpreter is what has to stand before a script so that it runs under any PATH: the interpreter
// that `#!/usr/bin/env NAME` finds now, with its arguments; nil for none.
func (l Look) interpreter(file string) []string {
	f, err := os.Open(file)
	if err != nil {
		return nil // it is executable, and need not be readable
	}
	head, err := io.ReadAll(io.LimitReader(f, 256))
	_ = f.Close() // only read from
	line, _, whole := bytes.Cut(head, []byte("\n"))
	if err != nil || !whole || !bytes.HasPrefix(line, []byte("#!")) {
		return nil
	}
	words := strings.Fields(string(line[2:]))
	if len(words) < 2 || path.Base(words[0]) != "env" {
		return nil
	}
	words = words[1:]
	switch {
	case words[0] == "-S" && len(words) > 1:
		words = words[1:]
	case len(words) > 1:
		return nil // the kernel hands them on as one word, which env then looks for
	}
	if strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=") {
		return nil // env's own business
	}
	found := l.which(words[0])
	if found == "" || inService(words[0], found) {
		return nil
	}
	return append([]string{found}, words[1:]...)
}

// text is the manifest as an entry of `agents`, indented like its neighbours.
func (m Manifest) text(indent string) string {
	var b strings.Builder
	line := func(depth int, format string, args ...any) {
		b.WriteString(indent + strings.Repeat("  ", depth) + fmt.Sprintf(format, args...) + "\n")
	}
	line(0, "# found by greatminds setup; the versions are what the programs said")
	line(0, "%s:", scalar(m.Agent))
	line(1, "transport: acp")
	line(1, "argv:")
	for _, word := range m.Argv {
		line(2, "- %s", scalar(word))
	}
	line(1, "adapter_version: %s", scalar(m.AdapterVersion))
	line(1, "harness_version: %s", scalar(m.HarnessVersion))
	if len(m.Environment) > 0 {
		line(1, "environment:")
		for _, name := range m.Environment {
			line(2, "%s: %s", name, name)
		}
	}
	if m.AuthMethod != nil {
		line(1, "auth_method: %s", scalar(*m.AuthMethod))
	}
	return b.String()
}
