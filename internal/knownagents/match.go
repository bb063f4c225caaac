package knownagents

import (
	"path"
	"slices"
	"strings"
)

// Match returns the agent that a manifest's argv starts, and the edition where the package's name
// stands in it; else the current one, with certain false.
func Match(argv []string) (a Agent, e Edition, certain, ok bool) {
	words := started(argv)
	for _, word := range words {
		for _, a := range table {
			for _, e := range a.Editions {
				if names(word, e.Package) {
					return a, e, true, true
				}
			}
		}
	}
	for _, word := range words {
		for _, a := range table {
			if path.Base(word) == a.Program {
				return a, a.Editions[0], len(a.Editions) == 1, true
			}
		}
	}
	return Agent{}, Edition{}, false, false
}

// ByName returns the agent and the edition that call themselves so at initialize.
func ByName(name string) (Agent, Edition, bool) {
	for _, a := range table {
		for _, e := range a.Editions {
			if e.Name == name {
				return a, e, true
			}
		}
	}
	return Agent{}, Edition{}, false
}

// launchers are programs that start another one, which a word after them names.
var launchers = []string{"node", "nodejs", "bun", "bunx", "deno", "npx", "npm", "pnpm", "yarn", "uv", "uvx", "pipx", "env"}

// started are the words of argv that can name what is started: the first, and after a launcher the
// others that are no flags. The value of an agent's own flag is none of them.
func started(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	program := path.Base(argv[0])
	if !slices.Contains(launchers, program) && !strings.HasPrefix(program, "python") {
		return argv[:1]
	}
	words := []string{argv[0]}
	for _, word := range argv[1:] {
		if !strings.HasPrefix(word, "-") {
			words = append(words, word)
		}
	}
	return words
}

// names reports whether a word is a package, with its version or not, or a path through its folder.
// The name may go on with "-": native programs stand in a package for each platform.
func names(word, pkg string) bool {
	for from := 0; ; {
		at := strings.Index(word[from:], pkg)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(pkg)
		begins := at == 0 || strings.HasSuffix(word[:at], "/node_modules/")
		ends := end == len(word) || slices.Contains([]byte("/@="), word[end]) || word[end] == '-' && at > 0
		// Alone it is the package for a launcher, or a program of its own name.
		if begins && ends {
			return true
		}
		from = at + 1
	}
}

// Silence says why an agent will not ask in a mode, the empty one being that of a new session; ""
// where it asks or where that is not known.
func (a Agent) Silence(e Edition, mode string) string {
	switch {
	case a.Asking == NeverAsks:
		return "it never asks, whatever its mode"
	case mode != "" && slices.Contains(a.Silent, mode):
		return "it does not ask in mode " + mode
	case mode == "" && a.Asking == AsksInMode && !e.DefaultAsks:
		return "it begins in mode " + e.Default + ", in which it does not ask"
	}
	return ""
}
