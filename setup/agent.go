package setup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"greatminds/contract"
	"greatminds/internal/execgate"
	"greatminds/internal/knownagents"
)

// AgentList is the answer of `agent presets`.
type AgentList struct {
	Version int           `json:"version"`
	Agents  []AgentPreset `json:"agents"`
}

// AgentPreset is one known agent, and what this machine has of it.
type AgentPreset struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Program is what is looked for, Args what makes it speak ACP.
	Program string   `json:"program"`
	Args    []string `json:"args"`
	// Installed says that program, and harness where there is one, are on PATH.
	Installed bool    `json:"installed"`
	Path      *string `json:"path"`
	// Package is the package that the program comes from, null where its place does not tell.
	Package *string `json:"package"`
	Answer
	// Harness is the second program that the first one starts; null for none.
	Harness *HarnessProgram `json:"harness"`
	// Install is the command line that installs the release that the facts are from.
	Install string `json:"install"`
	// Asking is in_mode, by_default, by_own_config or never; Mode the mode in which it asks, null
	// where none has to be set; SilentModes those in which it uses its tools unasked.
	Asking      string   `json:"asking"`
	Mode        *string  `json:"mode"`
	SilentModes []string `json:"silent_modes"`
	// DefaultMode is the mode of a new session, null where that is about something else or
	// differs between the packages. DefaultAsks says whether it asks there.
	DefaultMode *string  `json:"default_mode"`
	DefaultAsks *bool    `json:"default_asks"`
	Login       Login    `json:"login"`
	Notes       []string `json:"notes"`
}

// HarnessProgram is a program that an adapter starts.
type HarnessProgram struct {
	Program string  `json:"program"`
	Path    *string `json:"path"`
	Answer
}

// Login says what authentication an agent needs, by names of variables alone.
type Login struct {
	Credentials []string `json:"credentials"`
	Settings    []string `json:"settings"`
	// Set are those of both that are set now.
	Set  []string `json:"set"`
	Hint string   `json:"hint"`
}

// Look is how agents are looked for and asked.
type Look struct {
	// Getenv is the environment in which they are looked for. A program that is asked gets of it
	// what an agent gets.
	Getenv func(string) string
	// Patience is how long one program may take to tell its version; 0 means [AgentPatience].
	Patience time.Duration
}

const (
	// AgentPatience is enough for the slowest, which takes 8 s on an idle machine.
	AgentPatience = 30 * time.Second
	// askedAtOnce is how many programs are asked at a time: slow ones do not add up, and do not slow
	// each other down too much.
	askedAtOnce = 3
)

// Agents looks for every known agent on PATH and asks those that are there for their versions. It
// fails only with ctx, or where no temporary folder can be made.
func (l Look) Agents(ctx context.Context) (AgentList, error) {
	list := AgentList{Version: 1, Agents: []AgentPreset{}}
	var known []knownagents.Agent
	for _, id := range knownagents.IDs() {
		a, _ := knownagents.Find(id) // one of its own ids
		known = append(known, a)
	}
	found, err := l.survey(ctx, known)
	for _, f := range found {
		list.Agents = append(list.Agents, f.preset(l.Getenv))
	}
	return list, err
}

// finding is what this machine has of one agent.
type finding struct {
	knownagents.Agent
	// path and harness are the files on PATH, speechless that of the maker's program without ACP;
	// empty where they are not there.
	path, harness, speechless string
	// edition is the package that path belongs to, where known.
	edition *knownagents.Edition
	// said and harnessSaid are what the two programs answered.
	said, harnessSaid Answer
}

func (f finding) installed() bool { return f.path != "" && (f.Harness == "" || f.harness != "") }

// survey looks for agents and asks those that are there.
func (l Look) survey(ctx context.Context, known []knownagents.Agent) ([]finding, error) {
	dir, err := os.MkdirTemp("", "greatminds-agents-")
	if err != nil {
		return nil, fmt.Errorf("ask agents for their versions: %w", err)
	}
	// What an agent left in it is no concern of ours, nor is a folder that cannot be removed.
	defer func() { _ = os.RemoveAll(dir) }()
	found := make([]finding, len(known))
	var work sync.WaitGroup
	free := make(chan struct{}, askedAtOnce)
	for i, a := range known {
		found[i] = l.find(a)
		work.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			l.ask(ctx, dir, &found[i])
		})
	}
	work.Wait()
	return found, ctx.Err()
}

// find looks for an agent's files.
func (l Look) find(a knownagents.Agent) finding {
	f := finding{Agent: a, path: l.which(a.Program)}
	if a.Harness != "" {
		name := a.Harness
		if other := l.Getenv(a.HarnessVariable); a.HarnessVariable != "" && other != "" {
			name = other
		}
		f.harness = l.which(name)
	}
	if a.Speechless != "" {
		f.speechless = l.which(a.Speechless)
	}
	if f.path == "" {
		return f
	}
	// A package manager puts a link on PATH; the package's name stands in what it leads to.
	if real, err := filepath.EvalSymlinks(f.path); err == nil {
		if of, edition, certain, ok := knownagents.Match([]string{real}); ok && certain && of.ID == a.ID {
			f.edition = &edition
		}
	}
	return f
}

// which is the file that PATH leads to, empty for none.
func (l Look) which(program string) string {
	file, err := execgate.LookPath(program, "/", []string{"PATH=" + l.Getenv("PATH")})
	if err != nil || !filepath.IsAbs(file) {
		return ""
	}
	return file
}

func (l Look) ask(ctx context.Context, dir string, f *finding) {
	env, _ := contract.Agent{}.Environ(l.Getenv)
	patience := l.Patience
	if patience <= 0 {
		patience = AgentPatience
	}
	q := question{dir: dir, env: env, patience: patience}
	if f.path != "" {
		var name string
		f.said, name = q.version(ctx, f.path, f.Args)
		if of, edition, ok := knownagents.ByName(name); ok && f.edition == nil && of.ID == f.ID {
			f.edition = &edition
		}
	}
	if f.harness != "" {
		f.harnessSaid, _ = q.version(ctx, f.harness, nil)
	}
}

// preset is the finding as it is printed.
func (f finding) preset(getenv func(string) string) AgentPreset {
	p := AgentPreset{ID: f.ID, Title: f.Title, Program: f.Program, Args: list(f.Args), Installed: f.installed(), Path: orNull(f.path),
		Answer: f.said, Install: f.Install, Asking: string(f.Asking), Mode: orNull(f.Mode), SilentModes: list(f.Silent),
		Login: Login{Credentials: list(f.Login.Credentials), Settings: list(f.Login.Settings), Set: []string{}, Hint: f.Login.Hint},
		Notes: append(f.warnings(), f.Notes...)}
	if f.Harness != "" {
		p.Harness = &HarnessProgram{Program: f.Harness, Path: orNull(f.harness), Answer: f.harnessSaid}
	}
	edition := f.edition
	if edition != nil {
		p.Package = &edition.Package
	} else if len(f.Editions) == 1 {
		edition = &f.Editions[0]
	}
	if edition != nil && edition.Default != "" {
		p.DefaultMode, p.DefaultAsks = &edition.Default, &edition.DefaultAsks
	}
	for _, name := range append(list(f.Login.Credentials), f.Login.Settings...) {
		if getenv(name) != "" {
			p.Login.Set = append(p.Login.Set, name)
		}
	}
	return p
}

// warnings are about what this machine has of the agent.
func (f finding) warnings() []string {
	notes := []string{}
	if f.path == "" && f.speechless != "" {
		notes = append(notes, f.speechless+" is there, but speaks no ACP: "+f.Program+" is needed beside it")
	}
	if f.path != "" && f.Harness != "" && f.harness == "" {
		notes = append(notes, f.Program+" is there, but it starts "+f.Harness+", which is not on PATH")
	}
	return notes
}

// list is a copy that is never nil, so that JSON has [] and not null.
func list(s []string) []string { return append([]string{}, s...) }

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
